//! Experts on several layers of one encoder, what they are made of one by one, and other methods for very many labels.
//!
//! The variants up to `three-experts` are the comparison, the others take it apart. Rates, epochs and batches are those
//! published for 4,000 labels and a RoBERTa of twelve layers; small encoders want more (`train.learning_rate=2e-4`). Few,
//! medium and many are labels with up to 20, up to 100 and more training documents (`metrics.few_at_most`).

use super::{Column, Experiment, RATE, RATE_ABOVE, RATE_OF_LABELS, Setting, Variant, View, WORDS};

const HEAD: Setting = ("head", "experts");
const ALIKE: Setting = ("experts.diversity", "0");

const fn experts(list: &'static str) -> Setting {
    ("experts.experts", list)
}

/// How much experts differ at gold labels they have, in the last epoch.
const KL: &str = "train:expert-kl";

const METHODS: &[&str] = &[
    "svm",
    "parabel",
    "bonsai",
    "xml-cnn",
    "attention-xml",
    "light-xml",
    "aplc",
    "x-transformer",
    "one-expert",
    "two-experts",
    "three-experts",
];
const PARTS: &[&str] = &[
    "one-expert",
    "A-1",
    "A-last",
    "D-last+1",
    "collaborative",
    "individual",
    "two-experts",
    "with-D-1",
    "with-A-last",
    "three-experts",
    "with-D-mid",
];
const RANKED: &[&str] = &["p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "ndcg@3", "ndcg@5"];
const BY_FREQUENCY: &[&str] = &[
    "few-p@5",
    "few-r@5",
    "few-f@5",
    "medium-p@5",
    "medium-r@5",
    "medium-f@5",
    "many-p@5",
    "many-r@5",
    "many-f@5",
];
const OF_PARTS: &[&str] = &["p@1", "p@3", "p@5", "psp@5", "few-f@5", "medium-f@5", "many-f@5", KL];

/// The definition.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "experts",
    description: "one, two and three experts on layers of an encoder, taken apart, beside other methods for very many labels",
    variants: &[
        Variant::new("svm", &[("head", "svm")]),
        Variant::new("parabel", &[("head", "parabel")]),
        Variant::new("bonsai", &[("head", "bonsai")]),
        Variant::new("xml-cnn", &[("head", "xml-cnn"), WORDS, RATE, RATE_OF_LABELS, RATE_ABOVE]),
        Variant::new("attention-xml", &[("head", "attention-xml"), WORDS, RATE, RATE_OF_LABELS, RATE_ABOVE]),
        Variant::new("light-xml", &[("head", "light-xml")]),
        Variant::new("aplc", &[("head", "aplc")]),
        Variant::new(
            "x-transformer",
            &[
                ("head", "flat"),
                ("shortlist.group_size", "125"),
                ("shortlist.match_only", "true"),
                ("ranker.on", "true"),
                // Until there is a ranker, labels of a group cannot be told apart.
                ("train.monitor", "loss"),
            ],
        ),
        Variant::new("one-expert", &[HEAD, experts("[\"D-last\"]")]),
        Variant::new("two-experts", &[HEAD, experts("[\"D-last\", \"A-1\"]")]),
        Variant::new("three-experts", &[HEAD, experts("[\"D-last\", \"A-1\", \"A-mid\"]")]),
        Variant::new("A-1", &[HEAD, experts("[\"A-1\"]")]),
        Variant::new("A-last", &[HEAD, experts("[\"A-last\"]")]),
        Variant::new("D-last+1", &[HEAD, experts("[\"D-last+1\"]")]),
        Variant::new(
            "collaborative",
            &[HEAD, experts("[\"D-last\", \"A-1\"]"), ("experts.loss", "collaborative"), ALIKE],
        ),
        Variant::new("individual", &[HEAD, experts("[\"D-last\", \"A-1\"]"), ALIKE]),
        Variant::new("with-D-1", &[HEAD, experts("[\"D-last\", \"D-1\"]")]),
        Variant::new("with-A-last", &[HEAD, experts("[\"D-last\", \"A-last\"]")]),
        Variant::new("with-D-mid", &[HEAD, experts("[\"D-last\", \"D-mid\", \"A-1\"]")]),
    ],
    shared: &[
        ("refit", "never"),
        ("train.monitor", "p@5"),
        ("train.epochs", "8"),
        ("train.batch_size", "8"),
        ("train.labels.learning_rate", "2e-4"),
        ("train.output.learning_rate", "2e-3"),
        ("train.schedule.warmup", "0.05"),
    ],
    grid: &[],
    baseline: "one-expert",
    measure: "precision, propensity-scored precision, nDCG, and precision, recall and F of labels by frequency",
    columns: &[
        Column { label: "P@1", metric: "p@1" },
        Column { label: "P@3", metric: "p@3" },
        Column { label: "P@5", metric: "p@5" },
        Column { label: "PSP@1", metric: "psp@1" },
        Column { label: "PSP@3", metric: "psp@3" },
        Column { label: "PSP@5", metric: "psp@5" },
        Column { label: "nDCG@3", metric: "ndcg@3" },
        Column { label: "nDCG@5", metric: "ndcg@5" },
        Column { label: "few P", metric: "few-p@5" },
        Column { label: "few R", metric: "few-r@5" },
        Column { label: "few F", metric: "few-f@5" },
        Column { label: "medium P", metric: "medium-p@5" },
        Column { label: "medium R", metric: "medium-r@5" },
        Column { label: "medium F", metric: "medium-f@5" },
        Column { label: "many P", metric: "many-p@5" },
        Column { label: "many R", metric: "many-r@5" },
        Column { label: "many F", metric: "many-f@5" },
        Column { label: "KL", metric: KL },
    ],
    views: &[
        View { title: "methods", variants: METHODS, metrics: RANKED },
        View { title: "labels by frequency", variants: METHODS, metrics: BY_FREQUENCY },
        View { title: "what experts are made of", variants: PARTS, metrics: OF_PARTS },
    ],
    sweep: None,
};
