//! What every command gets: output, progress and the flag that Ctrl-C sets.

use cladist::{OpenOptions, Work};
use cladist_core::Cancel;

use crate::args::Global;
use crate::output::Output;
use crate::view::View;

/// One run of the program.
#[derive(Debug)]
pub struct Session {
    /// Where results and remarks go.
    pub output: Output,
    /// Progress and events.
    pub view: View,
    /// Set by Ctrl-C or SIGTERM.
    pub cancel: Cancel,
    /// The name of the device that tensors live on.
    pub device: String,
    /// Threads to work on.
    pub threads: Option<usize>,
}

impl Session {
    /// A session by the global flags.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        let output = Output::new(global.quiet);
        Self {
            output,
            view: View::new(output),
            cancel: Cancel::default(),
            device: global.device.clone(),
            threads: global.threads,
        }
    }

    /// What functions of the library take.
    #[must_use]
    pub fn work(&self) -> Work<'_> {
        Work { observer: &self.view, cancel: self.cancel.clone() }
    }

    /// How models are opened.
    #[must_use]
    pub fn open(&self) -> OpenOptions {
        // The whole command runs on the threads that were asked for.
        OpenOptions { device: self.device.clone(), cancel: self.cancel.clone(), ..OpenOptions::default() }
    }

    /// Lets the first Ctrl-C end work tidily and the second one end it at once.
    pub fn install_signals(&self) {
        let cancel = self.cancel.clone();
        // Fails only if a handler exists already, as in tests.
        let _ = ctrlc::set_handler(move || {
            if cancel.is_cancelled() {
                std::process::exit(130);
            }
            cancel.cancel();
        });
    }
}
