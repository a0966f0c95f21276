//! A loss made of named terms.

use burn::tensor::{Device, Tensor};

use crate::losses::SoftCounts;

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
    /// What the value is the sum of.
    parts: Vec<Part>,
}

/// A factor times a value of a batch.
#[derive(Debug, Clone)]
struct Part {
    factor: f64,
    value: Tensor<1>,
    over: Over,
}

/// What a value is of, which decides how values of several batches become one.
#[derive(Debug, Clone)]
enum Over {
    /// A mean over documents.
    Documents,
    /// A mean over so many pairs of documents and labels.
    Cells(f64),
    /// An F-measure of these counts.
    Counts(SoftCounts),
    /// Of the parameters alone.
    Parameters,
}

impl Term {
    fn new(name: &str, weight: f64, value: Tensor<1>, over: Over) -> Self {
        let parts = vec![Part { factor: 1.0, value: value.clone(), over }];
        Self { name: name.to_owned(), weight, value, parts }
    }
}

impl Objective {
    /// An objective of one term with weight 1.
    #[must_use]
    pub fn of(name: &str, value: Tensor<1>) -> Self {
        Self::default().with(name, 1.0, value)
    }

    /// Adds a term, a mean over documents.
    #[must_use]
    pub fn with(self, name: &str, weight: f64, value: Tensor<1>) -> Self {
        self.and(Term::new(name, weight, value, Over::Documents))
    }

    /// Adds a term that is a mean over so many pairs of documents and labels.
    #[must_use]
    pub(crate) fn with_mean(self, name: &str, weight: f64, value: Tensor<1>, cells: usize) -> Self {
        self.and(Term::new(name, weight, value, Over::Cells(cells as f64)))
    }

    /// Adds an F-measure of these counts.
    #[must_use]
    pub(crate) fn with_counts(self, name: &str, weight: f64, value: Tensor<1>, counts: SoftCounts) -> Self {
        self.and(Term::new(name, weight, value, Over::Counts(counts)))
    }

    /// Adds a term that is of the parameters alone; it stays as it is where losses are scaled.
    #[must_use]
    pub fn with_regulariser(self, name: &str, weight: f64, value: Tensor<1>) -> Self {
        self.and(Term::new(name, weight, value, Over::Parameters))
    }

    fn and(mut self, term: Term) -> Self {
        self.terms.push(term);
        self
    }

    /// Every term by a factor, but for regularisers.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let regularises = |term: &Term| term.parts.iter().all(|part| matches!(part.over, Over::Parameters));
        for term in self.terms.iter_mut().filter(|term| !regularises(term)) {
            term.value = term.value.clone() * factor;
            term.parts.iter_mut().for_each(|part| part.factor *= factor);
        }
        self
    }

    /// The sum of two: terms with the same name and weight become one.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        for term in other.terms {
            let same = |own: &&mut Term| own.name == term.name && own.weight == term.weight;
            match self.terms.iter_mut().find(same) {
                Some(own) => {
                    own.value = own.value.clone() + term.value;
                    own.parts.extend(term.parts);
                }
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

/// The objective of all documents from those of batches, however these are cut.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    terms: Vec<(String, f64, Vec<Sum>)>,
}

#[derive(Debug)]
struct Sum {
    factor: f64,
    so_far: SoFar,
}

#[derive(Debug)]
enum SoFar {
    Mean { sum: f64, over: f64 },
    Counts(SoftCounts),
    Parameters(f64),
}

impl Sum {
    fn new(part: Part, n_documents: usize) -> Self {
        let value = f64::from(part.value.into_scalar::<f32>());
        let mean = |over: f64| SoFar::Mean { sum: value * over, over };
        let so_far = match part.over {
            Over::Documents => mean(n_documents as f64),
            Over::Cells(cells) => mean(cells),
            Over::Counts(counts) => SoFar::Counts(counts),
            Over::Parameters => SoFar::Parameters(value),
        };
        Self { factor: part.factor, so_far }
    }

    fn add(&mut self, other: Self) {
        match (&mut self.so_far, other.so_far) {
            (SoFar::Mean { sum, over }, SoFar::Mean { sum: more, over: of }) => {
                *sum += more;
                *over += of;
            }
            (SoFar::Counts(counts), SoFar::Counts(more)) => counts.add(&more),
            // Parameters do not change between batches that are measured.
            _ => {}
        }
    }

    fn value(&self) -> f64 {
        match &self.so_far {
            SoFar::Mean { sum, over } => sum / over.max(f64::MIN_POSITIVE),
            SoFar::Counts(counts) => counts.loss(),
            SoFar::Parameters(value) => *value,
        }
    }
}

impl Measured {
    /// Adds the objective of so many documents.
    pub(crate) fn add(&mut self, objective: Objective, n_documents: usize) {
        for term in objective.terms {
            let sums = term.parts.into_iter().map(|part| Sum::new(part, n_documents));
            let same = |own: &&mut (String, f64, Vec<Sum>)| own.0 == term.name && own.1 == term.weight;
            match self.terms.iter_mut().find(same) {
                Some((.., own)) => own.iter_mut().zip(sums).for_each(|(own, sum)| own.add(sum)),
                None => self.terms.push((term.name, term.weight, sums.collect())),
            }
        }
    }

    /// Σ weight·value.
    pub(crate) fn loss(&self) -> f64 {
        let of = |sums: &[Sum]| sums.iter().map(|sum| sum.factor * sum.value()).sum::<f64>();
        self.terms.iter().map(|(_, weight, sums)| weight * of(sums)).sum()
    }

    /// As the objective of one batch.
    pub(crate) fn objective(self, device: &Device) -> Objective {
        let mut objective = Objective::default();
        for (name, weight, sums) in self.terms {
            let parts: Vec<Part> = (sums.into_iter())
                .map(|sum| Part {
                    factor: sum.factor,
                    value: Tensor::from_floats([sum.value() as f32], device),
                    over: match sum.so_far {
                        SoFar::Mean { over, .. } => Over::Cells(over),
                        SoFar::Counts(counts) => Over::Counts(counts),
                        SoFar::Parameters(_) => Over::Parameters,
                    },
                })
                .collect();
            let values = parts.iter().map(|part| part.value.clone() * part.factor);
            let Some(value) = values.reduce(|sum, value| sum + value) else { continue };
            objective = objective.and(Term { name, weight, value, parts });
        }
        objective
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn value(x: f32) -> Tensor<1> {
        Tensor::from_floats([x], &Device::flex().autodiff())
    }

    #[test]
    fn terms_of_one_name_add_up_and_regularisers_are_not_scaled() {
        let one = Objective::of("bce", value(2.0)).with_regulariser("recursive", 0.5, value(4.0));
        let sum = one.clone().scaled(0.25).plus(one);
        assert_eq!(sum.values(), [("bce".to_owned(), 2.5), ("recursive".to_owned(), 8.0)]);
        assert_eq!(sum.terms(), [("bce".to_owned(), 1.0, 2.5), ("recursive".to_owned(), 0.5, 8.0)]);
        assert_eq!(sum.total().unwrap().into_scalar::<f32>(), 6.5);
    }

    #[test]
    fn batches_count_by_what_they_are_means_over() {
        let mut measured = Measured::default();
        let batch = |groups: f32, bce: f32, cells: usize| {
            let own = Objective::of("groups", value(groups)).with_mean("bce", 0.5, value(bce), cells);
            own.scaled(2.0).plus(Objective::of("groups", value(groups))).with_regulariser(
                "l2",
                1.0,
                value(0.25),
            )
        };
        measured.add(batch(1.0, 4.0, 10), 3);
        measured.add(batch(5.0, 1.0, 30), 1);
        // Groups: 3·(3·1 + 1·5)/4; labels: ½·2·(10·4 + 30·1)/40.
        assert!((measured.loss() - (6.0 + 1.75 + 0.25)).abs() < 1e-9, "{}", measured.loss());
        let objective = measured.objective(&Device::flex().autodiff());
        assert_eq!(objective.clone().total().unwrap().into_scalar::<f32>(), 8.0);
        let mut again = Measured::default();
        again.add(objective, 4);
        assert!((again.loss() - 8.0).abs() < 1e-6, "{}", again.loss());
    }
}
