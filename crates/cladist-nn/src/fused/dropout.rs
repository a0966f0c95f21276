//! Dropout as one operation that keeps no mask.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::dropout::Dropout;
use cladist_kernels::pool;

use super::{Fused, Operand, apply, shaped, values};

/// Dropout on rows of which the first has the number `first`, on the CPU: `[rows, width]` → the same
pub(crate) fn drop_rows(x: Tensor<2>, dropout: Dropout, first: usize) -> Tensor<2> {
    apply(DropRows { dropout, first }, [Operand::new(x)])
}

#[derive(Debug)]
struct DropRows {
    dropout: Dropout,
    first: usize,
}

impl DropRows {
    fn on(&self, x: &[f32], like: &FlexTensor) -> FlexTensor {
        let mut out = pool::take(x.len());
        self.dropout.on_rows(self.first, x, like.layout().shape()[1], &mut out);
        shaped(out, like)
    }
}

impl Fused<1> for DropRows {
    type Saved = ();

    fn forward(&self, [x]: &[FlexTensor; 1], keep: bool) -> (FlexTensor, Option<()>) {
        (self.on(values(x), x), keep.then_some(()))
    }

    fn backward(
        self,
        [x]: [FlexTensor; 1],
        (): (),
        slope: &[f32],
        wanted: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        [wanted[0].then(|| self.on(slope, &x))]
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn values_and_slopes_have_the_same_factors() {
        let device = Device::flex().autodiff();
        let dropout = Dropout { rate: 0.4, seed: 2 };
        let x =
            Tensor::<2>::from_floats([[1.0, -2.0, 3.0, 0.5], [4.0, 5.0, -6.0, 1.5]], &device).require_grad();
        let out = drop_rows(x.clone(), dropout, 3);
        let mut factors = [[0.0; 4]; 2];
        dropout.factors(3, &mut factors[0]);
        dropout.factors(4, &mut factors[1]);
        let factors = factors.concat();
        assert!(factors.contains(&0.0), "{factors:?}");
        let products = |of: &[f32]| -> Vec<f32> { of.iter().zip(&factors).map(|(a, b)| a * b).collect() };
        assert_eq!(to_vec(out.clone()), products(&to_vec(x.clone())));
        let slopes = x.grad(&(out * 3.0).sum().backward()).unwrap();
        assert_eq!(to_vec(slopes), products(&[3.0; 8]));
    }
}
