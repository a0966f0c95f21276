//! The terms of an update.

/// Named values, averaged over the batches of an update.
#[derive(Debug, Default)]
pub(super) struct Terms(pub(super) Vec<(String, f64)>);

impl Terms {
    /// Takes in the values of one batch of `n`.
    pub(super) fn add(&mut self, values: Vec<(String, f64)>, n: usize) {
        for (name, value) in values {
            match self.0.iter_mut().find(|(other, _)| *other == name) {
                Some((_, sum)) => *sum += value / n as f64,
                None => self.0.push((name, value / n as f64)),
            }
        }
    }

    /// A value by name; not a number if there is none.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.0.iter().find(|(other, _)| other == name).map_or(f64::NAN, |(_, value)| *value)
    }
}
