//! Hierarchical precision, recall and F (Kosmopoulos et al. 2015): sets are compared with their ancestors.
//!
//! *Closed* closes the gold and the decoded sets; *open* closes only the gold sets, as frameworks do that train on
//! closed gold and threshold each label on its own.

use super::ranking::Share;
use super::view::View;

fn closed_hits(view: &View) -> f64 {
    view.closed_predicted.intersection_len(&view.closed_gold) as f64
}

fn open_hits(view: &View) -> f64 {
    view.predicted.intersection_len(&view.closed_gold) as f64
}

/// `Σ |anc(P) ∩ anc(Y)| / Σ |anc(P)|`.
pub(crate) fn precision(view: &View) -> Share {
    (closed_hits(view), view.closed_predicted.len() as f64)
}

/// `Σ |anc(P) ∩ anc(Y)| / Σ |anc(Y)|`.
pub(crate) fn recall(view: &View) -> Share {
    (closed_hits(view), view.closed_gold.len() as f64)
}

/// The harmonic mean of both: `2 Σ |anc(P) ∩ anc(Y)| / (Σ |anc(P)| + Σ |anc(Y)|)`.
pub(crate) fn f1(view: &View) -> Share {
    (2.0 * closed_hits(view), (view.closed_predicted.len() + view.closed_gold.len()) as f64)
}

/// `Σ |P ∩ anc(Y)| / Σ |P|`.
pub(crate) fn open_precision(view: &View) -> Share {
    (open_hits(view), view.predicted.len() as f64)
}

/// `Σ |P ∩ anc(Y)| / Σ |anc(Y)|`.
pub(crate) fn open_recall(view: &View) -> Share {
    (open_hits(view), view.closed_gold.len() as f64)
}

/// The harmonic mean of both.
pub(crate) fn open_f1(view: &View) -> Share {
    (2.0 * open_hits(view), (view.predicted.len() + view.closed_gold.len()) as f64)
}
