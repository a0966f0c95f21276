//! Lines over numbered places, several measures side by side with one legend.

use super::axis::Axis;
use super::legend::Legend;
use super::{Anchor, Figure, Form, MARGIN, Mark, Paint, Size};

const PLOT: (f64, f64) = (340.0, 220.0);
const LEFT: f64 = 48.0;
const ABOVE: f64 = 24.0;
const BELOW: f64 = 44.0;
const GAP: f64 = 28.0;

/// Measures of the same things.
#[derive(Debug)]
pub struct Chart<'a> {
    /// What is shown.
    pub title: &'a str,
    /// What places count.
    pub axis: &'a str,
    /// What stands below each place; numbers from 1 if there is nothing.
    pub places: Vec<String>,
    /// Where the values of each name lie on the axis, if it is a scale; empty for numbered places.
    pub at: Vec<&'a [f64]>,
    /// Whose lines they are.
    pub names: Vec<&'a str>,
    /// The measures.
    pub panels: Vec<Lines<'a>>,
}

/// One measure.
#[derive(Debug)]
pub struct Lines<'a> {
    /// What it is, with its unit.
    pub name: &'a str,
    /// Where the scale begins.
    pub floor: f64,
    /// A value for each place, for each of the names; none where there is nothing to show.
    pub values: Vec<Option<&'a [f64]>>,
}

impl Chart<'_> {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let n = self.panels.len().max(1) as f64;
        let bottom = Figure::TOP + ABOVE + PLOT.1 + BELOW;
        let panels = n * (LEFT + PLOT.0 + GAP) - GAP;
        let legend = Legend::new(self.names.iter().copied(), panels - LEFT);
        let inner = panels.max(LEFT + legend.width());
        let height = bottom + legend.height() + MARGIN;
        let mut figure = Figure::new(self.title, 2.0 * MARGIN + inner, height);
        for (n, panel) in self.panels.iter().enumerate() {
            let left = MARGIN + LEFT + n as f64 * (LEFT + PLOT.0 + GAP);
            self.draw_panel(&mut figure, (left, Figure::TOP + ABOVE), panel);
        }
        legend.draw(&mut figure, (MARGIN + LEFT, bottom));
        figure
    }

    fn draw_panel(&self, figure: &mut Figure, (left, top): (f64, f64), panel: &Lines<'_>) {
        let (right, bottom) = (left + PLOT.0, top + PLOT.1);
        let values = || panel.values.iter().flatten().copied();
        let up = Axis::from(panel.floor, highest(values().flatten()));
        let y = |value: f64| bottom - PLOT.1 * up.share(value);
        figure.text((left, top - 10.0), panel.name, Size::Normal, Anchor::Start, Paint::Ink);
        for (share, text) in up.ticks() {
            let y = bottom - PLOT.1 * share;
            figure.line([(left, y), (right, y)], 1.0, Paint::Grid);
            figure.label((left - 6.0, y + 4.0), &text, Anchor::End);
        }
        let n_places = values().map(<[f64]>::len).max().unwrap_or(0);
        let across = Axis::from(0.0, highest(self.at.iter().copied().flatten()));
        let x = |name: usize, place: usize| match self.at.get(name) {
            Some(at) => left + PLOT.0 * across.share(at.get(place).copied().unwrap_or(0.0)),
            None => left + PLOT.0 * (place as f64 + 0.5) / n_places.max(1) as f64,
        };
        if self.at.is_empty() {
            for place in 0..n_places {
                let numbered = || (place + 1).to_string();
                let name = self.places.get(place).cloned().unwrap_or_else(numbered);
                figure.label((x(0, place), bottom + 16.0), &name, Anchor::Middle);
            }
        } else {
            for (share, text) in across.ticks() {
                figure.label((left + PLOT.0 * share, bottom + 16.0), &text, Anchor::Middle);
            }
        }
        figure.label((left + PLOT.0 / 2.0, bottom + 34.0), self.axis, Anchor::Middle);
        for (n, values) in panel.values.iter().enumerate() {
            let points: Vec<(f64, f64)> = (values.unwrap_or_default().iter().enumerate())
                .filter(|(_, value)| value.is_finite())
                .map(|(place, value)| (x(n, place), y(*value)))
                .collect();
            let paint = Paint::series(n);
            if points.len() > 1 {
                figure.line(points.as_slice(), 2.0, paint);
            }
            for (x, y) in points {
                figure.mark(Mark { x, y, radius: 3.0, form: Form::Disc, paint, title: String::new() });
            }
        }
    }
}

/// The largest number; 0 if none is above it.
fn highest<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    values.copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart<'a>(names: Vec<&'a str>, panels: Vec<Lines<'a>>) -> Chart<'a> {
        Chart { title: "Attention", axis: "layer", places: Vec::new(), at: Vec::new(), names, panels }
    }

    #[test]
    fn each_bundle_has_its_colour_and_its_name() {
        let (a, b) = ([1.0, 2.0, 3.0], [3.0, f64::NAN, 1.0]);
        let panels = vec![
            Lines { name: "entropy (nats)", floor: 0.0, values: vec![Some(&a[..]), Some(&b[..])] },
            Lines { name: "between heads", floor: 0.0, values: vec![Some(&a[..]), None] },
        ];
        let svg = chart(vec!["flat", "a<b"], panels).draw().to_svg().to_string();
        let count = |n: usize| svg.matches(&format!("=\"{}\"", Paint::series(n).colour().hex())).count();
        assert_eq!([count(0), count(1)], [9, 4], "lines, points and a piece in the legend");
        for text in [">flat<", ">a&lt;b<", ">layer<", ">entropy (nats)<", ">3<"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn one_place_or_nothing_can_be_drawn() {
        for values in [vec![Some(&[2.0][..])], vec![Some(&[][..])], vec![None], Vec::new()] {
            let svg = chart(vec!["a"], vec![Lines { name: "x", floor: 0.0, values }]).draw().to_svg();
            assert!(!svg.as_str().contains("NaN"), "{svg}");
        }
        assert!(chart(Vec::new(), Vec::new()).draw().to_svg().as_str().ends_with("</svg>\n"));
    }
}
