//! `cladist analyze`: look inside models.

pub mod labels;
mod layers;
mod zero_shot;

use std::path::{Path, PathBuf};

use crate::args::AnalyzeCommand;
use crate::model::Run;
use crate::session::Session;

/// Runs an `analyze` command.
pub fn run(command: &AnalyzeCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        AnalyzeCommand::Labels(args) => labels::run(args, session),
        AnalyzeCommand::Layers(args) => layers::run(args, session),
        AnalyzeCommand::ZeroShot(args) => zero_shot::run(args, session),
    }
}

/// Where results go: as asked, or `analysis` in the first run folder, or here.
fn place(asked: Option<&Path>, first: &Run) -> PathBuf {
    let home = || first.folder.as_ref().map(|folder| folder.join("analysis"));
    asked.map(Path::to_owned).or_else(home).unwrap_or_else(|| PathBuf::from("."))
}

/// Short names that tell bundles apart: the last part of each path, or of the run folder around it; whole paths if these
/// are not enough.
pub(super) fn names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| -> String {
        let run = path.parent().filter(|run| path.ends_with("bundle") && run.file_name().is_some());
        let name = run.unwrap_or(path).file_name();
        name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
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
