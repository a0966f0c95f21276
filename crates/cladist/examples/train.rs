//! Trains a linear model on a corpus and saves it in a run folder.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use cladist::config::Layers;
use cladist::corpus::CorpusSource;
use cladist::{Training, demo};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A corpus folder: train, dev and test files, a hierarchy and names of labels. Yours would do as well.
    let place = tempfile::tempdir()?;
    let corpus = place.path().join("corpus");
    demo::write_folder(&corpus, 42)?;

    // Settings are typed values; here they come from the defaults of a head and two keys.
    let set = vec!["data.ancestors=add".to_owned(), "linear.c=0.5".to_owned()];
    let settings = Layers { set, ..Layers::of_head("svm") }.resolve()?;

    let run =
        Training::new(settings).corpus(CorpusSource::folder(&corpus)?).out(place.path().join("run")).run()?;
    println!("{} documents in {:.1} s", run.summary.documents, run.summary.seconds);
    Ok(())
}
