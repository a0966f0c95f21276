//! The max constraint loss, for predictions that respect the hierarchy.

use burn::tensor::{Int, Tensor, TensorData};
use cladist_kernels::graph::Edges;

use super::softplus;
use crate::parameters::to_vec;

/// The max constraint loss of C-HMCNN (Giunchiglia and Lukasiewicz 2020). With D(a) the label a and what is below it:
/// −ln max over b in D(a) of y_b·p_b for labels of the document, −ln(1 − max over b in D(a) of p_b) for others, the mean
/// over documents and labels. A document is taken to have the ancestors of its labels.
///
/// The maximum is sought among logits, from the bottom up along the edges (parents first, ascending), so nothing needs
/// a bound; the gradient reaches the label where it was found.
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn coherent(logits: Tensor<2>, gold: &[Vec<u32>], edges: &Edges, smoothing: f64) -> Tensor<1> {
    let cells = cells(logits, gold, edges);
    let loss = softplus(cells.clone());
    if smoothing == 0.0 { loss.mean() } else { (loss - cells * (smoothing / 2.0)).mean() }
}

/// What the loss is the softplus of: the logit that answers for each label, negative where the label is the document's.
fn cells(logits: Tensor<2>, gold: &[Vec<u32>], edges: &Edges) -> Tensor<2> {
    let [documents, labels] = logits.dims();
    let device = logits.device();
    let values = to_vec(logits.clone().detach());
    let mut found = Vec::with_capacity(documents * labels);
    let mut signs = Vec::with_capacity(documents * labels);
    for (values, gold) in values.chunks_exact(labels.max(1)).zip(gold) {
        let mut is_gold = vec![false; labels];
        gold.iter().for_each(|&label| is_gold[label as usize] = true);
        // Of all labels below, and of those of the document.
        let mut of_all: Vec<u32> = (0..labels as u32).collect();
        let mut of_gold: Vec<Option<u32>> =
            of_all.iter().map(|&l| is_gold[l as usize].then_some(l)).collect();
        let higher = |a: u32, b: u32| if values[b as usize] > values[a as usize] { b } else { a };
        // Children have larger numbers: from the last parent on, what is below a child is known.
        for (&parent, &child) in edges.sources.iter().zip(&edges.targets).rev() {
            let (parent, child) = (parent as usize, child as usize);
            of_all[parent] = higher(of_all[parent], of_all[child]);
            if let Some(below) = of_gold[child] {
                // The parent is gold too, whether the document says so or not.
                of_gold[parent] = Some(higher(of_gold[parent].unwrap_or(parent as u32), below));
            }
        }
        for (all, gold) in of_all.into_iter().zip(of_gold) {
            found.push(i64::from(gold.unwrap_or(all)));
            signs.push(if gold.is_some() { -1.0f32 } else { 1.0 });
        }
    }
    let found: Tensor<2, Int> = Tensor::from_data(TensorData::new(found, [documents, labels]), &device);
    let signs: Tensor<2> = Tensor::from_data(TensorData::new(signs, [documents, labels]), &device);
    logits.gather(1, found) * signs
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn logit(p: f32) -> f32 {
        (p / (1.0 - p)).ln()
    }

    /// A label over two others.
    fn edges() -> Edges {
        Edges { sources: vec![0, 0], targets: vec![1, 2], n_sources: 3, n_targets: 3 }
    }

    #[test]
    fn a_parent_is_as_likely_as_its_likeliest_gold_child() {
        let device = Device::flex().autodiff();
        let z = Tensor::<2>::from_floats([[0.3, 0.6, 0.2].map(logit)], &device).require_grad();
        let value = || coherent(z.clone(), &[vec![0, 2]], &edges(), 0.0);
        let scalar = |loss: Tensor<1>| f64::from(loss.inner().into_scalar::<f32>());
        assert!((scalar(value()) - 1.243_233_8).abs() < 1e-6);
        let each = to_vec(softplus(cells(z.clone(), &[vec![0, 2]], &edges())));
        for (got, expected) in each.iter().zip([1.203_972_8, 0.916_290_7, 1.609_437_9]) {
            assert!((f64::from(*got) - expected).abs() < 1e-6, "{each:?}");
        }
        // Ancestors of gold labels are gold.
        assert_eq!(scalar(coherent(z.clone(), &[vec![2]], &edges(), 0.0)), scalar(value()));
        // Without gold, the parent's cell is that of its likeliest child, and so is its slope: twice .6 of three.
        let none = coherent(z.clone(), &[vec![]], &edges(), 0.0);
        let slopes = to_vec(z.grad(&none.backward()).unwrap());
        assert!(slopes[0] == 0.0 && (slopes[1] - 0.4).abs() < 1e-6, "{slopes:?}");
    }

    #[test]
    fn slopes_are_those_of_finite_differences() {
        let device = Device::flex().autodiff();
        let z = [[0.4f32, -0.3, 1.2], [0.9, 0.1, -2.0]];
        let gold = [vec![1], vec![]];
        let loss = |z: [[f32; 3]; 2]| {
            f64::from(
                coherent(Tensor::from_floats(z, &Device::flex()), &gold, &edges(), 0.1).into_scalar::<f32>(),
            )
        };
        let x = Tensor::<2>::from_floats(z, &device).require_grad();
        let slopes = to_vec(x.grad(&coherent(x.clone(), &gold, &edges(), 0.1).backward()).unwrap());
        for (n, slope) in slopes.iter().enumerate() {
            let mut moved = [z, z];
            moved[0][n / 3][n % 3] += 1e-2;
            moved[1][n / 3][n % 3] -= 1e-2;
            let expected = (loss(moved[0]) - loss(moved[1])) / 2e-2;
            assert!((f64::from(*slope) - expected).abs() < 1e-4, "{n}: {slope} {expected}");
        }
    }
}
