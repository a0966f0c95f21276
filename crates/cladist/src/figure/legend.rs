//! Names of lines beside a piece of each, as many in a row as there is room for.

use super::{Anchor, Figure, Paint, Size, shortened};

const LINE: f64 = 18.0;
const SAMPLE: f64 = 18.0;
const GAP: f64 = 18.0;

/// Names with their places, relative to the corner of the legend.
#[derive(Debug)]
pub(super) struct Legend {
    names: Vec<(f64, f64, String)>,
    height: f64,
    width: f64,
}

impl Legend {
    /// A legend at most as wide as this, unless one name is wider.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, width: f64) -> Self {
        let mut legend = Self { names: Vec::new(), height: 0.0, width: 0.0 };
        let mut x = 0.0;
        for name in names.map(shortened) {
            let room = SAMPLE + 8.0 + Size::Normal.width(&name);
            if legend.names.is_empty() || x + room > width {
                x = 0.0;
                legend.height += LINE;
            }
            legend.names.push((x, legend.height - 0.5 * LINE, name));
            legend.width = legend.width.max(x + room);
            x += room + GAP;
        }
        legend
    }

    pub(super) fn height(&self) -> f64 {
        self.height
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    /// Draws the names in the colours of the series.
    pub(super) fn draw(&self, figure: &mut Figure, (left, top): (f64, f64)) {
        for (n, (x, y, name)) in self.names.iter().enumerate() {
            let (x, y) = (left + x, top + y);
            figure.line([(x, y - 4.0), (x + SAMPLE, y - 4.0)], 2.0, Paint::series(n));
            figure.text((x + SAMPLE + 8.0, y), name, Size::Normal, Anchor::Start, Paint::Ink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_go_to_the_next_row() {
        let legend = Legend::new(["flat", "gcn", "a longer name", "b"].into_iter(), 160.0);
        let rows: Vec<f64> = legend.names.iter().map(|(_, y, _)| *y).collect();
        assert_eq!(rows, [9.0, 9.0, 27.0, 45.0]);
        assert!(legend.width() <= 160.0 && legend.height() == 54.0, "{legend:?}");
        assert_eq!(Legend::new(std::iter::empty(), 100.0).height(), 0.0);
    }
}
