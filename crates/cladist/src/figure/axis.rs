//! Scales with round steps.

use super::number;

/// Rounding errors of quotients do not make another step.
const SLACK: f64 = 1e-9;

/// A scale from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// From `low` in round steps until `highest` is reached.
    pub(super) fn from(low: f64, highest: f64) -> Self {
        let step = step(highest - low);
        Self { low, high: low + step * ((highest - low) / step - SLACK).ceil().max(1.0), step }
    }

    /// With round ends around all values, or from 0 to 1 if there are none.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Self {
        Self::with_steps(values, 0.0)
    }

    /// The same for what is counted: no step is smaller than 1.
    pub(super) fn counting(values: impl Iterator<Item = f64>) -> Self {
        Self::with_steps(values, 1.0)
    }

    fn with_steps(values: impl Iterator<Item = f64>, least: f64) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match (low, high) {
            (low, high) if low > high => (0.0, 1.0),
            // One value alone is in the middle.
            (low, high) if low == high => (low - 0.5 * spare(low), high + 0.5 * spare(low)),
            ends => ends,
        };
        let step = step(high - low).max(least);
        Self { low: (low / step + SLACK).floor() * step, high: (high / step - SLACK).ceil() * step, step }
    }

    /// Where a value is, from 0 at the low end to 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// Where steps are, with what stands there.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let n = ((self.high - self.low) / self.step).round() as usize;
        (0..=n).map(|n| {
            let value = self.low + n as f64 * self.step;
            (self.share(value), self.text(value))
        })
    }

    fn text(&self, value: f64) -> String {
        let largest = self.low.abs().max(self.high.abs());
        // What is no multiple of the step by a rounding error is 0.
        let value = if value.abs() < 1e-9 * self.step { 0.0 } else { value };
        if value == 0.0 {
            return "0".to_owned();
        }
        if !(1e-3..1e6).contains(&largest) {
            let power = |value: f64| (value.abs().log10() + SLACK).floor();
            let digits = (power(value) - power(self.step)).clamp(0.0, 4.0) as usize;
            return format!("{value:.digits$e}");
        }
        number(value, if self.step >= 1.0 { 0 } else { (-self.step.log10()).ceil() as usize })
    }
}

fn spare(value: f64) -> f64 {
    if value == 0.0 { 1.0 } else { value.abs() }
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
    use super::*;

    fn texts(axis: Axis) -> Vec<String> {
        axis.ticks().map(|(_, text)| text).collect()
    }

    #[test]
    fn steps_are_round_and_at_most_five() {
        let found: Vec<f64> = [4.9, 0.3, 7.0, 27.0, 0.0].map(step).into();
        for (found, expected) in found.iter().zip([1.0, 0.1, 2.0, 10.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
    }

    #[test]
    fn ends_are_round_and_around_all_values() {
        assert_eq!(
            texts(Axis::around([0.62, 0.71].into_iter())),
            ["0.62", "0.64", "0.66", "0.68", "0.70", "0.72"]
        );
        assert_eq!(texts(Axis::counting([1.0, 2.0].into_iter())), ["1", "2"]);
        assert_eq!(texts(Axis::around([0.0, 2e-5].into_iter())), ["0", "5e-6", "1.0e-5", "1.5e-5", "2.0e-5"]);
        assert_eq!(texts(Axis::around([f64::NAN].into_iter())).len(), 6);
        let alone = Axis::around(std::iter::once(0.5));
        assert!((alone.share(0.5) - 0.5).abs() < 1e-12, "{alone:?}");
        assert_eq!(texts(Axis::from(0.4, 0.55)), ["0.40", "0.45", "0.50", "0.55"]);
    }
}
