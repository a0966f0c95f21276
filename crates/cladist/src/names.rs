//! Short names that tell run folders apart.

use std::path::{Path, PathBuf};

/// The last part of each path, or of the run folder around a bundle; whole paths if these are not enough.
#[must_use]
pub fn short_names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| -> String {
        let run = path.parent().filter(|run| path.ends_with("bundle") && run.file_name().is_some());
        let name = run.unwrap_or(path).file_name().map(Path::new);
        name.unwrap_or(path).display().to_string()
    };
    let mut names: Vec<String> = paths.iter().map(short).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < names.len() {
        names = paths.iter().map(|path| path.display().to_string()).collect();
    }
    names
}
