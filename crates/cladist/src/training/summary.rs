//! What a finished run says of itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cladist_nn::heads::Pool;
use serde::{Deserialize, Serialize};

use crate::corpora::{DataCard, Loaded};
use crate::error::{Error, Result};
use crate::folders;
use crate::memory;
use crate::model::Parts;
pub use crate::results::experiment::Best;

/// What a finished run says of itself: kept in `summary.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The run folder.
    pub run: PathBuf,
    /// Time of training.
    pub seconds: f64,
    /// The most memory that the program has needed since its start or since [`memory::forget_peak`], where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<u64>,
    /// Training documents.
    pub documents: u64,
    /// Lines that were set aside.
    pub rejected: u64,
    /// What was counted while reading.
    pub data: serde_json::Value,
    /// Metrics on dev, if the model has not seen it.
    pub dev: BTreeMap<String, f64>,
    /// Metrics on held-out documents of the same settings, before the model was trained once more on all: an estimate of
    /// its quality, if anything was held out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held_out: BTreeMap<String, f64>,
    /// The document vector that the head reads, if it reads one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// What chose the model among those that training went through, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
}

impl Summary {
    pub(super) fn new(
        out: &Path,
        seconds: f64,
        model: &Parts,
        loaded: &Loaded,
        card: DataCard,
        dev: BTreeMap<String, f64>,
    ) -> Self {
        Self {
            run: out.to_owned(),
            seconds,
            peak_mb: memory::peak_mb(),
            documents: model.counts.n_documents as u64,
            rejected: loaded.rejected,
            data: card.report,
            dev,
            held_out: BTreeMap::new(),
            pool: None,
            best: None,
        }
    }

    /// The summary of a run that was finished before; none of any other folder.
    pub fn of(folder: &Path) -> Result<Option<Self>> {
        if !folders::is_finished(folder) {
            return Ok(None);
        }
        let path = folder.join(folders::SUMMARY);
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::damaged(&path, error))
    }
}
