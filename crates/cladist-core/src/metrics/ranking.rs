//! Metrics of the ranking: what is among the first k.
//!
//! Each function gives a document's share of a numerator and a denominator; the metric is the ratio of their sums
//! over documents. A mean over documents has the denominator 1, and 0 for documents that it skips.

use super::view::View;

/// A document's numerator and denominator.
pub(crate) type Share = (f64, f64);

fn mean_if(counted: bool, value: impl FnOnce() -> f64) -> Share {
    if counted { (value(), 1.0) } else { (0.0, 0.0) }
}

/// `|top-k ∩ Y| / k`, over all documents.
pub(crate) fn precision(view: &View, k: usize) -> Share {
    (view.hits_at(k) as f64 / k as f64, 1.0)
}

/// `|top-k ∩ Y| / |Y|`, over documents with gold.
pub(crate) fn recall(view: &View, k: usize) -> Share {
    mean_if(!view.gold.is_empty(), || view.hits_at(k) as f64 / view.gold.len() as f64)
}

/// `|top-k ∩ Y| / min(k, |Y|)`, over documents with gold.
pub(crate) fn r_precision(view: &View, k: usize) -> Share {
    mean_if(!view.gold.is_empty(), || view.hits_at(k) as f64 / k.min(view.gold.len()) as f64)
}

fn discount(rank: usize) -> f64 {
    1.0 / (rank as f64 + 2.0).log2()
}

/// `DCG / IDCG` with `DCG = Σ rel(r) / log2(r + 1)` over ranks r from 1 to k, over documents with gold.
pub(crate) fn ndcg(view: &View, k: usize) -> Share {
    mean_if(!view.gold.is_empty(), || {
        let ranks = view.relevant.iter().take(k).enumerate();
        let gain: f64 = ranks.filter(|(_, relevant)| **relevant).map(|(rank, _)| discount(rank)).sum();
        gain / (0..k.min(view.gold.len())).map(discount).sum::<f64>()
    })
}

fn weighted_hits(view: &View, k: usize, factor: impl Fn(usize) -> f64) -> Share {
    let hits = view.ranked.iter().zip(view.relevant).take(k).enumerate();
    let gain = hits
        .filter(|(_, (_, relevant))| **relevant)
        .filter_map(|(rank, ((label, _), _))| Some(view.weights.get(label.index())? * factor(rank)))
        .sum();
    (gain, view.ideal.iter().take(k).enumerate().map(|(rank, weight)| weight * factor(rank)).sum())
}

/// Propensity-scored precision: inverse propensities of the hits over the k largest of the gold labels.
pub(crate) fn ps_precision(view: &View, k: usize) -> Share {
    weighted_hits(view, k, |_| 1.0)
}

/// Propensity-scored nDCG: as [`ps_precision`], with each rank discounted, over the ideal order of the gold labels.
pub(crate) fn ps_ndcg(view: &View, k: usize) -> Share {
    weighted_hits(view, k, discount)
}

/// Whether the best-ranked label is gold, over documents with gold.
pub(crate) fn accuracy(view: &View) -> Share {
    mean_if(!view.gold.is_empty(), || view.hits_at(1) as f64)
}

/// `|top-|Y| ∩ Y| / |Y|` in one ranking of all levels, over documents with gold.
pub(crate) fn flat_r_precision(view: &View) -> Share {
    r_precision(view, view.gold.len().max(1))
}

/// Hits of the level-wise R-Precision over gold labels.
pub(crate) fn gold_weighted_r_precision(view: &View) -> Share {
    let hits: u32 = view.levels.iter().map(|at| at.hits).sum();
    (f64::from(hits), view.gold.len() as f64)
}

/// R-Precision among the labels of one level, over documents with gold there.
pub(crate) fn level_r_precision(view: &View, level: usize) -> Share {
    view.levels
        .binary_search_by_key(&level, |at| at.level)
        .map_or((0.0, 0.0), |n| (f64::from(view.levels[n].hits) / f64::from(view.levels[n].gold), 1.0))
}
