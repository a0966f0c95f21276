use burn::tensor::Device;
use cladist_core::bundle::Writer;
use cladist_core::taxonomy::{Builder, Label, Origin};
use cladist_core::{Cancel, Classifier, Request, Taxonomy};

use super::*;
use crate::blocks::LayerNorm;
use crate::encoder::Packing;
use crate::heads::Task;
use crate::heads::{AnyHead, AnyHeadConfig, LabelStates};
use crate::model::{Design, NeuralModel, Start};
use crate::optim::GradientSum;
use crate::parameters::{names, to_vec};
use crate::toy::{Toy, design, near};
use crate::train::labels::label_states;

fn attentive(config: LabelAttentionConfig) -> Design {
    design(AnyHeadConfig::LabelAttention(config), Task::MultiLabel)
}

fn head(model: &NeuralModel) -> &LabelAttention {
    let AnyHead::LabelAttention(head) = &model.network.head else { panic!("another head") };
    head
}

fn states(model: &NeuralModel) -> Option<LabelStates> {
    let vectors = model.descriptions()?.read(&model.network.encoder, None);
    Some(LabelStates { vectors, labels: None })
}

fn close(got: &[f32], expected: &[f64]) -> bool {
    got.len() == expected.len()
        && got.iter().zip(expected).all(|(got, expected)| (f64::from(*got) - expected).abs() < 1e-6)
}

#[test]
fn labels_attend_as_worked_out_by_hand() {
    let device = Device::flex();
    let queries: Tensor<3> = Tensor::from_floats([[[1.0, 0.0]], [[0.0, 1.0]]], &device);
    let tokens: Tensor<2> = Tensor::from_floats([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]], &device);
    let packing = Packing::new(&[0, 3]);
    let weights = weights(queries.clone(), tokens.clone(), &packing, 1, 0.5f64.sqrt());
    let seen = seen(queries, tokens.clone(), tokens, &packing, 1, 0.5f64.sqrt());
    let expected = [0.5759753, 0.1400292, 0.2839954, 0.1977758, 0.4011121, 0.4011121];
    assert!(close(&to_vec(weights.clone()), &expected), "{:?}", to_vec(weights));
    let expected = [1.4359461, 0.4240247, 0.7966637, 0.8022242];
    assert!(close(&to_vec(seen.clone()), &expected), "{:?}", to_vec(seen));
}

#[test]
fn padding_is_not_looked_at() {
    let device = Device::flex();
    let queries: Tensor<3> = Tensor::from_floats([[[1.0, 0.5]], [[0.0, 1.0]]], &device);
    // A document of two tokens and one of three.
    let both = [[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 3.0]];
    let both: Tensor<2> = Tensor::from_floats(both, &device);
    let alone: Tensor<2> = Tensor::from_floats([[2.0, 0.0], [0.0, 1.0]], &device);
    for n_heads in [1, 2] {
        let run = |tokens: &Tensor<2>, offsets: &[usize]| {
            let packing = Packing::new(offsets);
            let weights = weights(queries.clone(), tokens.clone(), &packing, n_heads, 1.0);
            (weights, seen(queries.clone(), tokens.clone(), tokens.clone(), &packing, n_heads, 1.0))
        };
        let ((weights, together), (_, alone)) = (run(&both, &[0, 2, 5]), run(&alone, &[0, 2]));
        let padding = weights.narrow(0, 0, 1).narrow(3, 2, 1);
        assert!(to_vec(padding).iter().all(|weight| *weight == 0.0));
        let alone: Vec<f64> = to_vec(alone).into_iter().map(f64::from).collect();
        assert!(close(&to_vec(together.narrow(1, 0, 1)), &alone));
    }
}

#[test]
fn rows_are_normalised() {
    let device = Device::flex();
    let sum: Tensor<2> = Tensor::from_floats([[1.0 + 0.5, 0.0 + 1.0, 2.0 + 0.0]], &device);
    let got = to_vec(LayerNorm::new(3, &device).forward(sum));
    assert!(close(&got, &[0.0, -1.2247449, 1.2247449]), "{got:?}");
}

#[test]
fn labels_in_parts_have_the_logits_and_gradients_of_all_at_once() {
    let toy = Toy::new(Task::MultiLabel);
    for (output, blocks) in [(Output::Shared, 1), (Output::PerLabel, 2)] {
        let config = LabelAttentionConfig { output, blocks, dropout: 0.3, ..Default::default() };
        let model = toy.model(attentive(config), 1);
        let run = |at_once: usize| {
            let (documents, labels) = (toy.encoded(&model), states(&model));
            let input = HeadInput::of(&documents, labels.as_ref());
            let logits = head(&model).logits_of(&input, Some(7), at_once);
            let slope = (logits.clone() * 3.0).sin().sum();
            let mut sum = GradientSum::default();
            sum.add(&model.network, slope.backward());
            let mut values = vec![to_vec(logits)];
            values.extend(names(&model.network).iter().filter_map(|name| sum.values(name)));
            values
        };
        let whole = run(1000);
        assert_eq!(whole.len(), names(&model.network).len() + 1, "every parameter has a gradient");
        for at_once in [1, 3] {
            let parts = run(at_once);
            assert_eq!(parts.len(), whole.len(), "{output:?}, {at_once} at once");
            parts.iter().zip(&whole).for_each(|(part, whole)| near(part, whole, 2e-4));
        }
    }
}

#[test]
fn the_encoder_learns_from_descriptions_where_it_should() {
    let toy = Toy::new(Task::MultiLabel);
    for (encode, expected) in
        [(Encode::EveryStep, true), (Encode::Sampled, true), (Encode::EveryN, false), (Encode::Table, false)]
    {
        let model = toy.model(attentive(LabelAttentionConfig { encode, ..Default::default() }), 1);
        let tokens = model.tokenize(&toy.documents).unwrap();
        let of_documents: Vec<u32> = tokens.iter().flatten().flat_map(|window| window.ids.clone()).collect();
        let texts = crate::descriptions::texts(&toy.taxonomy, false);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let windows = model.tokenizer.encode(&texts, &model.design.tokens).unwrap();
        let of_labels: Vec<u32> = windows.into_iter().flatten().flat_map(|window| window.ids).collect();
        // A token of `gold-fund` that no document has.
        let id = *of_labels.iter().find(|id| !of_documents.contains(id)).unwrap() as usize;
        let documents = toy.encoded(&model);
        let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(1) };
        let descriptions = model.descriptions();
        let labels = label_states(&model.network, descriptions, &toy.gold, &moment, Some(0), &mut None);
        assert_eq!(labels.is_some(), encode != Encode::Table);
        let input = HeadInput::of(&documents, labels.as_ref());
        let loss = model.network.head.objective(&input, &toy.gold, &moment).total().unwrap();
        let mut sum = GradientSum::default();
        sum.add(&model.network, loss.backward());
        let words = sum.values("encoder.embeddings.words").unwrap();
        let row = &words[id * 64..(id + 1) * 64];
        assert_eq!(row.iter().any(|value| *value != 0.0), expected, "{encode:?}");
    }
}

#[test]
fn vectors_stay_until_they_are_due() {
    let toy = Toy::new(Task::MultiLabel);
    let config = LabelAttentionConfig { encode: Encode::EveryN, refresh: 2, ..Default::default() };
    let (first, second) = (toy.model(attentive(config.clone()), 1), toy.model(attentive(config), 2));
    let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(1) };
    let mut kept = None;
    let mut vectors = |model: &NeuralModel, after: Option<u64>| {
        let descriptions = model.descriptions();
        let states = label_states(&model.network, descriptions, &toy.gold, &moment, after, &mut kept);
        to_vec(states.unwrap().vectors)
    };
    let start = vectors(&first, Some(0));
    assert!(vectors(&second, Some(1)) == start && vectors(&second, None) == start);
    assert!(vectors(&second, Some(2)) != start);
}

#[test]
fn a_table_starts_from_descriptions() {
    let toy = Toy::new(Task::MultiLabel);
    let table = |descriptions: bool| {
        let config = LabelAttentionConfig { encode: Encode::Table, descriptions, ..Default::default() };
        to_vec(head(&toy.model(attentive(config), 1)).table.as_ref().unwrap().weight())
    };
    let model = toy.model(attentive(LabelAttentionConfig::default()), 1);
    assert!(head(&model).table.is_none());
    assert!(table(true) == to_vec(states(&model).unwrap().vectors));
    assert!(table(false) != table(true));
}

/// The toy's taxonomy with a description, and with a label that nobody has.
fn described(toy: &Toy, id: &str, description: &str, new: Option<&str>) -> Taxonomy {
    let mut builder = Builder::new();
    let here = Origin::default();
    for label in toy.taxonomy.labels() {
        let child = toy.taxonomy.id(label);
        if toy.taxonomy.is_root_child(label) {
            builder.edge(None, child, &here);
        }
        for &parent in toy.taxonomy.parents(label) {
            builder.edge(Some(toy.taxonomy.id(parent)), child, &here);
        }
    }
    if let Some(new) = new {
        builder.edge(None, new, &here);
    }
    let described =
        Label { id: id.to_owned(), description: Some(description.to_owned()), ..Label::default() };
    builder.describe(described);
    builder.build().unwrap()
}

#[test]
fn a_label_is_scored_by_what_it_says_also_if_it_was_never_seen() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let design = attentive(LabelAttentionConfig::default());
    let writer = Writer::create(&path, "model").unwrap();
    toy.model(design.clone(), 1).save(&writer).unwrap();
    writer.finish().unwrap();
    let scores = |taxonomy: &Taxonomy| {
        let counts = toy.counts();
        let model = NeuralModel::load(
            &path,
            design.clone(),
            taxonomy.clone(),
            &counts,
            &Device::flex(),
            &Cancel::default(),
        )
        .unwrap();
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        let by_id = |row: &[(LabelId, f32)]| -> Vec<(String, f32)> {
            let mut row: Vec<(String, f32)> =
                row.iter().map(|(label, score)| (taxonomy.id(*label).to_owned(), *score)).collect();
            row.sort_by(|a, b| a.0.cmp(&b.0));
            row
        };
        scores.rows().map(by_id).collect::<Vec<_>>()
    };
    let before = scores(&toy.taxonomy);
    let after = scores(&described(&toy, "metal", "copper ore from the northern mine", Some("zinc")));
    assert_eq!((before.len(), after.len()), (toy.documents.len(), toy.documents.len()));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(after.len(), before.len() + 1);
        for (id, score) in before {
            let now = after.iter().find(|(other, _)| other == id).unwrap().1;
            assert_eq!((now - score).abs() > 1e-6, id == "metal", "{id}: {score} and {now}");
        }
    }
}

#[test]
fn weights_over_tokens_add_up_to_one() {
    let toy = Toy::new(Task::MultiLabel);
    for heads in [1, 4] {
        let config = LabelAttentionConfig { heads, blocks: 2, ..Default::default() };
        let model = toy.model(attentive(config), 1);
        let (documents, labels) = (toy.encoded(&model), states(&model));
        let input = HeadInput::of(&documents, labels.as_ref());
        let some = [toy.taxonomy.get("fund").unwrap(), toy.taxonomy.get("goods").unwrap()];
        let weights = model.network.head.attention(&input, &some).unwrap();
        let packing = documents.packing();
        let longest = packing.longest();
        assert_eq!(weights.dims(), [toy.documents.len(), 2, longest]);
        for (n, row) in to_vec(weights).chunks_exact(longest).enumerate() {
            let (there, padding) = row.split_at(packing.length(n / 2));
            assert!((there.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
            assert!(padding.iter().all(|weight| *weight == 0.0));
        }
    }
}

#[test]
fn a_model_says_which_words_its_labels_look_at() {
    let toy = Toy::new(Task::MultiLabel);
    let mut design = attentive(LabelAttentionConfig::default());
    design.tokens.max_tokens = 8;
    design.tokens.windows = 20;
    let model = toy.model(design, 1).ready();
    let labels: Vec<LabelId> = toy.taxonomy.labels().take(3).collect();
    for document in &toy.documents {
        let weights = model.attention(document, &labels).unwrap().unwrap();
        assert_eq!(weights.len(), 3);
        for tokens in weights {
            let sum: f32 = tokens.iter().map(|(_, weight)| weight).sum();
            assert!(sum > 0.0 && sum < 1.0, "{sum}");
            let words: Vec<&str> = tokens
                .iter()
                .map(|((start, end), _)| &document.text[*start as usize..*end as usize])
                .collect();
            let bare = |text: &str| text.replace(' ', "");
            assert_eq!(words.concat(), bare(&document.text), "all of the text, in order");
        }
    }
    assert!(toy.model(crate::toy::flat(), 1).attention(&toy.documents[0], &labels).unwrap().is_none());
}

#[test]
fn a_sample_has_the_labels_of_the_documents_and_as_many_as_wanted() {
    let toy = Toy::new(Task::MultiLabel);
    let gold = &toy.gold[..2];
    let there: LabelSet = gold.iter().flat_map(|labels| labels.iter().copied()).collect();
    for (n, expected) in [(1, 3), (3, 3), (5, 5), (100, toy.taxonomy.n_labels())] {
        let labels = sample(gold, toy.taxonomy.n_labels(), n, 1);
        assert_eq!(labels.len(), expected, "{labels:?}");
        assert!(labels.is_sorted());
        assert!(there.iter().all(|label| labels.contains(&(label.index() as u32))));
        assert_eq!(labels, sample(gold, toy.taxonomy.n_labels(), n, 1));
    }
    let different = (2..20).any(|seed| sample(gold, 8, 5, seed) != sample(gold, 8, 5, 1));
    assert!(different);
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    let toy = Toy::new(Task::MultiLabel);
    let source = crate::source::EncoderSource::parse("scratch:tiny").unwrap();
    let refused = |config: LabelAttentionConfig, key: &str| {
        let taxonomy = toy.taxonomy.clone();
        let design = attentive(config);
        let device = Device::flex();
        let made = NeuralModel::create(
            design,
            &source,
            &toy.examples(),
            taxonomy,
            &toy.counts(),
            &Start::new(1, &device),
        );
        let error = made.unwrap_err();
        let said = format!("{error}; {}", error.remedy().unwrap_or_default());
        assert!(said.contains(key), "{said}");
    };
    let default = LabelAttentionConfig::default;
    refused(LabelAttentionConfig { heads: 3, ..default() }, "label-attention.heads");
    refused(LabelAttentionConfig { blocks: 0, ..default() }, "label-attention.blocks");
    refused(LabelAttentionConfig { dropout: 1.0, ..default() }, "label-attention.dropout");
    refused(LabelAttentionConfig { refresh: 0, ..default() }, "label-attention.refresh");
    refused(LabelAttentionConfig { sample: 0, ..default() }, "label-attention.sample");
    refused(LabelAttentionConfig { max_tokens: 100_000, ..default() }, "max_tokens");
}

#[test]
fn a_new_model_has_the_encoders_number_of_attention_heads_and_an_old_bundle_its_own() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let design = attentive(LabelAttentionConfig::default());
    let made = toy.model(design.clone(), 1);
    // Two of the tiny encoder, whose width of 64 was one head before.
    assert_eq!((made.network.encoder.config().n_heads, head(&made).n_heads), (2, 2));
    let AnyHeadConfig::LabelAttention(kept) = made.head_config() else { panic!("another head") };
    assert_eq!(kept.heads, 2);
    let writer = Writer::create(&path, "model").unwrap();
    made.save(&writer).unwrap();
    writer.finish().unwrap();
    let load = |head: &AnyHeadConfig| {
        let design = Design { head: head.clone(), ..design.clone() };
        let (taxonomy, counts) = (toy.taxonomy.clone(), toy.counts());
        NeuralModel::load(&path, design, taxonomy, &counts, &Device::flex(), &Cancel::default()).unwrap()
    };
    let scores = |model: &NeuralModel| model.score(&toy.documents, &Request::default()).unwrap();
    let made = made.ready();
    assert_eq!(scores(&load(made.head_config())), scores(&made));
    let old = load(&design.head);
    assert_eq!(head(&old).n_heads, 1);
    assert!(scores(&old) != scores(&made));
}
