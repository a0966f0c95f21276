//! The command line of Cladist. [`run`] is the program; everything in it can be tested without a process.

pub mod args;
pub mod commands;
pub mod config;
pub mod corpora;
pub mod decode;
pub mod demo;
pub mod error;
pub mod experiments;
pub mod figure;
pub mod heads;
pub mod html;
pub mod inputs;
pub mod judge;
pub mod memory;
pub mod model;
pub mod output;
pub mod progress;
pub mod results;
pub mod session;
pub mod settings;
pub mod watch;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::output::Output;
use crate::session::Session;

/// Parses the command line, runs it and turns the outcome into an exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let session = Session::new(&cli.global);
    session.install_signals();
    let outcome = run(cli, &session);
    session.bars.clear();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error::exit_code(&error);
            if code != 0 {
                Output::new(false).error(&error);
            }
            ExitCode::from(code)
        }
    }
}

/// Runs a parsed command line.
pub fn run(cli: Cli, session: &Session) -> anyhow::Result<()> {
    if let Some(n) = cli.global.threads {
        // Fails only if the pool exists already, as in tests.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
    }
    match cli.command {
        Command::Train(args) => commands::train::run(&args, session),
        Command::Tune(args) => commands::tune::run(&args, session),
        Command::Experiment(args) => commands::experiment::run(&args, session),
        Command::Evaluate(args) => commands::evaluate::run(&args, session),
        Command::Predict(args) => commands::predict::run(&args, session),
        Command::Explain(args) => commands::explain::run(&args, session),
        Command::Compare(args) => commands::compare::run(&args, session),
        Command::Analyze(command) => commands::analyze::run(&command, session),
        Command::Data(command) => commands::data::run(&command, session),
        Command::Taxonomy(command) => commands::taxonomy::run(&command, session),
        Command::Demo(args) => commands::demo::run(&args, session),
        Command::Heads(args) => commands::heads::run(&args, session),
        Command::Metrics(args) => commands::metrics::run(&args, session),
        Command::Completions { shell } => commands::completions::run(shell, session),
    }
}
