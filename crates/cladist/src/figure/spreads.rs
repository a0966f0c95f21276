//! Means with their standard deviations and the runs behind them, for several variants by several measures.

use super::axis::Axis;
use super::legend::Legend;
use super::{Anchor, Figure, Form, MARGIN, Mark, Paint, Size, shortened};

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 40.0;
const BELOW: f64 = 36.0;
/// From one variant to the next, and from one measure to the next beyond that.
const STEP: f64 = 14.0;
const GAP: f64 = 26.0;
/// A legend may be wider than the plot of a single measure.
const NARROWEST: f64 = 420.0;

/// Variants by measures.
#[derive(Debug)]
pub struct Spreads<'a> {
    /// What is shown; the page says it above.
    pub title: &'a str,
    /// What is measured.
    pub measures: Vec<&'a str>,
    /// The variants.
    pub names: Vec<&'a str>,
    /// For each variant, what each measure came to.
    pub values: Vec<Vec<Option<Over>>>,
}

/// A value over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
    /// The runs.
    pub runs: Vec<f64>,
    /// What a reader sees who points at it.
    pub title: String,
}

impl Over {
    /// Whether there is more to show than one run.
    fn is_spread(&self) -> bool {
        self.runs.len() > 1
    }
}

impl Spreads<'_> {
    /// The figure; none if there is no value.
    #[must_use]
    pub fn draw(&self) -> Option<Figure> {
        let all = || self.values.iter().flatten().flatten();
        let values = || {
            all().flat_map(|over| {
                let std = if over.is_spread() { over.std } else { 0.0 };
                over.runs.iter().copied().chain([over.mean - std, over.mean + std])
            })
        };
        if !values().any(f64::is_finite) {
            return None;
        }
        let axis = Axis::around(values());
        let labels: Vec<String> = self.measures.iter().map(|name| shortened(name)).collect();
        let room = STEP * self.names.len() as f64 + GAP;
        let group = labels.iter().map(|label| Size::Normal.width(label) + 12.0).fold(room, f64::max);
        let inner = group * labels.len() as f64;
        let legend = Legend::new(self.names.iter().copied(), (LEFT + inner).max(NARROWEST));
        let (left, bottom) = (MARGIN + LEFT, MARGIN + HEIGHT);
        let width = (LEFT + inner).max(legend.width()) + 2.0 * MARGIN;
        let mut figure = Figure::untitled(self.title, width, bottom + BELOW + legend.height() + MARGIN);
        for (share, text) in axis.ticks() {
            let y = bottom - HEIGHT * share;
            figure.line([(left, y), (left + inner, y)], 1.0, Paint::Grid);
            figure.label((left - 6.0, y + 4.0), &text, Anchor::End);
        }
        for (n, label) in labels.iter().enumerate() {
            let middle = left + group * (n as f64 + 0.5);
            figure.label((middle, bottom + 18.0), label, Anchor::Middle);
            let first = middle - STEP * (self.names.len() as f64 - 1.0) / 2.0;
            for (k, row) in self.values.iter().enumerate() {
                if let Some(Some(over)) = row.get(n) {
                    let y = |value: f64| bottom - HEIGHT * axis.share(value);
                    draw_one(&mut figure, over, first + STEP * k as f64, y, Paint::series(k));
                }
            }
        }
        legend.draw(&mut figure, (left, bottom + BELOW));
        Some(figure)
    }
}

fn draw_one(figure: &mut Figure, over: &Over, x: f64, y: impl Fn(f64) -> f64, paint: Paint) {
    if !over.mean.is_finite() {
        return;
    }
    if over.is_spread() && over.std.is_finite() {
        let (top, bottom) = (y(over.mean + over.std), y(over.mean - over.std));
        figure.line([(x, top), (x, bottom)], 1.0, paint);
        for end in [top, bottom] {
            figure.line([(x - 3.0, end), (x + 3.0, end)], 1.0, paint);
        }
        for &run in over.runs.iter().filter(|run| run.is_finite()) {
            figure.mark(Mark { x, y: y(run), radius: 3.0, form: Form::Ring, paint, title: String::new() });
        }
    }
    let title = over.title.clone();
    figure.mark(Mark { x, y: y(over.mean), radius: 4.0, form: Form::Disc, paint, title });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_runs_and_its_name() {
        let over =
            |mean, runs: &[f64]| Over { mean, std: 0.5, runs: runs.to_vec(), title: "a < b".to_owned() };
        let spreads = Spreads {
            title: "t",
            measures: vec!["micro", "macro"],
            names: vec!["flat", "<v>"],
            values: vec![vec![Some(over(75.0, &[74.5, 75.5])), None], vec![Some(over(70.0, &[70.0]))]],
        };
        let svg = spreads.draw().unwrap().to_svg().to_string();
        assert_eq!(svg.matches("<circle").count(), 4, "two means and two runs: {svg}");
        for text in [">micro<", ">macro<", ">&lt;v&gt;<", "<title>a &lt; b</title>"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        let empty = Spreads { values: vec![vec![None, Some(over(f64::NAN, &[]))]], ..spreads };
        assert!(empty.draw().is_none());
    }
}
