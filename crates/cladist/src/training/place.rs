//! The run folder while it is worked in: nobody else's, and put back as it was if the run never began.

use std::fs;
use std::path::{Path, PathBuf};

use cladist_nn::train::checkpoint;
use cladist_nn::train::lock::{LOCK, RunLock};

use super::contents::{foreign, is_draft, is_ours, names};
use crate::error::{Error, Result};
use crate::folders::{BUNDLE, CHECKPOINTS, CONFIG, DATA, REJECTS, is_finished};

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
    // Settings alone may be those of another program.
    let is_run = [DATA, LOCK, CHECKPOINTS].into_iter().any(has) || (has(CONFIG) && has(BUNDLE));
    if !is_run {
        return Err(Error::NotARun(out.to_owned()));
    }
    let foreign = foreign(out)?;
    if !foreign.is_empty() {
        return Err(Error::Foreign { path: out.to_owned(), files: foreign.join("`, `") });
    }
    Ok(())
}

/// Whether nothing is there but what a training writes before its settings.
pub(crate) fn never_began(out: &Path) -> Result<bool> {
    let early = |name: &String| [LOCK, DATA, REJECTS].contains(&name.as_str()) || is_draft(name);
    Ok(out.is_dir() && names(out)?.iter().all(early))
}

/// The right to replace a run: whoever trains in it must be done.
pub(crate) fn lock_replaced(out: &Path, overwrite: bool) -> Result<Option<RunLock>> {
    let there = overwrite && out.is_dir() && !names(out)?.is_empty();
    Ok(there.then(|| RunLock::take(out)).transpose()?)
}

/// Where a run waits that is being replaced.
fn aside(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!(".{name}.replaced"))
}

/// Removes the run that this one replaced.
pub(crate) fn forget_replaced(out: &Path) {
    // Only takes up space if it cannot be removed.
    let _ = fs::remove_dir_all(aside(out));
}

/// How a place is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// Nothing is there.
    New,
    /// What is there is replaced.
    Overwrite,
    /// What is there goes on.
    Resume,
}

/// The run folder of a training that takes long: it grows as it goes.
pub(crate) struct Place<'a> {
    out: &'a Path,
    /// Whether there was nothing before.
    new: bool,
    /// The run that is replaced, out of the way until the new one is done.
    replaced: Option<PathBuf>,
    /// Nobody else trains here, from before anything is written.
    lock: RunLock,
}

impl<'a> Place<'a> {
    pub(crate) fn take(out: &'a Path, taking: Taking) -> Result<Self> {
        let old = aside(out);
        if let Some(lock) = lock_replaced(out, taking == Taking::Overwrite)? {
            if old.exists() && !is_finished(out) {
                // A replacement that was never done is in the way; what it was to replace still waits.
                fs::remove_dir_all(out).map_err(Error::io("remove", out))?;
            } else {
                if old.exists() {
                    fs::remove_dir_all(&old).map_err(Error::io("remove", &old))?;
                }
                fs::rename(out, &old).map_err(Error::io("move", out))?;
            }
            drop(lock);
        }
        let replaced = (taking != Taking::New && old.is_dir()).then_some(old);
        let new = !out.exists();
        fs::create_dir_all(out).map_err(Error::io("create", out))?;
        let lock = RunLock::take(out)?;
        Ok(Self { out, new, replaced, lock })
    }

    /// The right to train in the folder.
    pub(crate) fn lock(&self) -> &RunLock {
        &self.lock
    }

    /// Whether there is something to go on from.
    pub(crate) fn can_be_resumed(&self) -> bool {
        checkpoint::exists(&self.out.join(CHECKPOINTS)).unwrap_or(true)
    }

    pub(crate) fn done(mut self) {
        if self.replaced.take().is_some() {
            forget_replaced(self.out);
        }
    }

    /// Removes what this run wrote, and puts back what it was to replace.
    fn put_back(&self) {
        for name in names(self.out).unwrap_or_default().iter().filter(|name| is_ours(name)) {
            let path = self.out.join(name);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        let _ = fs::remove_dir(self.out);
        if let Some(old) = self.replaced.as_ref().filter(|_| !self.out.exists()) {
            let _ = fs::rename(old, self.out);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.new || self.out.join(BUNDLE).exists() || self.can_be_resumed() {
            return;
        }
        // Without a checkpoint, the journal of a run that failed is all there is of it, unless there is an older run.
        if self.replaced.is_some() || !self.out.join(CHECKPOINTS).exists() {
            self.put_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::{JOURNAL, REPORTS, SUMMARY};

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
            [&[][..], &[LOCK], &[LOCK, DATA], &[LOCK, DATA, CONFIG], &[DATA, REJECTS, "rejects-dev.jsonl"]]
        {
            let folder = folder(names);
            assert!(check(folder.path(), true).is_ok(), "{names:?}");
        }
        // Killed while it wrote its settings.
        let draft = folder(&[LOCK, DATA, ".config.toml.draft-4242-18b9-7"]);
        assert!(never_began(draft.path()).unwrap() && check(draft.path(), true).is_ok());
        assert!(!never_began(folder(&[LOCK, "notes.txt"]).path()).unwrap());
        let unfinished = folder(&[DATA, CONFIG]);
        assert!(matches!(check(unfinished.path(), false), Err(Error::Unfinished(_))));
    }

    #[test]
    fn what_is_not_ours_is_never_replaced() {
        let notes = folder(&[CONFIG, BUNDLE, "notes.txt"]);
        fs::create_dir(notes.path().join(REPORTS)).unwrap();
        fs::write(notes.path().join(REPORTS).join("notes.md"), "x").unwrap();
        let error = check(notes.path(), true).unwrap_err();
        assert!(error.to_string().contains("`notes.txt`, `reports/notes.md`"), "{error}");
        let settings = folder(&[CONFIG]);
        assert!(matches!(check(settings.path(), true), Err(Error::NotARun(_))));
        let other = folder(&["thesis.tex"]);
        assert!(matches!(check(other.path(), true), Err(Error::NotARun(_))));
        assert!(matches!(check(&other.path().join("thesis.tex"), true), Err(Error::NotARun(_))));
    }

    #[test]
    fn a_run_that_is_being_trained_is_not_replaced() {
        let folder = folder(&[CONFIG, DATA]);
        let lock = RunLock::take(folder.path()).unwrap();
        let taken = Place::take(folder.path(), Taking::Overwrite).map(|_| ());
        assert!(matches!(taken, Err(Error::Network(cladist_nn::Error::Busy { .. }))), "{taken:?}");
        drop(lock);
        assert!(Place::take(folder.path(), Taking::Overwrite).is_ok());
    }

    #[test]
    fn of_two_trainings_that_start_together_one_is_refused_before_it_writes() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("run");
        let first = Place::take(&out, Taking::New).unwrap();
        fs::write(out.join(CONFIG), "first").unwrap();
        let second = Place::take(&out, Taking::New).map(|_| ());
        assert!(matches!(second, Err(Error::Network(cladist_nn::Error::Busy { .. }))), "{second:?}");
        assert_eq!(fs::read(out.join(CONFIG)).unwrap(), b"first");
        drop(first);
    }

    /// A run folder in a place of its own, with these files.
    fn run(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("run");
        fs::create_dir(&out).unwrap();
        fill(&out, names);
        (place, out)
    }

    fn fill(out: &Path, files: &[&str]) {
        for name in files {
            let path = out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }

    const FINISHED: [&str; 3] = [CONFIG, SUMMARY, "bundle/MANIFEST.json"];
    const STEP: &str = "checkpoints/step-00000001/state.json";

    #[test]
    fn a_replacement_that_never_began_leaves_the_old_run() {
        for written in
            [&[][..], &[CONFIG, DATA, REJECTS], &[CONFIG, "rejects-dev.jsonl", "tb/events", JOURNAL]]
        {
            let (place, out) = run(&FINISHED);
            let taken = Place::take(&out, Taking::Overwrite).unwrap();
            fill(&out, written);
            fs::create_dir_all(out.join(CHECKPOINTS)).unwrap();
            drop(taken);
            assert_eq!(names(&out).unwrap(), [LOCK, BUNDLE, CONFIG, SUMMARY], "{written:?}");
            assert_eq!(names(place.path()).unwrap(), ["run"]);
        }
        // Nothing was there: nothing stays.
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("run");
        let taken = Place::take(&out, Taking::New).unwrap();
        fill(&out, &[CONFIG, DATA, REJECTS]);
        drop(taken);
        assert!(!out.exists());
    }

    #[test]
    fn a_replacement_that_is_resumed_removes_the_old_run_once_it_is_done() {
        let (place, out) = run(&FINISHED);
        let taken = Place::take(&out, Taking::Overwrite).unwrap();
        fill(&out, &[CONFIG, STEP]);
        assert!(taken.can_be_resumed());
        drop(taken);
        assert_eq!(names(place.path()).unwrap(), [".run.replaced", "run"]);
        let resumed = Place::take(&out, Taking::Resume).unwrap();
        assert!(out.join(STEP).exists());
        resumed.done();
        assert_eq!(names(place.path()).unwrap(), ["run"]);
    }

    #[test]
    fn of_two_replacements_neither_loses_the_finished_run() {
        let (place, out) = run(&FINISHED);
        let first = Place::take(&out, Taking::Overwrite).unwrap();
        fill(&out, &[CONFIG, STEP]);
        drop(first);
        // The second never begins: the finished run is back.
        drop(Place::take(&out, Taking::Overwrite).unwrap());
        assert!(is_finished(&out));
        assert_eq!(names(place.path()).unwrap(), ["run"]);
        // Another training with the same name has nothing to do with what waits.
        let first = Place::take(&out, Taking::Overwrite).unwrap();
        std::mem::forget(first);
        fs::remove_dir_all(&out).unwrap();
        let other = Place::take(&out, Taking::New).unwrap();
        fill(&out, &FINISHED);
        other.done();
        assert_eq!(names(place.path()).unwrap(), [".run.replaced", "run"]);
    }
}
