//! Branches of the taxonomy as tasks: heads that know the hierarchy, alone and one for each branch, by masking and by projection.
//!
//! Published with BERT, AdamW at 2e-5 falling linearly, 100 epochs and a patience of 50; the encoder and the epochs are left to the
//! settings. Scores are made coherent before they are judged; how often they contradicted the hierarchy before is a column. Heads are in
//! the published form up to 200 labels, whatever the split. As published with the setting `decode.coherence=false`.

use super::{Column, Experiment, Setting, Variant};

const GCN: Setting = ("head", "hierarchy-gcn");
const TREE: Setting = ("head", "coding-tree");
const MASKING: Setting = ("branches.split", "masking");
const PROJECTION: Setting = ("branches.split", "projection");

/// The definition.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "himtl",
    description: "heads that know the hierarchy, one for all labels or one for each branch, against flat and layer-guided",
    variants: &[
        Variant::new("flat", &[("head", "flat")]),
        Variant::new("layer-guided", &[("head", "layer-guided"), ("layer-guided.merge_levels", "true")]),
        Variant::new("gcn", &[GCN]),
        Variant::new("gcn-masking", &[GCN, MASKING]),
        Variant::new("gcn-projection", &[GCN, PROJECTION]),
        Variant::new("tree", &[TREE]),
        Variant::new("tree-masking", &[TREE, MASKING]),
        Variant::new("tree-projection", &[TREE, PROJECTION]),
    ],
    shared: &[
        ("data.ancestors", "add"),
        ("decode.coherence", "true"),
        ("train.monitor", "micro-f1"),
        ("refit", "never"),
    ],
    grid: &[],
    baseline: "flat",
    measure: "F1, F1 with ancestors, and children above their parents before and after coherence",
    columns: &[
        Column { label: "micro-F1", metric: "micro-f1" },
        Column { label: "macro-F1", metric: "macro-f1" },
        Column { label: "micro-hF1", metric: "hierarchical-f1-micro" },
        Column { label: "macro-hF1", metric: "hierarchical-f1-macro" },
        Column { label: "violated", metric: "coherence-violation-rate-before" },
        Column { label: "after", metric: "coherence-violation-rate" },
    ],
    views: &[],
    sweep: None,
};
