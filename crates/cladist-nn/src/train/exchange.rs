//! Between the gradients of an update and the update: where processes that train one model together add them up.

use burn::tensor::Device;

use super::terms::Terms;
use crate::error::Result;
use crate::optim::GradientSum;
use crate::shortlist::RowSum;

/// What the documents of an update come to, before anything is changed.
#[derive(Debug)]
pub struct Update {
    pub(super) dense: GradientSum,
    pub(super) rows: RowSum,
    pub(super) terms: Terms,
    /// Whether every loss is a number.
    pub(super) finite: bool,
    device: Device,
}

impl Update {
    pub(super) fn new(device: &Device) -> Self {
        Self {
            dense: GradientSum::default(),
            rows: RowSum::default(),
            terms: Terms::default(),
            finite: true,
            device: device.clone(),
        }
    }

    /// Names of the parameters of the network that have a gradient. A rank whose documents do not touch a parameter has none of
    /// it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dense.names()
    }

    /// The gradient of a parameter, summed over the batches of the update.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<Vec<f32>> {
        self.dense.values(name)
    }

    /// Puts a gradient in its place.
    pub fn replace(&mut self, name: &str, values: Vec<f32>) {
        self.dense.replace(name, values, &self.device);
    }

    /// Rows outside the network that have gradients: their numbers, ascending, and the values of all, one row after the other.
    #[must_use]
    pub fn rows(&self) -> Option<(&[u32], &[f32])> {
        self.rows.rows()
    }

    /// Adds gradients of rows, given as [`Update::rows`] gives them.
    pub fn add_rows(&mut self, numbers: &[u32], values: &[f32]) {
        self.rows.add(vec![(numbers.to_vec(), values.to_vec())]);
    }

    /// Drops the gradients of rows.
    pub fn clear_rows(&mut self) {
        self.rows = RowSum::default();
    }

    /// The loss and its terms by name: this rank's share of their means.
    #[must_use]
    pub fn terms(&self) -> &[(String, f64)] {
        &self.terms.0
    }

    /// Adds to a term.
    pub fn add_term(&mut self, name: &str, value: f64) {
        self.terms.add(vec![(name.to_owned(), value)], 1);
    }
}

/// Processes that train one model together, each on its part of every batch. They run the same program with the same
/// settings: each makes the same update, of the gradients of all.
///
/// A rank that fails leaves the others waiting, so an implementation ends all of them.
pub trait Exchange {
    /// The number of this process, from 0. The first one writes files.
    fn rank(&self) -> usize;

    /// Processes.
    fn size(&self) -> usize;

    /// Replaces gradients and terms by their sums over all ranks. The sum must be the same on every rank to the bit, so
    /// ranks are added in their order.
    fn exchange(&mut self, update: &mut Update) -> Result<()>;

    /// Whether any rank says so.
    fn any(&mut self, says: bool) -> Result<bool>;
}

/// One process: there is nothing to exchange.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Exchange for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&mut self, _update: &mut Update) -> Result<()> {
        Ok(())
    }

    fn any(&mut self, says: bool) -> Result<bool> {
        Ok(says)
    }
}
