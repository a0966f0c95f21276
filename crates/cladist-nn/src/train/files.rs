//! What a run writes while it goes: checkpoints, the journal, TensorBoard events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cladist_core::bundle::Writer;

use super::checkpoint::Checkpoints;
use super::journal::{Journal, Kind, Record};
use super::lock::RunLock;
use super::tensorboard::EventWriter;
use crate::error::Result;

/// Checkpoints kept: should the last one be damaged, there is one more.
const KEEP: usize = 2;

/// The files of a run in progress. Nobody else trains in the folder meanwhile.
#[derive(Debug)]
pub(super) struct RunFiles {
    folder: PathBuf,
    checkpoints: Checkpoints,
    writers: Option<(Journal, EventWriter)>,
    exclusive: bool,
    /// Held to the end, unless the caller holds it.
    _lock: Option<RunLock>,
}

impl RunFiles {
    /// The folder of checkpoints.
    pub(super) const CHECKPOINTS: &str = "checkpoints";

    /// Opens a folder, whose lock the caller may hold already.
    pub(super) fn open(folder: &Path, held: Option<&RunLock>) -> Result<Self> {
        let own = held.is_none().then(|| RunLock::take(folder)).transpose()?;
        let exclusive = held.or(own.as_ref()).is_some_and(RunLock::is_exclusive);
        let checkpoints = Checkpoints::open(&folder.join(Self::CHECKPOINTS), KEEP)?;
        Ok(Self { folder: folder.to_owned(), checkpoints, writers: None, exclusive, _lock: own })
    }

    /// Whether others are kept out.
    pub(super) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Starts writing after a step: what was written before an interruption about later steps is dropped.
    pub(super) fn begin(&mut self, step: u64) -> Result<()> {
        let path = self.folder.join("metrics.jsonl");
        let journal = if step == 0 { Journal::create(&path)? } else { Journal::resume(&path, step)?.0 };
        let events = EventWriter::create(&self.folder.join("tb"), (step > 0).then_some(step))?;
        self.writers = Some((journal, events));
        Ok(())
    }

    pub(super) fn train(
        &mut self,
        step: u64,
        epoch: usize,
        values: BTreeMap<String, f64>,
        seconds: f64,
    ) -> Result<()> {
        self.write(Record { step, epoch, kind: Kind::Train, values, seconds }, "train")
    }

    pub(super) fn dev(
        &mut self,
        step: u64,
        epoch: usize,
        values: &BTreeMap<String, f64>,
        seconds: f64,
    ) -> Result<()> {
        self.write(Record { step, epoch, kind: Kind::Dev, values: values.clone(), seconds }, "dev")
    }

    fn write(&mut self, record: Record, prefix: &str) -> Result<()> {
        let Some((journal, events)) = &mut self.writers else { return Ok(()) };
        journal.append(&record)?;
        let tags: Vec<(String, f64)> =
            record.values.iter().map(|(name, value)| (format!("{prefix}/{name}"), *value)).collect();
        events.scalars(record.step, tags.iter().map(|(tag, value)| (tag.as_str(), *value)))
    }

    pub(super) fn save(&self, step: u64, write: impl FnOnce(&Writer) -> Result<()>) -> Result<()> {
        self.checkpoints.save(step, write).map(|_| ())
    }
}
