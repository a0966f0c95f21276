//! Oracles of the graph layers.

use burn::tensor::{Device, Tensor};
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{LabelCounts, Taxonomy};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::coding_tree::CodingTreeConfig;
use super::gat::HierarchyGatConfig;
use super::gcn::{GraphConvolution, HierarchyGcnConfig};
use super::*;
use crate::heads::{AnyHead, AnyHeadConfig, HeadConfig, HeadContext, HeadInput, Moment, Task};
use crate::parameters::{Tensors, replace, to_vec};
use crate::toy::{Toy, context, design, near};

/// A label over two others, with six and two documents.
fn family() -> (Taxonomy, LabelCounts) {
    let mut builder = Builder::new();
    for child in ["b", "c"] {
        builder.edge(Some("a"), child, &Origin::default());
    }
    (builder.build().unwrap(), LabelCounts { n_documents: 8, counts: vec![8, 6, 2] })
}

fn layer(device: &Device) -> GraphConvolution {
    let (taxonomy, counts) = family();
    let nodes = Nodes::new(&context(&taxonomy, &counts, device), None);
    let layer = GraphConvolution::new(&nodes, 2, 0.05, &mut ChaCha8Rng::seed_from_u64(1), device);
    let mut values: Tensors = crate::parameters::named(&layer);
    assert_eq!(values["above"].1, [0.75, 0.25]);
    assert_eq!(values["below"].1, [1.0, 1.0]);
    values.insert("gates.weight".to_owned(), (vec![3, 2], vec![0.5, 0.0, 0.0, 1.0, 1.0, 1.0]));
    replace(layer, values).unwrap()
}

const X: [[[f32; 2]; 3]; 1] = [[[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]]];

#[test]
fn messages_pass_through_gates() {
    let device = Device::flex();
    let drops = Drops { seed: None, first: 0, rows: 3 };
    let got = to_vec(layer(&device).forward(Tensor::from_floats(X, &device), drops, 0));
    let expected = [2.819_952, 1.905_148_3, 2.844_097_3, 0.0, 0.182_764_6, 1.096_587_9];
    near(&got, &expected, 1e-6);
}

#[test]
fn slopes_of_a_graph_layer_are_those_of_finite_differences() {
    let device = Device::flex().autodiff();
    let layer = layer(&device);
    let drops = Drops { seed: None, first: 0, rows: 3 };
    let loss = |x: [[[f32; 2]; 3]; 1]| {
        let out = layer.forward(Tensor::from_floats(x, &device), drops, 0);
        f64::from(out.powi_scalar(2).sum().into_scalar::<f32>())
    };
    let x = Tensor::<3>::from_floats(X, &device).require_grad();
    let gradients = layer.forward(x.clone(), drops, 0).powi_scalar(2).sum().backward();
    let slopes = to_vec(x.grad(&gradients).unwrap());
    for (n, slope) in slopes.iter().enumerate() {
        let mut moved = [X, X];
        moved[0][0][n / 2][n % 2] += 1e-2;
        moved[1][0][n / 2][n % 2] -= 1e-2;
        let expected = (loss(moved[0]) - loss(moved[1])) / 2e-2;
        assert!((f64::from(*slope) - expected).abs() < 2e-2, "{n}: {slope} {expected}");
    }
}

#[test]
fn a_label_alone_has_a_layer_too() {
    let device = Device::flex();
    let taxonomy = Taxonomy::flat(["a"]);
    let counts = LabelCounts::default();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let layer = GraphConvolution::new(
        &Nodes::new(&context(&taxonomy, &counts, &device), None),
        2,
        0.0,
        &mut random,
        &device,
    );
    let x = Tensor::from_floats([[[1.0, -1.0]], [[2.0, 0.5]]], &device);
    let out = layer.forward(x, Drops { seed: None, first: 0, rows: 1 }, 0);
    assert_eq!(out.dims(), [2, 1, 2]);
}

/// A head for some labels, with the values that a head for all has for them.
fn restricted(whole: &AnyHead, config: &AnyHeadConfig, context: &HeadContext<'_>) -> AnyHead {
    let head = config.build(context).unwrap();
    let nodes = Nodes::new(context, Some(2));
    let all = crate::heads::labelwise::edges(context);
    let labels = nodes.labels().to_vec();
    let edges = all.between(nodes.labels()).1;
    let answered: Vec<u32> = context.only.unwrap().iter().map(|label| label.index() as u32).collect();
    let theirs = crate::parameters::named(whole);
    let mut values = crate::parameters::named(&head);
    for (name, (shape, values)) in &mut values {
        let (of_all, source) = &theirs[name];
        let rows = match name.rsplit('.').collect::<Vec<_>>()[..] {
            _ if of_all == shape => None,
            ["below" | "above", ..] => Some((&edges, all.len())),
            ["below_bias" | "above_bias" | "gate_bias", ..] | [_, "labels", ..] => {
                Some((&labels, all.n_sources))
            }
            _ => Some((&answered, all.n_sources)),
        };
        *values = rows.map_or_else(
            || source.clone(),
            |(rows, n)| {
                let width = source.len() / n;
                rows.iter().flat_map(|&row| source[row as usize * width..][..width].to_vec()).collect()
            },
        );
    }
    replace(head, values).unwrap()
}

#[test]
fn heads_for_some_labels_answer_as_heads_for_all() {
    let toy = Toy::new(Task::MultiLabel);
    let gcn = |form, variant| HierarchyGcnConfig {
        form,
        variant,
        node_size: 6,
        layers: 2,
        recursive_regularisation: 0.0,
        ..HierarchyGcnConfig::default()
    };
    let gat =
        HierarchyGatConfig { form: Form::Small, node_size: 6, heads: 2, layers: 2, ..Default::default() };
    let tree = |form| CodingTreeConfig { form, ..CodingTreeConfig::default() };
    for config in [
        AnyHeadConfig::HierarchyGcn(gcn(Form::Small, Variant::TextPropagation)),
        AnyHeadConfig::HierarchyGcn(gcn(Form::Full, Variant::TextPropagation)),
        AnyHeadConfig::HierarchyGcn(gcn(Form::Small, Variant::LabelAttention)),
        AnyHeadConfig::HierarchyGat(gat),
        AnyHeadConfig::CodingTree(tree(Form::Small)),
        AnyHeadConfig::CodingTree(tree(Form::Full)),
    ] {
        let model = toy.model(design(config.clone(), Task::MultiLabel), 1);
        let documents = toy.encoded(&model);
        let input = HeadInput::new(&documents);
        let (all, labels) = model.network.head.logits(&input).unwrap();
        let (all, n_labels) = (to_vec(all), labels.len());
        let device = model.network.encoder.device();
        let counts = toy.counts();
        for top in toy.taxonomy.roots() {
            let only = toy.taxonomy.close_downward(&[*top]);
            assert!(only.len() < n_labels);
            let context = HeadContext {
                only: Some(&only),
                hidden_size: model.network.encoder.hidden_size(),
                n_layers: model.network.encoder.n_layers(),
                ..context(&toy.taxonomy, &counts, &device)
            };
            let head = restricted(&model.network.head, &config, &context);
            let mut expected = 0.0;
            for (document, gold) in toy.gold.iter().enumerate() {
                for label in &only {
                    let z = f64::from(all[document * n_labels + label.index()]);
                    let y = if gold.contains(*label) { 1.0 } else { 0.0 };
                    expected += (1.0 + z.exp()).ln() - y * z;
                }
            }
            expected /= (toy.gold.len() * only.len()) as f64;
            let loss = head
                .objective(&input, &toy.gold, &Moment { epoch: 0.0, thawed: 0.0, seed: None })
                .values()[0]
                .1;
            assert!((loss - expected).abs() < 1e-5, "{config:?}: {loss} {expected}");
            for (document, row) in head.score(&input, None).iter().enumerate() {
                assert!(row.iter().map(|(label, _)| label).eq(&only), "{config:?}");
                for (label, score) in row {
                    let p = 1.0 / (1.0 + (-all[document * n_labels + label.index()]).exp());
                    assert!((p - score).abs() < 1e-5, "{config:?}: {p} {score}");
                }
            }
        }
    }
}

#[test]
fn documents_some_at_a_time_have_the_dropout_of_all() {
    let device = Device::flex();
    let taxonomy = Toy::new(Task::MultiLabel).taxonomy;
    let counts = LabelCounts::default();
    for form in [Form::Full, Form::Small] {
        let config = HierarchyGcnConfig {
            form,
            node_size: 3,
            dropout: 0.4,
            node_dropout: 0.3,
            output_dropout: 0.3,
            ..HierarchyGcnConfig::default()
        };
        let structure = config.build(&context(&taxonomy, &counts, &device)).unwrap().structure;
        let x: Vec<f32> = (0..20).map(|n| (n as f32 * 0.7).sin()).collect();
        let x: Tensor<2> = Tensor::from_data(burn::tensor::TensorData::new(x, [5, 4]), &device);
        let logits = |from: usize, n: usize, seed| {
            let x = x.clone().narrow(0, from, n);
            to_vec(structure.logits(structure.features(x, seed, from), seed, from))
        };
        let whole = logits(0, 5, Some(1));
        assert_ne!(whole, logits(0, 5, None));
        let parts = [logits(0, 2, Some(1)), logits(2, 3, Some(1))].concat();
        near(&parts, &whole, 1e-5);
    }
}
