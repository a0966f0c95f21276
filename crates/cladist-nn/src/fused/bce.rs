//! Binary cross-entropy on logits with sparse gold labels as one operation.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::bce::loss_and_gradient;

use super::{Fused, Operand, apply, tensor, values};

#[derive(Debug)]
struct Bce {
    gold: Vec<Vec<u32>>,
}

/// Mean over all cells of softplus(z) − y·z: `[1]`. `gold[i]` lists the columns of document i that are 1.
pub(crate) fn bce(logits: Tensor<2>, gold: Vec<Vec<u32>>) -> Tensor<1> {
    apply(Bce { gold }, [Operand::new(logits)])
}

impl Fused<1> for Bce {
    /// The gradient is made with the loss, while the logits are in registers.
    type Saved = FlexTensor;

    fn forward(&self, [logits]: &[FlexTensor; 1], keep: bool) -> (FlexTensor, Option<FlexTensor>) {
        let mut cells = values(logits).to_vec();
        let n_labels = logits.layout().shape()[1];
        let gold: Vec<&[u32]> = self.gold.iter().map(Vec::as_slice).collect();
        let weight = 1.0 / cells.len().max(1) as f32;
        let loss = loss_and_gradient(&mut cells, n_labels, &gold, weight) * f64::from(weight);
        let saved = keep.then(|| tensor(cells, [self.gold.len(), n_labels]));
        (tensor(vec![loss as f32], [1]), saved)
    }

    fn backward(
        self,
        _: [FlexTensor; 1],
        mut saved: FlexTensor,
        slope: &[f32],
        [wanted]: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        for cell in saved.storage_mut::<f32>() {
            *cell *= slope[0];
        }
        [wanted.then_some(saved)]
    }
}
