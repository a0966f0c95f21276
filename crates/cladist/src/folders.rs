//! Where things stand in a run folder.

use std::path::Path;

use cladist_core::bundle::{BundleError, MANIFEST};

use crate::error::{Error, Result};

/// The kind that manifests of model bundles name.
pub(crate) const KIND: &str = "model";
/// The bundle of a run folder.
pub const BUNDLE: &str = "bundle";
/// Settings of a run folder or bundle.
pub const CONFIG: &str = "config.toml";
/// What a run folder remembers of its corpus.
pub const DATA: &str = "data.json";
/// What training came to.
pub const SUMMARY: &str = "summary.json";
/// Lines of the corpus that could not be read.
pub const REJECTS: &str = "rejects.jsonl";
/// Checkpoints of an unfinished run.
pub const CHECKPOINTS: &str = "checkpoints";
/// Evaluations.
pub const REPORTS: &str = "reports";
/// Training, step by step.
pub const JOURNAL: &str = "metrics.jsonl";

/// Refuses what is no folder.
pub(crate) fn check_exists(path: &Path) -> Result<()> {
    if !path.exists() {
        return Err(Error::NoRun(path.to_owned()));
    }
    if !path.is_dir() {
        return Err(BundleError::Foreign { path: path.to_owned(), kind: KIND.to_owned() }.into());
    }
    Ok(())
}

/// Whether training in this folder has ended with a model.
#[must_use]
pub fn is_finished(folder: &Path) -> bool {
    folder.join(BUNDLE).join(MANIFEST).exists() && folder.join(SUMMARY).exists()
}
