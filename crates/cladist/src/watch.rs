//! What a person sees of a training run: a bar with the latest figures, or plain lines when nobody watches.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cladist_nn::train::progress::{DevReport, StepReport, Watcher};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;
use crate::session::Session;

/// Time between plain lines.
const PAUSE: Duration = Duration::from_secs(15);

/// Metrics of dev that are shown, if there.
const SHOWN: [&str; 4] = ["loss", "micro-f1", "macro-f1", "p@1"];

/// Shows the steps and evaluations of a run.
pub struct LiveView<'a> {
    output: &'a Output,
    epochs: usize,
    bar: Option<ProgressBar>,
    last_line: Mutex<Option<Instant>>,
}

impl<'a> LiveView<'a> {
    /// A view of a run of so many epochs.
    #[must_use]
    pub fn new(session: &'a Session, epochs: usize) -> Self {
        let bar = session.output.shows_progress().then(|| {
            let bar = ProgressBar::new(0);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}\n{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { output: &session.output, epochs, bar, last_line: Mutex::new(None) }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.note(text)),
            None => self.output.note(text),
        }
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

impl Watcher for LiveView<'_> {
    fn reading(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_prefix("reading");
        }
    }

    fn step(&self, report: &StepReport) {
        if let Some(bar) = &self.bar {
            bar.set_length(report.total_steps);
            bar.set_position(report.step);
            bar.set_prefix(format!("epoch {}/{}", report.epoch + 1, self.epochs));
            bar.set_message(figures(report));
            return;
        }
        let Ok(mut last) = self.last_line.lock() else { return };
        if last.is_none_or(|last| last.elapsed() >= PAUSE) || report.step == report.total_steps {
            *last = Some(Instant::now());
            self.output.note(format!(
                "epoch {}/{}  step {}/{}  {}",
                report.epoch + 1,
                self.epochs,
                report.step,
                report.total_steps,
                figures(report)
            ));
        }
    }

    fn dev(&self, report: &DevReport) {
        let shown = SHOWN.iter().filter_map(|&name| Some(format!("{name} {:.4}", report.values.get(name)?)));
        let shown: Vec<String> = shown.collect();
        let best = if report.best { "  best so far" } else { "" };
        self.say(&format!(
            "epoch {}/{}  step {}  dev: {}{best}",
            report.epoch + 1,
            self.epochs,
            report.step,
            shown.join("  ")
        ));
    }

    fn note(&self, message: &str) {
        self.say(message);
    }
}
