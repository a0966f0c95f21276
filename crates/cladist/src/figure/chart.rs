//! Lines over numbered places, several measures side by side with one legend.

use super::{Anchor, Colour, Figure, MARGIN, Size, number, shortened};

const PLOT: (f64, f64) = (340.0, 220.0);
const LEFT: f64 = 48.0;
const ABOVE: f64 = 24.0;
const BELOW: f64 = 44.0;
const GAP: f64 = 28.0;
const LEGEND_LINE: f64 = 18.0;

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
        let names = self.names.iter().map(|name| 28.0 + Size::Normal.width(&shortened(name)));
        let inner = names.fold(n * (LEFT + PLOT.0 + GAP) - GAP, f64::max);
        let height = bottom + self.names.len() as f64 * LEGEND_LINE + MARGIN;
        let mut figure = Figure::new(self.title, 2.0 * MARGIN + inner, height);
        for (n, panel) in self.panels.iter().enumerate() {
            let left = MARGIN + LEFT + n as f64 * (LEFT + PLOT.0 + GAP);
            self.draw_panel(&mut figure, (left, Figure::TOP + ABOVE), panel);
        }
        for (n, name) in self.names.iter().enumerate() {
            let y = bottom + (n as f64 + 0.5) * LEGEND_LINE;
            let colour = colour(n);
            figure.line((MARGIN + LEFT, y - 4.0), (MARGIN + LEFT + 18.0, y - 4.0), 2.0, colour);
            let place = (MARGIN + LEFT + 26.0, y);
            figure.text(place, &shortened(name), Size::Normal, Anchor::Start, Colour::INK);
        }
        figure
    }

    fn draw_panel(&self, figure: &mut Figure, (left, top): (f64, f64), panel: &Lines<'_>) {
        let (right, bottom) = (left + PLOT.0, top + PLOT.1);
        let values = || panel.values.iter().flatten().copied();
        let highest = values().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let (floor, highest) = (panel.floor, highest - panel.floor);
        let step = step(highest);
        let n_steps = (highest / step).ceil().max(1.0);
        let y = |value: f64| bottom - PLOT.1 * (value - floor) / (step * n_steps);
        figure.text((left, top - 10.0), panel.name, Size::Normal, Anchor::Start, Colour::INK);
        for n in 0..=n_steps as usize {
            let value = floor + n as f64 * step;
            figure.line((left, y(value)), (right, y(value)), 1.0, Colour::GRID);
            let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
            figure.label((left - 6.0, y(value) + 4.0), &number(value, decimals), Anchor::End);
        }
        let n_places = values().map(<[f64]>::len).max().unwrap_or(0);
        let end = self.at.iter().copied().flatten().copied().filter(|at| at.is_finite()).fold(0.0, f64::max);
        let scale = self::step(end);
        let end = scale * (end / scale).ceil().max(1.0);
        let x = |name: usize, place: usize| match self.at.get(name) {
            Some(at) => left + PLOT.0 * at.get(place).copied().unwrap_or(0.0) / end,
            None => left + PLOT.0 * (place as f64 + 0.5) / n_places.max(1) as f64,
        };
        if self.at.is_empty() {
            for place in 0..n_places {
                let numbered = || (place + 1).to_string();
                let name = self.places.get(place).cloned().unwrap_or_else(numbered);
                figure.label((x(0, place), bottom + 16.0), &name, Anchor::Middle);
            }
        } else {
            let decimals = if scale >= 1.0 { 0 } else { (-scale.log10()).ceil() as usize };
            for n in 0..=(end / scale).round() as usize {
                let at = n as f64 * scale;
                figure.label(
                    (left + PLOT.0 * at / end, bottom + 16.0),
                    &number(at, decimals),
                    Anchor::Middle,
                );
            }
        }
        figure.label((left + PLOT.0 / 2.0, bottom + 34.0), self.axis, Anchor::Middle);
        for (n, values) in panel.values.iter().enumerate() {
            let points: Vec<(usize, f64)> = (values.unwrap_or_default().iter().copied().enumerate())
                .filter(|(_, value)| value.is_finite())
                .collect();
            for pair in points.windows(2) {
                let [from, to] = [pair[0], pair[1]].map(|(place, value)| (x(n, place), y(value)));
                figure.line(from, to, 2.0, colour(n));
            }
            for (place, value) in points {
                figure.line((x(n, place), y(value)), (x(n, place), y(value)), 6.0, colour(n));
            }
        }
    }
}

fn colour(n: usize) -> Colour {
    Colour::SERIES[n % Colour::SERIES.len()]
}

/// A round step, 1, 2 or 5 times a power of ten, of which at most five reach `highest`.
fn step(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf((highest / 5.0).log10().floor());
    [1.0, 2.0, 5.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| highest / step <= 5.0)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::super::raster::read;
    use super::*;

    #[test]
    fn steps_are_round_and_at_most_five() {
        let found: Vec<f64> = [4.9, 0.3, 7.0, 27.0, 0.0].map(step).into();
        for (found, expected) in found.iter().zip([1.0, 0.1, 2.0, 10.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
    }

    #[test]
    fn each_bundle_has_its_colour_and_its_name() {
        let (a, b) = ([1.0, 2.0, 3.0], [3.0, f64::NAN, 1.0]);
        let panels = vec![
            Lines { name: "entropy (nats)", floor: 0.0, values: vec![Some(&a[..]), Some(&b[..])] },
            Lines { name: "between heads", floor: 0.0, values: vec![Some(&a[..]), None] },
        ];
        let chart = Chart {
            title: "Attention",
            axis: "layer",
            places: Vec::new(),
            at: Vec::new(),
            names: vec!["flat", "a<b"],
            panels,
        };
        let figure = chart.draw();
        let (_, _, pixels) = read(&figure.to_png().unwrap());
        for colour in &Colour::SERIES[..2] {
            assert!(pixels.iter().filter(|pixel| *pixel == colour).count() > 200, "{colour:?}");
        }
        let svg = figure.to_svg();
        for text in [">flat<", ">a&lt;b<", ">layer<", ">entropy (nats)<", ">3<"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn one_place_or_nothing_can_be_drawn() {
        for values in [vec![Some(&[2.0][..])], vec![Some(&[][..])], vec![None], Vec::new()] {
            let panels = vec![Lines { name: "x", floor: 0.0, values }];
            Chart { title: "t", axis: "layer", places: Vec::new(), at: Vec::new(), names: vec!["a"], panels }
                .draw()
                .to_png()
                .unwrap();
        }
        Chart {
            title: "t",
            axis: "layer",
            places: Vec::new(),
            at: Vec::new(),
            names: Vec::new(),
            panels: Vec::new(),
        }
        .draw()
        .to_png()
        .unwrap();
    }
}
