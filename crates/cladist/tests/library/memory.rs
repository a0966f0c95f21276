//! Trainings from documents in memory.

use cladist::core::LabelSet;
use cladist::corpus::{Corpus, Split, SplitName};
use cladist::{ErrorKind, Model, OpenOptions, Taxonomy, Training};

use crate::support::{Heard, corpus, settings, split};

/// Gold labels without their ancestors.
fn lowest(split: Split, taxonomy: &Taxonomy) -> Split {
    let lowest = |gold: &LabelSet| -> LabelSet {
        gold.iter().copied().filter(|&label| taxonomy.children(label).is_empty()).collect()
    };
    Split { gold: split.gold.iter().map(lowest).collect(), ..split }
}

#[test]
fn settings_hold_for_documents_in_memory() {
    let place = tempfile::tempdir().unwrap();
    let Corpus { taxonomy, train, dev, .. } = corpus();
    let train = train.map(|train| lowest(train, &taxonomy));
    let corpus = Corpus { train, dev, test: None, taxonomy };
    let model = |name: &str, set: &[&str]| -> Model {
        let settings = settings("svm", &[&["refit=never"], set].concat());
        let training = Training::new(settings).corpus(corpus.clone()).out(place.path().join(name));
        training.run().unwrap().open(&OpenOptions::default()).unwrap()
    };
    let count = |model: &Model, id: &str| {
        let label = model.taxonomy().get(id).unwrap();
        model.label_counts().counts[label.index()]
    };
    let plain = model("plain", &[]);
    assert_eq!((count(&plain, "animals"), count(&plain, "cats")), (0, 8));
    let closed = model("closed", &["data.ancestors=add"]);
    assert_eq!((count(&closed, "animals"), count(&closed, "cats")), (16, 8));
    let cut = model("cut", &["data.max_levels=1"]);
    assert_eq!((cut.taxonomy().n_labels(), count(&cut, "animals")), (2, 16));
}

#[test]
fn seeds_are_judged_on_a_test_split_in_memory() {
    let place = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let corpus = Corpus { test: Some(split(SplitName::Test, 3)), ..corpus() };
    let set = ["refit=never", "data.max_levels=1"];
    let training = Training::new(settings("svm", &set)).corpus(corpus).observe(&heard);
    let report = training.out(place.path()).run_seeds(2).unwrap();
    assert_eq!(report.runs.len(), 2);
    assert!(report.test["micro-f1"].mean > 0.9, "{:?}", report.test);
    assert!(heard.0.lock().unwrap().iter().any(|line| line.contains("test: 9 documents, in memory")));
}

#[test]
fn gold_that_does_not_fit_is_an_error_of_the_data() {
    let place = tempfile::tempdir().unwrap();
    let refused = |corpus: Corpus| {
        let training = Training::new(settings("svm", &[])).corpus(corpus).out(place.path().join("run"));
        let error = training.run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert_eq!(training.rehearse().unwrap_err().to_string(), error.to_string());
        error.to_string()
    };
    let mut short = corpus();
    short.dev.as_mut().unwrap().gold.pop();
    assert!(refused(short).contains("the dev split has 9 documents and 8 gold sets"));
    let foreign = Corpus { taxonomy: Taxonomy::flat(["a"]), ..corpus() };
    assert!(refused(foreign).contains("of a taxonomy with 1 labels"));
}
