//! Figures as a list of shapes, written as SVG (`docs/adr/0017`). Layouts are a file each; [`Svg`] is the only markup that
//! pages take as it is, and only this module makes it.

mod axis;
mod chart;
mod colour;
mod curves;
mod heat_map;
mod legend;
mod plot;
mod scatter;
mod spreads;
mod svg;

use std::path::Path;

use cladist_core::bundle::write_atomically;

pub use chart::{Chart, Lines};
pub use colour::{Colour, Paint};
pub use curves::{Curve, Curves};
pub use heat_map::{HeatMap, Panel};
pub use plot::{Plot, Spot};
pub use scatter::{Dot, Scatter};
pub use spreads::{Over, Spreads};
pub use svg::Svg;

/// Space around everything.
const MARGIN: f64 = 16.0;

/// A picture; lengths are pixels, with the origin at the top left.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    title: String,
    width: f64,
    height: f64,
    shapes: Vec<Shape>,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Rectangle { x: f64, y: f64, width: f64, height: f64, fill: Paint },
    Line { points: Vec<(f64, f64)>, width: f64, paint: Paint, dashed: bool },
    Text { x: f64, y: f64, text: String, size: Size, anchor: Anchor, paint: Paint },
    Mark(Mark),
}

/// A point with a rim of paper, so that marks over each other are told apart.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    x: f64,
    y: f64,
    radius: f64,
    form: Form,
    paint: Paint,
    /// What readers see when they point at it.
    title: String,
}

/// Forms of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Disc,
    Square,
    Ring,
}

/// Width of the rim of a mark, and the share of its radius that the line of a ring has.
const RIM: f64 = 1.0;
const RING: f64 = 0.4;

/// Sizes of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Normal,
    Title,
}

impl Size {
    /// Room that a text needs at most, by widths that few fonts exceed: the reader's font is not known here.
    fn width(self, text: &str) -> f64 {
        let narrow = match self {
            Self::Normal => 8.0,
            Self::Title => 12.0,
        };
        // Hangul, kana and Chinese characters are as wide as they are high.
        text.chars().map(|c| if c >= '\u{1100}' { 1.5 * narrow } else { narrow }).sum()
    }
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Figure {
    /// Where the content below the title begins.
    const TOP: f64 = MARGIN + 32.0;

    /// An empty figure with its title above, at least as wide as it.
    fn new(title: &str, width: f64, height: f64) -> Self {
        let width = width.max(Size::Title.width(title) + 2.0 * MARGIN);
        let mut figure = Self::untitled(title, width, height);
        figure.text((MARGIN, MARGIN + 12.0), title, Size::Title, Anchor::Start, Paint::Ink);
        figure
    }

    /// An empty figure whose title stands elsewhere on the page; screen readers find it in the figure too.
    fn untitled(title: &str, width: f64, height: f64) -> Self {
        let (width, height) = (width.ceil(), height.ceil());
        let mut figure = Self { title: title.to_owned(), width, height, shapes: Vec::new() };
        figure.rectangle((0.0, 0.0), (width, height), Paint::Paper);
        figure
    }

    fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: Paint) {
        self.shapes.push(Shape::Rectangle { x, y, width, height, fill });
    }

    /// A line through all points.
    fn line(&mut self, points: impl Into<Vec<(f64, f64)>>, width: f64, paint: Paint) {
        self.shapes.push(Shape::Line { points: points.into(), width, paint, dashed: false });
    }

    /// A line for the eye, which is no data.
    fn guide(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.shapes.push(Shape::Line {
            points: vec![from, to],
            width: 1.0,
            paint: Paint::Soft,
            dashed: true,
        });
    }

    /// A text whose baseline is at the place.
    fn text(&mut self, (x, y): (f64, f64), text: &str, size: Size, anchor: Anchor, paint: Paint) {
        self.shapes.push(Shape::Text { x, y, text: text.to_owned(), size, anchor, paint });
    }

    fn mark(&mut self, mark: Mark) {
        self.shapes.push(Shape::Mark(mark));
    }

    /// A note in the usual size.
    fn label(&mut self, place: (f64, f64), text: &str, anchor: Anchor) {
        self.text(place, text, Size::Normal, anchor, Paint::Soft);
    }

    /// As an SVG document that needs nothing else.
    #[must_use]
    pub fn to_svg(&self) -> Svg {
        svg::draw(self)
    }

    /// Writes `NAME.svg` into a folder.
    pub fn save(&self, folder: &Path, name: &str) -> cladist_core::Result<()> {
        write_atomically(&folder.join(format!("{name}.svg")), self.to_svg().as_str().as_bytes())
    }
}

/// A name that is not too long for a figure: what is left out is in its middle.
fn shortened(name: &str) -> String {
    cut(name, 40)
}

/// A name of at most `longest` characters.
fn cut(name: &str, longest: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= longest {
        return name.to_owned();
    }
    let part = |characters: &[char]| characters.iter().collect::<String>();
    let (head, tail) = (longest / 2 - 2, longest.div_ceil(2) - 1);
    format!("{}...{}", part(&characters[..head]), part(&characters[characters.len() - tail..]))
}

/// A number in at most five characters.
fn number(value: f64, decimals: usize) -> String {
    let decimals = match value.abs() {
        large if large >= 99.95 => 0,
        medium if medium >= 9.995 => decimals.min(1),
        _ => decimals,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("flat"), "flat");
        let name = "a-rather-long-name-of-a-run-with-many-settings-in-it";
        assert_eq!(shortened(name), "a-rather-long-name...many-settings-in-it");
        assert_eq!(shortened(name).chars().count(), 40);
    }

    #[test]
    fn numbers_fit_into_five_characters() {
        let written = [0.0, 0.254, 9.994, 9.996, 27.63, 99.96, 1234.5].map(|value| number(value, 2));
        assert_eq!(written, ["0.00", "0.25", "9.99", "10.0", "27.6", "100", "1234"]);
    }

    #[test]
    fn a_figure_is_as_wide_as_its_title() {
        let figure = Figure::new("a title of some length", 10.0, 50.0);
        assert_eq!(figure.width, 22.0 * 12.0 + 2.0 * MARGIN);
        assert!(Size::Normal.width("分类") > Size::Normal.width("ab"));
    }
}
