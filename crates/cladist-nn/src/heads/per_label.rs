//! The methods of [`Head`](super::Head) that heads with one logit per label have in common.
//!
//! Two blanket implementations of one trait would overlap, so these are macros that stand inside `impl Head`.

/// `objective`, `score` and `logits` of a head with a [`Labelwise`](super::Labelwise) in this field and a method
/// `compute(&self, &HeadInput, Option<u64>)` that gives logits `[documents, labels]`, with dropout if there is a seed. A head
/// with more terms than the loss of its logits writes `objective` itself.
macro_rules! by_logits {
    ($($field:ident).+) => {
        fn objective(
            &self,
            input: &$crate::heads::HeadInput<'_>,
            gold: &[cladist_core::LabelSet],
            moment: &$crate::heads::Moment,
        ) -> $crate::heads::Objective {
            self.$($field).+.objective(self.compute(input, moment.seed), gold, moment)
        }

        $crate::heads::per_label::by_logits!($($field).+, except objective);
    };
    ($($field:ident).+, except objective) => {
        fn score(
            &self,
            input: &$crate::heads::HeadInput<'_>,
            top_k: Option<usize>,
        ) -> Vec<Vec<(cladist_core::LabelId, f32)>> {
            self.$($field).+.score(self.compute(input, None), top_k)
        }

        fn logits(
            &self,
            input: &$crate::heads::HeadInput<'_>,
        ) -> Option<(burn::tensor::Tensor<2>, Vec<cladist_core::LabelId>)> {
            Some((self.compute(input, None), self.$($field).+.labels.to_vec()))
        }
    };
}
pub(crate) use by_logits;

/// The same for a head whose last layer may have a shortlist: with fields `output` and `labelwise`, and a method
/// `vectors(&self, &HeadInput, Option<u64>)` that gives what the last layer reads.
macro_rules! by_outputs {
    () => {
        fn objective(
            &self,
            input: &$crate::heads::HeadInput<'_>,
            gold: &[cladist_core::LabelSet],
            moment: &$crate::heads::Moment,
        ) -> $crate::heads::Objective {
            let vectors = self.vectors(input, moment.seed);
            let objective = self.output.objective(vectors, input, gold, moment, &self.labelwise);
            self.labelwise.regularise(objective, self.output.weight())
        }

        fn score(
            &self,
            input: &$crate::heads::HeadInput<'_>,
            top_k: Option<usize>,
        ) -> Vec<Vec<(cladist_core::LabelId, f32)>> {
            self.output.score(self.vectors(input, None), input, &self.labelwise, top_k)
        }

        fn logits(
            &self,
            input: &$crate::heads::HeadInput<'_>,
        ) -> Option<(burn::tensor::Tensor<2>, Vec<cladist_core::LabelId>)> {
            Some(self.output.logits(self.vectors(input, None), input, &self.labelwise.labels))
        }

        fn label_vectors(&self) -> Option<Vec<cladist_core::text::tfidf::SparseRow>> {
            self.output.label_vectors()
        }

        fn outputs(&self) -> Option<&$crate::heads::Outputs> {
            Some(&self.output)
        }

        fn groups(&self, input: &$crate::heads::HeadInput<'_>) -> Option<burn::tensor::Tensor<2>> {
            self.output.groups(self.vectors(input, None))
        }
    };
}
pub(crate) use by_outputs;
