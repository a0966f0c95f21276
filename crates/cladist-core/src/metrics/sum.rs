//! Sums that do not depend on the order of their terms.

/// A sum of numbers in fixed point with 64 binary places: adding is associative, so that any number of threads
/// gives the same bits. Terms lose what is below 2⁻⁶⁴; the total may reach 2⁶³.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExactSum(i128);

const SCALE: f64 = 18_446_744_073_709_551_616.0; // 2⁶⁴

impl ExactSum {
    pub(crate) fn add(&mut self, term: f64) {
        self.0 = self.0.saturating_add((term * SCALE) as i128);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    pub(crate) fn value(self) -> f64 {
        self.0 as f64 / SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_terms_does_not_matter() {
        let terms: Vec<f64> = (1..1000).map(|n| 1.0 / f64::from(n)).collect();
        let (mut up, mut down) = (ExactSum::default(), ExactSum::default());
        terms.iter().for_each(|&term| up.add(term));
        terms.iter().rev().for_each(|&term| down.add(term));
        assert_eq!(up, down);
        assert!((up.value() - 7.484_470_860_550_345).abs() < 1e-12);
    }
}
