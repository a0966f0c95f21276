//! Beam search: which hypotheses go on, whatever computes their distributions.

use std::cmp::Ordering;

/// What may follow what. Labels are numbered in the order of output; the number after the last is the end.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// Labels.
    pub(super) n_labels: usize,
    /// No end before so many labels.
    pub(super) min_labels: usize,
    /// Labels at most.
    pub(super) max_labels: usize,
    /// Parents of each label: one of them must have come before, if there is any.
    pub(super) parents: Option<Vec<Vec<u32>>>,
}

/// What takes a label out of the running.
const NEVER: f32 = -1e30;

impl Rules {
    /// Turns logits of labels and the end into log-probabilities of what may follow `emitted`.
    pub(super) fn log_probabilities(&self, row: &mut [f32], emitted: &[u32]) {
        for &label in emitted {
            row[label as usize] = NEVER;
        }
        if let Some(parents) = &self.parents {
            for (label, parents) in parents.iter().enumerate() {
                if !parents.is_empty() && !parents.iter().any(|parent| emitted.contains(parent)) {
                    row[label] = NEVER;
                }
            }
        }
        if emitted.len() < self.min_labels.min(self.n_labels) {
            row[self.n_labels] = NEVER;
        }
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|&z| f64::from(z - highest).exp()).sum();
        let normaliser = highest + sum.ln() as f32;
        row.iter_mut().for_each(|z| *z = if *z == NEVER { f32::NEG_INFINITY } else { *z - normaliser });
    }
}

/// A prefix or a whole sequence.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hypothesis {
    pub(super) labels: Vec<u32>,
    /// ln of each label's probability at its step, and of the end's.
    pub(super) steps: Vec<f32>,
    /// Their sum.
    pub(super) log: f64,
}

/// The search for one document.
#[derive(Debug)]
pub(super) struct Beam {
    pub(super) live: Vec<Hypothesis>,
    finished: Vec<Hypothesis>,
    width: usize,
    wanted: usize,
    /// Compare Σ ln P divided by the number of steps and one.
    by_length: bool,
}

impl Beam {
    /// A search of some width for the `wanted` best sequences.
    pub(super) fn new(width: usize, wanted: usize, by_length: bool) -> Self {
        let wanted = wanted.max(1);
        let start = Hypothesis { labels: Vec::new(), steps: Vec::new(), log: 0.0 };
        Self { live: vec![start], finished: Vec::new(), width: width.max(wanted), wanted, by_length }
    }

    /// Whether no live hypothesis can change the answer.
    pub(super) fn is_done(&self) -> bool {
        let Some(best) = self.live.iter().map(|live| live.log).max_by(f64::total_cmp) else { return true };
        if self.by_length {
            return self.finished.len() >= self.width;
        }
        let mut logs: Vec<f64> = self.finished.iter().map(|done| done.log).collect();
        logs.sort_by(|a, b| b.total_cmp(a));
        // What follows only makes a hypothesis less likely.
        logs.get(self.wanted - 1).is_some_and(|log| *log >= best)
    }

    /// Takes the log-probabilities after each live hypothesis; returns the hypothesis each new one came from.
    pub(super) fn advance(&mut self, rows: &[&[f32]], rules: &Rules) -> Vec<usize> {
        let mut best: Vec<(f64, u32, usize)> = Vec::new();
        for (from, (hypothesis, row)) in self.live.iter().zip(rows).enumerate() {
            let open = row.iter().enumerate().filter(|(_, log)| log.is_finite());
            let mut next: Vec<(f64, u32, usize)> =
                open.map(|(label, &log)| (hypothesis.log + f64::from(log), label as u32, from)).collect();
            if next.len() > self.width {
                next.select_nth_unstable_by(self.width - 1, better);
                next.truncate(self.width);
            }
            best.extend(next);
        }
        best.sort_by(better);
        best.truncate(self.width);
        let (mut live, mut sources) = (Vec::new(), Vec::new());
        for (log, label, from) in best {
            let mut hypothesis = self.live[from].clone();
            hypothesis.log = log;
            hypothesis.steps.push(rows[from][label as usize]);
            if label as usize == rules.n_labels {
                self.finished.push(hypothesis);
            } else {
                hypothesis.labels.push(label);
                live.push(hypothesis);
                sources.push(from);
            }
        }
        self.live = live;
        sources
    }

    /// The best sequences, the likeliest first; those cut off only if none came to its end.
    pub(super) fn into_best(self) -> Vec<Hypothesis> {
        let Self { live, finished, wanted, by_length, .. } = self;
        let mut all = if finished.is_empty() { live } else { finished };
        let value = |h: &Hypothesis| if by_length { h.log / (h.steps.len() + 1) as f64 } else { h.log };
        all.sort_by(|a, b| value(b).total_cmp(&value(a)).then_with(|| a.labels.cmp(&b.labels)));
        all.truncate(wanted);
        all
    }
}

/// Likelier first, then the lower label.
fn better(a: &(f64, u32, usize), b: &(f64, u32, usize)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
}
