//! Figures as SVG.

use std::fmt::Write;

use super::{Anchor, Colour, Figure, Form, Mark, RIM, RING, Shape, Size};
use crate::html::escape;

/// The document.
pub(super) fn draw(figure: &Figure) -> String {
    let Figure { title, width, height, shapes } = figure;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         class=\"figure\" role=\"img\" font-family=\"system-ui, sans-serif\"><title>{}</title>",
        content(title)
    );
    for shape in shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, fill } => {
                let [x, y, width, height] = [*x, *y, *width, *height].map(short);
                let fill = fill.hex();
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
                );
            }
            Shape::Line { from, to, width, colour } => {
                let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>",
                    colour.hex()
                );
            }
            Shape::Text { x, y, text, size, anchor, colour } => {
                let size = match size {
                    Size::Normal => "font-size=\"12\"",
                    Size::Title => "font-size=\"16\" font-weight=\"600\"",
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" {size} text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
                    short(*x),
                    short(*y),
                    colour.hex(),
                    content(text)
                );
            }
            Shape::Mark(mark) => draw_mark(&mut svg, mark),
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A mark with its title. The rim lies half outside of what is filled.
fn draw_mark(svg: &mut String, mark: &Mark) {
    let (paper, colour) = (Colour::PAPER.hex(), mark.colour.hex());
    let [x, y] = [mark.x, mark.y].map(short);
    let title = if mark.title.is_empty() {
        String::new()
    } else {
        format!("<title>{}</title>", content(&mark.title))
    };
    let _ = match mark.form {
        Form::Disc => {
            let r = short(mark.radius + RIM / 2.0);
            writeln!(
                svg,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{colour}\" stroke=\"{paper}\" stroke-width=\"{RIM}\">{title}</circle>"
            )
        }
        Form::Ring => {
            let [r, line] = [mark.radius * (1.0 - RING / 2.0), mark.radius * RING].map(short);
            writeln!(
                svg,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{paper}\" stroke=\"{colour}\" stroke-width=\"{line}\">{title}</circle>"
            )
        }
        Form::Square => {
            let half = mark.radius + RIM / 2.0;
            let [left, top, side] = [mark.x - half, mark.y - half, 2.0 * half].map(short);
            writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\" fill=\"{colour}\" stroke=\"{paper}\" \
                 stroke-width=\"{RIM}\">{title}</rect>"
            )
        }
    };
}

/// A length to a hundredth of a pixel.
fn short(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

/// Text between tags; characters that XML has no way to write are replaced.
fn content(text: &str) -> String {
    let writable =
        |c: char| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c };
    escape(&text.chars().map(writable).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_elements() {
        let mut figure = Figure::new("t", 100.0, 40.0);
        figure.rectangle((1.0, 2.5), (3.0, 1.0 / 3.0), Colour(255, 0, 1));
        figure.line((0.0, 0.0), (9.0, 8.0), 2.0, Colour::INK);
        figure.label((5.0, 6.0), "seven", Anchor::End);
        let svg = figure.to_svg();
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\""),
            "{svg}"
        );
        assert!(
            svg.contains("<rect x=\"1\" y=\"2.5\" width=\"3\" height=\"0.33\" fill=\"#ff0001\"/>"),
            "{svg}"
        );
        assert!(svg.contains("d=\"M0 0L9 8\" stroke=\"#1c2430\" stroke-width=\"2\""), "{svg}");
        assert!(svg.contains("text-anchor=\"end\" fill=\"#5a6270\">seven</text>"), "{svg}");
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn names_cannot_break_out_of_their_text() {
        let mut figure = Figure::new("a<b", 10.0, 10.0);
        figure.label((0.0, 0.0), "</text><script>&\u{1}\u{ffff}\"'", Anchor::Start);
        let svg = figure.to_svg();
        assert!(svg.contains("<title>a&lt;b</title>"), "{svg}");
        assert!(svg.contains(">&lt;/text&gt;&lt;script&gt;&amp;\u{fffd}\u{fffd}\"'</text>"), "{svg}");
    }
}
