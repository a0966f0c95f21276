//! Figures as SVG: the only place that writes elements of pictures. Text is escaped here and nowhere else.

use std::fmt::{self, Display, Formatter, Write};

use askama::filters::HtmlSafe;

use super::{Anchor, Figure, Form, Mark, Paint, RIM, RING, Shape, Size};

/// A picture as markup that is safe in a page: only figures become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Svg(String);

impl Svg {
    /// The document.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Svg {}

/// The document.
pub(super) fn draw(figure: &Figure) -> Svg {
    let Figure { title, width, height, shapes } = figure;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         class=\"figure\" role=\"img\" font-family=\"system-ui, sans-serif\"><title>{}</title>\n",
        content(title)
    );
    for shape in shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, fill } => {
                let place = rectangle(*x, *y, *width, *height);
                element(&mut svg, "rect", &(place + &look(Some(*fill), None)), "");
            }
            Shape::Line { points, width, paint, dashed } => {
                let dashes = if *dashed { " stroke-dasharray=\"4 4\"" } else { "" };
                let line = format!(
                    "d=\"{}\" stroke-width=\"{width}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"{dashes}{}",
                    path(points),
                    look(None, Some(*paint))
                );
                element(&mut svg, "path", &line, "");
            }
            Shape::Text { x, y, text, size, anchor, paint } => {
                let size = match size {
                    Size::Normal => "font-size=\"12\"",
                    Size::Title => "font-size=\"16\" font-weight=\"600\"",
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let [x, y] = [*x, *y].map(short);
                let look = format!(
                    "x=\"{x}\" y=\"{y}\" {size} text-anchor=\"{anchor}\"{}",
                    look(Some(*paint), None)
                );
                element(&mut svg, "text", &look, &content(text));
            }
            Shape::Mark(mark) => draw_mark(&mut svg, mark),
        }
    }
    svg.push_str("</svg>\n");
    Svg(svg)
}

/// A mark with its title. The rim lies half outside of what is filled.
fn draw_mark(svg: &mut String, mark: &Mark) {
    let Mark { x, y, radius, form, paint, title } = mark;
    let (radius, line, fill, stroke) = match form {
        Form::Disc | Form::Square => (radius + RIM / 2.0, RIM, *paint, Paint::Paper),
        Form::Ring => (radius * (1.0 - RING / 2.0), radius * RING, Paint::Paper, *paint),
    };
    let (name, place) = match form {
        Form::Disc | Form::Ring => {
            let [x, y, radius] = [*x, *y, radius].map(short);
            ("circle", format!("cx=\"{x}\" cy=\"{y}\" r=\"{radius}\""))
        }
        Form::Square => ("rect", rectangle(x - radius, y - radius, 2.0 * radius, 2.0 * radius)),
    };
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", content(title)) };
    let look = format!("{place} stroke-width=\"{}\"{}", short(line), look(Some(fill), Some(stroke)));
    element(svg, name, &look, &title);
}

fn element(svg: &mut String, name: &str, attributes: &str, inside: &str) {
    // Writing to a string cannot fail.
    let _ = match inside {
        "" => writeln!(svg, "<{name} {attributes}/>"),
        inside => writeln!(svg, "<{name} {attributes}>{inside}</{name}>"),
    };
}

/// Colours as attributes, which every reader of SVG knows, and as classes, by which a page changes them.
fn look(fill: Option<Paint>, stroke: Option<Paint>) -> String {
    let fill_colour = fill.map_or_else(|| "none".to_owned(), |paint| paint.colour().hex());
    let mut look = format!(" fill=\"{fill_colour}\"");
    if let Some(paint) = stroke {
        let _ = write!(look, " stroke=\"{}\"", paint.colour().hex());
    }
    let named = |kind: &str, paint: Option<Paint>| Some(format!("{kind}-{}", paint?.name()?));
    let classes: Vec<String> = [named("fill", fill), named("stroke", stroke)].into_iter().flatten().collect();
    if !classes.is_empty() {
        let _ = write!(look, " class=\"{}\"", classes.join(" "));
    }
    look
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> String {
    let [x, y, width, height] = [x, y, width, height].map(short);
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (n, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if n == 0 { 'M' } else { 'L' }, short(*x), short(*y));
    }
    path
}

/// A length to a hundredth of a pixel.
fn short(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

/// Text between tags; characters that XML has no way to write are replaced.
fn content(text: &str) -> String {
    let mut content = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => content.push_str("&amp;"),
            '<' => content.push_str("&lt;"),
            '>' => content.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => content.push('\u{fffd}'),
            c => content.push(c),
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::super::Colour;
    use super::*;

    #[test]
    fn shapes_become_elements() {
        let mut figure = Figure::new("t", 100.0, 40.0);
        figure.rectangle((1.0, 2.5), (3.0, 1.0 / 3.0), Paint::Of(Colour(255, 0, 1)));
        figure.line([(0.0, 0.0), (9.0, 8.0), (9.0, 1.0)], 2.0, Paint::Ink);
        figure.label((5.0, 6.0), "seven", Anchor::End);
        let svg = figure.to_svg().to_string();
        for text in [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\"",
            "<rect x=\"1\" y=\"2.5\" width=\"3\" height=\"0.33\" fill=\"#ff0001\"/>",
            "<path d=\"M0 0L9 8L9 1\" stroke-width=\"2\"",
            "fill=\"none\" stroke=\"#1c2430\" class=\"stroke-ink\"/>",
            "text-anchor=\"end\" fill=\"#5a6270\" class=\"fill-soft\">seven</text>",
        ] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn names_cannot_break_out_of_their_text() {
        let mut figure = Figure::new("a<b", 10.0, 10.0);
        figure.label((0.0, 0.0), "</text><script>&\u{1}\u{ffff}\"'", Anchor::Start);
        let svg = figure.to_svg().to_string();
        assert!(svg.contains("<title>a&lt;b</title>"), "{svg}");
        assert!(svg.contains(">&lt;/text&gt;&lt;script&gt;&amp;\u{fffd}\u{fffd}\"'</text>"), "{svg}");
    }
}
