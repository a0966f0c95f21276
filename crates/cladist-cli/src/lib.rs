//! The command line of Cladist: flags → settings → library → terminal. [`run`] is the program; everything in it can be
//! tested without a process.

pub mod args;
pub mod commands;
pub mod decode;
pub mod error;
pub mod flags;
pub mod output;
pub mod session;
pub mod view;

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
    cladist_kernels::process::long_files_are_errors();
    let outcome = run(cli, &session);
    session.view.clear();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error::exit_code(&error);
            if code != 0 {
                Output::new(false).error(&error, error::hint(&error).as_deref());
            }
            ExitCode::from(code)
        }
    }
}

/// Runs a parsed command line.
pub fn run(cli: Cli, session: &Session) -> anyhow::Result<()> {
    // A device that is not there is refused whatever the command makes of it.
    cladist_nn::device::parse(&session.device)?;
    if session.threads.is_none() {
        // Threads that cannot be had are an error; started later, they would be a panic.
        rayon::ThreadPoolBuilder::new().build_global().map_err(|error| cladist::Error::NoThreads {
            n: std::thread::available_parallelism().map_or(1, Into::into),
            source: error.into(),
        })?;
    }
    let threads = cladist::threads::Threads::new(session.threads)?;
    threads.run(|| command(cli.command, session))
}

fn command(command: Command, session: &Session) -> anyhow::Result<()> {
    match command {
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
