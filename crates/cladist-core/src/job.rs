//! Long work: progress that a front end may draw, and a way to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// What long-running work tells whoever watches. Implementations must be cheap: they are called from hot loops.
pub trait Progress: Sync {
    /// A stage begins; `total` is the number of steps it will take, 0 if unknown.
    fn stage(&self, name: &str, total: u64);
    /// `n` more steps of the current stage are done.
    fn advance(&self, n: u64);
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _name: &str, _total: u64) {}
    fn advance(&self, _n: u64) {}
}

/// A shared flag that asks work to stop at the next convenient point.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks every holder of this flag to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether stopping was asked for.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`Error::Cancelled`] once stopping was asked for, so that loops can use `?`.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// What long-running functions take: where to report, and when to stop.
#[derive(Clone)]
pub struct Job<'a> {
    /// Receives stages and steps.
    pub progress: &'a dyn Progress,
    /// Checked between units of work.
    pub cancel: Cancel,
}

impl Job<'_> {
    /// A job that nobody watches and nobody stops.
    #[must_use]
    pub fn silent() -> Job<'static> {
        Job { progress: &Silent, cancel: Cancel::default() }
    }
}
