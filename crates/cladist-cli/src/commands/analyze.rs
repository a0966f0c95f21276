//! `cladist analyze`: look inside models.

mod labels;
mod layers;
mod zero_shot;

use crate::args::AnalyzeCommand;
use crate::session::Session;

/// Runs an `analyze` command.
pub fn run(command: &AnalyzeCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        AnalyzeCommand::Labels(args) => labels::run(args, session),
        AnalyzeCommand::Layers(args) => layers::run(args, session),
        AnalyzeCommand::ZeroShot(args) => zero_shot::run(args, session),
    }
}
