//! Checkpoints: folders `step-00000123` that are whole or not there, of which the newest whole one counts.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use cladist_core::Error as CoreError;
use cladist_core::bundle::{self, Writer};

use crate::error::{Error, Result};

/// What the manifest of a checkpoint says it is.
pub const KIND: &str = "checkpoint";
const PREFIX: &str = "step-";

/// The checkpoints of one run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

/// A checkpoint whose files are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Updates made when it was saved.
    pub step: u64,
    /// Its folder.
    pub path: PathBuf,
}

/// What [`Checkpoints::latest`] found.
#[derive(Debug, Default)]
pub struct Found {
    /// The newest checkpoint that can be trusted.
    pub checkpoint: Option<Checkpoint>,
    /// Why newer ones were passed over. Without a checkpoint but with these, a run was here and nothing is left of it.
    pub passed_over: Vec<Error>,
}

impl Checkpoints {
    /// The checkpoints in `folder`, the last `keep` of which are kept. Makes the folder, makes sure that it can be written
    /// to, and tidies up after a killed process: what it was writing is removed, what it was replacing is put back.
    ///
    /// Only one process may have the same folder open: see [`super::lock::RunLock`].
    pub fn open(folder: &Path, keep: usize) -> Result<Self> {
        if keep == 0 {
            return Err(CoreError::setting("checkpoints.keep", "at least 1", keep).into());
        }
        check_writable(folder)?;
        let checkpoints = Self { folder: folder.to_owned(), keep };
        checkpoints.tidy()?;
        Ok(checkpoints)
    }

    /// Saves a checkpoint: `write` puts its files there, which are then checksummed, synced and moved into place at once.
    /// If anything fails, nothing of it stays and the earlier checkpoints are as they were. Afterwards the oldest ones
    /// go, and so do those of later steps, which belong to a course that the run did not take.
    pub fn save(&self, step: u64, write: impl FnOnce(&Writer) -> Result<()>) -> Result<PathBuf> {
        let path = self.folder.join(format!("{PREFIX}{step:08}"));
        let writer = Writer::create(&path, KIND)?;
        write(&writer)?;
        writer.finish()?;
        self.prune(step);
        Ok(path)
    }

    /// The newest checkpoint whose files all match their manifest.
    pub fn latest(&self) -> Result<Found> {
        latest(&self.folder)
    }

    fn prune(&self, saved: u64) {
        // What cannot be listed or removed now only takes up space; the next save tries again.
        let Ok(steps) = steps(&self.folder) else { return };
        let (later, kept): (Vec<_>, Vec<_>) = steps.into_iter().partition(|found| found.step > saved);
        for old in later.iter().chain(kept.iter().skip(self.keep)) {
            // A hidden name first, so that a half-removed folder is never taken for a checkpoint.
            let gone = self.folder.join(format!(".{PREFIX}{:08}.gone", old.step));
            let path = if fs::rename(&old.path, &gone).is_ok() { &gone } else { &old.path };
            let _ = fs::remove_dir_all(path);
        }
    }

    fn tidy(&self) -> Result<()> {
        let entries = fs::read_dir(&self.folder).map_err(CoreError::io("read", &self.folder))?;
        for entry in entries {
            let path = entry.map_err(CoreError::io("read", &self.folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some((step, what)) = name.strip_prefix('.').and_then(|name| name.split_once('.')) else {
                continue;
            };
            let ours = ["old-", "draft-", "gone"].iter().any(|mark| what.starts_with(mark));
            if !ours || step_of(step).is_none() {
                continue;
            }
            let target = self.folder.join(step);
            if what.starts_with("old-") && !target.exists() {
                fs::rename(&path, &target).map_err(CoreError::io("replace", &target))?;
            } else {
                fs::remove_dir_all(&path).map_err(CoreError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// The newest checkpoint in a folder whose files all match their manifest; none if the folder is not there. Changes
/// nothing, so it may look into the folder of a run that is at work.
pub fn latest(folder: &Path) -> Result<Found> {
    let mut found = Found::default();
    for checkpoint in steps(folder)? {
        match bundle::verify(&checkpoint.path, KIND) {
            Ok(()) => {
                found.checkpoint = Some(checkpoint);
                break;
            }
            Err(error) => found.passed_over.push(error.into()),
        }
    }
    Ok(found)
}

/// Whether there is a checkpoint in a folder.
pub fn exists(folder: &Path) -> Result<bool> {
    Ok(!steps(folder)?.is_empty())
}

/// Makes a folder if need be and makes sure that files can be written there, so that a run fails at its start rather
/// than at its first checkpoint.
pub fn check_writable(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(CoreError::io("create", folder))?;
    let path = folder.join(format!(".writable-{}", std::process::id()));
    let probe = File::create(&path).and_then(|mut file| {
        // A full disk shows only when there is something to write.
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let removed = if path.exists() { fs::remove_file(&path) } else { Ok(()) };
    probe.and(removed).map_err(CoreError::io("write to", folder))?;
    Ok(())
}

/// Folders that look like checkpoints, newest first, whole or not.
fn steps(folder: &Path) -> Result<Vec<Checkpoint>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CoreError::io("read", folder)(error).into()),
    };
    let mut steps = Vec::new();
    for entry in entries {
        let path = entry.map_err(CoreError::io("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(step) = step_of(&name) {
            steps.push(Checkpoint { step, path });
        }
    }
    steps.sort_by(|a, b| b.step.cmp(&a.step).then_with(|| a.path.cmp(&b.path)));
    Ok(steps)
}

fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
