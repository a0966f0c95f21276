//! Lines over a scale that both fit what they show: curves of training.

use super::axis::Axis;
use super::legend::Legend;
use super::{Anchor, Figure, Form, MARGIN, Mark, Paint};

const PLOT: (f64, f64) = (360.0, 200.0);
const LEFT: f64 = 56.0;
const BELOW: f64 = 44.0;
/// Lines of at most so many points have a mark at each.
const MARKED: usize = 40;
/// More points than pixels say nothing more.
const MOST: usize = 2 * PLOT.0 as usize;

/// Lines of one measure.
#[derive(Debug)]
pub struct Curves<'a> {
    /// What is shown; the page says it above.
    pub title: &'a str,
    /// What is counted from left to right.
    pub axis: &'a str,
    /// The lines.
    pub lines: Vec<Curve>,
}

/// One line.
#[derive(Debug)]
pub struct Curve {
    /// Whose it is.
    pub name: String,
    /// Where it goes through; what is no number is left out.
    pub points: Vec<(f64, f64)>,
}

impl Curves<'_> {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let legend = Legend::new(self.lines.iter().map(|line| line.name.as_str()), LEFT + PLOT.0);
        let (left, top) = (MARGIN + LEFT, MARGIN);
        let bottom = top + PLOT.1;
        let width = (LEFT + PLOT.0).max(legend.width()) + 2.0 * MARGIN;
        let mut figure = Figure::untitled(self.title, width, bottom + BELOW + legend.height() + MARGIN);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = Axis::counting(points().map(|point| point.0));
        let up = Axis::around(points().map(|point| point.1));
        let place = |(x, y): (f64, f64)| (left + PLOT.0 * across.share(x), bottom - PLOT.1 * up.share(y));
        for (share, text) in up.ticks() {
            let y = bottom - PLOT.1 * share;
            figure.line([(left, y), (left + PLOT.0, y)], 1.0, Paint::Grid);
            figure.label((left - 6.0, y + 4.0), &text, Anchor::End);
        }
        for (share, text) in across.ticks() {
            figure.label((left + PLOT.0 * share, bottom + 16.0), &text, Anchor::Middle);
        }
        figure.label((left + PLOT.0 / 2.0, bottom + 34.0), self.axis, Anchor::Middle);
        for (n, line) in self.lines.iter().enumerate() {
            let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
            let points: Vec<(f64, f64)> = line.points.iter().filter(finite).copied().collect();
            let every = points.len().div_ceil(MOST).max(1);
            let path: Vec<(f64, f64)> = points.iter().step_by(every).map(|&point| place(point)).collect();
            if path.len() > 1 {
                figure.line(path, 1.5, Paint::series(n));
            }
            for &point in points.iter().filter(|_| points.len() <= MARKED) {
                let (x, y) = place(point);
                let title = format!("{}, {} {}: {}", line.name, self.axis, point.0, short(point.1));
                figure.mark(Mark { x, y, radius: 3.0, form: Form::Disc, paint: Paint::series(n), title });
            }
        }
        legend.draw(&mut figure, (MARGIN, bottom + BELOW));
        figure
    }
}

fn short(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.to_owned(), points: points.to_vec() }
    }

    #[test]
    fn lines_have_names_marks_and_only_numbers() {
        let lines = vec![
            curve("train loss", &[(1.0, 0.75), (2.0, f64::NAN), (3.0, 0.5)]),
            curve("dev <loss>", &[(3.0, 0.625)]),
        ];
        let svg = Curves { title: "Loss", axis: "step", lines }.draw().to_svg().to_string();
        for text in [">train loss<", ">dev &lt;loss&gt;<", "<title>train loss, step 3: 0.5</title>", ">0.75<"]
        {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn thousands_of_points_are_thinned_out() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|n| (f64::from(n), f64::from(n % 7))).collect();
        let svg = Curves { title: "Loss", axis: "step", lines: vec![curve("a", &points)] }.draw().to_svg();
        assert!(svg.as_str().len() < 20_000 && !svg.as_str().contains("<circle"));
        assert!(
            !Curves { title: "Loss", axis: "step", lines: Vec::new() }
                .draw()
                .to_svg()
                .as_str()
                .contains("NaN")
        );
    }

    #[test]
    fn values_are_short() {
        assert_eq!([0.0, 0.5, 0.12345, 2e-5, 1e6].map(short), ["0", "0.5", "0.1235", "2.0e-5", "1.0e6"]);
    }
}
