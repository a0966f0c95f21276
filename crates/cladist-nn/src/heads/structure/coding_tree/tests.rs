use burn::tensor::{Device, TensorData, activation};
use cladist_core::bundle::Writer;
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Cancel, LabelCounts};
use cladist_kernels::graph::Edges;

use super::tree::{Leaves, climb, sums};
use super::*;
use crate::heads::branches::{BranchesConfig, Split};
use crate::heads::structure::{Drops, Form};
use crate::heads::{AnyHeadConfig, Task};
use crate::model::{Design, NeuralModel};
use crate::parameters::{self, to_vec};
use crate::toy::{self, Toy};

fn near(got: &[f32], expected: &[f32]) {
    toy::near(got, expected, 1e-6);
}

#[test]
fn features_are_summed_up_the_tree() {
    let step = |targets: Vec<u32>, n_targets| {
        let n_sources = targets.len();
        Arc::new(Edges { sources: (0..n_sources as u32).collect(), targets, n_sources, n_targets })
    };
    let steps = [step(vec![0, 0, 1], 2), step(vec![0, 0], 1)];
    let leaves: Tensor<3> = Tensor::from_floats([[[0.5], [1.0], [0.2]]], &Device::flex());
    let first = activation::relu(sums(leaves.clone(), &steps[0]) * 2.0 - 1.0);
    let above = climb(first, &steps, |_, sums| activation::relu(sums * 2.0 - 1.0));
    near(&to_vec(above[0].clone()), &[2.0, 0.0]);
    near(&to_vec(above[1].clone()), &[3.0]);
    let levels: Vec<Tensor<3>> = [leaves].into_iter().chain(above).collect();
    let pooled = |pool: LevelPool| -> Vec<f32> {
        levels.iter().flat_map(|nodes| to_vec(pool.of(nodes.clone()))).collect()
    };
    near(&pooled(LevelPool::Sum), &[1.7, 2.0, 3.0]);
    near(&pooled(LevelPool::Average), &[1.7 / 3.0, 1.0, 3.0]);
    near(&pooled(LevelPool::Max), &[1.0, 2.0, 3.0]);
}

#[test]
fn scaled_sums_do_not_grow_with_nodes() {
    let nodes: Tensor<3> = Tensor::from_floats([[[0.5], [1.0], [0.2], [0.3]]], &Device::flex());
    near(&to_vec(LevelPool::Auto.of(nodes.clone())), &[0.5]);
    near(&to_vec(LevelPool::Auto.of_leaves(nodes.clone())), &[1.0]);
    for pool in [LevelPool::Sum, LevelPool::Average, LevelPool::Max] {
        near(&to_vec(pool.of_leaves(nodes.clone())), &to_vec(pool.of(nodes.clone())));
    }
}

/// Four branches of six labels, in an encoder of 16 units.
fn of_groups(device: &Device, form: Form, level_pool: LevelPool, seed: u64) -> TreeNetwork {
    let mut builder = Builder::new();
    for top in ["a", "b", "c", "d"] {
        builder.edge(None, top, &Origin::default());
        (0..5).for_each(|n| builder.edge(Some(top), &format!("{top}{n}"), &Origin::default()));
    }
    let (taxonomy, counts) = (builder.build().unwrap(), LabelCounts::default());
    let context = HeadContext { hidden_size: 16, seed, ..toy::context(&taxonomy, &counts, device) };
    CodingTreeConfig { form, level_pool, ..CodingTreeConfig::default() }.build(&context).unwrap()
}

/// Document vectors of mean 0 and variance 1.
fn documents(n: usize, device: &Device) -> Tensor<2> {
    let random = &mut ChaCha8Rng::seed_from_u64(7);
    let cells: Vec<f32> = (0..n * 16).map(|_| normal(random)).collect();
    Tensor::from_data(TensorData::new(cells, [n, 16]), device)
}

#[test]
fn groups_differ_from_the_start_and_factors_learn_through_them() {
    let device = Device::flex().autodiff();
    for form in [Form::Full, Form::Small] {
        let tree = of_groups(&device, form, LevelPool::Auto, 1).tree;
        let leaves = tree
            .leaves(tree.projection.forward(documents(1, &device)), Drops { seed: None, first: 0, rows: 1 });
        let (_, groups) = tree.first(leaves);
        let [_, n, width] = groups.dims();
        assert!(n >= 3 && width == 16, "{n} groups");
        let rows = to_vec(groups.clone());
        let rows: Vec<&[f32]> = rows.chunks_exact(width).collect();
        for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let apart = rows[a].iter().zip(rows[b]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart > 0.05, "{form:?}: groups {a} and {b} are the same: {:?} {:?}", rows[a], rows[b]);
        }
        let slopes = groups.powi_scalar(3).sum().backward();
        let slopes = match &tree.mixing {
            Mixing::Full(mixing) => to_vec(mixing.weight().grad(&slopes).unwrap()),
            Mixing::Small(scales) => to_vec(scales.factors.val().grad(&slopes).unwrap()),
        };
        assert!(slopes.iter().any(|slope| slope.abs() > 0.05), "{form:?}: {slopes:?}");
    }
}

#[test]
fn logits_start_small_beside_prior_biases() {
    let device = Device::flex();
    let rms = |form, pool| {
        let squares = |seed| {
            let tree = of_groups(&device, form, pool, seed).tree;
            to_vec(tree.logits(documents(8, &device), None, 0).powi_scalar(2).mean())[0]
        };
        ((1..=8).map(squares).sum::<f32>() / 8.0).sqrt()
    };
    for form in [Form::Full, Form::Small] {
        let (scaled, sums) = (rms(form, LevelPool::Auto), rms(form, LevelPool::Sum));
        assert!(0.3 < scaled && scaled < 2.0 && 2.0 * scaled < sums, "{form:?}: {scaled} {sums}");
    }
}

#[test]
fn a_document_has_the_logits_alone_that_it_has_in_a_batch() {
    let device = Device::flex();
    for form in [Form::Full, Form::Small] {
        let tree = of_groups(&device, form, LevelPool::Auto, 1).tree;
        let documents = documents(5, &device);
        let together = to_vec(tree.logits(documents.clone(), None, 0));
        let alone = (0..5).flat_map(|n| to_vec(tree.logits(documents.clone().narrow(0, n, 1), None, 0)));
        toy::near(&alone.collect::<Vec<f32>>(), &together, 1e-5);
    }
}

#[test]
fn a_bundle_whose_nodes_were_normalised_one_by_one_is_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    for split in [Split::None, Split::Masking] {
        let branches = BranchesConfig { split, ..BranchesConfig::default() };
        let head = AnyHeadConfig::CodingTree(CodingTreeConfig::default());
        let design = Design { branches, ..toy::design(head, Task::MultiLabel) };
        let writer = Writer::create(&path, "model").unwrap();
        toy.model(design.clone(), 1).save(&writer).unwrap();
        writer.finish().unwrap();
        let head = path.join("head.safetensors");
        let tensors = parameters::read(&head).unwrap().into_iter();
        let of_before =
            tensors.map(|(name, tensor)| (name.replace("_block_norm", "_norm"), tensor)).collect();
        parameters::save(&head, &of_before).unwrap();
        let (counts, device) = (toy.counts(), Device::flex());
        let loaded =
            NeuralModel::load(&path, design, toy.taxonomy.clone(), &counts, &device, &Cancel::default());
        let message = loaded.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("earlier versions") && message.contains("trained again"), "{message}");
        std::fs::remove_dir_all(&path).unwrap();
    }
}

fn network(device: &Device, dropout: f64, form: Form) -> TreeNetwork {
    let taxonomy = Toy::new(Task::MultiLabel).taxonomy;
    let config =
        CodingTreeConfig { width: 2, dropout, output_dropout: 0.0, form, ..CodingTreeConfig::default() };
    let counts = LabelCounts::default();
    let context = HeadContext { hidden_size: 3, ..toy::context(&taxonomy, &counts, device) };
    config.build(&context).unwrap()
}

/// All leaves: `[documents, labels, width]`
fn stored(leaves: Leaves) -> Tensor<3> {
    match leaves {
        Leaves::Stored(leaves) => leaves,
        Leaves::Scaled(scales, q) => {
            let [factors, biases] = [0, 1].map(|which| scales.clone().narrow(2, which, 1));
            q.unsqueeze_dim::<3>(1) * factors + biases
        }
    }
}

#[test]
fn leaves_are_mixed_over_the_axis_of_labels() {
    let device = Device::flex();
    let mut tree = network(&device, 0.5, Form::Full).tree;
    let factors = [0.3, 0.3].to_vec();
    let small = Mixing::Small(Scales {
        factors: vector(factors, &device),
        biases: vector([0.05, -0.02].to_vec(), &device),
    });
    let mixing = Linear::of(
        Tensor::from_floats([[0.2, 0.1], [-0.1, 0.4]], &device),
        Tensor::from_floats([0.05, -0.02], &device),
        &device,
    );
    tree.mixing = Mixing::Full(mixing);
    tree.shape.steps =
        vec![Arc::new(Edges { sources: vec![0, 1], targets: vec![0, 0], n_sources: 2, n_targets: 1 })];
    let q = Tensor::from_floats([[0.4, -0.3], [0.0, 0.0]], &device);
    let leaves = |seed| to_vec(stored(tree.leaves(q.clone(), Drops { seed, first: 0, rows: 1 })));
    near(&leaves(None), &[0.17, -0.04, 0.10, -0.11, 0.05, 0.05, -0.02, -0.02]);
    // With dropout each copy has its own; on average they are what they are without. In the small form they share it.
    let on_average = |tree: &Tree| {
        let leaves = |seed| to_vec(stored(tree.leaves(q.clone(), Drops { seed, first: 0, rows: 1 })));
        let mut mean = [0.0; 8];
        for seed in 0..4000 {
            mean.iter_mut().zip(leaves(Some(seed))).for_each(|(mean, x)| *mean += x / 4000.0);
        }
        let expected = leaves(None);
        assert!(mean.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.02), "{mean:?} {expected:?}");
        assert!((0..9).any(|seed| leaves(Some(seed)) != expected));
    };
    on_average(&tree);
    tree.mixing = small;
    on_average(&tree);
}

#[test]
fn documents_some_at_a_time_have_the_values_and_slopes_of_all() {
    let device = Device::flex().autodiff();
    for form in [Form::Full, Form::Small] {
        let mut tree = network(&device, 0.4, form).tree;
        tree.shape.output_dropout = 0.3;
        let x: Vec<f32> = (0..15).map(|n| (n as f32 * 0.7).sin()).collect();
        let run = |at_once: Option<usize>| {
            let x: Tensor<2> = Tensor::from_data(TensorData::new(x.clone(), [5, 3]), &device);
            let x = x.require_grad();
            let logits = match at_once {
                Some(n) => {
                    let work =
                        Arc::new(|first, x, tree: &Tree, _: &[Tensor<2>]| tree.logits(x, Some(1), first));
                    by_rows(x.clone(), &tree, Vec::new(), n, work)
                }
                None => tree.logits(x.clone(), Some(1), 0),
            };
            let slopes = x.grad(&logits.clone().powi_scalar(2).sum().backward()).unwrap();
            (to_vec(logits), to_vec(slopes))
        };
        let (values, slopes) = run(None);
        let (parts, slopes_of_parts) = run(Some(2));
        toy::near(&parts, &values, 1e-5);
        toy::near(&slopes_of_parts, &slopes, 1e-4);
        // And the slopes are those of finite differences, with the same dropout.
        for n in [0, 4, 14] {
            let loss = |step: f32| {
                let mut x = x.clone();
                x[n] += step;
                let x = Tensor::from_data(TensorData::new(x, [5, 3]), &device);
                f64::from(tree.logits(x, Some(1), 0).powi_scalar(2).sum().into_scalar::<f32>())
            };
            let expected = (loss(1e-3) - loss(-1e-3)) / 2e-3;
            let slope = f64::from(slopes[n]);
            assert!((slope - expected).abs() < 1e-2 * expected.abs().max(1.0), "{n}: {slope} {expected}");
        }
    }
}

#[test]
fn sums_of_leaves_that_are_not_stored_are_those_of_leaves() {
    let device = Device::flex().autodiff();
    for pool in [LevelPool::Auto, LevelPool::Sum, LevelPool::Average, LevelPool::Root] {
        let mut tree = network(&device, 0.4, Form::Small).tree;
        tree.shape.pool = pool;
        let n_labels = tree.n_labels();
        if let Mixing::Small(scales) = &mut tree.mixing {
            let biases: Vec<f32> = (0..n_labels).map(|n| (n as f32).cos()).collect();
            scales.biases = vector(biases, &device);
        }
        let drops = Drops { seed: Some(3), first: 2, rows: 1 };
        let run = |is_stored: bool| {
            let q: Tensor<2> = Tensor::from_floats([[0.4, -0.3], [0.2, 0.9], [-1.0, 0.1]], &device);
            let q = q.require_grad();
            let leaves = tree.leaves(q.clone(), drops);
            assert!(matches!(leaves, Leaves::Scaled(..)));
            let leaves = if is_stored { Leaves::Stored(stored(leaves)) } else { leaves };
            let (read, of_groups) = tree.first(leaves);
            let loss = read.clone().powi_scalar(2).sum() + of_groups.clone().powi_scalar(3).sum();
            let gradients = loss.backward();
            let Mixing::Small(Scales { factors, biases }) = &tree.mixing else { unreachable!() };
            let slopes = [q.grad(&gradients).unwrap().reshape([6]), factors.val().grad(&gradients).unwrap()];
            let slopes = slopes.into_iter().chain([biases.val().grad(&gradients).unwrap()]);
            let slopes: Vec<f32> = slopes.flat_map(to_vec).collect();
            [to_vec(read), to_vec(of_groups), slopes].concat()
        };
        let (got, expected) = (run(false), run(true));
        toy::near(&got, &expected, 1e-4);
    }
}
