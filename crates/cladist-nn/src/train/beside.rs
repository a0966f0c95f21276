//! What components learn beside the network: state of their own that a checkpoint keeps.

use std::path::Path;

use cladist_core::bundle::Writer;
use cladist_core::{Cancel, LabelSet};

use super::labels::label_states_unless;
use crate::error::Result;
use crate::heads::Moment;
use crate::model::Network;
use crate::model::components::{Components, Lent};
use crate::optim::AdamW;
use crate::parameters::{self, Tensors};
use crate::shortlist::{RowLearner, RowSum, Rows};

/// The file of vectors of labels.
const LABELS: &str = "labels.safetensors";

/// State of components that learn.
#[derive(Debug, Default)]
pub(super) struct Beside {
    rows: RowLearner,
    /// Vectors of labels that stay for several updates.
    labels: Option<Tensors>,
}

impl Beside {
    pub(super) fn new(components: &Components) -> Self {
        Self { rows: RowLearner::new(components.rows.table.as_ref()), labels: None }
    }

    /// What components give the head for a batch, through which they learn. `after` so many updates, for the first batch of one.
    pub(super) fn lend<'a>(
        &mut self,
        components: &'a Components,
        network: &Network,
        gold: &[LabelSet],
        moment: &Moment,
        after: Option<u64>,
        cancel: &Cancel,
    ) -> Result<Lent<'a>> {
        let descriptions = components.descriptions.descriptions.as_ref();
        let labels =
            label_states_unless(network, descriptions, gold, moment, after, &mut self.labels, cancel)?;
        Ok(Lent { labels, rows: components.rows.table.as_ref().map(Rows::learning) })
    }

    /// The step that the optimiser took last, for what is outside the network: gradients are multiplied by `scale`.
    pub(super) fn step(
        &mut self,
        components: &mut Components,
        sum: RowSum,
        optimiser: &AdamW,
        scale: f64,
        rate: f64,
    ) {
        self.rows.step(components.rows.table.as_mut(), sum, optimiser, scale, rate);
    }

    /// Brings all of it to where it would be if every step had touched it.
    pub(super) fn catch_up(&mut self, components: &mut Components, optimiser: &AdamW, rate: f64) {
        self.rows.catch_up(components.rows.table.as_mut(), optimiser, rate);
    }

    /// Forgets what optimisers know, when the network gets a new one.
    pub(super) fn restart(&mut self, components: &Components) {
        self.rows = RowLearner::new(components.rows.table.as_ref());
    }

    /// Writes its files of a checkpoint.
    pub(super) fn save(&self, writer: &Writer) -> Result<()> {
        self.rows.save(writer)?;
        self.labels.as_ref().map_or(Ok(()), |labels| parameters::save(&writer.path(LABELS), labels))
    }

    /// Takes up where [`Beside::save`] left.
    pub(super) fn load(folder: &Path, components: &Components) -> Result<Self> {
        let path = folder.join(LABELS);
        let labels = path.exists().then(|| parameters::read(&path)).transpose()?;
        Ok(Self { rows: RowLearner::load(folder, components.rows.table.as_ref())?, labels })
    }
}
