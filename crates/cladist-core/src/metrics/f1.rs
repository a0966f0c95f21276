//! Metrics of the decoded sets, added up over documents. See [`super::ranking`] for how shares are read.

use super::ranking::Share;
use super::view::View;

fn over(numerator: usize, denominator: usize) -> f64 {
    if denominator == 0 { 0.0 } else { numerator as f64 / denominator as f64 }
}

/// `Σ TP / Σ |P|`.
pub(crate) fn micro_precision(view: &View) -> Share {
    (view.hits as f64, view.predicted.len() as f64)
}

/// `Σ TP / Σ |Y|`.
pub(crate) fn micro_recall(view: &View) -> Share {
    (view.hits as f64, view.gold.len() as f64)
}

/// `2 Σ TP / (2 Σ TP + Σ FP + Σ FN)`, which is `2 Σ TP / (Σ |P| + Σ |Y|)`.
pub(crate) fn micro_f1(view: &View) -> Share {
    (2.0 * view.hits as f64, (view.predicted.len() + view.gold.len()) as f64)
}

/// Mean over all documents of `TP / |P|`, 0 where nothing is predicted.
pub(crate) fn sample_precision(view: &View) -> Share {
    (over(view.hits, view.predicted.len()), 1.0)
}

/// Mean over all documents of `TP / |Y|`, 0 where there is no gold.
pub(crate) fn sample_recall(view: &View) -> Share {
    (over(view.hits, view.gold.len()), 1.0)
}

/// Mean over all documents of `2 TP / (|P| + |Y|)`, 0 where both are empty.
pub(crate) fn sample_f1(view: &View) -> Share {
    (over(2 * view.hits, view.predicted.len() + view.gold.len()), 1.0)
}

/// Share of documents whose decoded set is the gold set.
pub(crate) fn set_accuracy(view: &View) -> Share {
    (f64::from(u8::from(view.predicted == view.gold)), 1.0)
}
