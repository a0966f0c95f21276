//! Colours that stay apart for people who see fewer of them.

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// The scale "viridis" in ten steps: even steps of lightness, told apart without red and green.
const SCALE: [Colour; 10] = [
    Colour(68, 1, 84),
    Colour(72, 40, 120),
    Colour(62, 74, 137),
    Colour(49, 104, 142),
    Colour(38, 130, 142),
    Colour(31, 158, 137),
    Colour(53, 183, 121),
    Colour(109, 205, 89),
    Colour(180, 222, 44),
    Colour(253, 231, 37),
];

impl Colour {
    /// A value that is no number.
    pub const NOTHING: Self = Self(200, 200, 200);

    /// The colour of a share of the scale, from 0 (dark) to 1 (light).
    #[must_use]
    pub fn of_share(share: f64) -> Self {
        if share.is_nan() {
            return Self::NOTHING;
        }
        let place = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
        let below = (place as usize).min(SCALE.len() - 2);
        SCALE[below].mixed(SCALE[below + 1], place - below as f64)
    }

    /// Black or white, whichever is easier to read on this colour.
    #[must_use]
    pub fn ink(self) -> Self {
        let linear = |value: u8| (f64::from(value) / 255.0).powf(2.2);
        let light = 0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2);
        // Where the contrasts (1 + .05)/(light + .05) and (light + .05)/.05 are the same.
        if light < 0.179 { Self(255, 255, 255) } else { Self(0, 0, 0) }
    }

    /// This colour with a share of another.
    fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    /// As `#rrggbb`.
    pub(super) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// What something is painted with. Pages in dark mode change the first four; what means something stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The ground of a figure.
    Paper,
    /// Titles and names.
    Ink,
    /// What is written at axes.
    Soft,
    /// Lines of a grid.
    Grid,
    /// A colour that means something.
    Of(Colour),
}

/// Colours of lines, after Okabe and Ito.
const SERIES: [Paint; 7] = [
    Paint::Of(Colour(0, 114, 178)),
    Paint::Of(Colour(213, 94, 0)),
    Paint::Of(Colour(0, 158, 115)),
    Paint::Of(Colour(204, 121, 167)),
    Paint::Of(Colour(230, 159, 0)),
    Paint::Of(Colour(86, 180, 233)),
    Paint::Ink,
];

impl Paint {
    /// How many series look different.
    pub(super) const N_SERIES: usize = SERIES.len();

    /// The paint of a line among others; they begin again after the last.
    #[must_use]
    pub fn series(n: usize) -> Self {
        SERIES[n % SERIES.len()]
    }

    /// As it is on white paper.
    pub(super) fn colour(self) -> Colour {
        match self {
            Self::Paper => Colour(255, 255, 255),
            Self::Ink => Colour(28, 36, 48),
            Self::Soft => Colour(90, 98, 112),
            Self::Grid => Colour(222, 226, 233),
            Self::Of(colour) => colour,
        }
    }

    /// What style sheets call it, if they may change it.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Paper => Some("paper"),
            Self::Ink => Some("ink"),
            Self::Soft => Some("soft"),
            Self::Grid => Some("grid"),
            Self::Of(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_grows_lighter_all_the_way() {
        let lightness = |n: usize| {
            let Colour(r, g, b) = Colour::of_share(n as f64 / 100.0);
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        assert!((0..100).all(|n| lightness(n) < lightness(n + 1)));
        assert_eq!(Colour::of_share(-1.0), SCALE[0]);
        assert_eq!(Colour::of_share(2.0), SCALE[9]);
        assert_eq!(Colour::of_share(1.0 / 9.0), SCALE[1]);
        assert_eq!(Colour::of_share(f64::NAN), Colour::NOTHING);
    }

    #[test]
    fn numbers_are_written_in_the_ink_that_can_be_read() {
        assert_eq!(Colour::of_share(0.0).ink(), Colour(255, 255, 255));
        assert_eq!(Colour::of_share(1.0).ink(), Colour(0, 0, 0));
        assert_eq!(Colour(255, 171, 5).hex(), "#ffab05");
    }
}
