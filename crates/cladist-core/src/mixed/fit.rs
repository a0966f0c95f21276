//! Weights for the best F1 on dev: every step of a grid for two members, one member at a time for more.

use serde::{Deserialize, Serialize};

use super::Weights;
use crate::calibrate::Objective;
use crate::error::{Error, Result};
use crate::job::Cancel;
use crate::scores::Scores;
use crate::taxonomy::LabelSet;

/// Rounds over all members at most. Each is of `members · (steps + 1)` evaluations; a few are enough in practice.
const ROUNDS: usize = 50;

/// How weights are fitted: the section `[mixed]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixedConfig {
    /// Run folders or bundles of the members.
    pub members: Vec<String>,
    /// What members give: their `calibrated` probabilities, or `raw` ones, as published.
    pub scores: MemberScores,
    /// What weights maximise on dev: `micro-f1` or `macro-f1`.
    pub objective: Objective,
    /// Steps of the grid between 0 and 1.
    pub steps: usize,
    /// Labels are predicted above this while weights are fitted.
    pub threshold: f32,
    /// Weights of their own for labels with few, some and many training documents.
    pub by_frequency: bool,
}

/// What members of an ensemble give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberScores {
    /// Probabilities by each member's own calibration, so that they mean the same.
    #[default]
    Calibrated,
    /// What the models say before calibration.
    Raw,
}

impl Default for MixedConfig {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            scores: MemberScores::default(),
            objective: Objective::MicroF1,
            steps: 20,
            threshold: 0.5,
            by_frequency: false,
        }
    }
}

impl MixedConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        if !(1..=1000).contains(&self.steps) {
            return Err(Error::setting("mixed.steps", "1 to 1000", self.steps));
        }
        if !(0.0..1.0).contains(&self.threshold) {
            return Err(Error::setting("mixed.threshold", "at least 0 and below 1", self.threshold));
        }
        if self.objective == Objective::SampleF1 {
            return Err(Error::setting("mixed.objective", "`micro-f1` or `macro-f1`", "sample-f1"));
        }
        Ok(())
    }
}

/// Weights, and what they reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The best weights.
    pub weights: Weights,
    /// Of each class, the objective that its weights reach.
    pub values: Vec<f64>,
    /// Of each class of two members, the objective at every weight of the second.
    pub curves: Vec<Vec<(f64, f64)>>,
}

/// A label of a document that some member scored or that is gold.
struct Cell {
    label: u32,
    gold: bool,
    /// Where its members' scores begin.
    at: usize,
}

/// All cells of one class of labels.
struct Cells {
    cells: Vec<Cell>,
    scores: Vec<f32>,
    n_members: usize,
    n_labels: usize,
}

/// Fits the weights of every class; `start` says which classes there are.
pub fn fit(
    start: Weights,
    members: &[Scores],
    gold: &[LabelSet],
    config: &MixedConfig,
    cancel: &Cancel,
) -> Result<Fitted> {
    let mut fitted = Fitted { values: Vec::new(), curves: Vec::new(), weights: start };
    for class in 0..fitted.weights.classes.len() {
        cancel.check()?;
        let cells = Cells::new(&fitted.weights, class, members, gold);
        let value = |weights: &[f64]| {
            cancel.check()?;
            Ok(cells.value(weights, config))
        };
        let (weights, best, curve) = if members.len() == 2 {
            on_a_line(config.steps, value)?
        } else {
            one_by_one(fitted.weights.weights[class].clone(), config.steps, value)?
        };
        fitted.weights.weights[class] = weights;
        fitted.values.push(best);
        fitted.curves.push(curve);
    }
    Ok(fitted)
}

/// Weights of a class, what they reach, and the values on the way.
type Best = (Vec<f64>, f64, Vec<(f64, f64)>);

/// Every weight of the second of two members.
fn on_a_line(steps: usize, value: impl Fn(&[f64]) -> Result<f64>) -> Result<Best> {
    let share = |step: usize| step as f64 / steps as f64;
    let point = |step| Ok((share(step), value(&[1.0 - share(step), share(step)])?));
    let curve: Vec<(f64, f64)> = (0..=steps).map(point).collect::<Result<_>>()?;
    let highest = curve.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    // The middle of the best stretch: what is best by chance alone lies at its rim.
    let best: Vec<f64> =
        curve.iter().filter(|(_, value)| *value == highest).map(|(share, _)| *share).collect();
    let share = best.get(best.len() / 2).copied().unwrap_or(0.5);
    Ok((vec![1.0 - share, share], highest, curve))
}

/// Rounds over all members, each given the share that is best while the others keep their proportions, until nothing
/// gets better, at most [`ROUNDS`] of them.
fn one_by_one(mut weights: Vec<f64>, steps: usize, value: impl Fn(&[f64]) -> Result<f64>) -> Result<Best> {
    let mut best = value(&weights)?;
    for _ in 0..ROUNDS {
        let mut better = false;
        for member in 0..weights.len() {
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                let rest: f64 = weights.iter().sum::<f64>() - weights[member];
                if rest <= 0.0 {
                    // Nothing to give the remainder to in proportion.
                    continue;
                }
                let mut trial: Vec<f64> = weights.iter().map(|w| w / rest * (1.0 - share)).collect();
                trial[member] = share;
                let reached = value(&trial)?;
                if reached > best {
                    (best, weights, better) = (reached, trial, true);
                }
            }
        }
        if !better {
            break;
        }
    }
    Ok((weights, best, Vec::new()))
}

impl Cells {
    fn new(weights: &Weights, class: usize, members: &[Scores], gold: &[LabelSet]) -> Self {
        let n_labels = weights.labels.len();
        let mut all = Self { cells: Vec::new(), scores: Vec::new(), n_members: members.len(), n_labels };
        let mut place: Vec<usize> = vec![usize::MAX; n_labels];
        for (document, gold) in gold.iter().enumerate() {
            let first = all.cells.len();
            let scored = members.iter().enumerate().flat_map(|(number, scores)| {
                scores.row(document).iter().map(move |&(label, score)| (label, Some((number, score))))
            });
            for (label, score) in scored.chain(gold.iter().map(|&label| (label, None))) {
                if usize::from(weights.labels[label.index()]) != class {
                    continue;
                }
                if place[label.index()] == usize::MAX {
                    place[label.index()] = all.cells.len();
                    let (label, at) = (label.index() as u32, all.scores.len());
                    all.cells.push(Cell { label, gold: false, at });
                    all.scores.resize(at + members.len(), 0.0);
                }
                let cell = &mut all.cells[place[label.index()]];
                match score {
                    Some((number, score)) => all.scores[cell.at + number] = score,
                    None => cell.gold = true,
                }
            }
            for cell in &all.cells[first..] {
                place[cell.label as usize] = usize::MAX;
            }
        }
        all
    }

    fn value(&self, weights: &[f64], config: &MixedConfig) -> f64 {
        let mut counts = vec![[0u32; 3]; self.n_labels];
        for cell in &self.cells {
            let scores = &self.scores[cell.at..cell.at + self.n_members];
            let p: f64 = weights.iter().zip(scores).map(|(w, s)| w * f64::from(*s)).sum();
            let count = &mut counts[cell.label as usize];
            match (p as f32 > config.threshold, cell.gold) {
                (true, true) => count[0] += 1,
                (true, false) => count[1] += 1,
                (false, true) => count[2] += 1,
                (false, false) => {}
            }
        }
        let f1 = |[hit, wrong, missed]: [u32; 3]| {
            let all = 2 * hit + wrong + missed;
            if all == 0 { 0.0 } else { f64::from(2 * hit) / f64::from(all) }
        };
        if config.objective == Objective::MacroF1 {
            let gold = counts.iter().filter(|[hit, _, missed]| hit + missed > 0);
            let (n, sum) = gold.fold((0, 0.0), |(n, sum), &count| (n + 1, sum + f1(count)));
            return if n == 0 { 0.0 } else { sum / f64::from(n) };
        }
        f1(counts.iter().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]))
    }
}
