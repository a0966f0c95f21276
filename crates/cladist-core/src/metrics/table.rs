//! The table of metrics: names, definitions and where their values come from.

use super::counts::Sets;
use super::options::LabelSpace;
use super::ranking::Share;
use super::view::View;
use super::{f1, hierarchical, ranking};

/// Where a metric's value comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A ratio of sums over documents.
    Documents(fn(&View) -> Share),
    /// The same, for a cut-off k or a level.
    Numbered(fn(&View, usize) -> Share),
    /// The mean over levels with gold of the R-Precision there.
    LevelMean,
    /// The mean F1 over labels; `None` follows the options.
    LabelF1(Sets, Option<LabelSpace>),
    /// Something else that needs all documents at once.
    Whole,
}

/// A metric as help and documentation show it.
#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    /// The name; `<k>` stands for a cut-off, `<n>` for a level, `<class>` for `zero`, `few`, `medium` or `many`.
    pub name: &'static str,
    /// Whether larger values are better.
    pub higher_is_better: bool,
    /// One line on what it is. Y: gold, P: decoded, per document.
    pub definition: &'static str,
    pub(crate) source: Source,
    /// The value when the denominator is 0; none if the metric is then left out.
    pub(crate) empty: Option<f64>,
}

const fn up(name: &'static str, source: Source, definition: &'static str) -> MetricInfo {
    MetricInfo { name, higher_is_better: true, definition, source, empty: None }
}

const fn down(name: &'static str, definition: &'static str) -> MetricInfo {
    MetricInfo { name, higher_is_better: false, definition, source: Whole, empty: None }
}

/// Precision is 0, not unknown, when nothing is predicted.
const fn or_zero(info: MetricInfo) -> MetricInfo {
    MetricInfo { empty: Some(0.0), ..info }
}

use Source::{Documents, LabelF1, LevelMean, Numbered, Whole};

/// Every metric that a report can hold.
pub static METRICS: &[MetricInfo] = &[
    or_zero(up(
        "micro-precision",
        Documents(f1::micro_precision),
        "Σ|P∩Y| / Σ|P|; 0 if nothing is predicted",
    )),
    up("micro-recall", Documents(f1::micro_recall), "Σ|P∩Y| / Σ|Y|"),
    up("micro-f1", Documents(f1::micro_f1), "2Σ|P∩Y| / (Σ|P| + Σ|Y|)"),
    up("macro-precision", Whole, "mean over labels of tp/(tp+fp), 0 if never predicted"),
    up("macro-recall", Whole, "mean over labels of tp/(tp+fn), 0 if never gold"),
    up(
        "macro-f1",
        LabelF1(Sets::Plain, None),
        "mean over labels of 2tp/(2tp+fp+fn), 0 if the denominator is 0",
    ),
    up(
        "macro-f1-seen",
        LabelF1(Sets::Plain, Some(LabelSpace::Seen)),
        "macro-f1 over labels seen in training or gold",
    ),
    up(
        "macro-f1-all",
        LabelF1(Sets::Plain, Some(LabelSpace::All)),
        "macro-f1 over every label of the taxonomy",
    ),
    up(
        "macro-f1-gold",
        LabelF1(Sets::Plain, Some(LabelSpace::Gold)),
        "macro-f1 over labels with gold in the evaluated documents",
    ),
    up(
        "sample-precision",
        Documents(f1::sample_precision),
        "mean over documents of |P∩Y| / |P|, 0 if P is empty",
    ),
    up("sample-recall", Documents(f1::sample_recall), "mean over documents of |P∩Y| / |Y|, 0 if Y is empty"),
    up(
        "sample-f1",
        Documents(f1::sample_f1),
        "mean over documents of 2|P∩Y| / (|P| + |Y|), 0 if both are empty",
    ),
    up("hamming-accuracy", Whole, "share of (document, label) cells on which P and Y agree"),
    up("set-accuracy", Documents(f1::set_accuracy), "share of documents with P = Y"),
    up(
        "accuracy",
        Documents(ranking::accuracy),
        "share of documents with gold whose best-ranked label is gold",
    ),
    up("p@<k>", Numbered(ranking::precision), "mean over documents of |top-k ∩ Y| / k"),
    up("r@<k>", Numbered(ranking::recall), "mean over documents with gold of |top-k ∩ Y| / |Y|"),
    up(
        "rp@<k>",
        Numbered(ranking::r_precision),
        "mean over documents with gold of |top-k ∩ Y| / min(k, |Y|)",
    ),
    up(
        "ndcg@<k>",
        Numbered(ranking::ndcg),
        "mean over documents with gold of DCG@k / ideal DCG@k, discount log2(rank + 1)",
    ),
    up(
        "psp@<k>",
        Numbered(ranking::ps_precision),
        "Σ inverse propensity of hits in top-k / Σ of the k largest in Y",
    ),
    up("psndcg@<k>", Numbered(ranking::ps_ndcg), "psp@k with discounted ranks"),
    up(
        "r-precision-micro",
        Documents(ranking::flat_r_precision),
        "mean over documents with gold of |top-|Y| ∩ Y| / |Y|, all levels in one ranking",
    ),
    up(
        "r-precision-gold-weighted",
        Documents(ranking::gold_weighted_r_precision),
        "Σ hits of the level-wise R-Precision / Σ|Y|",
    ),
    up("r-precision-macro", LevelMean, "mean of r-precision-level-n over levels with gold"),
    up(
        "r-precision-level-<n>",
        Numbered(ranking::level_r_precision),
        "R-Precision among the labels of level n, over documents with gold there",
    ),
    or_zero(up(
        "hierarchical-precision-micro",
        Documents(hierarchical::precision),
        "Σ|anc(P)∩anc(Y)| / Σ|anc(P)|; anc adds all ancestors",
    )),
    up("hierarchical-recall-micro", Documents(hierarchical::recall), "Σ|anc(P)∩anc(Y)| / Σ|anc(Y)|"),
    up("hierarchical-f1-micro", Documents(hierarchical::f1), "2Σ|anc(P)∩anc(Y)| / (Σ|anc(P)| + Σ|anc(Y)|)"),
    up("hierarchical-f1-macro", LabelF1(Sets::Closed, None), "macro-f1 on anc(P) and anc(Y)"),
    or_zero(up(
        "hierarchical-precision-micro-open",
        Documents(hierarchical::open_precision),
        "Σ|P∩anc(Y)| / Σ|P|",
    )),
    up("hierarchical-recall-micro-open", Documents(hierarchical::open_recall), "Σ|P∩anc(Y)| / Σ|anc(Y)|"),
    up("hierarchical-f1-micro-open", Documents(hierarchical::open_f1), "2Σ|P∩anc(Y)| / (Σ|P| + Σ|anc(Y)|)"),
    up("hierarchical-f1-macro-open", LabelF1(Sets::Open, None), "macro-f1 on P and anc(Y)"),
    up(
        "<class>-p@<k>",
        Whole,
        "mean over labels of the class of (documents with the label in top-k and gold) / (in top-k), 0 if none",
    ),
    up(
        "<class>-r@<k>",
        Whole,
        "mean over labels of the class of (documents with the label in top-k and gold) / (gold), 0 if none",
    ),
    up("<class>-f@<k>", Whole, "mean over labels of the class of each label's 2PR/(P+R), 0 if both are 0"),
    up("<class>-p@<k>-present", Whole, "<class>-p@k over labels with gold in the evaluated documents"),
    up("<class>-r@<k>-present", Whole, "<class>-r@k over labels with gold in the evaluated documents"),
    up("<class>-f@<k>-present", Whole, "<class>-f@k over labels with gold in the evaluated documents"),
    down("ece", "expected calibration error over all scored (document, label) pairs"),
    down("ece-top", "expected calibration error over the best-ranked label of each document"),
    down(
        "coherence-violations",
        "scored parent–child pairs in which the child's score is above the parent's",
    ),
    down("coherence-violation-rate", "coherence-violations / scored parent–child pairs"),
];

/// The entry of a metric by its full name, such as `ndcg@5`, with its cut-off or level if it has one.
#[must_use]
pub fn find(name: &str) -> Option<(&'static MetricInfo, Option<usize>)> {
    let mut pattern = String::with_capacity(name.len() + 8);
    let mut rest = name;
    for class in super::shots::CLASSES {
        if let Some(tail) = rest.strip_prefix(class).filter(|tail| tail.starts_with('-')) {
            pattern.push_str("<class>");
            rest = tail;
            break;
        }
    }
    let mut number = None;
    let slot = rest.find('@').map(|at| (at + 1, "<k>"));
    let slot = slot.or_else(|| rest.starts_with("r-precision-level-").then_some((18, "<n>")));
    if let Some((start, placeholder)) = slot {
        let length = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let value: usize = rest[start..start + length].parse().ok().filter(|&value| value > 0)?;
        number = Some(value);
        pattern.push_str(&rest[..start]);
        pattern.push_str(placeholder);
        rest = &rest[start + length..];
    }
    pattern.push_str(rest);
    METRICS.iter().find(|info| info.name == pattern).map(|info| (info, number))
}

/// A table name with its placeholder replaced.
pub(crate) fn numbered(name: &str, number: usize) -> String {
    name.replace("<k>", &number.to_string()).replace("<n>", &number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_their_numbers() {
        let found = |name: &str| find(name).map(|(info, number)| (info.name, number));
        assert_eq!(found("micro-f1"), Some(("micro-f1", None)));
        assert_eq!(found("ndcg@10"), Some(("ndcg@<k>", Some(10))));
        assert_eq!(found("r-precision-level-3"), Some(("r-precision-level-<n>", Some(3))));
        assert_eq!(found("few-f@5-present"), Some(("<class>-f@<k>-present", Some(5))));
        for unknown in ["", "p@", "p@0", "p@x", "p@<k>", "few-", "micro-f2", "r-precision-level-", "p@5x"] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
    }
}
