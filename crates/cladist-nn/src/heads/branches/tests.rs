use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Classifier, LabelSet, Request, Taxonomy};

use super::config::check_together;
use super::*;
use crate::heads::flat::FlatConfig;
use crate::heads::structure::coding_tree::CodingTreeConfig;
use crate::heads::structure::gcn::HierarchyGcnConfig;
use crate::heads::{AnyHeadConfig, Task};
use crate::model::{Design, NeuralModel, Start};
use crate::parameters::named;
use crate::shortlist::ShortlistConfig;
use crate::toy::{Toy, design, fitting};

fn split(head: AnyHeadConfig, branches: BranchesConfig) -> Design {
    Design { branches, ..design(fitting(head), Task::MultiLabel) }
}

fn flat(branches: BranchesConfig) -> Design {
    split(AnyHeadConfig::Flat(FlatConfig { dropout: 0.0, ..FlatConfig::default() }), branches)
}

fn branched(model: &NeuralModel) -> &Branched {
    match &model.network.head {
        AnyHead::Branches(branched) => branched,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_label_of_several_branches_has_one_probability() {
    let taxonomy = Taxonomy::flat(["a", "b", "c", "d"]);
    let labels: Vec<LabelId> = taxonomy.labels().collect();
    let scores = [(0, 0.7), (1, 0.2), (1, 0.4), (2, 0.9), (3, 0.1)];
    let merge = |merge| -> Vec<f32> {
        let scores = scores.iter().map(|&(label, score)| (labels[label], score));
        merged(4, merge, scores).into_iter().map(|(_, score)| score).collect()
    };
    assert_eq!(merge(Merge::Max), [0.7, 0.4, 0.9, 0.1]);
    assert!((merge(Merge::Sum)[1] - 0.6).abs() < 1e-6);
    assert!((merge(Merge::MeanOfOwners)[1] - 0.3).abs() < 1e-6);
    assert_eq!(merged(4, Merge::Sum, [(labels[0], 0.7), (labels[0], 0.6)]), [(labels[0], 1.0)]);
}

/// The loss of a batch and the names of its terms.
fn loss(model: &NeuralModel, toy: &Toy) -> (f64, Vec<String>) {
    let encoded = toy.encoded(model);
    let moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };
    let objective = model.network.head.objective(&HeadInput::new(&encoded), &toy.gold, &moment);
    let names = objective.values().into_iter().map(|(name, _)| name).collect();
    (f64::from(objective.total().unwrap().into_scalar::<f32>()), names)
}

#[test]
fn masks_leave_other_labels_out_and_projections_have_no_others() {
    let toy = Toy::new(Task::MultiLabel);
    let n_labels = toy.taxonomy.n_labels();
    for (choice, reduction) in [
        (Split::Masking, Reduction::Auto),
        (Split::Masking, Reduction::Branches),
        (Split::Projection, Reduction::Auto),
        (Split::Projection, Reduction::Labels),
    ] {
        let config = BranchesConfig { split: choice, reduction, ..BranchesConfig::default() };
        let model = toy.model(flat(config), 1);
        let branched = branched(&model);
        assert_eq!(branched.heads.len(), 2);
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        // The loss from what each branch says of its labels.
        let encoded = toy.encoded(&model);
        let mut expected = 0.0;
        for (head, part) in branched.branches() {
            let n = part.labels.len();
            assert!(n < n_labels);
            let rows = head.score(&HeadInput::new(&encoded), None);
            assert!(rows.iter().all(|row| row.len() == n));
            let mut sum = 0.0;
            for (row, gold) in rows.iter().zip(&toy.gold) {
                for (label, p) in row.iter().filter_map(|&(own, p)| Some((part.whole(own)?, f64::from(p)))) {
                    sum -= if gold.contains(label) { p.ln() } else { (1.0 - p).ln() };
                }
            }
            let by_label = matches!(
                (choice, reduction),
                (Split::Masking, Reduction::Auto) | (Split::Projection, Reduction::Labels)
            );
            expected += sum / (toy.gold.len() * if by_label { n_labels } else { n }) as f64;
        }
        let (loss, names) = loss(&model, &toy);
        assert!((loss - expected).abs() < 1e-5, "{choice:?} {reduction:?}: {loss} {expected}");
        assert_eq!(names, ["bce"]);
        // Gradients are taken of what probabilities come from.
        let (logits, labels) = branched.logits(&HeadInput::new(&encoded)).unwrap();
        let logits = crate::parameters::to_vec(logits);
        for (n, row) in scores.rows().enumerate() {
            for (column, label) in labels.iter().enumerate() {
                let p = 1.0 / (1.0 + (-logits[n * n_labels + column]).exp());
                let score = row.iter().find(|(other, _)| other == label).unwrap().1;
                assert!((p - score).abs() < 1e-5, "{p} {score}");
            }
        }
    }
}

#[test]
fn branches_begin_where_they_are_told_and_may_have_one_label() {
    let toy = Toy::new(Task::MultiLabel);
    for (name, _, config) in crate::heads::HEADS {
        let branches = BranchesConfig {
            split: Split::Projection,
            at: ["copper", "rate", "fund"].map(str::to_owned).to_vec(),
            ..BranchesConfig::default()
        };
        let model = toy.model(split(config(), branches), 1);
        let sizes: Vec<usize> = branched(&model).parts.iter().map(|part| part.labels.len()).collect();
        // `fund` has `gold-fund` below it; what is in no branch makes one more.
        assert_eq!(sizes.iter().sum::<usize>(), toy.taxonomy.n_labels(), "{name}");
        assert_eq!(sizes.iter().filter(|&&n| n == 1).count(), 2, "{name}: {sizes:?}");
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        assert!(scores.rows().all(|row| row.len() == toy.taxonomy.n_labels()), "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let source = crate::source::EncoderSource::parse("scratch:tiny").unwrap();
    let message = |design: Design| {
        let device = burn::tensor::Device::flex();
        let taxonomy = toy.taxonomy.clone();
        let examples = crate::train::Examples { documents: &toy.documents, gold: &toy.gold };
        NeuralModel::create(design, &source, &examples, taxonomy, &toy.counts(), &Start::new(1, &device))
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let masking = BranchesConfig { split: Split::Masking, ..BranchesConfig::default() };
    let listed = ShortlistConfig { group_size: 2, ..ShortlistConfig::default() };
    for split in [Split::Masking, Split::Projection] {
        let branches = BranchesConfig { split, ..BranchesConfig::default() };
        assert!(message(Design { shortlist: listed, ..flat(branches) }).contains("shortlist"));
    }
    let at = BranchesConfig { at: vec!["no-such-label".to_owned()], ..masking.clone() };
    assert!(message(flat(at)).contains("no-such-label"));
    let one = Design { task: Task::MultiClass, ..flat(masking.clone()) };
    assert!(message(one).contains("several"));
    let guided = split(AnyHeadConfig::LayerGuided(Default::default()), masking);
    assert!(message(guided).contains("layer-guided"));
}

#[test]
fn groups_of_parameters_are_those_of_the_heads() {
    let toy = Toy::new(Task::MultiLabel);
    let config = BranchesConfig { split: Split::Projection, ..BranchesConfig::default() };
    let head = AnyHeadConfig::HierarchyGcn(Default::default());
    let model = toy.model(split(head, config), 1);
    let groups: Vec<(String, Group)> = crate::parameters::names(&model.network.head)
        .into_iter()
        .map(|name| (name.clone(), model.network.head.group(&name)))
        .collect();
    assert!(groups.iter().any(|(_, group)| *group == Group::Labels));
    for (name, group) in groups {
        assert_eq!(group == Group::Output, name.contains(".output."), "{name}");
    }
}

/// Two branches of `n` labels below a top.
fn two_branches(n: usize) -> Toy {
    let mut builder = Builder::new();
    for top in ["a", "b"] {
        builder.edge(None, top, &Origin::default());
        (0..n).for_each(|n| builder.edge(Some(top), &format!("{top}{n}"), &Origin::default()));
    }
    let toy = Toy::new(Task::MultiLabel);
    let gold = vec![LabelSet::default(); toy.documents.len()];
    Toy { taxonomy: builder.build().unwrap(), gold, ..toy }
}

#[test]
fn heads_have_the_same_form_whatever_the_split() {
    let gcn = HierarchyGcnConfig { node_size: 4, ..HierarchyGcnConfig::default() };
    let tree = CodingTreeConfig { width: 4, ..CodingTreeConfig::default() };
    // 122 labels, or 222.
    for (below, is_full) in [(60, true), (110, false)] {
        let toy = two_branches(below);
        let (branch, all) = (below + 1, 2 * (below + 1));
        for (of, answered, labels) in
            [(Split::None, all, all), (Split::Masking, branch, all), (Split::Projection, branch, branch)]
        {
            let branches = BranchesConfig { split: of, ..BranchesConfig::default() };
            let shapes = |head: AnyHeadConfig, end: &str| {
                let design = Design { branches: branches.clone(), ..design(head, Task::MultiLabel) };
                let all = named(&toy.model(design, 1).network.head).into_iter();
                all.filter_map(|(name, (shape, _))| name.ends_with(end).then_some(shape)).collect::<Vec<_>>()
            };
            // An output reads the features of all labels of its head in the full form, and its own in the small one.
            let reads = if is_full { labels * 4 } else { 4 };
            let outputs = shapes(AnyHeadConfig::HierarchyGcn(gcn.clone()), "output.weight");
            assert!(
                !outputs.is_empty() && outputs.iter().all(|shape| *shape == [answered, reads]),
                "{of:?}: {outputs:?}"
            );
            // Labels are mixed with each other, or have a factor each.
            let mixing = shapes(AnyHeadConfig::CodingTree(tree.clone()), "mixing.weight");
            let factors = shapes(AnyHeadConfig::CodingTree(tree.clone()), "mixing.factors");
            assert!(
                mixing.is_empty() != is_full && factors.is_empty() == is_full,
                "{of:?}: {mixing:?} {factors:?}"
            );
        }
    }
}

#[test]
fn masked_heads_that_do_not_fit_together_are_refused_with_the_form() {
    check_together(7, 40_000_000).unwrap();
    for (n_heads, parameters) in [(100, 40_000_000), (usize::MAX, 2)] {
        let error = check_together(n_heads, parameters).unwrap_err();
        assert!(error.to_string().contains(&format!("{n_heads} branches")), "{error}");
        assert!(error.remedy().unwrap().contains("form"), "{error}");
    }
}
