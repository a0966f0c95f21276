//! Progress bars on standard error that vanish when nobody watches.

use std::sync::Mutex;
use std::time::Duration;

use cladist_core::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Draws one bar for the current stage.
#[derive(Debug)]
pub struct Bars {
    visible: bool,
    current: Mutex<ProgressBar>,
}

impl Bars {
    /// Bars, drawn only if `visible`.
    #[must_use]
    pub fn new(visible: bool) -> Self {
        Self { visible, current: Mutex::new(ProgressBar::hidden()) }
    }

    /// Removes the bar, before results are printed.
    pub fn clear(&self) {
        if let Ok(bar) = self.current.lock() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bars {
    fn stage(&self, name: &str, total: u64) {
        let Ok(mut current) = self.current.lock() else { return };
        current.finish_and_clear();
        if !self.visible {
            return;
        }
        let (bar, template) = if total == 0 {
            (ProgressBar::no_length(), "{spinner} {msg} {human_pos} ({per_sec})")
        } else {
            (ProgressBar::new(total), "{msg:24} {wide_bar} {human_pos}/{human_len} ({per_sec}, {eta} left)")
        };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        *current = bar;
    }

    fn advance(&self, n: u64) {
        if let Ok(bar) = self.current.lock() {
            bar.inc(n);
        }
    }
}
