//! Opens a trained model, labels a document and shows which words its best label rests on.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use cladist::config::Layers;
use cladist::corpus::CorpusSource;
use cladist::{DecodeOptions, Document, ExplainOptions, Model, OpenOptions, PredictOptions, Training, demo};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let (corpus, run) = (place.path().join("corpus"), place.path().join("run"));
    demo::write_folder(&corpus, 42)?;
    Training::new(Layers::of_head("svm").resolve()?)
        .corpus(CorpusSource::folder(&corpus)?)
        .out(&run)
        .run()?;

    // A model is cheap to clone and can be shared between threads.
    let model = Model::open(&run, &OpenOptions::default())?;
    let document = Document::from_text("ticket-1", "the scooter would not unlock");

    let decode = DecodeOptions { top_k: Some(3), ..DecodeOptions::default() };
    let options = PredictOptions { decode, ..PredictOptions::default() };
    for label in &model.predict(std::slice::from_ref(&document), &options)?[0].labels {
        println!("{:.2} {} (level {})", label.score, label.name, label.level);
    }

    let options = ExplainOptions { top_k: 1, ..ExplainOptions::default() };
    for label in model.explain(&document, &options)? {
        for word in label.words {
            println!("{}: {} {:+.3}", label.name, word.text, word.importance);
        }
    }
    Ok(())
}
