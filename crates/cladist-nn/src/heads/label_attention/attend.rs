//! Label-wise attention over tokens, for all heads that have it.

use burn::tensor::{Tensor, activation};

use crate::encoder::Packing;
use crate::fused::{is_cpu, look};

/// What labels see of each document: softmax(Q·Kᵀ·scale)·V over its tokens, for each attention head.
///
/// # Shapes
/// `queries [labels, 1 or documents, width]`, `keys [tokens, width]`, `values [tokens, out]` → `[labels, documents, out]`
pub(crate) fn seen(
    queries: Tensor<3>,
    keys: Tensor<2>,
    values: Tensor<2>,
    packing: &Packing,
    n_heads: usize,
    scale: f64,
) -> Tensor<3> {
    if is_cpu(&queries.device()) {
        return look(queries, keys, values, packing, n_heads, scale);
    }
    let ([labels, _, _], [_, out]) = (queries.dims(), values.dims());
    let seen = weights(queries, keys, packing, n_heads, scale).matmul(heads(values, packing, n_heads));
    seen.permute([2, 0, 1, 3]).reshape([labels, packing.n_sequences(), out])
}

/// Attention weights, softmax(Q·Kᵀ·scale): `[documents, heads, labels, longest]`.
pub(crate) fn weights(
    queries: Tensor<3>,
    keys: Tensor<2>,
    packing: &Packing,
    n_heads: usize,
    scale: f64,
) -> Tensor<4> {
    let [labels, copies, width] = queries.dims();
    let queries = queries.reshape([labels, copies, n_heads, width / n_heads]).permute([1, 2, 0, 3]);
    let scores = queries.matmul(heads(keys, packing, n_heads).swap_dims(2, 3)) * scale;
    let bias = packing.bias(&scores.device()); // −1e30 where there is no token
    activation::softmax(scores + bias, 3)
}

/// Packed rows as `[documents, heads, longest, width of a head]`.
fn heads(rows: Tensor<2>, packing: &Packing, n_heads: usize) -> Tensor<4> {
    let [_, width] = rows.dims();
    let shape = [packing.n_sequences(), packing.longest(), n_heads, width / n_heads];
    packing.cells(rows).reshape(shape).swap_dims(1, 2)
}

/// Labels whose intermediate values fit a bound, when each has so many of them.
pub(crate) fn labels_at_once(cells_of_a_label: usize) -> usize {
    /// Numbers of one kind for all labels at once: 32 MiB. A dozen kinds are alive together at most.
    const CELLS: usize = 1 << 23;
    (CELLS / cells_of_a_label.max(1)).max(1)
}
