//! Thresholds that make the most of a dev split.
//!
//! A threshold cuts a sorted list of scores; a cut is only possible between two different scores, and the threshold
//! is set midway between them. All objectives are swept exactly:
//! * the mean of F1 over labels or documents, by updating one F1 per score on the way down the list;
//! * micro F1 with several thresholds at once, as a fraction of sums (Dinkelbach 1967): for the best value F, each
//!   group on its own maximises `2 tp - F · predicted`, and F is found by iterating from below.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::check_lengths;
use crate::decode::Thresholds;
use crate::error::{Error, Result};
use crate::job::Cancel;
use crate::scores::Scores;
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};

/// What thresholds are to maximise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Objective {
    /// F1 over all (document, label) pairs.
    #[default]
    #[serde(rename = "micro-f1")]
    MicroF1,
    /// The mean over labels of each one's F1.
    #[serde(rename = "macro-f1")]
    MacroF1,
    /// The mean over documents of each one's F1.
    #[serde(rename = "sample-f1")]
    SampleF1,
}

/// How many thresholds there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// One.
    Global,
    /// One per level of the taxonomy.
    Level,
    /// One per label; rare labels share one.
    #[default]
    Label,
}

/// How thresholds are fitted: the section `[fit_thresholds]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitThresholds {
    /// `micro-f1`, `macro-f1` or `sample-f1`.
    pub objective: Objective,
    /// `global`, `level` or `label`; `sample-f1` knows only `global`.
    pub granularity: Granularity,
    /// With one threshold per label: labels that are gold in fewer dev documents than this share one threshold,
    /// because the best cut through a handful of scores says little of the next ones.
    pub min_positives: usize,
}

impl Default for FitThresholds {
    fn default() -> Self {
        Self { objective: Objective::MicroF1, granularity: Granularity::Label, min_positives: 20 }
    }
}

impl FitThresholds {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        if self.objective == Objective::SampleF1 && self.granularity != Granularity::Global {
            let given = if self.granularity == Granularity::Level { "level" } else { "label" };
            return Err(Error::setting("fit_thresholds.granularity", "`global` for `sample-f1`", given));
        }
        Ok(())
    }
}

/// Thresholds and what they achieve on the documents they were fitted to.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedThresholds {
    /// Ready for decoding.
    pub thresholds: Thresholds,
    /// The objective; macro F1 over labels with gold.
    pub value: f64,
}

/// Threshold where nothing can be learned.
const FALLBACK: f32 = 0.5;

/// A scored pair in one number that sorts by score: score bits, whether gold, and the label or document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn new(score: f32, gold: bool, item: usize) -> Self {
        Self(u64::from(score.to_bits()) << 32 | u64::from(gold) << 31 | item as u64)
    }

    fn score(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }

    fn is_gold(self) -> bool {
        self.0 >> 31 & 1 == 1
    }

    fn item(self) -> usize {
        (self.0 & 0x7fff_ffff) as usize
    }
}

/// Scored pairs in groups that share a threshold, each group best first.
struct Groups {
    keys: Vec<Key>,
    starts: Vec<usize>,
}

impl Groups {
    fn new(
        scores: &Scores,
        gold: &[LabelSet],
        n_groups: usize,
        group_of: &[usize],
        item_of: impl Fn(usize, LabelId) -> usize,
    ) -> Self {
        // A label with a score of 0 is never chosen, so that no cut can include it.
        let chosen = |row: &'_ [(LabelId, f32)]| row.partition_point(|entry| entry.1 > 0.0);
        let mut starts = vec![0; n_groups + 1];
        for row in scores.rows() {
            for &(label, _) in &row[..chosen(row)] {
                starts[group_of[label.index()] + 1] += 1;
            }
        }
        for group in 0..n_groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut keys = vec![Key(0); starts[n_groups]];
        for (document, (row, gold)) in scores.rows().zip(gold).enumerate() {
            for &(label, score) in &row[..chosen(row)] {
                let slot = &mut next[group_of[label.index()]];
                keys[*slot] = Key::new(score, gold.contains(label), item_of(document, label));
                *slot += 1;
            }
        }
        let mut rest = keys.as_mut_slice();
        let mut slices = Vec::with_capacity(n_groups);
        for group in 0..n_groups {
            let (slice, tail) = rest.split_at_mut(starts[group + 1] - starts[group]);
            slices.push(slice);
            rest = tail;
        }
        slices.into_par_iter().for_each(|slice| slice.par_sort_unstable_by(|a, b| b.cmp(a)));
        Self { keys, starts }
    }

    /// How many groups there are.
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn group(&self, group: usize) -> &[Key] {
        &self.keys[self.starts[group]..self.starts[group + 1]]
    }
}

/// The threshold that lets the first `cut` of the sorted keys pass: midway to the next score.
fn threshold_at(keys: &[Key], cut: usize) -> f32 {
    let above = if cut == 0 { 1.0 } else { keys[cut - 1].score() };
    let below = keys.get(cut).map_or(0.0, |key| key.score());
    let middle = ((f64::from(above) + f64::from(below)) / 2.0) as f32;
    // Between two neighbouring numbers there is none; passing is strict, so that the lower one does.
    if cut == 0 || middle < above { middle.clamp(0.0, 1.0) } else { below }
}

/// Whether the list may be cut after `n` keys.
fn is_cut(keys: &[Key], n: usize) -> bool {
    n == keys.len() || keys[n - 1].score() != keys[n].score()
}

/// The cut with the largest `2 tp - price · cut`, the shortest of those, with its tp.
fn best_linear_cut(keys: &[Key], price: f64) -> (usize, usize) {
    let (mut best, mut best_gain, mut tp) = ((0, 0), 0.0, 0);
    for (n, key) in keys.iter().enumerate() {
        tp += usize::from(key.is_gold());
        let gain = 2.0 * tp as f64 - price * (n + 1) as f64;
        if gain > best_gain && is_cut(keys, n + 1) {
            (best, best_gain) = ((n + 1, tp), gain);
        }
    }
    best
}

/// The cuts of all groups that together have the best micro F1.
fn best_micro_cuts(groups: &Groups, n_gold: usize, cancel: &Cancel) -> Result<Vec<usize>> {
    let (mut cuts, mut value) = (vec![0; groups.len()], 0.0);
    loop {
        cancel.check()?;
        let best: Vec<(usize, usize)> =
            (0..groups.len()).into_par_iter().map(|g| best_linear_cut(groups.group(g), value)).collect();
        let predicted: usize = best.iter().map(|cut| cut.0).sum();
        let tp: usize = best.iter().map(|cut| cut.1).sum();
        let next = 2.0 * tp as f64 / (predicted + n_gold).max(1) as f64;
        if next <= value {
            return Ok(cuts);
        }
        (cuts, value) = (best.into_iter().map(|cut| cut.0).collect(), next);
    }
}

/// The cut of a group with the largest sum of F1 over its items. `gold` is by item.
fn best_mean_cut(keys: &[Key], gold: &[u32], counts: &mut [(u32, u32)]) -> usize {
    let (mut best, mut best_sum, mut sum) = (0, 0.0, 0.0);
    for (n, key) in keys.iter().enumerate() {
        let (tp, predicted) = &mut counts[key.item()];
        let gold = gold[key.item()];
        let f1 =
            |tp: u32, predicted: u32| 2.0 * f64::from(tp) / (f64::from(predicted) + f64::from(gold)).max(1.0);
        let before = f1(*tp, *predicted);
        *tp += u32::from(key.is_gold());
        *predicted += 1;
        sum += f1(*tp, *predicted) - before;
        if sum > best_sum + 1e-12 && is_cut(keys, n + 1) {
            (best, best_sum) = (n + 1, sum);
        }
    }
    best
}

/// Finds the thresholds that maximise an objective on documents with gold.
///
/// With one threshold per label, labels that are gold in fewer than `min_positives` documents share the threshold
/// that is best for them together; if none of them is ever found, they share the threshold that is best for all
/// labels.
pub fn fit_thresholds(
    scores: &Scores,
    gold: &[LabelSet],
    taxonomy: &Taxonomy,
    config: &FitThresholds,
    cancel: &Cancel,
) -> Result<FittedThresholds> {
    cancel.check()?;
    config.validate()?;
    check_lengths(scores, gold)?;
    let FitThresholds { objective, granularity, min_positives } = config;
    let n_labels = taxonomy.n_labels();
    let mut positives = vec![0u32; n_labels];
    for label in gold.iter().flatten() {
        positives[label.index()] += 1;
    }
    // The last group is that of rare labels.
    let is_rare = |label: LabelId| (positives[label.index()] as usize) < *min_positives;
    let n_groups = match granularity {
        Granularity::Global => 1,
        Granularity::Level => taxonomy.n_levels().max(1),
        Granularity::Label => n_labels + 1,
    };
    let group_of: Vec<usize> = taxonomy
        .labels()
        .map(|label| match granularity {
            Granularity::Global => 0,
            Granularity::Level => taxonomy.level(label) - 1,
            Granularity::Label if is_rare(label) => n_labels,
            Granularity::Label => label.index(),
        })
        .collect();
    let item_of = |document: usize, label: LabelId| {
        if *objective == Objective::SampleF1 { document } else { label.index() }
    };
    let groups = Groups::new(scores, gold, n_groups, &group_of, item_of);
    let items: Vec<u32> = match objective {
        Objective::SampleF1 => gold.iter().map(|set| set.len() as u32).collect(),
        Objective::MicroF1 | Objective::MacroF1 => positives,
    };
    let cuts = match objective {
        Objective::MicroF1 => best_micro_cuts(&groups, gold.iter().map(|set| set.len()).sum(), cancel)?,
        Objective::MacroF1 | Objective::SampleF1 => best_mean_cuts(&groups, &items, cancel)?,
    };
    let threshold = |group: usize| {
        let keys = groups.group(group);
        keys.iter().any(|key| key.is_gold()).then(|| threshold_at(keys, cuts[group]))
    };
    // Where a group has nothing to go by, all scores together decide.
    let overall = || -> Result<f32> {
        if *granularity == Granularity::Global {
            return Ok(FALLBACK);
        }
        let config = FitThresholds { granularity: Granularity::Global, ..config.clone() };
        match fit_thresholds(scores, gold, taxonomy, &config, cancel)?.thresholds {
            Thresholds::One(value) => Ok(value),
            Thresholds::PerLevel(_) | Thresholds::PerLabel(_) => Ok(FALLBACK),
        }
    };
    let thresholds = match granularity {
        Granularity::Global => Thresholds::One(threshold(0).map_or_else(overall, Ok)?),
        Granularity::Level => {
            let levels = (0..n_groups).map(|group| threshold(group).map_or_else(overall, Ok));
            Thresholds::PerLevel(levels.collect::<Result<_>>()?)
        }
        Granularity::Label => {
            let default = threshold(n_labels).map_or_else(overall, Ok)?;
            let values: Vec<f32> =
                taxonomy.labels().map(|label| threshold(label.index()).unwrap_or(default)).collect();
            Thresholds::from_values(&values, default, taxonomy)
        }
    };
    let passing = thresholds.resolve(taxonomy)?;
    let value = achieved(scores, gold, &passing, *objective, &items, item_of);
    Ok(FittedThresholds { thresholds, value })
}

/// The objective's value for thresholds by label. `items` are gold counts of labels or documents.
fn achieved(
    scores: &Scores,
    gold: &[LabelSet],
    thresholds: &[f32],
    objective: Objective,
    items: &[u32],
    item_of: impl Fn(usize, LabelId) -> usize,
) -> f64 {
    let mut counts = vec![(0u32, 0u32); items.len()];
    for (document, (row, gold)) in scores.rows().zip(gold).enumerate() {
        for &(label, _) in row.iter().filter(|(label, score)| *score > thresholds[label.index()]) {
            let (tp, predicted) = &mut counts[item_of(document, label)];
            *tp += u32::from(gold.contains(label));
            *predicted += 1;
        }
    }
    let shares = counts
        .iter()
        .zip(items)
        .map(|(&(tp, predicted), &gold)| (2.0 * f64::from(tp), f64::from(predicted) + f64::from(gold)));
    if objective == Objective::MicroF1 {
        let (above, below) = shares.fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
        return above / below.max(1.0);
    }
    let n = if objective == Objective::SampleF1 {
        items.len()
    } else {
        items.iter().filter(|&&gold| gold > 0).count()
    };
    shares.map(|(above, below)| above / below.max(1.0)).sum::<f64>() / n.max(1) as f64
}

/// The best cut of each group. An item is in one group only.
fn best_mean_cuts(groups: &Groups, gold: &[u32], cancel: &Cancel) -> Result<Vec<usize>> {
    let mut counts = vec![(0, 0); gold.len()];
    let mut best = |group| {
        cancel.check()?;
        Ok(best_mean_cut(groups.group(group), gold, &mut counts))
    };
    (0..groups.len()).map(&mut best).collect()
}
