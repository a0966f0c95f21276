//! Labels that look at tokens: the one attention of all heads of this family.

use burn::tensor::{Tensor, activation};

use crate::encoder::{Encoded, Packing};

/// States of packed tokens in a padded rectangle, a row for each cell: `[documents·longest, width]`. Cells of padding
/// hold what nobody looks at.
pub(crate) fn padded(states: Tensor<2>, documents: &Encoded) -> Tensor<2> {
    documents.packing().cells(states)
}

/// A = softmax(Q·Kᵀ·scale) over the tokens of each document, for each attention head, and A·V.
///
/// # Shapes
/// `queries [labels, 1 or documents, width]`, `keys [documents·longest, width]`, `values [documents·longest, out]` →
/// `[documents, heads, labels, longest]` and `[labels, documents, out]`
pub(crate) fn attend(
    queries: Tensor<3>,
    keys: Tensor<2>,
    values: Tensor<2>,
    packing: &Packing,
    n_heads: usize,
    scale: f64,
) -> (Tensor<4>, Tensor<3>) {
    let [labels, copies, width] = queries.dims();
    let [_, out] = values.dims();
    let (documents, longest) = (packing.n_sequences(), packing.longest());
    let split = |x: Tensor<2>, width: usize| -> Tensor<4> {
        x.reshape([documents, longest, n_heads, width / n_heads]).swap_dims(1, 2)
    };
    let queries = queries.reshape([labels, copies, n_heads, width / n_heads]).permute([1, 2, 0, 3]);
    let scores = queries.matmul(split(keys, width).swap_dims(2, 3)) * scale;
    let scores = scores.clone() + packing.bias(&scores.device()); // −1e30 where there is no token
    let weights = activation::softmax(scores, 3);
    let seen = weights.clone().matmul(split(values, out));
    (weights, seen.permute([2, 0, 1, 3]).reshape([labels, documents, out]))
}

/// Labels whose intermediate values fit a bound, when each has so many of them.
pub(crate) fn labels_at_once(cells_of_a_label: usize) -> usize {
    /// Numbers of one kind for all labels at once: 32 MiB. A dozen kinds are alive together at most.
    const CELLS: usize = 1 << 23;
    (CELLS / cells_of_a_label.max(1)).max(1)
}
