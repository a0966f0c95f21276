//! Levels tied to layers in four ways, against a flat classifier: Manginas, Chalkidis and Malakasiotis, "Layer-wise
//! Guided Training for BERT", 2020.
//!
//! The grid is theirs; the dropout of the encoder and that of the head, between which they do not tell, vary
//! together. They do not name the patience of early stopping. Their learning rate is constant; small encoders want a
//! warm-up, so the schedule is left to the settings.

use super::{Axis, Column, Experiment, Variant};

/// The definition.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "layer-guided",
    description: "levels of the taxonomy tied to layers of the encoder in four ways, against a flat classifier",
    variants: &[
        Variant::new("flat", &[("head", "flat")]),
        Variant::new("last", &[("head", "layer-guided"), ("layer-guided.ties", "last")]),
        Variant::new("one-by-one", &[("head", "layer-guided"), ("layer-guided.ties", "one-by-one")]),
        Variant::new("in-groups", &[("head", "layer-guided"), ("layer-guided.ties", "in-groups")]),
        Variant::new("hybrid", &[("head", "layer-guided"), ("layer-guided.ties", "hybrid")]),
    ],
    shared: &[("data.ancestors", "add"), ("train.monitor", "loss"), ("train.patience", "3")],
    grid: &[
        Axis { keys: &["train.learning_rate"], values: &["2e-5", "3e-5", "5e-5"] },
        Axis { keys: &["head.dropout", "train.dropout"], values: &["0", "0.1"] },
    ],
    baseline: "flat",
    measure: "R-Precision",
    columns: &[
        Column { label: "level <n>", metric: "r-precision-level-<n>" },
        Column { label: "micro", metric: "r-precision-micro" },
        Column { label: "macro", metric: "r-precision-macro" },
    ],
    views: &[],
    sweep: None,
};
