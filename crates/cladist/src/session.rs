//! What every command gets: output, progress and the flag that Ctrl-C sets.

use std::sync::Arc;

use cladist_core::{Cancel, Job};

use crate::args::Global;
use crate::output::Output;
use crate::progress::Bars;

/// One run of the program.
#[derive(Debug)]
pub struct Session {
    /// Where results and remarks go.
    pub output: Output,
    /// Progress bars.
    pub bars: Arc<Bars>,
    /// Set by Ctrl-C or SIGTERM.
    pub cancel: Cancel,
    /// The name of the device that tensors live on.
    pub device: String,
}

impl Session {
    /// A session by the global flags.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        let output = Output::new(global.quiet);
        let bars = Arc::new(Bars::new(output.shows_progress()));
        Self { output, bars, cancel: Cancel::default(), device: global.device.clone() }
    }

    /// What long-running library functions take.
    #[must_use]
    pub fn job(&self) -> Job<'_> {
        Job { progress: self.bars.as_ref(), cancel: self.cancel.clone() }
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
