//! Metrics that look at some labels of each document, and label sets that do not depend on it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cladist::core::metrics::MetricOptions;
use cladist::core::text::normalise::Normalise;
use cladist::core::{LabelSet, Progress};
use cladist::corpus::{Split, SplitName};
use cladist::observe::DevReport;
use cladist::{
    BadLinePolicy, DecodeOptions, EvaluateOptions, Model, Observer, OpenOptions, PredictOptions, Training,
    Work,
};

use crate::support::{corpus, files, network, settings, split, svm};

const LIMIT: [&str; 2] = ["metrics.k=[1]", "metrics.max_labels=1"];

/// What `predict` answers, as sets.
fn predicted(model: &Model, split: &Split, decode: &DecodeOptions) -> Vec<LabelSet> {
    let options = PredictOptions { decode: decode.clone(), ..PredictOptions::default() };
    let predictions = model.predict(&split.documents, &options).unwrap();
    let sets = predictions.iter().map(|prediction| {
        prediction.labels.iter().filter_map(|label| model.taxonomy().get(&label.id)).collect()
    });
    sets.collect()
}

#[test]
fn label_sets_of_an_evaluation_are_those_of_predict() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let split = split(SplitName::Test, 3);
    let limit = MetricOptions { k: vec![1], max_labels: 1, ..MetricOptions::default() };
    let decodings = [
        DecodeOptions::default(),
        DecodeOptions { coherent: true, ..DecodeOptions::default() },
        DecodeOptions { threshold: Some(0.1), ..DecodeOptions::default() },
        DecodeOptions { threshold: Some(0.1), top_k: Some(1), ..DecodeOptions::default() },
        DecodeOptions { top_k: Some(3), ..DecodeOptions::default() },
        DecodeOptions { exclude: vec!["animals".to_owned()], ..DecodeOptions::default() },
    ];
    let mut several = false;
    for decode in decodings {
        let options = EvaluateOptions { decode, metrics: Some(limit.clone()), ..EvaluateOptions::default() };
        let answers = model.answers(&split, &options).unwrap();
        assert_eq!(answers.predicted, predicted(&model, &split, &options.decode), "{:?}", options.decode);
        assert!(answers.scores.rows().all(|row| row.len() <= 1), "{:?}", options.decode);
        several |= answers.predicted.iter().any(|set| set.len() > 1);
        let capped = model.evaluate(&split, &options).unwrap().report.metrics;
        let whole =
            EvaluateOptions { metrics: Some(MetricOptions { max_labels: 0, ..limit.clone() }), ..options };
        let whole = model.evaluate(&split, &whole).unwrap().report.metrics;
        for name in ["micro-f1", "macro-f1", "hierarchical-f1-micro", "set-accuracy", "accuracy", "p@1"] {
            assert_eq!(capped.get(name), whole.get(name), "{name}");
        }
    }
    assert!(several, "the limit would show");
}

#[test]
fn bins_are_those_of_the_options_before_and_after_calibration() {
    let place = tempfile::tempdir().unwrap();
    let run = Training::new(settings("svm", &["refit=never", "calibrate.method=platt"])).corpus(corpus());
    let model = run.out(place.path().join("run")).run().unwrap().open(&OpenOptions::default()).unwrap();
    let error = |ece_bins: usize| {
        let metrics = Some(MetricOptions { ece_bins, ..MetricOptions::default() });
        let options = EvaluateOptions { metrics, ..EvaluateOptions::default() };
        model.evaluate(&split(SplitName::Test, 3), &options).unwrap().report.metrics["ece-uncalibrated"]
    };
    assert_ne!(error(1), error(15));
}

#[test]
fn dev_is_judged_by_the_label_sets_that_the_model_predicts() {
    let place = tempfile::tempdir().unwrap();
    let set = [&["refit=never", "data.ancestors=add"][..], &LIMIT].concat();
    let run =
        Training::new(settings("svm", &set)).corpus(corpus()).out(place.path().join("run")).run().unwrap();
    let model = run.open(&OpenOptions::default()).unwrap();
    let dev = split(SplitName::Dev, 3);
    let options = EvaluateOptions::default();
    assert_eq!(
        model.answers(&dev, &options).unwrap().predicted,
        predicted(&model, &dev, &DecodeOptions::default())
    );
    let again = model.evaluate(&dev, &options).unwrap();
    assert_eq!(run.summary.dev["micro-f1"], again.report.metrics["micro-f1"]);
}

/// Values of evaluations during training.
#[derive(Default)]
struct OnDev(Mutex<Vec<BTreeMap<String, f64>>>);

impl Progress for OnDev {
    fn stage(&self, _name: &str, _total: u64) {}
    fn advance(&self, _n: u64) {}
}

impl Observer for OnDev {
    fn dev(&self, report: &DevReport) {
        self.0.lock().unwrap().push(report.values.clone());
    }
}

#[test]
fn a_limit_holds_during_training_and_changes_no_label_set() {
    let place = tempfile::tempdir().unwrap();
    let values = |name: &str, max_labels: usize| {
        let mut config = network();
        config.common.metrics = MetricOptions { k: vec![1], max_labels, ..MetricOptions::default() };
        config.common.decode.threshold = cladist::core::decode::Thresholds::One(0.3);
        let heard = OnDev::default();
        Training::new(config).corpus(corpus()).observe(&heard).out(place.path().join(name)).run().unwrap();
        heard.0.into_inner().unwrap()
    };
    let (whole, capped) = (values("whole", 0), values("capped", 1));
    assert_eq!(whole.len(), capped.len());
    for (whole, capped) in whole.iter().zip(&capped) {
        for name in ["loss", "micro-f1", "micro-recall", "p@1"] {
            assert_eq!(whole.get(name), capped.get(name), "{name}");
        }
        assert_ne!(whole["ece"], capped["ece"]);
    }
}

#[test]
fn texts_that_are_normalised_are_not_normalised_again() {
    let place = tempfile::tempdir().unwrap();
    let set = ["refit=never", "data.normalise.lowercase=true", "features.lowercase=false"];
    let training = Training::new(settings("svm", &set)).corpus(files(place.path()));
    let run = training.out(place.path().join("run")).run().unwrap();
    let model = run.open(&OpenOptions::default()).unwrap();
    let read =
        model.read_split(SplitName::Test, None, None, &BadLinePolicy::Stop, &Work::default()).unwrap().0;
    let lowercase = Normalise { lowercase: true, ..Normalise::default() };
    assert_eq!(read.normalised, lowercase);
    let scores = |split: &Split| model.answers(split, &EvaluateOptions::default()).unwrap().scores;
    let mut loud = read.clone();
    loud.documents.iter_mut().for_each(|document| document.text = document.text.to_uppercase());
    // Whoever says so is believed.
    assert_ne!(scores(&loud), scores(&read));
    loud.normalised = Normalise::default();
    assert_eq!(scores(&loud), scores(&read));
}
