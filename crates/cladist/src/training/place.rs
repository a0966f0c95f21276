//! The run folder while it is worked in: nobody else's, and put back as it was if the run never began.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cladist_nn::train::lock::{LOCK, RunLock};

use crate::error::{Error, Result};
use crate::folders::{BUNDLE, CHECKPOINTS, CONFIG, DATA, JOURNAL, REJECTS, REPORTS, SUMMARY};

/// What training, evaluation and analysis write into a run folder.
const OURS: [&str; 16] = [
    LOCK,
    CONFIG,
    DATA,
    JOURNAL,
    SUMMARY,
    REJECTS,
    CHECKPOINTS,
    BUNDLE,
    REPORTS,
    "report.html",
    "tb",
    "analysis",
    "failed.json",
    "weights.svg",
    "weights.png",
    "MANIFEST.json",
];

/// Files of a run folder that its manifest of results may name with an ending of their own.
fn is_ours(name: &str) -> bool {
    OURS.contains(&name) || (name.starts_with("rejects-") && name.ends_with(".jsonl"))
}

/// What stands in a folder, by name; nothing if it is not there.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        // What cannot be a folder is found out when one is to be made.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Error::io("read", folder)(error)),
    };
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names =
        entries.map(name).collect::<std::io::Result<Vec<_>>>().map_err(Error::io("read", folder))?;
    names.sort_unstable();
    Ok(names)
}

/// Refuses a place that is taken, unless it holds a run that may be replaced and nothing else.
pub(crate) fn check(out: &Path, overwrite: bool) -> Result<()> {
    if out.exists() && !out.is_dir() {
        return Err(if overwrite { Error::NotARun(out.to_owned()) } else { Error::Exists(out.to_owned()) });
    }
    let names = names(out)?;
    if names.is_empty() {
        return Ok(());
    }
    let has = |name: &str| names.iter().any(|other| other == name);
    if !overwrite {
        let begun = has(CHECKPOINTS) || (has(CONFIG) && !has(BUNDLE));
        return Err(if begun { Error::Unfinished(out.to_owned()) } else { Error::Exists(out.to_owned()) });
    }
    if ![CONFIG, DATA, LOCK, CHECKPOINTS].into_iter().any(has) {
        return Err(Error::NotARun(out.to_owned()));
    }
    let foreign: Vec<String> = names.into_iter().filter(|name| !is_ours(name)).collect();
    if !foreign.is_empty() {
        return Err(Error::Foreign { path: out.to_owned(), files: foreign.join("`, `") });
    }
    Ok(())
}

/// Whether nothing is there but what a training writes before its settings.
pub(crate) fn never_began(out: &Path) -> Result<bool> {
    Ok(out.is_dir() && names(out)?.iter().all(|name| [LOCK, DATA, REJECTS].contains(&name.as_str())))
}

/// The right to replace a run: whoever trains in it must be done.
pub(crate) fn lock_replaced(out: &Path, overwrite: bool) -> Result<Option<RunLock>> {
    let there = overwrite && out.is_dir() && !names(out)?.is_empty();
    Ok(there.then(|| RunLock::take(out)).transpose()?)
}

/// The run folder of a training that takes long: it grows as it goes.
pub(crate) struct Place<'a> {
    out: &'a Path,
    /// Whether there was nothing before.
    new: bool,
    /// The run that is replaced, out of the way until the new one is done.
    replaced: Option<PathBuf>,
}

impl<'a> Place<'a> {
    pub(crate) fn take(out: &'a Path, overwrite: bool) -> Result<Self> {
        let mut replaced = None;
        if let Some(lock) = lock_replaced(out, overwrite)? {
            let name = out.file_name().unwrap_or_default().to_string_lossy();
            let old = out.with_file_name(format!(".{name}.replaced"));
            if old.exists() {
                fs::remove_dir_all(&old).map_err(Error::io("remove", &old))?;
            }
            fs::rename(out, &old).map_err(Error::io("move", out))?;
            replaced = Some(old);
            drop(lock);
        }
        let new = !out.exists();
        fs::create_dir_all(out).map_err(Error::io("create", out))?;
        Ok(Self { out, new, replaced })
    }

    pub(crate) fn done(mut self) {
        if let Some(old) = self.replaced.take() {
            // Only takes up space if it cannot be removed.
            let _ = fs::remove_dir_all(old);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Once there are checkpoints, a run has begun and can be resumed.
        if self.new && !self.out.join(CHECKPOINTS).exists() && !self.out.join(BUNDLE).exists() {
            for name in [CONFIG, DATA, LOCK] {
                let _ = fs::remove_file(self.out.join(name));
            }
            let _ = fs::remove_dir(self.out);
            if let Some(old) = self.replaced.take().filter(|_| !self.out.exists()) {
                let _ = fs::rename(old, self.out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        folder
    }

    #[test]
    fn a_run_that_was_killed_at_any_time_can_be_replaced() {
        for names in
            [&[][..], &[LOCK], &[LOCK, DATA], &[LOCK, DATA, CONFIG], &[CONFIG, REJECTS, "rejects-dev.jsonl"]]
        {
            let folder = folder(names);
            assert!(check(folder.path(), true).is_ok(), "{names:?}");
        }
        let unfinished = folder(&[DATA, CONFIG]);
        assert!(matches!(check(unfinished.path(), false), Err(Error::Unfinished(_))));
    }

    #[test]
    fn what_is_not_ours_is_never_replaced() {
        let notes = folder(&[CONFIG, BUNDLE, "notes.txt"]);
        let error = check(notes.path(), true).unwrap_err();
        assert!(error.to_string().contains("`notes.txt`"), "{error}");
        let other = folder(&["thesis.tex"]);
        assert!(matches!(check(other.path(), true), Err(Error::NotARun(_))));
        assert!(matches!(check(&other.path().join("thesis.tex"), true), Err(Error::NotARun(_))));
    }

    #[test]
    fn a_run_that_is_being_trained_is_not_replaced() {
        let folder = folder(&[CONFIG, DATA]);
        let lock = RunLock::take(folder.path()).unwrap();
        let taken = Place::take(folder.path(), true).map(|_| ());
        assert!(matches!(taken, Err(Error::Network(cladist_nn::Error::Busy { .. }))), "{taken:?}");
        drop(lock);
        assert!(Place::take(folder.path(), true).is_ok());
    }
}
