//! Square matrices as coloured cells with their numbers, side by side under one scale of colours.

use super::{Anchor, Colour, Figure, MARGIN, Paint, Size, number, shortened};

const CELL: (f64, f64) = (44.0, 26.0);
/// Room for the numbers of rows, and for what stands above and below the cells of a panel.
const LEFT: f64 = 48.0;
const ABOVE: f64 = 40.0;
const BELOW: f64 = 44.0;
const GAP: f64 = 24.0;
/// Panels in a row of the figure.
const COLUMNS: usize = 3;
/// Width and height of the scale of colours, and the room it takes.
const SCALE: (f64, f64) = (200.0, 12.0);
const SCALE_ROOM: f64 = 40.0;

/// Matrices of one measure. Colours run from 0 to the largest value of all.
#[derive(Debug)]
pub struct HeatMap<'a> {
    /// What is shown.
    pub title: &'a str,
    /// What rows and columns count, from 1.
    pub axis: &'a str,
    /// The matrices.
    pub panels: Vec<Panel<'a>>,
}

/// One matrix.
#[derive(Debug)]
pub struct Panel<'a> {
    /// Whose it is.
    pub name: &'a str,
    /// Rows of equal length, as many as columns.
    pub values: &'a [Vec<f64>],
}

impl HeatMap<'_> {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let (across, down) = self.grid();
        let (width, height) = self.panel_size();
        let bottom = Figure::TOP + down as f64 * height;
        let mut figure =
            Figure::new(self.title, 2.0 * MARGIN + across as f64 * width - GAP, bottom + SCALE_ROOM + MARGIN);
        for (n, panel) in self.panels.iter().enumerate() {
            self.draw_panel(&mut figure, n, panel);
        }
        self.draw_scale(&mut figure, (MARGIN + LEFT, bottom));
        figure
    }

    fn draw_panel(&self, figure: &mut Figure, n: usize, panel: &Panel<'_>) {
        let (left, top) = self.corner(n);
        let (highest, decimals) = (self.highest(), self.decimals());
        let name = shortened(panel.name);
        figure.text((left, top - 26.0), &name, Size::Normal, Anchor::Start, Paint::Ink);
        figure.label((left - 6.0, top - 6.0), self.axis, Anchor::End);
        for (row, values) in panel.values.iter().enumerate() {
            for (column, &value) in values.iter().enumerate() {
                let (x, y) = (left + column as f64 * CELL.0, top + row as f64 * CELL.1);
                let colour = Colour::of_share(value / highest);
                // A seam of the paper's colour keeps cells apart.
                figure.rectangle((x, y), (CELL.0 - 1.0, CELL.1 - 1.0), Paint::Of(colour));
                let middle = (x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 4.0);
                let text = number(value, decimals);
                figure.text(middle, &text, Size::Normal, Anchor::Middle, Paint::Of(colour.ink()));
            }
            let middle = top + (row as f64 + 0.5) * CELL.1 + 4.0;
            figure.label((left - 6.0, middle), &(row + 1).to_string(), Anchor::End);
        }
        let bottom = top + panel.values.len() as f64 * CELL.1;
        for column in 0..panel.values.len() {
            let x = left + (column as f64 + 0.5) * CELL.0;
            figure.label((x, bottom + 14.0), &(column + 1).to_string(), Anchor::Middle);
        }
        let middle = left + panel.values.len() as f64 * CELL.0 / 2.0;
        figure.label((middle, bottom + 30.0), self.axis, Anchor::Middle);
    }

    fn draw_scale(&self, figure: &mut Figure, (x, y): (f64, f64)) {
        const STEPS: usize = 50;
        let step = SCALE.0 / STEPS as f64;
        for n in 0..STEPS {
            let colour = Colour::of_share((n as f64 + 0.5) / STEPS as f64);
            figure.rectangle((x + n as f64 * step, y), (step, SCALE.1), Paint::Of(colour));
        }
        let text = |value: f64| number(value, self.decimals());
        let below = y + SCALE.1 + 16.0;
        figure.label((x, below), "0", Anchor::Middle);
        figure.label((x + SCALE.0 / 2.0, below), &text(self.highest() / 2.0), Anchor::Middle);
        figure.label((x + SCALE.0, below), &text(self.highest()), Anchor::Middle);
    }

    /// The largest value; 1 if nothing is above 0.
    fn highest(&self) -> f64 {
        let values = self.panels.iter().flat_map(|panel| panel.values).flatten();
        let highest = values.copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        if highest > 0.0 { highest } else { 1.0 }
    }

    /// Decimals of the numbers: three where all values are small.
    fn decimals(&self) -> usize {
        if self.highest() < 0.1 { 3 } else { 2 }
    }

    /// Panels across and down.
    fn grid(&self) -> (usize, usize) {
        let across = self.panels.len().clamp(1, COLUMNS);
        (across, self.panels.len().div_ceil(across).max(1))
    }

    /// Room of the largest panel, with the gap to the next one.
    fn panel_size(&self) -> (f64, f64) {
        let n = self.panels.iter().map(|panel| panel.values.len()).max().unwrap_or(0) as f64;
        let names = self.panels.iter().map(|panel| Size::Normal.width(&shortened(panel.name)));
        let inner = names.fold(n * CELL.0, f64::max);
        (LEFT + inner + GAP, ABOVE + n * CELL.1 + BELOW)
    }

    /// The top left corner of the first cell of a panel.
    fn corner(&self, n: usize) -> (f64, f64) {
        let (across, _) = self.grid();
        let (width, height) = self.panel_size();
        (MARGIN + LEFT + (n % across) as f64 * width, Figure::TOP + ABOVE + (n / across) as f64 * height)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    /// What fills the rectangle with this corner.
    fn fill_at(figure: &Figure, corner: (f64, f64)) -> Option<Paint> {
        figure.shapes.iter().find_map(|shape| match shape {
            Shape::Rectangle { x, y, fill, .. } if (*x, *y) == corner => Some(*fill),
            _ => None,
        })
    }

    #[test]
    fn cells_have_the_colours_of_their_values() {
        let (a, b) = ([vec![0.0, 0.5], vec![0.25, 0.0]], [vec![1.0]]);
        let panels = vec![Panel { name: "first & <only>", values: &a }, Panel { name: "second", values: &b }];
        let map = HeatMap { title: "Distance", axis: "layer", panels };
        let figure = map.draw();
        let at = |panel: usize, row: usize, column: usize| {
            let (left, top) = map.corner(panel);
            fill_at(&figure, (left + column as f64 * CELL.0, top + row as f64 * CELL.1))
        };
        let cells = [(0, 0, 0, 0.0), (0, 0, 1, 0.5), (0, 1, 0, 0.25), (1, 0, 0, 1.0)];
        for (panel, row, column, value) in cells {
            assert_eq!(at(panel, row, column), Some(Paint::Of(Colour::of_share(value))));
        }
        let svg = figure.to_svg().to_string();
        for text in [">first &amp; &lt;only&gt;<", ">second<", ">layer<", ">0.25<", ">1.00<", ">Distance<"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }

    #[test]
    fn many_panels_go_to_further_rows_and_stay_inside() {
        let values = vec![vec![0.1; 12]; 12];
        let panels = ["a", "b", "c", "d", "e"].map(|name| Panel { name, values: &values });
        let map = HeatMap { title: "t", axis: "layer", panels: panels.into() };
        let figure = map.draw();
        assert_eq!(map.grid(), (3, 2));
        assert_eq!(map.corner(3).0, map.corner(0).0);
        let ends: Vec<(f64, f64)> = (figure.shapes.iter())
            .filter_map(|shape| match shape {
                Shape::Rectangle { x, y, width, height, .. } => Some((x + width, y + height)),
                _ => None,
            })
            .collect();
        assert!(ends.iter().all(|&(x, y)| x <= figure.width && y <= figure.height));
    }

    #[test]
    fn nothing_and_no_numbers_can_be_drawn() {
        for values in [vec![vec![f64::NAN]], vec![vec![0.0]], Vec::new()] {
            let panels = vec![Panel { name: "odd", values: &values }];
            let svg = HeatMap { title: "t", axis: "layer", panels }.draw().to_svg();
            assert!(!svg.as_str().contains("=\"NaN"), "{svg}");
        }
        let svg = HeatMap { title: "t", axis: "layer", panels: Vec::new() }.draw().to_svg();
        assert!(svg.as_str().ends_with("</svg>\n"));
    }
}
