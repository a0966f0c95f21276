//! Label sequences, a flat classifier and the two together, beside networks on word vectors: Yarullin and Serdyukov,
//! "BERT for Sequence-to-Sequence Multi-label Text Classification", 2019.
//!
//! Networks on word vectors have a learning rate of their own, whatever the transformers get. They need more epochs:
//! `text-cnn:train.epochs=15`, and pretrained vectors are for `sgm:encoder=words:FILE`.

use super::{Column, Experiment, RATE, RATE_ABOVE, Sweep, Variant, WORDS};

/// The definition.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "mixed",
    description: "labels in sequence, a flat classifier and both together, beside networks on word vectors",
    variants: &[
        Variant::new("text-cnn", &[("head", "text-cnn"), WORDS, RATE, RATE_ABOVE]),
        Variant::new("sgm", &[("head", "sgm"), WORDS, RATE, RATE_ABOVE]),
        Variant::new("enc-dec", &[("head", "enc-dec"), WORDS, RATE, RATE_ABOVE]),
        Variant::new("flat", &[("head", "flat")]),
        Variant::new("label-sequence", &[("head", "label-sequence")]),
        Variant { name: "mixed", settings: &[("head", "mixed")], members: &["flat", "label-sequence"] },
    ],
    shared: &[("train.monitor", "micro-f1"), ("refit", "never")],
    grid: &[],
    baseline: "flat",
    measure: "accuracy and F1",
    columns: &[
        Column { label: "HA", metric: "hamming-accuracy" },
        Column { label: "micro-F1", metric: "micro-f1" },
        Column { label: "macro-F1", metric: "macro-f1" },
        Column { label: "ACC", metric: "set-accuracy" },
    ],
    views: &[],
    sweep: Some(Sweep {
        variant: "label-sequence",
        key: "label-sequence.beam",
        values: &["1", "2", "3", "5", "7", "9"],
        settings: &[("label-sequence.scores", "beam")],
    }),
};
