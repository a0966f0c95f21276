//! Points in a square with two axes of their own: probabilities against shares, F1 against frequency.

use super::{Anchor, Figure, Form, MARGIN, Mark, Paint, Size};

const SIDE: f64 = 280.0;
const LEFT: f64 = 32.0;
const ABOVE: f64 = 24.0;
const BELOW: f64 = 40.0;

/// Points in a square.
#[derive(Debug)]
pub struct Plot<'a> {
    /// What is shown; the page says it above.
    pub title: &'a str,
    /// What goes to the right.
    pub across: &'a str,
    /// What goes up.
    pub up: &'a str,
    /// Where numbers stand below the square, as shares of its side.
    pub ticks: Vec<(f64, String)>,
    /// Whether there is a line from corner to corner, where both are the same.
    pub diagonal: bool,
    /// The points.
    pub points: Vec<Spot>,
}

/// A point.
#[derive(Debug)]
pub struct Spot {
    /// To the right and up, from 0 to 1.
    pub place: [f64; 2],
    /// Its size in pixels.
    pub radius: f64,
    /// What a reader sees who points at it.
    pub title: String,
}

impl Plot<'_> {
    /// Numbers of a share below the square.
    #[must_use]
    pub fn shares() -> Vec<(f64, String)> {
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|share| (share, format!("{share:.1}"))).into()
    }

    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let (left, top) = (MARGIN + LEFT, MARGIN + ABOVE);
        let bottom = top + SIDE;
        let mut figure = Figure::untitled(self.title, left + SIDE + 2.0 * MARGIN, bottom + BELOW + MARGIN);
        figure.text((MARGIN, MARGIN + 8.0), self.up, Size::Normal, Anchor::Start, Paint::Soft);
        for (share, text) in Self::shares() {
            let y = bottom - SIDE * share;
            figure.line([(left, y), (left + SIDE, y)], 1.0, Paint::Grid);
            figure.label((left - 6.0, y + 4.0), &text, Anchor::End);
        }
        for (share, text) in &self.ticks {
            figure.label((left + SIDE * share, bottom + 16.0), text, Anchor::Middle);
        }
        figure.label((left + SIDE / 2.0, bottom + 34.0), self.across, Anchor::Middle);
        if self.diagonal {
            figure.guide((left, bottom), (left + SIDE, top));
        }
        for Spot { place: [x, y], radius, title } in &self.points {
            if x.is_finite() && y.is_finite() {
                let (x, y) = (left + SIDE * x, bottom - SIDE * y);
                let (paint, title) = (Paint::series(0), title.clone());
                figure.mark(Mark { x, y, radius: *radius, form: Form::Disc, paint, title });
            }
        }
        figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_where_their_shares_are() {
        let spot = |x, y| Spot { place: [x, y], radius: 3.0, title: "a < b".to_owned() };
        let plot = Plot {
            title: "t",
            across: "probability",
            up: "right",
            ticks: Plot::shares(),
            diagonal: true,
            points: vec![spot(0.0, 1.0), spot(0.5, 0.5), spot(f64::NAN, 0.0)],
        };
        let figure = plot.draw();
        let marks: Vec<(f64, f64)> = (figure.shapes.iter())
            .filter_map(|shape| match shape {
                super::super::Shape::Mark(mark) => Some((mark.x, mark.y)),
                _ => None,
            })
            .collect();
        let (left, top) = (MARGIN + LEFT, MARGIN + ABOVE);
        assert_eq!(marks, [(left, top), (left + SIDE / 2.0, top + SIDE / 2.0)]);
        let svg = figure.to_svg().to_string();
        assert!(svg.contains("<title>a &lt; b</title>") && svg.contains("stroke-dasharray"), "{svg}");
    }
}
