//! Labels that look at documents with what their descriptions say, beside a network on word vectors and a fine-tuned
//! encoder, with each loss and without descriptions.
//!
//! The text of a label is its name and its description: a file of labels gives them. Hallmarks of cancer are the labels
//! of the first level (`data.max_levels=1`, `data.ancestors=add`); where documents have one label each, the task
//! is `task=multi-class`.

use super::{Column, Experiment, RATE, RATE_ABOVE, RATE_OF_LABELS, Setting, Variant, WORDS};

const HEAD: Setting = ("head", "label-attention");

/// The definition.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "label-attention",
    description: "attention from label descriptions to words, with each loss, beside what it is compared with",
    variants: &[
        Variant::new("text-cnn", &[("head", "text-cnn"), WORDS, RATE, RATE_ABOVE]),
        Variant::new("flat", &[("head", "flat")]),
        // As ML-NET has it: an order of labels, and how many of them by a network of its own.
        Variant::new(
            "predicted-count",
            &[
                ("head", "flat"),
                ("flat.loss", "ranking"),
                ("train.monitor", "r-precision-micro"),
                ("decode.rule", "predicted-count"),
            ],
        ),
        Variant::new("biforest", &[("head", "biforest"), WORDS, RATE, RATE_ABOVE, RATE_OF_LABELS]),
        Variant::new(
            "frozen",
            &[
                HEAD,
                ("label-attention.convolution", "3"),
                // The descriptions' vectors stay as they are.
                ("label-attention.encode", "every-n"),
                ("label-attention.refresh", "1000000000"),
                ("train.freeze_layers", "1000"),
            ],
        ),
        Variant::new("label-attention", &[HEAD]),
        Variant::new("f-measure", &[HEAD, ("label-attention.loss", "f-measure")]),
        Variant::new("bce-and-f", &[HEAD, ("label-attention.loss", "bce-and-f")]),
        Variant::new("no-descriptions", &[HEAD, ("label-attention.descriptions", "false")]),
        Variant::new(
            "published-rates",
            &[
                HEAD,
                ("train.learning_rate", "5e-5"),
                ("train.schedule.kind", "slanted-triangular"),
                ("train.labels.learning_rate", "4e-2"),
                ("train.labels.fallback", "1e-3"),
                ("train.output.learning_rate", "1e-3"),
                ("train.output.schedule.kind", "constant"),
            ],
        ),
    ],
    shared: &[("train.monitor", "micro-f1"), ("refit", "never"), ("thresholds", "fixed")],
    grid: &[],
    baseline: "flat",
    measure: "micro averages",
    columns: &[
        Column { label: "micro-F1", metric: "micro-f1" },
        Column { label: "P", metric: "micro-precision" },
        Column { label: "R", metric: "micro-recall" },
        Column { label: "macro-F1", metric: "macro-f1" },
        Column { label: "ACC", metric: "set-accuracy" },
    ],
    views: &[],
    sweep: None,
};
