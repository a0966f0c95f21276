//! A loss made of named terms.

use burn::tensor::Tensor;

/// A loss made of named terms; what is minimised is Σ weight·value.
#[derive(Debug, Clone, Default)]
pub struct Objective {
    terms: Vec<Term>,
}

#[derive(Debug, Clone)]
struct Term {
    name: String,
    weight: f64,
    value: Tensor<1>,
    /// Whether it is of the parameters alone, not of the documents.
    regularises: bool,
}

impl Objective {
    /// An objective of one term with weight 1.
    #[must_use]
    pub fn of(name: &str, value: Tensor<1>) -> Self {
        Self::default().with(name, 1.0, value)
    }

    /// Adds a term.
    #[must_use]
    pub fn with(mut self, name: &str, weight: f64, value: Tensor<1>) -> Self {
        self.terms.push(Term { name: name.to_owned(), weight, value, regularises: false });
        self
    }

    /// Adds a term that is of the parameters alone; it stays as it is where losses are scaled.
    #[must_use]
    pub fn with_regulariser(mut self, name: &str, weight: f64, value: Tensor<1>) -> Self {
        self.terms.push(Term { name: name.to_owned(), weight, value, regularises: true });
        self
    }

    /// Every term by a factor, but for regularisers.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        for term in self.terms.iter_mut().filter(|term| !term.regularises) {
            term.value = term.value.clone() * factor;
        }
        self
    }

    /// The sum of two: terms with the same name and weight become one.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        for term in other.terms {
            let same = |own: &&mut Term| own.name == term.name && own.weight == term.weight;
            match self.terms.iter_mut().find(same) {
                Some(own) => own.value = own.value.clone() + term.value,
                None => self.terms.push(term),
            }
        }
        self
    }

    /// Names, weights and values of the terms.
    #[must_use]
    pub fn terms(&self) -> Vec<(String, f64, f64)> {
        let value = |tensor: &Tensor<1>| f64::from(tensor.clone().inner().into_scalar::<f32>());
        self.terms.iter().map(|term| (term.name.clone(), term.weight, value(&term.value))).collect()
    }

    /// Names and values of the terms, without weights, for the log.
    #[must_use]
    pub fn values(&self) -> Vec<(String, f64)> {
        self.terms().into_iter().map(|(name, _, value)| (name, value)).collect()
    }

    /// Σ weight·value; `None` without terms.
    #[must_use]
    pub fn total(self) -> Option<Tensor<1>> {
        let weighted = self.terms.into_iter().map(|term| term.value * term.weight);
        weighted.reduce(|sum, term| sum + term)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn terms_of_one_name_add_up_and_regularisers_are_not_scaled() {
        let value = |x: f32| Tensor::<1>::from_floats([x], &Device::flex().autodiff());
        let one = Objective::of("bce", value(2.0)).with_regulariser("recursive", 0.5, value(4.0));
        let sum = one.clone().scaled(0.25).plus(one);
        assert_eq!(sum.values(), [("bce".to_owned(), 2.5), ("recursive".to_owned(), 8.0)]);
        assert_eq!(sum.terms(), [("bce".to_owned(), 1.0, 2.5), ("recursive".to_owned(), 0.5, 8.0)]);
        assert_eq!(sum.total().unwrap().into_scalar::<f32>(), 6.5);
    }
}
