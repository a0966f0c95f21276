//! What a run folder holds, and what in it is somebody else's: `overwrite` removes nothing that no run wrote.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use cladist_core::corpus::SplitName;
use cladist_nn::train::lock::LOCK;

use crate::error::{Error, Result};
use crate::folders::{BUNDLE, CHECKPOINTS, CONFIG, DATA, JOURNAL, REJECTS, REPORTS, SUMMARY};

/// Files that training, evaluation and analysis write into a run folder.
const FILES: [&str; 11] = [
    LOCK,
    CONFIG,
    DATA,
    JOURNAL,
    SUMMARY,
    REJECTS,
    "report.html",
    "failed.json",
    "weights.svg",
    "weights.png",
    "MANIFEST.json",
];

/// Whether a run wrote a name.
type Ours = fn(&str) -> bool;

/// Folders in a run folder, and which names in them are ours.
const FOLDERS: [(&str, Ours); 5] = [
    (REPORTS, is_report),
    ("analysis", is_analysis),
    ("tb", |name| name.starts_with("events.out.tfevents.")),
    (CHECKPOINTS, |name| name.starts_with("step-")),
    // A bundle is moved in as a whole, with a manifest of its own; subfolders are members of an ensemble.
    (BUNDLE, |_| true),
];

/// Whether a run wrote this name into its folder.
pub(super) fn is_ours(name: &str) -> bool {
    FILES.contains(&name)
        || FOLDERS.iter().any(|(folder, _)| *folder == name)
        || (name.starts_with("rejects-") && name.ends_with(".jsonl"))
        || is_draft(name)
}

/// Whether a process that was killed left this half-written.
pub(super) fn is_draft(name: &str) -> bool {
    name.starts_with('.') && [".draft-", ".old-", ".gone"].iter().any(|mark| name.contains(mark))
}

fn is_report(name: &str) -> bool {
    let split = SplitName::ALL.iter().find_map(|split| name.strip_prefix(&split.to_string()));
    matches!(split, Some(".json" | ".html" | "-labels.tsv"))
}

fn is_analysis(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let known = ["layers", "zero-shot", "labels", "distance", "attention-kl", "heads"].contains(&stem);
    (known || stem.starts_with("labels-")) && ["json", "svg", "html", "png"].contains(&ending)
}

/// What stands in a folder, by name; nothing if it is not there.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
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

/// What stands in a run folder that no run wrote.
pub(super) fn foreign(out: &Path) -> Result<Vec<String>> {
    let mut foreign: Vec<String> = names(out)?.into_iter().filter(|name| !is_ours(name)).collect();
    for (folder, is_ours) in FOLDERS {
        let others = names(&out.join(folder))?.into_iter().filter(|name| !is_draft(name) && !is_ours(name));
        foreign.extend(others.map(|name| format!("{folder}/{name}")));
    }
    Ok(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_found_in_the_folders_of_a_run_too() {
        let run = tempfile::tempdir().unwrap();
        let ours = [
            "config.toml",
            ".config.toml.draft-4242-18b9-7",
            "reports/dev.json",
            "reports/test-labels.tsv",
            "analysis/labels-runs-svm.svg",
            "analysis/layers.json",
            "tb/events.out.tfevents.0000000001.host",
            "checkpoints/step-00000001/state.json",
            "checkpoints/.step-00000002.draft-1/state.json",
            "bundle/member-1/config.toml",
        ];
        let others = ["notes.txt", "reports/notes.md", "analysis/mine.svg", "tb/readme", "checkpoints/best"];
        for name in ours.iter().chain(&others) {
            let path = run.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(foreign(run.path()).unwrap(), others);
    }
}
