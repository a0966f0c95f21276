//! Figures as PNG: rectangles, lines and the letters of a bitmap font, so that no font of the system is needed.

use std::io::Cursor;

use font8x8::{BASIC_FONTS, GREEK_FONTS, LATIN_FONTS, UnicodeFonts};

use super::{Anchor, Colour, Figure, Form, Mark, RIM, RING, Shape, Size};

/// Pixels of the image for one of the figure.
pub(super) const SCALE: f64 = 2.0;
/// Dots of a letter in each direction, and those above the baseline.
const DOTS: i64 = 8;
const ASCENT: i64 = 7;

/// The file.
pub(super) fn draw(figure: &Figure) -> Result<Vec<u8>, png::EncodingError> {
    let mut canvas = Canvas::new(figure.width * SCALE, figure.height * SCALE);
    for shape in &figure.shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, fill } => {
                canvas.rectangle(edge(*x), edge(*y), edge(x + width), edge(y + height), *fill);
            }
            Shape::Line { from, to, width, colour } => {
                let scaled = |(x, y): (f64, f64)| (x * SCALE, y * SCALE);
                canvas.line(scaled(*from), scaled(*to), width * SCALE, *colour);
            }
            Shape::Text { x, y, text, size, anchor, colour } => {
                let before = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => 0.5,
                    Anchor::End => 1.0,
                };
                let dot = match size {
                    Size::Normal => 2,
                    Size::Title => 3,
                };
                canvas.text(edge(x - before * size.width(text)), edge(*y), text, dot, *colour);
            }
            Shape::Mark(mark) => canvas.mark(mark),
        }
    }
    canvas.encode()
}

/// The pixel at which a length of the figure begins.
fn edge(length: f64) -> i64 {
    (length * SCALE).round() as i64
}

struct Canvas {
    width: i64,
    height: i64,
    pixels: Vec<Colour>,
}

impl Canvas {
    fn new(width: f64, height: f64) -> Self {
        let (width, height) = (width.ceil().max(1.0), height.ceil().max(1.0));
        let pixels = vec![Colour::PAPER; width as usize * height as usize];
        Self { width: width as i64, height: height as i64, pixels }
    }

    /// A pixel, if it is in the image.
    fn at(&mut self, x: i64, y: i64) -> Option<&mut Colour> {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        inside.then(|| &mut self.pixels[(y * self.width + x) as usize])
    }

    fn rectangle(&mut self, left: i64, top: i64, right: i64, bottom: i64, fill: Colour) {
        for y in top.max(0)..bottom.min(self.height) {
            for x in left.max(0)..right.min(self.width) {
                self.pixels[(y * self.width + x) as usize] = fill;
            }
        }
    }

    /// A line with round ends; pixels at its rim are mixed by how far it covers them.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        let reach = width / 2.0 + 1.0;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let squared = dx * dx + dy * dy;
        let range = |a: f64, b: f64| (a.min(b) - reach).floor() as i64..=(a.max(b) + reach).ceil() as i64;
        for y in range(from.1, to.1) {
            for x in range(from.0, to.0) {
                let (px, py) = (x as f64 + 0.5 - from.0, y as f64 + 0.5 - from.1);
                let along = if squared > 0.0 { ((px * dx + py * dy) / squared).clamp(0.0, 1.0) } else { 0.0 };
                let distance = (px - along * dx).hypot(py - along * dy);
                let covered = (width / 2.0 + 0.5 - distance).clamp(0.0, 1.0);
                if let Some(pixel) = self.at(x, y).filter(|_| covered > 0.0) {
                    *pixel = pixel.mixed(colour, covered);
                }
            }
        }
    }

    fn mark(&mut self, mark: &Mark) {
        let Mark { x, y, radius, form, colour, .. } = *mark;
        let mut fill = |radius: f64, colour: Colour| match form {
            Form::Square => {
                self.rectangle(
                    edge(x - radius),
                    edge(y - radius),
                    edge(x + radius),
                    edge(y + radius),
                    colour,
                );
            }
            Form::Disc | Form::Ring => {
                let place = (x * SCALE, y * SCALE);
                self.line(place, place, 2.0 * radius * SCALE, colour);
            }
        };
        fill(radius + RIM, Colour::PAPER);
        fill(radius, colour);
        if form == Form::Ring {
            fill(radius * (1.0 - RING), Colour::PAPER);
        }
    }

    /// Letters of `dot` pixels a dot, beginning at `left`; characters that the font lacks become question marks.
    fn text(&mut self, left: i64, baseline: i64, text: &str, dot: i64, colour: Colour) {
        for (n, character) in (0i64..).zip(text.chars()) {
            let rows = glyph(character).or_else(|| glyph('?')).unwrap_or_default();
            for (row, bits) in (0i64..).zip(rows) {
                for column in (0..DOTS).filter(|column| (bits >> column) & 1 == 1) {
                    let x = left + (n * DOTS + column) * dot;
                    let y = baseline + (row - ASCENT) * dot;
                    self.rectangle(x, y, x + dot, y + dot, colour);
                }
            }
        }
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Cursor::new(Vec::new());
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let bytes: Vec<u8> = self.pixels.iter().flat_map(|&Colour(r, g, b)| [r, g, b]).collect();
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&bytes)?;
        writer.finish()?;
        Ok(file.into_inner())
    }
}

/// The rows of a letter, from the top; the lowest bit is on the left.
fn glyph(character: char) -> Option<[u8; 8]> {
    BASIC_FONTS.get(character).or_else(|| LATIN_FONTS.get(character)).or_else(|| GREEK_FONTS.get(character))
}

/// A PNG, read back: its width, height and colours.
#[cfg(test)]
pub(super) fn read(file: &[u8]) -> (usize, usize, Vec<Colour>) {
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    let colours = bytes.chunks_exact(3).map(|rgb| Colour(rgb[0], rgb[1], rgb[2])).collect();
    (info.width as usize, info.height as usize, colours)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Colour = Colour(200, 0, 0);

    #[test]
    fn shapes_are_where_they_belong() {
        let mut figure = Figure::new("", 60.0, 50.0);
        figure.rectangle((10.0, 20.0), (5.0, 4.0), RED);
        figure.line((30.0, 40.0), (50.0, 40.0), 2.0, RED);
        let (width, height, pixels) = read(&figure.to_png().unwrap());
        assert_eq!((width, height), (120, 100));
        let at = |x: usize, y: usize| pixels[y * width + x];
        assert_eq!([at(20, 40), at(29, 47)], [RED; 2]);
        assert_eq!([at(19, 40), at(30, 47), at(29, 48)], [Colour::PAPER; 3]);
        assert_eq!(
            [at(80, 79), at(80, 80), at(80, 85), at(40, 80)],
            [RED, RED, Colour::PAPER, Colour::PAPER]
        );
    }

    #[test]
    fn letters_are_drawn_without_fonts_of_the_system() {
        let drawn = |text: &str, anchor: Anchor| {
            let mut figure = Figure::new("", 100.0, 30.0);
            figure.text((50.0, 20.0), text, Size::Normal, anchor, RED);
            let (width, _, pixels) = read(&figure.to_png().unwrap());
            let red: Vec<usize> = (0..pixels.len()).filter(|&n| pixels[n] == RED).collect();
            let columns: Vec<usize> = red.iter().map(|n| n % width).collect();
            (red.len(), columns.iter().copied().min(), columns.iter().copied().max())
        };
        let (n, left, right) = drawn("H", Anchor::Start);
        assert!(n > 50 && left >= Some(100) && right < Some(116), "{n} {left:?} {right:?}");
        assert!(drawn("H", Anchor::End).2 < Some(100));
        assert!(drawn("é", Anchor::Start).0 > 50);
        assert_eq!(drawn("語", Anchor::Start), drawn("?", Anchor::Start));
        assert_eq!(drawn(" ", Anchor::Middle).0, 0);
        // What runs out of the image is cut off.
        assert!(drawn("a text that is far too long", Anchor::Start).0 > 50);
    }
}
