//! `cladist analyze`: look inside models.

mod layers;

use crate::args::AnalyzeCommand;
use crate::session::Session;

/// Runs an `analyze` command.
pub fn run(command: &AnalyzeCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        AnalyzeCommand::Layers(args) => layers::run(args, session),
    }
}
