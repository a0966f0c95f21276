//! Scoring rows of features with a forest.

use super::config::{LinearHead, Loss};
use super::forest::Forest;
use crate::text::tfidf::SparseRow;

/// A label's share of the tie-breaking term in a tree's probability: small enough never to change an order that
/// the probabilities decide by more than a thousandth.
const TIE: f64 = 1e-3;

/// Labels kept per leaf, or as many as paths if these are more: the others of a hundred are background.
const LEAF_LABELS: usize = 10;

/// How rows are scored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scoring {
    pub(crate) head: LinearHead,
    pub(crate) loss: Loss,
    pub(crate) beam: usize,
}

/// A node reached from the root.
#[derive(Debug, Clone, Copy)]
struct Path {
    node: u32,
    /// The sum of log-probabilities on the way.
    log: f64,
    /// The sum of raw scores on the way, for ties: probabilities saturate at 1.
    raw: f64,
}

/// A label reached in some tree.
#[derive(Debug, Clone, Copy)]
struct Found {
    label: u32,
    probability: f64,
    raw: f64,
}

/// ln p of a raw score: −max(0, 1 − s)² for the squared hinge, −ln(1 + e^−s) for the logistic loss.
pub(crate) fn log_probability(loss: Loss, raw: f32) -> f64 {
    let raw = f64::from(raw);
    match loss {
        Loss::SquaredHinge => -(1.0 - raw).max(0.0).powi(2),
        Loss::Logistic => -(-raw).exp().ln_1p(),
    }
}

/// A raw score as a number in (0, 1), without the plateau of [`log_probability`]: σ(s) for the logistic loss, σ(2s)
/// for the squared hinge. The scores that minimise the squared hinge are s = 2p − 1; σ(2s) has the same value and
/// slope at p = ½ and keeps rising where s leaves [−1, 1].
pub(crate) fn squash(loss: Loss, raw: f32) -> f32 {
    let slope = match loss {
        Loss::SquaredHinge => 2.0,
        Loss::Logistic => 1.0,
    };
    let p = logistic(slope * f64::from(raw)) as f32;
    p.clamp(f32::MIN_POSITIVE, 1.0 - f32::EPSILON / 2.0)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Forest {
    /// Scores rows: for each, every label of the reached leaves with a number in (0, 1), in no order. An empty row
    /// scores nothing. Rows do not influence each other; many at once are faster, because a node is then looked up
    /// in for all of them while it is in the cache.
    ///
    /// One-vs-rest gives [`squash`] of a label's raw score. A tree gives the product of the probabilities on the
    /// way from the root, of the best `beam` paths; trees are averaged, a label that a tree did not reach counting
    /// 0 there, and equal averages are told apart by p·(1 − 10⁻³·(1 − σ(s))), s being the mean of the label's own
    /// raw scores.
    pub(crate) fn score(&self, scoring: &Scoring, rows: &[SparseRow]) -> Vec<Vec<(u32, f32)>> {
        if scoring.head == LinearHead::Svm {
            let mut raw = Vec::new();
            let mut score = |row: &SparseRow| -> Vec<(u32, f32)> {
                if row.is_empty() {
                    return Vec::new();
                }
                self.raw_scores(0, row, &mut raw);
                self.targets_of(0)
                    .iter()
                    .zip(&raw)
                    .map(|(&label, &raw)| (label, squash(scoring.loss, raw)))
                    .collect()
            };
            return rows.iter().map(&mut score).collect();
        }
        let mut found = vec![Vec::new(); rows.len()];
        for &root in &self.roots {
            self.search(root, scoring, rows, &mut found);
        }
        found.into_iter().map(|found| average(found, self.roots.len())).collect()
    }

    /// Beam search in one tree for all rows, level by level; adds the labels of the leaves that the beams end in. A
    /// leaf that is reached early keeps its place in the beam only while it is among the best.
    fn search(&self, root: u32, scoring: &Scoring, rows: &[SparseRow], found: &mut [Vec<Found>]) {
        let start = Path { node: root, log: 0.0, raw: 0.0 };
        let mut beams: Vec<Vec<Path>> =
            rows.iter().map(|row| if row.is_empty() { Vec::new() } else { vec![start] }).collect();
        let mut raw = Vec::new();
        // Paths to go on with, as (row, path), ordered by node.
        let mut visits: Vec<(usize, Path)> = Vec::new();
        loop {
            for (row, beam) in beams.iter_mut().enumerate() {
                visits.extend(
                    beam.extract_if(.., |path| !self.is_leaf(path.node as usize)).map(|path| (row, path)),
                );
            }
            if visits.is_empty() {
                break;
            }
            visits.sort_unstable_by_key(|&(row, path)| (path.node, row));
            for (row, path) in visits.drain(..) {
                self.raw_scores(path.node as usize, &rows[row], &mut raw);
                beams[row].extend(self.targets_of(path.node as usize).iter().zip(&raw).map(
                    |(&node, &raw)| Path {
                        node,
                        log: path.log + log_probability(scoring.loss, raw),
                        raw: path.raw + f64::from(raw),
                    },
                ));
            }
            for beam in &mut beams {
                if beam.len() > scoring.beam {
                    beam.select_nth_unstable_by(scoring.beam - 1, |a, b| {
                        b.log.total_cmp(&a.log).then(b.raw.total_cmp(&a.raw)).then(a.node.cmp(&b.node))
                    });
                    beam.truncate(scoring.beam);
                }
            }
        }
        visits.extend(
            beams.iter().enumerate().flat_map(|(row, beam)| beam.iter().map(move |&path| (row, path))),
        );
        visits.sort_unstable_by_key(|&(row, path)| (path.node, row));
        let mut labels: Vec<Found> = Vec::new();
        for (row, path) in visits {
            self.raw_scores(path.node as usize, &rows[row], &mut raw);
            labels.clear();
            labels.extend(self.targets_of(path.node as usize).iter().zip(&raw).map(|(&label, &raw)| Found {
                label,
                probability: (path.log + log_probability(scoring.loss, raw)).exp(),
                raw: f64::from(raw),
            }));
            let most = scoring.beam.max(LEAF_LABELS);
            if labels.len() > most {
                labels.select_nth_unstable_by(most - 1, |a, b| {
                    b.raw.total_cmp(&a.raw).then(a.label.cmp(&b.label))
                });
                labels.truncate(most);
            }
            found[row].extend_from_slice(&labels);
        }
    }
}

fn average(mut found: Vec<Found>, n_trees: usize) -> Vec<(u32, f32)> {
    // Stable: the sums below add up in the order of the trees.
    found.sort_by_key(|found| found.label);
    found
        .chunk_by(|a, b| a.label == b.label)
        .filter_map(|same| {
            let probability = same.iter().map(|found| found.probability).sum::<f64>() / n_trees as f64;
            let raw = same.iter().map(|found| found.raw).sum::<f64>() / same.len() as f64;
            Some((same[0].label, told_apart(probability, raw)?))
        })
        .collect()
}

/// A probability that a label with a higher raw score has more of, if that alone would be the same; none if it is 0.
pub(super) fn told_apart(probability: f64, raw: f64) -> Option<f32> {
    let told_apart = (probability * (1.0 - TIE * (1.0 - logistic(raw)))) as f32;
    (told_apart > 0.0).then_some(told_apart.min(1.0 - f32::EPSILON / 2.0))
}

#[cfg(test)]
mod tests;
