//! Models as classifiers.

use std::fs;

use cladist_core::{Classifier, ErrorKind, Job, LabelId, LabelSet, Request};

use super::*;
use crate::heads::flat::FlatConfig;
use crate::heads::label_attention::LabelAttentionConfig;
use crate::losses::Loss;
use crate::tokens::{Pool, TokensConfig};
use crate::toy::{Toy, design, fitting, flat, golden};

#[test]
fn a_model_is_shared_between_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<NeuralModel>();
}

#[test]
fn the_score_of_a_document_is_the_highest_or_the_mean_of_its_windows() {
    let toy = Toy::new(Task::MultiLabel);
    for pool in [Pool::Max, Pool::Mean] {
        let mut design = flat();
        design.tokens =
            TokensConfig { max_tokens: 8, windows: 3, stride: 2, pool, ..TokensConfig::default() };
        let model = toy.model(design, 1);
        let tokens = model.tokenize(&toy.documents).unwrap();
        let counts: Vec<usize> = tokens.iter().map(Vec::len).collect();
        assert!(counts.contains(&1) && counts.contains(&3), "{counts:?}");
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        let best = model.score(&toy.documents, &Request { top_k: Some(2), ..Request::default() }).unwrap();
        for (n, windows) in tokens.iter().enumerate() {
            let alone: Vec<Vec<(LabelId, f32)>> = windows
                .iter()
                .map(|window| {
                    let window = [vec![window.clone()]];
                    model.run(&window, None, &Request::default(), &mut []).unwrap().rows.remove(0)
                })
                .collect();
            let row = scores.row(n);
            assert_eq!(row.len(), toy.taxonomy.n_labels());
            assert_eq!(best.row(n), &row[..2]);
            for &(label, score) in row {
                let of_label =
                    alone.iter().map(|row| row.iter().find(|(other, _)| *other == label).unwrap().1);
                let expected = match pool {
                    Pool::Max => of_label.fold(f32::MIN, f32::max),
                    Pool::Mean => of_label.sum::<f32>() / windows.len() as f32,
                };
                assert!((score - expected).abs() < 1e-6, "{score} instead of {expected}");
            }
        }
    }
}

#[test]
fn a_tokenizer_or_length_that_the_encoder_has_no_room_for_is_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden("bert").join(name), folder.path().join(name)).unwrap();
    }
    let words = fs::read_to_string(golden("bert").join("vocab.txt")).unwrap();
    let create = |words: &str, max_tokens: usize| {
        fs::write(folder.path().join("vocab.txt"), words).unwrap();
        let mut design = flat();
        design.tokens.max_tokens = max_tokens;
        let source = EncoderSource::Folder(folder.path().to_owned());
        let taxonomy = toy.taxonomy.clone();
        NeuralModel::create(
            design,
            &source,
            &toy.examples(),
            taxonomy,
            &toy.counts(),
            &Start::new(1, &Device::flex()),
        )
        .map(|_| ())
        .map_err(|error| (error.kind(), error.to_string()))
    };
    create(&words, 40).unwrap();
    let (kind, message) = create(&words, 41).unwrap_err();
    assert_eq!(message, "`tokens.max_tokens` must be at most 40 with this encoder: 41");
    assert_eq!(kind, ErrorKind::Setting);
    let (_, message) = create(&format!("{words}oneword\ntoomany\n"), 40).unwrap_err();
    assert!(message.contains("122 pieces") && message.contains("only 120"), "{message}");
    assert!(create(&words, 7).unwrap_err().1.contains("tokens.max_tokens"));
}

#[test]
fn a_bundle_with_a_head_for_other_labels_is_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let writer = Writer::create(&path, "model").unwrap();
    toy.model(flat(), 1).save(&writer).unwrap();
    writer.finish().unwrap();
    let load = |taxonomy: Taxonomy| {
        NeuralModel::load(&path, flat(), taxonomy, &toy.counts(), &Device::flex(), &Cancel::default())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    load(toy.taxonomy.clone()).unwrap();
    let message = load(Taxonomy::flat(["a", "b"])).unwrap_err();
    assert!(message.contains("head.safetensors") && message.contains("not [2"), "{message}");
}

#[test]
fn a_bundle_with_numbers_that_are_not_finite_is_refused_by_file_and_tensor() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let shortlist = ShortlistConfig { group_size: 2, ..ShortlistConfig::default() };
    let design = Design { shortlist, ..flat() };
    let mut model = toy.model(design.clone(), 1);
    model.network = model.network.valid();
    model.learn_counts(&toy.documents, &toy.gold, 1, &Job::silent()).unwrap();
    let writer = Writer::create(&path, "model").unwrap();
    model.save(&writer).unwrap();
    writer.finish().unwrap();
    let load = || {
        NeuralModel::load(
            &path,
            design.clone(),
            toy.taxonomy.clone(),
            &toy.counts(),
            &Device::flex(),
            &Cancel::default(),
        )
    };
    load().unwrap();
    for file in ["model.safetensors", "head.safetensors", "rows.safetensors", "counts.safetensors"] {
        let whole = fs::read(path.join(file)).unwrap();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut damaged = whole.clone();
            let at = damaged.len() - 4;
            damaged[at..].copy_from_slice(&bad.to_le_bytes());
            fs::write(path.join(file), &damaged).unwrap();
            let error = load().unwrap_err();
            assert!(matches!(error, Error::Core(cladist_core::Error::Bundle(_))), "{error}");
            let message = error.to_string();
            assert!(message.contains(file) && message.contains("tensor `"), "{message}");
            assert!(message.contains("not finite"), "{message}");
        }
        fs::write(path.join(file), whole).unwrap();
    }
}

#[test]
fn making_reading_and_asking_a_model_stop_when_they_are_asked_to() {
    let toy = Toy::new(Task::MultiLabel);
    let device = Device::flex();
    let cancel = Cancel::default();
    cancel.cancel();
    let stopped = |error: Error| assert_eq!(error.kind(), ErrorKind::Cancelled);
    let start = Start { cancel: cancel.clone(), ..Start::new(1, &device) };
    for source in ["scratch:tiny", "words:4", golden("bert").to_str().unwrap()] {
        let source = EncoderSource::parse(source).unwrap();
        let taxonomy = toy.taxonomy.clone();
        let made = NeuralModel::create(flat(), &source, &toy.examples(), taxonomy, &toy.counts(), &start);
        stopped(made.unwrap_err());
    }
    let model = toy.model(flat(), 1);
    let label = toy.taxonomy.get("fund").unwrap();
    let how = crate::analysis::attribution::Gradients::AtDocument;
    stopped(model.attribute("gold", &[label], how, &cancel).unwrap_err());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let writer = Writer::create(&path, "model").unwrap();
    model.save(&writer).unwrap();
    writer.finish().unwrap();
    let load = |cancel: &Cancel| {
        NeuralModel::load(&path, flat(), toy.taxonomy.clone(), &toy.counts(), &device, cancel)
    };
    load(&Cancel::default()).unwrap();
    stopped(load(&cancel).unwrap_err());
}

#[test]
fn labels_that_are_read_first_stop_when_they_are_asked_to() {
    let toy = Toy::new(Task::MultiLabel);
    let cancel = Cancel::default();
    let head = AnyHeadConfig::LabelAttention(LabelAttentionConfig::default());
    let mut model = toy.model(design(fitting(head), Task::MultiLabel), 1);
    model.prepare(&cancel).unwrap();
    cancel.cancel();
    assert_eq!(model.prepare(&cancel).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn the_loss_of_documents_depends_neither_on_batches_nor_on_their_order() {
    let toy = Toy::new(Task::MultiLabel);
    let with = |loss: Loss, shortlist: ShortlistConfig| {
        let head = AnyHeadConfig::Flat(FlatConfig { loss, ..FlatConfig::default() });
        (loss, shortlist, Design { shortlist, ..design(head, Task::MultiLabel) })
    };
    let (none, few) = (
        ShortlistConfig::default(),
        ShortlistConfig { group_size: 2, top_groups: 1, ..ShortlistConfig::default() },
    );
    let losses = [Loss::Bce, Loss::FMeasure, Loss::MacroFMeasure, Loss::BceAndF, Loss::Focal, Loss::Ranking];
    let all = losses.map(|loss| with(loss, none));
    let listed = [Loss::Bce, Loss::FMeasure, Loss::Ranking].map(|loss| with(loss, few));
    for (loss, shortlist, design) in all.into_iter().chain(listed) {
        let mut model = toy.model(design, 1);
        model.network = model.network.valid();
        let tokens = model.tokenize(&toy.documents).unwrap();
        let of = |budget: usize, tokens: &[Vec<Sequence>], gold: &[LabelSet]| {
            model.run_within(budget, tokens, Some(gold), &Request::default(), &mut []).unwrap().loss
        };
        let whole = of(10_000, &tokens, &toy.gold);
        assert!(whole > 0.0, "{loss:?}");
        let reversed: Vec<_> = tokens.iter().rev().cloned().collect();
        let gold: Vec<_> = toy.gold.iter().rev().cloned().collect();
        for (budget, tokens, gold) in [
            (20, &tokens, &toy.gold),
            (1, &tokens, &toy.gold),
            (10_000, &reversed, &gold),
            (20, &reversed, &gold),
        ] {
            let loss_of = of(budget, tokens, gold);
            let what = (loss, shortlist.group_size, budget);
            assert!((loss_of - whole).abs() < 2e-6, "{what:?}: {loss_of} instead of {whole}");
        }
    }
}
