//! Rows of weights, one per label, outside the parameters of a network.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Gradients, Tensor, TensorData};
use cladist_kernels::mapped::Mapped;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use crate::error::Result;
use crate::parameters::{self, Numbers, to_vec, unfit, unfit_by};
use crate::seeds;

/// The name of the rows wherever they are among other tensors. No parameter has it: theirs begin with their module's.
pub(crate) const ROWS: &str = "rows";

enum Store {
    Owned(Vec<f32>),
    /// A file in memory, and where the rows are in it.
    Mapped(Mapped, Range<usize>),
}

/// A row of weights and a bias per label, in the order of their groups: a group is one piece of memory. It is read from
/// a bundle only where it is looked at.
pub struct Table {
    store: Store,
    n_rows: usize,
    width: usize,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table {{ {} rows of {} }}", self.n_rows, self.width)
    }
}

impl Table {
    /// New rows: weights by Xavier's uniform distribution, biases 0. Each row depends on the seed and its number alone.
    pub(crate) fn new(n_rows: usize, width: usize, seed: u64) -> Self {
        let bound = (6.0 / (n_rows + width.saturating_sub(1)).max(1) as f32).sqrt();
        let mut values = vec![0.0f32; n_rows * width];
        values.par_chunks_exact_mut(width.max(1)).enumerate().for_each(|(number, row)| {
            let mut random = ChaCha8Rng::seed_from_u64(seeds::derive(seed, number as u64));
            let weights = width.saturating_sub(1);
            row[..weights].iter_mut().for_each(|w| *w = (random.random::<f32>() * 2.0 - 1.0) * bound);
        });
        Self { store: Store::Owned(values), n_rows, width }
    }

    /// The same rows with these biases.
    pub(crate) fn with_biases(mut self, bias: impl Fn(usize) -> f32) -> Self {
        let width = self.width;
        for (number, row) in self.values_mut().chunks_exact_mut(width).enumerate() {
            row[width - 1] = bias(number);
        }
        self
    }

    /// Rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Values of a row: weights and a bias.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        match &self.store {
            Store::Owned(values) => values,
            Store::Mapped(mapped, range) => mapped.floats(range.clone()).unwrap_or_default(),
        }
    }

    /// All rows, to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut Vec<f32> {
        if let Store::Mapped(..) = self.store {
            self.store = Store::Owned(self.values().to_vec());
        }
        match &mut self.store {
            Store::Owned(values) => values,
            Store::Mapped(..) => unreachable!("replaced above"),
        }
    }

    /// Rows that follow each other.
    #[must_use]
    pub fn rows(&self, rows: Range<usize>) -> &[f32] {
        &self.values()[rows.start * self.width..rows.end * self.width]
    }

    /// Weights and biases of some rows.
    fn gather(&self, numbers: &[u32]) -> (Vec<f32>, Vec<f32>) {
        let (all, width, n) = (self.values(), self.width, self.width - 1);
        let mut weights = vec![0.0; numbers.len() * n];
        let from = |number: u32| &all[number as usize * width..][..width];
        weights.par_chunks_exact_mut(n.max(1)).zip(numbers).with_min_len(64).for_each(|(row, &number)| {
            row.copy_from_slice(&from(number)[..n]);
        });
        (weights, numbers.iter().map(|&number| from(number)[n]).collect())
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let shape = vec![self.n_rows, self.width];
        parameters::write_file(path, &[(ROWS, shape, Numbers::F32(self.values()))])
    }

    /// Opens what [`Table::write`] wrote. Nothing is read but the header, where files can stand in memory.
    pub(crate) fn open(path: &Path, n_rows: usize, width: usize) -> Result<Self> {
        let Ok(mapped) = Mapped::open(path) else { return Self::read(path, n_rows, width) };
        let bytes = mapped.bytes();
        let file = SafeTensors::deserialize(bytes).map_err(|error| unfit_by(path, error))?;
        let rows = file.tensor(ROWS).map_err(|error| unfit_by(path, error))?;
        if rows.dtype() != Dtype::F32 || rows.shape() != [n_rows, width] {
            let reason = format!(
                "its rows are {:?} of shape {:?}, not F32 of [{n_rows}, {width}]",
                rows.dtype(),
                rows.shape()
            );
            return Err(unfit(path, reason));
        }
        let start = rows.data().as_ptr().addr() - bytes.as_ptr().addr();
        let range = start..start + rows.data().len();
        if mapped.floats(range.clone()).is_none() {
            return Self::read(path, n_rows, width);
        }
        Ok(Self { store: Store::Mapped(mapped, range), n_rows, width })
    }

    fn read(path: &Path, n_rows: usize, width: usize) -> Result<Self> {
        match parameters::read(path)?.remove(ROWS) {
            Some((shape, values)) if shape == [n_rows, width] => {
                Ok(Self { store: Store::Owned(values), n_rows, width })
            }
            _ => Err(unfit(path, format!("it has no rows of shape [{n_rows}, {width}]"))),
        }
    }
}

/// A table as a head sees it in one batch.
#[derive(Debug)]
pub struct Rows<'a> {
    table: &'a Table,
    /// What was taken to learn from, if anything is learnt.
    taken: Option<Mutex<Vec<Taken>>>,
}

/// Numbers, weights and biases of rows.
type Taken = (Vec<u32>, Tensor<2>, Tensor<1>);

/// Gradients of rows: their numbers, ascending, and values.
pub(crate) type RowGradients = (Vec<u32>, Vec<f32>);

impl<'a> Rows<'a> {
    /// Rows that stay as they are.
    #[must_use]
    pub fn new(table: &'a Table) -> Self {
        Self { table, taken: None }
    }

    /// Rows that learn.
    #[must_use]
    pub fn learning(table: &'a Table) -> Self {
        Self { table, taken: Some(Mutex::default()) }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// Weights `[rows, width − 1]` and biases `[rows]` of some rows, ascending, as tensors of their own, through which they
    /// learn if they do.
    #[must_use]
    pub fn take(&self, numbers: &[u32], device: &Device) -> (Tensor<2>, Tensor<1>) {
        let (weights, biases) = self.table.gather(numbers);
        let shape = [numbers.len(), self.table.width - 1];
        let weights = Tensor::from_data(TensorData::new(weights, shape), device);
        let biases = Tensor::from_data(TensorData::new(biases, [numbers.len()]), device);
        let Some(taken) = &self.taken else { return (weights, biases) };
        let (weights, biases) = (weights.require_grad(), biases.require_grad());
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push((numbers.to_vec(), weights.clone(), biases.clone()));
        (weights, biases)
    }

    /// The gradients of all rows taken.
    pub(crate) fn gradients(self, gradients: &mut Gradients) -> Vec<RowGradients> {
        let width = self.table.width;
        let taken = self.taken.map(|taken| taken.into_inner().unwrap_or_else(PoisonError::into_inner));
        (taken.into_iter().flatten())
            .filter_map(|(numbers, weights, biases)| {
                let weights = to_vec(weights.grad_remove(gradients)?);
                let biases = to_vec(biases.grad_remove(gradients)?);
                let mut values = vec![0.0; numbers.len() * width];
                for ((row, weights), bias) in
                    values.chunks_exact_mut(width).zip(weights.chunks_exact((width - 1).max(1))).zip(biases)
                {
                    row[..width - 1].copy_from_slice(weights);
                    row[width - 1] = bias;
                }
                Some((numbers, values))
            })
            .collect()
    }
}
