use burn::module::Module;
use burn::tensor::{Device, TensorData};
use cladist_core::bundle::Writer;
use cladist_core::{Cancel, Classifier, Job, Request, Scores};

use super::*;
use crate::analysis::attribution::Gradients;
use crate::encoder::Mode;
use crate::heads::flat::FlatConfig;
use crate::heads::light_xml::LightXmlConfig;
use crate::heads::{AnyHeadConfig, HeadInput, Moment, Task};
use crate::losses::Loss;
use crate::model::{Design, NeuralModel, Start};
use crate::source::EncoderSource;
use crate::tokens::{TokenBatch, TokensConfig};
use crate::toy::{Toy, bytes, design, fitting, flat, on_threads};
use crate::train::TrainConfig;
use crate::train::config::GroupConfig;
use crate::train::tests::{Run, quick};

/// Groups of two labels, the best two of which are looked at.
fn ranked(match_only: bool, design: Design) -> Design {
    let shortlist = ShortlistConfig { group_size: 2, top_groups: 2, random: 1, size: 6, match_only };
    Design { shortlist, ranker: RankerConfig { on: true, ..RankerConfig::default() }, ..design }
}

fn light() -> Design {
    design(fitting(AnyHeadConfig::LightXml(LightXmlConfig::default())), Task::MultiLabel)
}

/// A model whose network knows nothing yet, with a ranker.
fn model(toy: &Toy, design: Design) -> NeuralModel {
    let mut model = toy.model(design, 1);
    model.network = model.network.valid();
    model.learn_ranker(&toy.documents, &toy.gold, 1, &Job::silent()).unwrap();
    model
}

fn scores(model: &NeuralModel, toy: &Toy) -> Scores {
    model.score(&toy.documents, &Request::default()).unwrap()
}

#[test]
fn it_is_the_same_after_saving_and_loading() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let two = TokensConfig { max_tokens: 8, windows: 2, ..flat().tokens };
    for (name, design, has_rows) in [
        ("beside", ranked(false, flat()), true),
        ("alone", ranked(true, flat()), false),
        ("light", ranked(true, light()), false),
        ("windows", ranked(true, Design { tokens: two, ..flat() }), false),
    ] {
        let model = model(&toy, design.clone());
        let path = folder.path().join(name);
        let writer = Writer::create(&path, "model").unwrap();
        model.save(&writer).unwrap();
        writer.finish().unwrap();
        assert_eq!(path.join("rows.safetensors").exists(), has_rows, "{name}");
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
        let loaded = load().unwrap();
        assert!(bytes(&loaded) == bytes(&model), "{name}");
        assert_eq!(scores(&loaded, &toy), scores(&model, &toy), "{name}");
        assert_eq!(loaded.n_ranker_weights(), model.n_ranker_weights());
        for file in ["ranker.safetensors", "features.safetensors", "groups.safetensors"] {
            let whole = std::fs::read(path.join(file)).unwrap();
            std::fs::remove_file(path.join(file)).unwrap();
            assert!(load().unwrap_err().to_string().contains(file), "{name}");
            std::fs::write(path.join(file), whole).unwrap();
        }
    }
}

#[test]
fn labels_of_the_best_groups_are_scored_by_it_whatever_the_batch() {
    let toy = Toy::new(Task::MultiLabel);
    for match_only in [false, true] {
        let model = model(&toy, ranked(match_only, flat()));
        let all = scores(&model, &toy);
        let partition = &model.shortlist().unwrap().partition;
        let listed = model.listed().unwrap();
        let tokens = model.tokenize(&toy.documents).unwrap();
        for (n, document) in toy.documents.iter().enumerate() {
            let alone = model.score(std::slice::from_ref(document), &Request::default()).unwrap();
            assert!(alone.row(0).iter().zip(all.row(n)).all(|(a, b)| (a.1 - b.1).abs() < 1e-5));
            let windows = crate::tokens::numbered(&tokens[n..=n]);
            let mut seen = Seen::new(windows.len());
            let request = Request::default();
            let layers = &model.layers;
            model
                .each_batch(&windows, layers, &request, |batch, input| {
                    let vectors = crate::counts::vectors(input.documents, layers);
                    seen.take(batch, vectors, model.network.head.groups(input));
                })
                .unwrap();
            let (vector, logits) = seen.of_documents(&tokens[n..=n], Pool::Max).remove(0);
            assert_eq!((vector.len(), logits.len()), (64, partition.n_groups()));
            let groups = listed.best_groups(&logits);
            assert_eq!(groups.len(), 2);
            let labels: Vec<u32> =
                groups.iter().flat_map(|(group, _)| partition.labels(*group as usize)).copied().collect();
            assert!(all.row(n).iter().all(|(label, _)| labels.contains(&(label.index() as u32))));
            // The share of a group is what the matcher learns by.
            for (group, share) in groups {
                let z = f64::from(logits[group as usize]);
                let expected =
                    if match_only { (-(1.0 - z).max(0.0).powi(3)).exp() } else { 1.0 / (1.0 + (-z).exp()) };
                assert!((f64::from(share) - expected).abs() < 1e-6);
            }
        }
        let best = model.score(&toy.documents, &Request { top_k: Some(1), ..Request::default() }).unwrap();
        assert!(best.rows().zip(all.rows()).all(|(best, all)| *best == all[..1]));
    }
}

#[test]
fn a_matcher_alone_learns_by_the_squared_hinge_of_groups() {
    let toy = Toy::new(Task::MultiLabel);
    let mut model = toy.model(ranked(true, flat()), 1);
    model.network = model.network.valid();
    assert!(model.table().is_none() && model.label_vectors().is_none());
    let partition = model.shortlist().unwrap().partition.clone();
    let tokens = model.tokenize(&toy.documents).unwrap();
    let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
    let encoded =
        model.network.encoder.encode(&TokenBatch::new(&sequences), &model.layers, Mode::Inference(None));
    let input = HeadInput::new(&encoded);
    let moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };
    let terms = model.network.head.objective(&input, &toy.gold, &moment).values();
    let logits = to_vec(model.network.head.groups(&input).unwrap());
    let mut expected = 0.0;
    for (gold, logits) in toy.gold.iter().zip(logits.chunks_exact(partition.n_groups())) {
        for (group, &z) in logits.iter().enumerate() {
            let has = partition.labels(group).iter().any(|&l| gold.iter().any(|g| g.index() as u32 == l));
            expected += (1.0 - if has { f64::from(z) } else { -f64::from(z) }).max(0.0).powi(2);
        }
    }
    expected /= logits.len() as f64;
    assert_eq!(terms.len(), 1);
    assert!(terms[0].0 == "groups" && (terms[0].1 - expected).abs() < 1e-5, "{terms:?} {expected}");
    // Until there is a ranker, a label is worth its group.
    let (of_labels, labels) = model.network.head.logits(&input).unwrap();
    let of_labels = to_vec(of_labels);
    for (place, label) in labels.iter().enumerate() {
        let group = partition.group_of(partition.row_of(label.index() as u32).unwrap()) as usize;
        assert_eq!(of_labels[place], logits[group]);
    }
    let row = scores(&model, &toy).row(0).to_vec();
    assert_eq!(row.len(), 4);
    assert_eq!(row[0].1, row[1].1);
}

#[test]
fn it_learns_eight_documents_by_heart() {
    let toy = Toy::new(Task::MultiLabel);
    for (name, design) in
        [("beside", ranked(false, flat())), ("alone", ranked(true, flat())), ("light", ranked(true, light()))]
    {
        let config = TrainConfig {
            epochs: 60,
            batch_size: 4,
            learning_rate: 2e-3,
            output: GroupConfig { learning_rate: Some(1e-2), ..GroupConfig::default() },
            dropout: Some(0.0),
            checkpoint_minutes: 0.0,
            ..TrainConfig::default()
        };
        let (mut model, _, seen) = Run { design, ..Run::new(&toy, config) }.finish();
        let losses = seen.losses();
        assert!(losses[losses.len() - 1] < losses[0] / 3.0, "{name}: {losses:?}");
        model.learn_ranker(&toy.documents, &toy.gold, 1, &Job::silent()).unwrap();
        let scores = scores(&model, &toy);
        for (n, gold) in toy.gold.iter().enumerate() {
            let row = scores.row(n);
            assert!(gold.contains(row[0].0) && row[0].1 > 0.5, "{name}, document {n}: {row:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_scores_on_any_number_of_threads() {
    let toy = Toy::new(Task::MultiLabel);
    let made = |threads| {
        on_threads(threads, || {
            let design = ranked(true, flat());
            let mut model = Run { design, ..Run::new(&toy, quick()) }.finish().0;
            model.learn_ranker(&toy.documents, &toy.gold, 1, &Job::silent()).unwrap();
            scores(&model, &toy)
        })
    };
    assert_eq!(made(1), made(2));
}

#[test]
fn windows_are_pooled_number_by_number() {
    let rows = [vec![1.0, 4.0], vec![3.0, 2.0]];
    assert_eq!(pooled(&rows, Pool::Max), [3.0, 4.0]);
    assert_eq!(pooled(&rows, Pool::Mean), [2.0, 3.0]);
    assert!(pooled(&[], Pool::Mean).is_empty());
    let mut seen = Seen::new(3);
    let values = Tensor::from_data(TensorData::new(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]), &Device::flex());
    seen.take(&[2, 0], values, None);
    assert_eq!(seen.vectors, [vec![3.0, 4.0], vec![], vec![1.0, 2.0]]);
}

#[test]
fn settings_that_do_not_go_together_are_refused_by_name() {
    let toy = Toy::new(Task::MultiLabel);
    let refused = |design: Design| {
        let source = EncoderSource::parse("scratch:tiny").unwrap();
        let (taxonomy, counts) = (toy.taxonomy.clone(), toy.counts());
        NeuralModel::create(
            design,
            &source,
            &toy.examples(),
            taxonomy,
            &counts,
            &Start::new(1, &Device::flex()),
        )
        .unwrap_err()
    };
    let with = |change: &dyn Fn(&mut Design)| {
        let mut design = ranked(true, flat());
        change(&mut design);
        refused(design).to_string()
    };
    let off = |design: &mut Design| design.ranker.on = false;
    assert!(with(&off).starts_with("`shortlist.match_only` must be false without `ranker.on`"));
    let no_groups = |design: &mut Design| design.shortlist.group_size = 0;
    assert!(with(&no_groups).starts_with("`shortlist.match_only` must be false without"));
    let beside = |design: &mut Design| design.shortlist = ShortlistConfig::default();
    assert!(with(&beside).starts_with("`ranker.on` must be false without `shortlist.group_size`"));
    let mut one_group = ranked(true, flat());
    one_group.shortlist.group_size = 8;
    assert_eq!(refused(one_group).remedy(), Some("lower `shortlist.group_size`"));
    assert!(with(&|design| design.ranker.c = 0.0).starts_with("`ranker.c`"));
    let focal = FlatConfig { loss: Loss::Focal, ..FlatConfig::default() };
    assert!(with(&|design| design.head = AnyHeadConfig::Flat(focal.clone())).contains("match_only"));
    let narrow = LightXmlConfig { bottleneck: Some(8), ..LightXmlConfig::default() };
    let narrow = with(&|design| design.head = AnyHeadConfig::LightXml(narrow.clone()));
    assert!(narrow.starts_with("`light-xml.bottleneck` must be 0 with"), "{narrow}");
    let text = &toy.documents[0].text;
    let label = toy.taxonomy.labels().next().unwrap();
    let explained = model(&toy, ranked(true, flat())).attribute(
        text,
        &[label],
        Gradients::AtDocument,
        &Cancel::default(),
    );
    assert!(explained.unwrap_err().to_string().contains("ranker, which has no logits"));
}
