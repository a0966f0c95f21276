//! AdamW for rows of which a step touches few.
//!
//! A row's moments are those of [`crate::optim::AdamW`] at every step that touches it: what they would have faded by in
//! the steps that did not, when its gradient was 0, is made up for by β^(steps between), so that the correction of their
//! start is that of the step too. AdamW would have moved the row meanwhile, on out of momentum and towards 0 by weight
//! decay: that is made up for when the row is touched again, and before rows are judged. It is most of what a label
//! learns that few documents have: one gradient g moves a parameter by 0.1·g/√v at once and by nine times that afterwards.
//! With r = β1/√β2 and k steps between,
//! ```text
//! p ← p·(1 − rate·decay)^k − rate·m/√v · (r + r² + … + r^k)
//! ```
//! at the rate of the step that makes up for it, and corrected for the start as in the middle of what momentum lasts.
//! Where every step touches every row, both are the same.

use std::path::Path;

use cladist_core::bundle::Writer;
use cladist_kernels::adamw;
use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use super::table::{RowGradients, Table};
use crate::error::Result;
use crate::optim::{AdamW, AdamWConfig};
use crate::parameters::{self, Numbers, unfit, unfit_by};

/// The file of the moments in a checkpoint.
const FILE: &str = "rows.safetensors";

/// The sum of gradients of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowSum(Option<RowGradients>);

impl RowSum {
    /// Adds the gradients of a batch.
    pub(crate) fn add(&mut self, gradients: Vec<RowGradients>) {
        for gradients in gradients {
            self.0 = Some(match self.0.take() {
                Some(sum) => add(&sum, &gradients),
                None => gradients,
            });
        }
    }

    /// The norm of the mean gradient of parameters and rows together; `norm` is that of the parameters.
    pub(crate) fn norm(&self, norm: f64, batches: usize) -> f64 {
        match &self.0 {
            Some((_, values)) => norm.hypot(adamw::square_sum(values).sqrt() / batches.max(1) as f64),
            None => norm,
        }
    }

    /// Numbers of rows, ascending, and the values of all; none if there are no rows.
    pub(crate) fn rows(&self) -> Option<(&[u32], &[f32])> {
        self.0.as_ref().map(|(numbers, values)| (numbers.as_slice(), values.as_slice()))
    }
}

/// Moments of the rows of a table. Without a table it does nothing.
#[derive(Debug, Default)]
pub(crate) struct RowLearner {
    /// Zeros cost no memory until they are touched.
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// The last step that touched a row; 0 if none did.
    pub(super) stamps: Vec<u32>,
}

impl RowLearner {
    pub(crate) fn new(table: Option<&Table>) -> Self {
        let n = table.map_or(0, |table| table.values().len());
        let n_rows = table.map_or(0, Table::n_rows);
        Self { first: vec![0.0; n], second: vec![0.0; n], stamps: vec![0; n_rows] }
    }

    /// The step that the optimiser took last, for rows: gradients are multiplied by `scale`.
    pub(crate) fn step(
        &mut self,
        table: Option<&mut Table>,
        sum: RowSum,
        optimiser: &AdamW,
        scale: f64,
        rate: f64,
    ) {
        let (Some(table), Some((numbers, gradients))) = (table, sum.0) else { return };
        let step = step_of(optimiser, rate, scale);
        let number = step.number;
        let width = table.width();
        let missed: Vec<u64> = numbers
            .iter()
            .map(|&row| {
                let last = std::mem::replace(&mut self.stamps[row as usize], number as u32);
                // A row without moments has none to fade.
                if last == 0 { 0 } else { number.saturating_sub(u64::from(last) + 1) }
            })
            .collect();
        let rows = rows_mut(table.values_mut(), width, &numbers).into_par_iter();
        rows.zip(rows_mut(&mut self.first, width, &numbers))
            .zip(rows_mut(&mut self.second, width, &numbers))
            .zip(gradients.par_chunks_exact(width))
            .zip(missed)
            .with_min_len(32)
            .for_each(|((((row, first), second), gradient), missed)| {
                make_up(step, missed, row, first, second);
                // The last value is a bias, which does not decay.
                let at = width - 1;
                adamw::step(step, &mut row[..at], &gradient[..at], &mut first[..at], &mut second[..at]);
                let bias = adamw::Step { decay: 0.0, ..step };
                adamw::step(bias, &mut row[at..], &gradient[at..], &mut first[at..], &mut second[at..]);
            });
    }

    /// Brings all rows to where they would be if every step had touched them.
    pub(crate) fn catch_up(&mut self, table: Option<&mut Table>, optimiser: &AdamW, rate: f64) {
        let Some(table) = table.filter(|table| table.n_rows() > 0) else { return };
        let step = step_of(optimiser, rate, 1.0);
        let width = table.width();
        let rows = table.values_mut().par_chunks_exact_mut(width);
        rows.zip(self.first.par_chunks_exact_mut(width))
            .zip(self.second.par_chunks_exact_mut(width))
            .zip(&mut self.stamps)
            .with_min_len(32)
            .filter(|(_, stamp)| **stamp > 0)
            .for_each(|(((row, first), second), stamp)| {
                let missed = step.number.saturating_sub(u64::from(*stamp));
                make_up(step, missed, row, first, second);
                *stamp = step.number as u32;
            });
    }

    /// Writes its file of a checkpoint, if there are rows.
    pub(crate) fn save(&self, writer: &Writer) -> Result<()> {
        if self.stamps.is_empty() {
            return Ok(());
        }
        let n = self.first.len();
        let tensors = [
            ("first", vec![n], Numbers::F32(&self.first)),
            ("second", vec![n], Numbers::F32(&self.second)),
            ("stamps", vec![self.stamps.len()], Numbers::U32(&self.stamps)),
        ];
        parameters::write_file(&writer.path(FILE), &tensors)
    }

    /// Takes up where [`RowLearner::save`] left.
    pub(crate) fn load(folder: &Path, table: Option<&Table>) -> Result<Self> {
        let Some(table) = table else { return Ok(Self::default()) };
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path).map_err(cladist_core::Error::io("read", &path))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| unfit_by(&path, error))?;
        let words = |name: &str, dtype: Dtype, n: usize| -> Result<Vec<[u8; 4]>> {
            let found = file.tensor(name).map_err(|error| unfit_by(&path, error))?;
            if found.dtype() != dtype || found.shape() != [n] {
                return Err(unfit(&path, format!("tensor `{name}` is not {dtype:?} of shape [{n}]")));
            }
            Ok(found.data().as_chunks::<4>().0.to_vec())
        };
        let n = table.values().len();
        let floats = |name| -> Result<Vec<f32>> {
            Ok(words(name, Dtype::F32, n)?.into_iter().map(f32::from_le_bytes).collect())
        };
        let (first, second) = (floats("first")?, floats("second")?);
        let stamps =
            words("stamps", Dtype::U32, table.n_rows())?.into_iter().map(u32::from_le_bytes).collect();
        Ok(Self { first, second, stamps })
    }
}

fn step_of(optimiser: &AdamW, rate: f64, scale: f64) -> adamw::Step {
    let AdamWConfig { beta1, beta2, epsilon, weight_decay } = optimiser.config();
    adamw::Step {
        rate: rate as f32,
        beta1: beta1 as f32,
        beta2: beta2 as f32,
        epsilon: epsilon as f32,
        decay: weight_decay as f32,
        number: optimiser.number(),
        scale: scale as f32,
    }
}

/// What so many steps without a gradient do to a row and its moments.
fn make_up(step: adamw::Step, missed: u64, row: &mut [f32], first: &mut [f32], second: &mut [f32]) {
    if missed == 0 {
        return;
    }
    let adamw::Step { rate, beta1, beta2, epsilon, decay, number, .. } = step;
    let (beta1, beta2, k) = (f64::from(beta1), f64::from(beta2), missed as f64);
    // Momentum is spent after some ten steps.
    let at = number.saturating_sub(missed) + missed.min(10) / 2;
    let correct = |beta: f64| 1.0 - beta.powf(at.max(1) as f64);
    let r = beta1 / beta2.sqrt();
    // Where momentum outlives the scale it is measured by, there is no end to the sum.
    let sum = if r < 0.999 { r * (1.0 - r.powf(k)) / (1.0 - r) } else { 0.0 };
    let size = (f64::from(rate) * sum / correct(beta1)) as f32;
    let root = (1.0 / correct(beta2).sqrt()) as f32;
    let keep = (1.0 - f64::from(rate * decay)).powf(k) as f32;
    let (fade1, fade2) = (beta1.powf(k) as f32, beta2.powf(k) as f32);
    let bias = row.len() - 1;
    for (n, ((p, m), v)) in row.iter_mut().zip(first).zip(second).enumerate() {
        let keep = if n == bias { 1.0 } else { keep };
        *p = *p * keep - size * *m / (v.sqrt() * root + epsilon);
        *m *= fade1;
        *v *= fade2;
    }
}

/// The sum of two lists of gradients.
fn add(a: &RowGradients, b: &RowGradients) -> RowGradients {
    let width = |(numbers, values): &RowGradients| values.len() / numbers.len().max(1);
    let width = width(a).max(width(b));
    let mut numbers = [a.0.as_slice(), &b.0].concat();
    numbers.sort_unstable();
    numbers.dedup();
    let mut values = vec![0.0; numbers.len() * width];
    for (part, gradients) in [a, b] {
        for (number, row) in part.iter().zip(gradients.chunks_exact(width.max(1))) {
            let at = numbers.partition_point(|other| other < number) * width;
            values[at..at + width].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
    (numbers, values)
}

/// Some rows, ascending, each to be changed.
fn rows_mut<'a>(values: &'a mut [f32], width: usize, numbers: &[u32]) -> Vec<&'a mut [f32]> {
    let (mut rest, mut next) = (values, 0);
    numbers
        .iter()
        .map(|&number| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut((number as usize - next) * width);
            let (row, after) = from.split_at_mut(width);
            (rest, next) = (after, number as usize + 1);
            row
        })
        .collect()
}
