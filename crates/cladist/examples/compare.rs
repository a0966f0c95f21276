//! Evaluates two models on the same documents and tests whether they differ by more than chance.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use cladist::config::Layers;
use cladist::core::metrics::bootstrap::ResampleOptions;
use cladist::core::metrics::compare::compare;
use cladist::corpus::{CorpusSource, SplitName};
use cladist::{BadLinePolicy, EvaluateOptions, OpenOptions, Training, Work, demo};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let corpus = place.path().join("corpus");
    demo::write_folder(&corpus, 42)?;
    let train = |head: &str| {
        let settings = Layers::of_head(head).resolve()?;
        let training = Training::new(settings).corpus(CorpusSource::folder(&corpus)?);
        training.out(place.path().join(head)).run()?.open(&OpenOptions::default())
    };
    let (svm, parabel) = (train("svm")?, train("parabel")?);

    // Both read the test split of the corpus that their run folders remember.
    let work = Work::default();
    let (split, _) = svm.read_split(SplitName::Test, None, None, &BadLinePolicy::Stop, &work)?;
    for model in [&svm, &parabel] {
        let evaluation = model.evaluate(&split, &EvaluateOptions::default())?;
        println!("{}: micro-F1 {:.3}", evaluation.head, evaluation.report.metrics["micro-f1"]);
    }

    // Paired randomisation over documents.
    let evaluate = EvaluateOptions::default();
    let (a, b) = (svm.answers(&split, &evaluate)?, parabel.answers(&split, &evaluate)?);
    let (a, b) = (a.judged(&svm, &split.gold), b.judged(&parabel, &split.gold));
    let metrics = &svm.config().common.metrics;
    let options = ResampleOptions { resamples: 100, ..ResampleOptions::default() };
    for row in compare(&a, &b, metrics, &options, &work.job())? {
        println!("{}: {:+.4}, p = {:.3}", row.metric, row.difference, row.p_value);
    }
    Ok(())
}
