//! Threads that work is done on: the caller's, or a pool of its own.

use std::sync::Arc;

use crate::error::{Error, Result};

/// More than any machine of today has use for.
const MOST: usize = 1024;

/// The caller's rayon pool, or one of its own.
#[derive(Clone, Default)]
pub struct Threads(Option<Arc<rayon::ThreadPool>>);

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(pool) => write!(f, "Threads({})", pool.current_num_threads()),
            None => write!(f, "Threads(shared)"),
        }
    }
}

impl Threads {
    /// So many threads; without a number, those of the caller.
    pub fn new(n: Option<usize>) -> Result<Self> {
        let Some(n) = n else { return Ok(Self::default()) };
        if n == 0 || n > MOST {
            return Err(Error::Threads { n, most: MOST });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .map_err(|error| Error::NoThreads { n, source: error.into() })?;
        Ok(Self(Some(Arc::new(pool))))
    }

    /// Runs `work` on these threads.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_as_many_threads_as_asked_for() {
        assert_eq!(Threads::new(Some(3)).unwrap().run(rayon::current_num_threads), 3);
        let here = rayon::current_num_threads();
        assert_eq!(Threads::new(None).unwrap().run(rayon::current_num_threads), here);
    }

    #[test]
    fn absurd_numbers_are_refused_before_a_thread_starts() {
        for n in [0, 99_999, usize::MAX] {
            assert!(matches!(Threads::new(Some(n)), Err(Error::Threads { .. })), "{n}");
        }
    }
}
