//! What a person sees of work while it goes on: a bar with the latest figures, or plain lines when nobody watches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cladist::observe::{DevReport, Event, Observer, StepReport};
use cladist_core::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{Output, fitted};

/// Time between plain lines.
const PAUSE: Duration = Duration::from_secs(15);

/// Metrics of dev that are shown, if there.
const SHOWN: [&str; 4] = ["loss", "micro-f1", "macro-f1", "p@1"];

/// What the bar is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Stage,
    Training,
}

/// Shows progress and events on standard error.
#[derive(Debug)]
pub struct View {
    output: Output,
    visible: bool,
    bar: Mutex<(Kind, ProgressBar)>,
    epochs: AtomicUsize,
    last_line: Mutex<Option<Instant>>,
}

impl View {
    /// A view that draws bars only if somebody watches.
    #[must_use]
    pub fn new(output: Output) -> Self {
        Self {
            visible: output.shows_progress(),
            output,
            bar: Mutex::new((Kind::Nothing, ProgressBar::hidden())),
            epochs: AtomicUsize::new(0),
            last_line: Mutex::new(None),
        }
    }

    /// Removes the bar, before results are printed.
    pub fn clear(&self) {
        if let Ok(mut bar) = self.bar.lock() {
            bar.1.finish_and_clear();
            bar.0 = Kind::Nothing;
        }
    }

    /// Writes without tearing the bar.
    fn say(&self, write: impl FnOnce()) {
        match self.bar.lock() {
            Ok(bar) => bar.1.suspend(write),
            Err(_) => write(),
        }
    }

    fn training_bar(&self, change: impl FnOnce(&ProgressBar)) {
        let Ok(mut bar) = self.bar.lock() else { return };
        if bar.0 != Kind::Training {
            bar.1.finish_and_clear();
            let new = ProgressBar::new(0);
            new.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}\n{wide_msg}") {
                new.set_style(style);
            }
            *bar = (Kind::Training, new);
        }
        change(&bar.1);
    }
}

impl Progress for View {
    fn stage(&self, name: &str, total: u64) {
        let Ok(mut current) = self.bar.lock() else { return };
        current.1.finish_and_clear();
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
        *current = (Kind::Stage, bar);
    }

    fn advance(&self, n: u64) {
        if let Ok(bar) = self.bar.lock() {
            bar.1.inc(n);
        }
    }
}

impl Observer for View {
    fn reading(&self, done: u64, total: u64) {
        if self.visible {
            self.training_bar(|bar| {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_prefix("encoding");
            });
        }
    }

    fn step(&self, report: &StepReport) {
        let epochs = self.epochs.load(Ordering::Relaxed);
        if self.visible {
            self.training_bar(|bar| {
                bar.set_length(report.total_steps);
                bar.set_position(report.step);
                bar.set_prefix(format!("epoch {}/{epochs}", report.epoch + 1));
                bar.set_message(figures(report));
            });
            return;
        }
        let Ok(mut last) = self.last_line.lock() else { return };
        if last.is_none_or(|last| last.elapsed() >= PAUSE) || report.step == report.total_steps {
            *last = Some(Instant::now());
            let (epoch, figures) = (report.epoch + 1, figures(report));
            let (step, steps) = (report.step, report.total_steps);
            self.output.note(fitted(&format!("epoch {epoch}/{epochs}  step {step}/{steps}  {figures}")));
        }
    }

    fn dev(&self, report: &DevReport) {
        let shown = SHOWN.iter().filter_map(|&name| Some(format!("{name} {:.4}", report.values.get(name)?)));
        let shown: Vec<String> = shown.collect();
        let best = if report.best { "  best so far" } else { "" };
        let epochs = self.epochs.load(Ordering::Relaxed);
        let line = format!(
            "epoch {}/{epochs}  step {}  dev: {}{best}",
            report.epoch + 1,
            report.step,
            shown.join("  ")
        );
        self.say(|| self.output.note(fitted(&line)));
    }

    fn event(&self, event: &Event<'_>) {
        if let Event::Begins { epochs, .. } = event {
            self.epochs.store(*epochs, Ordering::Relaxed);
        }
        if matches!(event, Event::Ended(_) | Event::Corpus(_)) {
            self.clear();
        }
        self.say(|| if event.is_warning() { self.output.warn(event) } else { self.output.note(event) });
    }
}

fn figures(report: &StepReport) -> String {
    let mut text = String::new();
    for (name, value) in &report.terms {
        text += &format!("{name} {value:.4}  ");
    }
    for (name, rate) in &report.learning_rates {
        text += &format!("rate {name} {rate:.2e}  ");
    }
    text += &format!("{:.1} docs/s  {:.0} tokens/s", report.documents_per_second, report.tokens_per_second);
    if let Some(seconds) = report.seconds_left.filter(|seconds| seconds.is_finite()) {
        text += &format!("  {} left", HumanDuration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9))));
    }
    text
}
