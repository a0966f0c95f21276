use std::path::Path;

use cladist::corpus::SplitName;
use cladist::{
    DecodeOptions, Document, Error, ErrorKind, EvaluateOptions, ExplainOptions, Model, OpenOptions,
    PredictOptions, Training,
};

use crate::support::{corpus, documents, settings, small_network, split, svm};

fn labels(model: &Model, options: &DecodeOptions) -> Vec<String> {
    let options = PredictOptions { decode: options.clone(), ..PredictOptions::default() };
    let document = Document::from_text("1", "the kitten would purr");
    let predictions = model.predict(&[document], &options).unwrap();
    predictions[0].labels.iter().map(|label| label.id.clone()).collect()
}

#[test]
fn a_bundle_of_the_first_format_opens_and_scores_as_it_did() {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bundle-v1");
    let model = Model::open(&bundle, &OpenOptions::default()).unwrap();
    let documents =
        [Document::from_text("1", "the kitten would purr"), Document::from_text("2", "engine and leash")];
    let predictions = model.predict(&documents, &PredictOptions::top_k(3)).unwrap();
    let found: Vec<Vec<(&str, f32)>> = predictions
        .iter()
        .map(|one| one.labels.iter().map(|label| (label.id.as_str(), label.score)).collect())
        .collect();
    assert_eq!(found[0], [("animals", 0.998_004_2), ("cats", 0.947_763_44), ("machines", 0.017_940_72)]);
    assert_eq!(found[1], [("animals", 0.594_169_7), ("dogs", 0.493_034_36), ("machines", 0.421_775_28)]);
    assert!(model.folder().is_none() && model.source().is_none());
}

/// The fixture is an ensemble of a network on a tiny encoder and a linear model, all written by version 0.1.0.
#[test]
fn so_do_an_ensemble_and_the_network_in_it() {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ensemble-v1");
    let documents =
        [Document::from_text("1", "the kitten would purr"), Document::from_text("2", "engine and leash")];
    let network = [
        [("animals", 0.999_996_6), ("cats", 0.702_766_54), ("dogs", 0.212_611_48)],
        [("machines", 0.972_424_75), ("cars", 0.947_202_27), ("dogs", 0.645_136_4)],
    ];
    let ensemble = [
        [("animals", 0.999_999), ("cats", 0.828_546_17), ("dogs", 0.112_452_85)],
        [("machines", 0.699_317_04), ("cars", 0.686_601_04), ("dogs", 0.570_239_37)],
    ];
    for (folder, expected) in [(bundle.join("member-1"), network), (bundle, ensemble)] {
        let model = Model::open(&folder, &OpenOptions::default()).unwrap();
        let predictions = model.predict(&documents, &PredictOptions::top_k(3)).unwrap();
        for (one, expected) in predictions.iter().zip(expected) {
            for (label, (id, score)) in one.labels.iter().zip(expected) {
                assert_eq!(label.id, id, "{one:?}");
                // Kernels for other instructions add in another order.
                assert!((f64::from(label.score) - score).abs() < 1e-4, "{one:?}");
            }
            assert_eq!(one.labels.len(), expected.len());
        }
    }
}

#[test]
fn a_bundle_of_a_later_format_is_refused_by_version() {
    let place = tempfile::tempdir().unwrap();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bundle-v1");
    for entry in std::fs::read_dir(old).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, place.path().join(path.file_name().unwrap())).unwrap();
    }
    let manifest = place.path().join("MANIFEST.json");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("\"version\": 1", "\"version\": 99");
    std::fs::write(&manifest, text).unwrap();
    let error = Model::open(place.path(), &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Bundle);
    assert!(error.to_string().contains("99"), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("update Cladist")), "{:?}", error.remedy());
}

#[test]
fn labels_and_subtrees_can_be_included_and_excluded() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let all = DecodeOptions { top_k: Some(9), ..DecodeOptions::default() };
    assert_eq!(labels(&model, &all)[..2], ["animals", "cats"]);
    let without = DecodeOptions { exclude: vec!["cats".to_owned()], ..all.clone() };
    assert!(!labels(&model, &without).contains(&"cats".to_owned()));
    let below = DecodeOptions { include: vec!["machines/**".to_owned()], ..all.clone() };
    let mut found = labels(&model, &below);
    found.sort_unstable();
    assert_eq!(found, ["cars", "machines"]);
    let unknown = DecodeOptions { exclude: vec!["fish".to_owned()], ..all };
    let options = PredictOptions { decode: unknown, ..PredictOptions::default() };
    let error = model.predict(&documents("x", 1), &options).unwrap_err();
    assert!(error.to_string().contains("`fish`"), "{error}");
}

#[test]
fn two_threads_share_a_model_and_get_what_one_gets() {
    let place = tempfile::tempdir().unwrap();
    for model in [svm(place.path()), small_network(place.path())] {
        let documents = documents("x", 40);
        let alone = model.predict(&documents, &PredictOptions::default()).unwrap();
        let other =
            Model::open(model.path(), &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap();
        std::thread::scope(|scope| {
            let ask = |model: Model| {
                let documents = &documents;
                scope.spawn(move || {
                    (0..5)
                        .map(|_| model.predict(documents, &PredictOptions::default()).unwrap())
                        .collect::<Vec<_>>()
                })
            };
            let asked = [ask(model.clone()), ask(model.clone()), ask(other)];
            for answers in asked.into_iter().flat_map(|thread| thread.join().unwrap()) {
                assert_eq!(answers, alone);
            }
        });
    }
}

#[test]
fn evaluation_and_explanation_need_no_terminal() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let evaluation = model.evaluate(&split(SplitName::Test, 3), &EvaluateOptions::default()).unwrap();
    assert!(evaluation.report.metrics["micro-f1"] > 0.9, "{:?}", evaluation.report.metrics);
    assert!(!evaluation.seen_in_training);
    let document = Document::from_text("1", "the kitten would purr");
    let options = ExplainOptions { labels: vec!["cats".to_owned()], ..ExplainOptions::default() };
    let explained = model.explain(&document, &options).unwrap();
    let best = explained[0].words.iter().max_by(|a, b| a.importance.total_cmp(&b.importance)).unwrap();
    assert!(["kitten", "purr"].contains(&best.text.as_str()), "{best:?}");
    let wrong = ExplainOptions { method: cladist::ExplainMethod::Attention, ..ExplainOptions::default() };
    assert!(matches!(model.explain(&document, &wrong), Err(Error::Unsupported { head: "svm", .. })));
}

#[test]
fn an_explanation_of_no_labels_or_no_words_is_a_wrong_setting() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let document = Document::from_text("1", "the kitten would purr");
    let no_labels = ExplainOptions { top_k: 0, ..ExplainOptions::default() };
    let no_words = ExplainOptions { max_words: 0, ..ExplainOptions::default() };
    for (options, wrong) in [(no_labels, "top_k"), (no_words, "max_words")] {
        for refused in [
            model.check_explain(&options),
            model.explain(&document, &options).map(drop),
            model.explain_and_check(&document, &options, 1).map(drop),
        ] {
            assert!(matches!(refused, Err(Error::Setting { key, .. }) if key == wrong), "{wrong}");
        }
    }
}

#[test]
fn a_model_can_be_saved_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let copy = place.path().join("copy");
    model.save(&copy).unwrap();
    let copy = Model::open(&copy, &OpenOptions::default()).unwrap();
    let documents = documents("x", 3);
    let ask = |model: &Model| model.predict(&documents, &PredictOptions::default()).unwrap();
    assert_eq!(ask(&copy), ask(&model));
}

#[test]
fn kinds_of_errors_tell_a_program_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let open = |path: &Path| Model::open(path, &OpenOptions::default()).unwrap_err().kind();
    assert_eq!(open(&place.path().join("nothing")), ErrorKind::NotFound);
    std::fs::write(place.path().join("MANIFEST.json"), "{").unwrap();
    assert_eq!(open(place.path()), ErrorKind::Bundle);
    let model = svm(place.path());
    let options = OpenOptions { set: vec!["linear.c=2".to_owned()], ..OpenOptions::default() };
    assert_eq!(Model::open(model.path(), &options).unwrap_err().kind(), ErrorKind::Setting);
    let options = OpenOptions { threads: Some(99_999), ..OpenOptions::default() };
    assert_eq!(Model::open(model.path(), &options).unwrap_err().kind(), ErrorKind::Setting);
    let levels = PredictOptions { levels: Some(7..=8), ..PredictOptions::default() };
    let error = model.predict(&documents("x", 1), &levels).unwrap_err();
    assert!(matches!(error, Error::NoSuchLevel { first: 7, n_levels: 2 }));
}

#[test]
fn options_out_of_range_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let refused = |options: &PredictOptions<'_>, key: &str| {
        let error = model.predict(&documents("x", 1), options).unwrap_err();
        assert!(matches!(&error, Error::Setting { key: found, .. } if found == key), "{error}");
    };
    for n in [0, 101, 1_000_000] {
        refused(&PredictOptions { sequences: Some(n), ..PredictOptions::default() }, "sequences");
    }
    for (first, last) in [(2, 1), (0, 1)] {
        refused(&PredictOptions { levels: Some(first..=last), ..PredictOptions::default() }, "levels");
    }
    let beyond = PredictOptions { levels: Some(2..=usize::MAX), ..PredictOptions::default() };
    model.predict(&documents("x", 1), &beyond).unwrap();
}

#[test]
fn settings_that_parameters_depend_on_stay_with_more_labels_too() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let options = OpenOptions { set: vec!["linear.c=2".to_owned()], ..OpenOptions::default() };
    let opened = Model::open_extended(model.path(), &options, |known| Ok(known.clone()));
    assert!(matches!(opened.unwrap_err(), Error::Fixed { .. }));
}

#[test]
fn opening_stops_when_it_is_asked_to() {
    let place = tempfile::tempdir().unwrap();
    let model = svm(place.path());
    let options = OpenOptions::default();
    options.cancel.cancel();
    assert_eq!(Model::open(model.path(), &options).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn what_a_search_found_is_what_is_predicted() {
    let place = tempfile::tempdir().unwrap();
    let shared = ["encoder=scratch:tiny", "train.epochs=3", "train.batch_size=8"];
    let beam = ["label-sequence.scores=beam", "label-sequence.beam=4"];
    let train = |name: &str, set: &[&str]| {
        let config = settings("label-sequence", &[&shared[..], set].concat());
        Training::new(config).corpus(corpus()).out(place.path().join(name)).run().unwrap()
    };
    let set = beam.iter().map(|&text| text.to_owned()).collect();
    // A search that is turned on after calibration and thresholds were fitted to other scores, and one from the start.
    let widened = OpenOptions { set, ..OpenOptions::default() };
    let steps = train("steps", &[]);
    let fitted = steps.open(&OpenOptions::default()).unwrap();
    assert!(!fitted.pipeline().calibration.is_identity());
    let models = [steps.open(&widened).unwrap(), train("beam", &beam).open(&OpenOptions::default()).unwrap()];
    let documents = split(SplitName::Test, 3).documents;
    for model in models {
        assert!(model.pipeline().calibration.is_identity());
        let options = PredictOptions { sequences: Some(1), ..PredictOptions::default() };
        for answer in model.predict(&documents, &options).unwrap() {
            let mut labels: Vec<&str> = answer.labels.iter().map(|label| label.id.as_str()).collect();
            let mut found: Vec<&str> =
                answer.sequences.as_ref().unwrap()[0].labels.iter().map(String::as_str).collect();
            labels.sort_unstable();
            found.sort_unstable();
            assert_eq!(labels, found, "{answer:?}");
        }
    }
}
