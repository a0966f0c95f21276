//! Scoring one row of features with a forest.

use super::config::{LinearHead, Loss};
use super::forest::Forest;

/// A label's share of the tie-breaking term in a tree's probability: small enough never to change an order that
/// the probabilities decide by more than a thousandth.
const TIE: f64 = 1e-3;

/// Buffers that one thread reuses from document to document.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    raw: Vec<f32>,
    beam: Vec<Path>,
    next: Vec<Path>,
    found: Vec<Found>,
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
    /// Scores a row: every label of the reached leaves with a number in (0, 1), in no order. An empty row scores
    /// nothing.
    ///
    /// One-vs-rest gives [`squash`] of a label's raw score. A tree gives the product of the probabilities on the
    /// way from the root, of the best `beam` paths; trees are averaged, a label that a tree did not reach counting
    /// 0 there, and equal averages are told apart by p·(1 − 10⁻³·(1 − σ(s))), s being the mean of the label's own
    /// raw scores.
    pub(crate) fn score(
        &self,
        head: LinearHead,
        loss: Loss,
        beam: usize,
        row: &[(u32, f32)],
        scratch: &mut Scratch,
    ) -> Vec<(u32, f32)> {
        if row.is_empty() {
            return Vec::new();
        }
        if head == LinearHead::Svm {
            self.raw_scores(0, row, &mut scratch.raw);
            return self
                .targets_of(0)
                .iter()
                .zip(&scratch.raw)
                .map(|(&l, &raw)| (l, squash(loss, raw)))
                .collect();
        }
        scratch.found.clear();
        for &root in &self.roots {
            self.search(root, loss, beam, row, scratch);
        }
        // Stable: the sums below add up in the order of the trees.
        scratch.found.sort_by_key(|found| found.label);
        let n_trees = self.roots.len() as f64;
        scratch
            .found
            .chunk_by(|a, b| a.label == b.label)
            .filter_map(|same| {
                let probability = same.iter().map(|found| found.probability).sum::<f64>() / n_trees;
                let raw = same.iter().map(|found| found.raw).sum::<f64>() / same.len() as f64;
                let told_apart = (probability * (1.0 - TIE * (1.0 - logistic(raw)))) as f32;
                (told_apart > 0.0).then_some((same[0].label, told_apart.min(1.0 - f32::EPSILON / 2.0)))
            })
            .collect()
    }

    /// Beam search in one tree; adds the labels of the leaves that the beam ends in. A leaf that is reached early
    /// keeps its place in the beam only while it is among the best.
    fn search(&self, root: u32, loss: Loss, beam: usize, row: &[(u32, f32)], scratch: &mut Scratch) {
        let Scratch { raw, beam: paths, next, found } = scratch;
        paths.clear();
        paths.push(Path { node: root, log: 0.0, raw: 0.0 });
        while paths.iter().any(|path| !self.is_leaf(path.node as usize)) {
            next.clear();
            for path in paths.iter() {
                if self.is_leaf(path.node as usize) {
                    next.push(*path);
                    continue;
                }
                self.raw_scores(path.node as usize, row, raw);
                next.extend(self.targets_of(path.node as usize).iter().zip(raw.iter()).map(
                    |(&node, &raw)| Path {
                        node,
                        log: path.log + log_probability(loss, raw),
                        raw: path.raw + f64::from(raw),
                    },
                ));
            }
            if next.len() > beam {
                next.select_nth_unstable_by(beam - 1, |a, b| {
                    b.log.total_cmp(&a.log).then(b.raw.total_cmp(&a.raw)).then(a.node.cmp(&b.node))
                });
                next.truncate(beam);
            }
            std::mem::swap(paths, next);
        }
        for path in paths.iter() {
            self.raw_scores(path.node as usize, row, raw);
            found.extend(self.targets_of(path.node as usize).iter().zip(raw.iter()).map(|(&label, &raw)| {
                Found {
                    label,
                    probability: (path.log + log_probability(loss, raw)).exp(),
                    raw: f64::from(raw),
                }
            }));
        }
    }
}

#[cfg(test)]
mod tests;
