//! `cladist completions`: a script for the shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::session::Session;

/// Prints the script.
pub fn run(shell: Shell, session: &Session) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cladist", &mut script);
    session.output.line(String::from_utf8_lossy(&script).trim_end())
}
