//! Where the tokens of a batch lie: packed end to end, or in a padded rectangle.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Sequence i of a packed batch is `offsets[i]..offsets[i + 1]`.
#[derive(Debug, Clone)]
pub struct Packing {
    pub(crate) offsets: Arc<[usize]>,
}

impl Packing {
    /// From offsets that start at 0 and rise.
    pub(crate) fn new(offsets: &[usize]) -> Self {
        Self { offsets: offsets.into() }
    }

    /// Sequences of the batch.
    #[must_use]
    pub fn n_sequences(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Tokens of the batch.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Tokens of a sequence.
    #[must_use]
    pub fn length(&self, sequence: usize) -> usize {
        self.offsets[sequence + 1] - self.offsets[sequence]
    }

    /// Tokens of the longest sequence.
    #[must_use]
    pub fn longest(&self) -> usize {
        (0..self.n_sequences()).map(|sequence| self.length(sequence)).max().unwrap_or(0)
    }

    /// The packed row of each cell of the padded rectangle `[sequences·longest]`; padding repeats row 0.
    pub(crate) fn padded_rows(&self, device: &Device) -> Tensor<1, Int> {
        let longest = self.longest();
        let rows = (0..self.n_sequences()).flat_map(|sequence| {
            let (start, length) = (self.offsets[sequence], self.length(sequence));
            (0..longest).map(move |t| if t < length { start + t } else { 0 })
        });
        integers(rows, device)
    }

    /// The cell of the padded rectangle of each packed token.
    pub(crate) fn rows(&self, device: &Device) -> Tensor<1, Int> {
        let longest = self.longest();
        let cells = (0..self.n_sequences())
            .flat_map(|sequence| (0..self.length(sequence)).map(move |t| sequence * longest + t));
        integers(cells, device)
    }

    /// The packed row of each sequence's first token.
    pub(crate) fn first_rows(&self, device: &Device) -> Tensor<1, Int> {
        integers(self.offsets[..self.n_sequences()].iter().copied(), device)
    }

    /// The packed row of each sequence's last token.
    pub(crate) fn last_rows(&self, device: &Device) -> Tensor<1, Int> {
        integers(self.offsets.iter().skip(1).map(|end| end.saturating_sub(1)), device)
    }

    /// Packed rows in a padded rectangle, a row for each cell: `[sequences·longest, width]`. Padding holds what nobody
    /// looks at.
    pub(crate) fn cells(&self, rows: Tensor<2>) -> Tensor<2> {
        let cells = self.padded_rows(&rows.device());
        rows.select(0, cells)
    }

    /// Packed rows in a padded rectangle `[sequences, longest, width]`; padding holds zeros.
    pub(crate) fn pad(&self, rows: Tensor<2>) -> Tensor<3> {
        let device = rows.device();
        let [_, width] = rows.dims();
        self.cells(rows).reshape([self.n_sequences(), self.longest(), width])
            * self.mask(&device).unsqueeze_dim(2)
    }

    /// The cell of the padded rectangle of each sequence's first token.
    pub(crate) fn first_cells(&self, device: &Device) -> Tensor<1, Int> {
        let longest = self.longest();
        integers((0..self.n_sequences()).map(|sequence| sequence * longest), device)
    }

    /// What makes means of packed rows: 1/length at a sequence's tokens, 0 elsewhere, `[sequences, tokens]`.
    pub(crate) fn averages(&self, device: &Device) -> Tensor<2> {
        let (n_sequences, n_tokens) = (self.n_sequences(), self.n_tokens());
        let mut cells = vec![0.0f32; n_sequences * n_tokens];
        for sequence in 0..n_sequences {
            let span = self.offsets[sequence]..self.offsets[sequence + 1];
            cells[sequence * n_tokens..][span].fill(1.0 / self.length(sequence) as f32);
        }
        Tensor::from_data(TensorData::new(cells, [n_sequences, n_tokens]), device)
    }

    /// 1 at tokens, 0 at padding: `[sequences, longest]`.
    pub(crate) fn mask(&self, device: &Device) -> Tensor<2> {
        self.by_cell(1.0, 0.0, device)
    }

    /// What is added to attention scores: 0 at keys, −1e30 at padding, `[sequences, 1, 1, longest]`.
    pub(crate) fn bias(&self, device: &Device) -> Tensor<4> {
        let longest = self.longest();
        self.by_cell(0.0, -1e30, device).reshape([self.n_sequences(), 1, 1, longest])
    }

    fn by_cell(&self, token: f32, padding: f32, device: &Device) -> Tensor<2> {
        let longest = self.longest();
        let cells: Vec<f32> = (0..self.n_sequences())
            .flat_map(|sequence| {
                (0..longest).map(move |t| if t < self.length(sequence) { token } else { padding })
            })
            .collect();
        Tensor::from_data(TensorData::new(cells, [self.n_sequences(), longest]), device)
    }
}

fn integers(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.map(|value| value as i64).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), device)
}
