//! AdamW for rows of which a step touches few.
//!
//! A row's moments are those of [`crate::optim::AdamW`] at every step that touches it: what they would have faded by in
//! the steps that did not, when its gradient was 0, is made up for by β^(steps between), so that the correction of their
//! start is that of the step too. What is not made up for is where AdamW would have moved the row meanwhile: on out of
//! momentum, and towards 0 by weight decay. A row that no step touches stays as it is. Where every step touches every
//! row, both are the same.

use std::path::Path;

use cladist_core::bundle::Writer;
use cladist_kernels::adamw;
use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use super::table::{RowGradients, Table};
use crate::error::Result;
use crate::optim::{AdamW, AdamWConfig};
use crate::parameters::{self, Numbers, unfit};

/// The file of the moments in a checkpoint.
const FILE: &str = "rows.safetensors";

/// Moments of the rows of a table, and gradients since the last step. Without a table it does nothing.
#[derive(Debug, Default)]
pub(crate) struct RowLearner {
    /// Zeros cost no memory until they are touched.
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// The last step that touched a row; 0 if none did.
    pub(super) stamps: Vec<u32>,
    pub(super) sum: Option<RowGradients>,
}

impl RowLearner {
    pub(crate) fn new(table: Option<&Table>) -> Self {
        let n = table.map_or(0, |table| table.values().len());
        let n_rows = table.map_or(0, Table::n_rows);
        Self { first: vec![0.0; n], second: vec![0.0; n], stamps: vec![0; n_rows], sum: None }
    }

    /// Adds the gradients of a batch.
    pub(crate) fn add(&mut self, gradients: Vec<RowGradients>) {
        for gradients in gradients {
            self.sum = Some(match self.sum.take() {
                Some(sum) => add(&sum, &gradients),
                None => gradients,
            });
        }
    }

    /// The norm of the mean gradient of parameters and rows together; `norm` is that of the parameters.
    pub(crate) fn norm(&self, norm: f64, batches: usize) -> f64 {
        match &self.sum {
            Some((_, values)) => norm.hypot(adamw::square_sum(values).sqrt() / batches.max(1) as f64),
            None => norm,
        }
    }

    /// Drops the gradients since the last step.
    pub(crate) fn forget(&mut self) {
        self.sum = None;
    }

    /// The step that the optimiser took last, for rows: gradients are multiplied by `scale`.
    pub(crate) fn step(&mut self, table: Option<&mut Table>, optimiser: &AdamW, scale: f64, rate: f64) {
        let (Some(table), Some((numbers, gradients))) = (table, self.sum.take()) else { return };
        let AdamWConfig { beta1, beta2, epsilon, weight_decay } = optimiser.config();
        let number = optimiser.number();
        let step = adamw::Step {
            rate: rate as f32,
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            epsilon: epsilon as f32,
            decay: weight_decay as f32,
            number,
            scale: scale as f32,
        };
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
                if missed > 0 {
                    let fade = |beta: f64| beta.powf(missed as f64) as f32;
                    let (fade1, fade2) = (fade(beta1), fade(beta2));
                    first.iter_mut().for_each(|m| *m *= fade1);
                    second.iter_mut().for_each(|v| *v *= fade2);
                }
                // The last value is a bias, which does not decay.
                let at = width - 1;
                adamw::step(step, &mut row[..at], &gradient[..at], &mut first[..at], &mut second[..at]);
                let bias = adamw::Step { decay: 0.0, ..step };
                adamw::step(bias, &mut row[at..], &gradient[at..], &mut first[at..], &mut second[at..]);
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
        let file = SafeTensors::deserialize(&bytes).map_err(|error| unfit(&path, error.to_string()))?;
        let words = |name: &str, dtype: Dtype, n: usize| -> Result<Vec<[u8; 4]>> {
            let found = file.tensor(name).map_err(|error| unfit(&path, error.to_string()))?;
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
        Ok(Self { first, second, stamps, sum: None })
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
