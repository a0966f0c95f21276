//! Matrix products with the right-hand side packed once and work done on rows while they are in cache.
//!
//! A product runs over blocks of rows, one block a task. Inside a block the packed panels of the right-hand side
//! are walked in order and each panel is multiplied with tiles of `ROWS` rows held in registers; when all columns
//! of the block are done, the caller's epilogue (bias, activation, residual, normalisation) runs on it.

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, dispatch};

/// Depth of a pass: a panel of this depth stays in the first-level cache.
const DEPTH: usize = 384;

/// A right-hand side in panels: column group by column group, each `[k][width]`, the last padded with zeros.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    data: Vec<f32>,
    k: usize,
    n: usize,
    width: usize,
}

impl Packed {
    /// Rows of the right-hand side.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the right-hand side.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Counts the zeros of the last panel as columns, so that no tile is partial; the output must be as wide.
    pub(crate) fn pad_columns(&mut self) -> usize {
        self.n = self.n.next_multiple_of(self.width);
        self.n
    }

    fn reset(&mut self, k: usize, n: usize) {
        self.width = panel_width();
        (self.k, self.n) = (k, n);
        let len = n.div_ceil(self.width) * self.width * k;
        // Every value is written by the packers, so old contents may stay.
        self.data.resize(len, 0.0);
    }

    /// Packs `b[k][n]` with `stride` values from row to row.
    pub fn pack(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(k == 0 || b.len() >= (k - 1) * stride + n);
        self.reset(k, n);
        let width = self.width;
        for (panel, out) in self.data.chunks_exact_mut((width * k).max(1)).enumerate() {
            pack_panel(out, b, panel * width, n, stride, width);
        }
    }

    /// Like [`Packed::pack`], on all cores.
    pub fn pack_parallel(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(k == 0 || b.len() >= (k - 1) * stride + n);
        self.reset(k, n);
        let width = self.width;
        self.data.par_chunks_exact_mut((width * k).max(1)).enumerate().for_each(|(panel, out)| {
            pack_panel(out, b, panel * width, n, stride, width);
        });
    }

    /// Packs the transpose of `b[n][k]`, `stride` values from row to row: weights as `[out, in]` for `x·Wᵀ`.
    pub fn pack_transposed(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(n == 0 || b.len() >= (n - 1) * stride + k);
        self.reset(k, n);
        let width = self.width;
        for (panel, out) in self.data.chunks_exact_mut((width * k).max(1)).enumerate() {
            pack_panel_transposed(out, b, panel * width, n, k, stride, width);
        }
    }

    /// Like [`Packed::pack_transposed`], on all cores.
    pub fn pack_transposed_parallel(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(n == 0 || b.len() >= (n - 1) * stride + k);
        self.reset(k, n);
        let width = self.width;
        self.data.par_chunks_exact_mut((width * k).max(1)).enumerate().for_each(|(panel, out)| {
            pack_panel_transposed(out, b, panel * width, n, k, stride, width);
        });
    }
}

fn pack_panel(out: &mut [f32], b: &[f32], first: usize, n: usize, stride: usize, width: usize) {
    let columns = width.min(n - first);
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        let start = row * stride + first;
        out[..columns].copy_from_slice(&b[start..start + columns]);
        out[columns..].fill(0.0);
    }
}

fn pack_panel_transposed(
    out: &mut [f32],
    b: &[f32],
    first: usize,
    n: usize,
    k: usize,
    stride: usize,
    width: usize,
) {
    let columns = width.min(n - first);
    if columns < width {
        out.fill(0.0);
    }
    // Sixteen source values at a time: one cache line read, and the lines written stay in cache.
    for from in (0..k).step_by(16) {
        let to = (from + 16).min(k);
        for column in 0..columns {
            let row = &b[(first + column) * stride..][from..to];
            for (depth, &value) in (from..to).zip(row) {
                out[depth * width + column] = value;
            }
        }
    }
}

struct PanelWidth;
impl Kernel for PanelWidth {
    type Output = usize;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> usize {
        2 * S::LANES
    }
}

fn panel_width() -> usize {
    dispatch(PanelWidth)
}

/// What a product starts from.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// A row added to every row, as long as the product is wide.
    Bias(&'a [f32]),
    /// What the output holds.
    Output,
}

/// `c[m][n] = start + a[m][k] · b`, then `epilogue(first_row, block)` for every block of rows of `c`.
///
/// `a` has `a_stride` values from row to row, `c` has `n`.
pub fn product<E: Fn(usize, &mut [f32]) + Sync>(
    a: &[f32],
    a_stride: usize,
    b: &Packed,
    c: &mut [f32],
    start: Start<'_>,
    epilogue: E,
) {
    let (k, n) = (b.k, b.n);
    if n == 0 || c.is_empty() {
        return;
    }
    let m = c.len() / n;
    assert!(c.len() == m * n && a.len() >= (m - 1) * a_stride + k && a_stride >= k);
    if let Start::Bias(bias) = start {
        assert!(bias.len() >= n);
    }
    // Blocks of even size for every core; what a row becomes does not depend on its block.
    let (most, cores) = (dispatch(BlockRows), rayon::current_num_threads());
    let rows = if m <= most { most } else { m.div_ceil(m.div_ceil(most * cores) * cores) };
    let block = |(number, block): (usize, &mut [f32])| {
        let first = number * rows;
        product_here(&a[first * a_stride..], a_stride, b, block, n, start);
        epilogue(first, block);
    };
    if m <= rows {
        c.chunks_mut(rows * n).enumerate().for_each(block);
    } else {
        c.par_chunks_mut(rows * n).enumerate().with_max_len(1).for_each(block);
    }
}

/// A product on this thread, without an epilogue, into rows that are `c_stride` values apart.
pub(crate) fn product_here(
    a: &[f32],
    a_stride: usize,
    b: &Packed,
    c: &mut [f32],
    c_stride: usize,
    start: Start<'_>,
) {
    let m = c.len().div_ceil(c_stride);
    assert!(m == 0 || (c.len() >= (m - 1) * c_stride + b.n && a.len() >= (m - 1) * a_stride + b.k));
    dispatch(Rows { m, a, a_stride, b, c, c_stride, start });
}

/// [`outer_product`] on this thread; `packed` is scratch space.
pub(crate) fn outer_product_here(
    y: &[f32],
    (y_stride, n): (usize, usize),
    x: &[f32],
    (x_stride, k): (usize, usize),
    tokens: usize,
    c: &mut [f32],
    packed: &mut Packed,
) {
    assert!(c.len() == n * k && tokens > 0);
    assert!(y.len() >= (tokens - 1) * y_stride + n && x.len() >= (tokens - 1) * x_stride + k);
    packed.pack(x, tokens, k, x_stride);
    dispatch(Strip { y, y_stride, depth: tokens, b: packed, c });
}

struct BlockRows;
impl Kernel for BlockRows {
    type Output = usize;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> usize {
        4 * S::ROWS
    }
}

struct Rows<'a> {
    m: usize,
    a: &'a [f32],
    a_stride: usize,
    b: &'a Packed,
    c: &'a mut [f32],
    c_stride: usize,
    start: Start<'a>,
}

impl Kernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { m, a, a_stride, b, c, c_stride, start } = self;
        let (k, n, width) = (b.k, b.n, b.width);
        for depth in (0..k.max(1)).step_by(DEPTH) {
            let depths = DEPTH.min(k - depth);
            for (panel, column) in (0..n).step_by(width).enumerate() {
                let b = &b.data[panel * width * k + depth * width..][..depths * width];
                let columns = width.min(n - column);
                let mut row = 0;
                while row < m {
                    let rows = S::ROWS.min(m - row);
                    let from = if depth > 0 {
                        From::Output
                    } else {
                        match start {
                            Start::Zero => From::Zero,
                            Start::Bias(bias) => From::Row(&bias[column..column + columns]),
                            Start::Output => From::Output,
                        }
                    };
                    // SAFETY: rows, columns and depths were cut to what the slices hold.
                    unsafe {
                        let a = a.as_ptr().add(row * a_stride + depth);
                        let c = c.as_mut_ptr().add(row * c_stride + column);
                        tile_of::<S>(
                            rows,
                            columns,
                            depths,
                            (a, a_stride, 1),
                            b.as_ptr(),
                            (c, c_stride),
                            from,
                        );
                    }
                    row += rows;
                }
            }
        }
    }
}

/// `c[n][k] += Σ_t y[t][n] · x[t][k]`: the gradient of weights `[out, in]` from the gradient of the output and the
/// input. Strides are values from token to token.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn outer_product(
    y: &[f32],
    y_stride: usize,
    n: usize,
    x: &[f32],
    x_stride: usize,
    k: usize,
    tokens: usize,
    c: &mut [f32],
) {
    assert!(c.len() == n * k);
    if tokens == 0 || c.is_empty() {
        return;
    }
    assert!(y.len() >= (tokens - 1) * y_stride + n && x.len() >= (tokens - 1) * x_stride + k);
    // A strip of outputs is one task: it packs its own columns of `y` and shares the packed `x`.
    let strip = dispatch(StripRows);
    const TOKENS: usize = 256;
    let mut packed = Packed::default();
    for first in (0..tokens).step_by(TOKENS) {
        let depth = TOKENS.min(tokens - first);
        packed.pack_parallel(&x[first * x_stride..], depth, k, x_stride);
        let (y, packed) = (&y[first * y_stride..], &packed);
        c.par_chunks_mut(strip * k).enumerate().with_max_len(1).for_each(|(number, c)| {
            dispatch(Strip { y: &y[number * strip..], y_stride, depth, b: packed, c });
        });
    }
}

struct StripRows;
impl Kernel for StripRows {
    type Output = usize;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> usize {
        4 * S::ROWS
    }
}

struct Strip<'a> {
    y: &'a [f32],
    y_stride: usize,
    depth: usize,
    b: &'a Packed,
    c: &'a mut [f32],
}

impl Kernel for Strip<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { y, y_stride, depth, b, c } = self;
        let (k, width) = (b.n, b.width);
        let n = c.len() / k;
        // The strip of `y`, token by token, so that a tile's rows lie side by side.
        let mut left = vec![0.0f32; depth * n];
        for (token, out) in left.chunks_exact_mut(n).enumerate() {
            out.copy_from_slice(&y[token * y_stride..][..n]);
        }
        for (panel, column) in (0..k).step_by(width).enumerate() {
            let panel = &b.data[panel * width * depth..][..depth * width];
            let columns = width.min(k - column);
            let mut row = 0;
            while row < n {
                let rows = S::ROWS.min(n - row);
                // SAFETY: rows, columns and depth were cut to what the slices hold.
                unsafe {
                    let a = left.as_ptr().add(row);
                    let c = c.as_mut_ptr().add(row * k + column);
                    tile_of::<S>(rows, columns, depth, (a, 1, n), panel.as_ptr(), (c, k), From::Output);
                }
                row += rows;
            }
        }
    }
}

/// What a tile starts from.
#[derive(Clone, Copy)]
enum From<'a> {
    Zero,
    Row(&'a [f32]),
    Output,
}

/// A tile of up to `ROWS` rows and one panel of columns; partial columns go through a buffer.
///
/// `a` is a pointer with the distance between rows and between depths, `c` a pointer with the distance of rows.
#[inline(always)]
unsafe fn tile_of<S: Simd>(
    rows: usize,
    columns: usize,
    depth: usize,
    a: (*const f32, usize, usize),
    b: *const f32,
    c: (*mut f32, usize),
    from: From<'_>,
) {
    unsafe {
        let width = 2 * S::LANES;
        if columns == width {
            let row = match from {
                From::Row(row) => Some(row.as_ptr()),
                _ => None,
            };
            tile_rows::<S>(rows, depth, a, b, c, row, matches!(from, From::Output));
            return;
        }
        let mut buffer = [0.0f32; 16 * 32];
        for row in 0..rows {
            for column in 0..columns {
                buffer[row * width + column] = match from {
                    From::Zero => 0.0,
                    From::Row(values) => values[column],
                    From::Output => *c.0.add(row * c.1 + column),
                };
            }
        }
        tile_rows::<S>(rows, depth, a, b, (buffer.as_mut_ptr(), width), None, true);
        for row in 0..rows {
            for column in 0..columns {
                *c.0.add(row * c.1 + column) = buffer[row * width + column];
            }
        }
    }
}

#[inline(always)]
unsafe fn tile_rows<S: Simd>(
    rows: usize,
    depth: usize,
    a: (*const f32, usize, usize),
    b: *const f32,
    c: (*mut f32, usize),
    row: Option<*const f32>,
    accumulate: bool,
) {
    macro_rules! by_rows {
        ($($n:literal)*) => {
            match rows {
                $($n if $n <= S::ROWS => unsafe { tile::<S, $n>(depth, a, b, c, row, accumulate) },)*
                _ => {}
            }
        };
    }
    by_rows!(14 13 12 11 10 9 8 7 6 5 4 3 2 1);
}

/// The inner loop: `R` rows times two registers of columns, all sums in registers.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    depth: usize,
    (a, a_row, a_depth): (*const f32, usize, usize),
    mut b: *const f32,
    (c, c_row): (*mut f32, usize),
    row: Option<*const f32>,
    accumulate: bool,
) {
    unsafe {
        let zero = S::splat(0.0);
        let mut sums = [[zero; 2]; R];
        if accumulate {
            for (i, sums) in sums.iter_mut().enumerate() {
                *sums = [S::load(c.add(i * c_row)), S::load(c.add(i * c_row + S::LANES))];
            }
        } else if let Some(row) = row {
            sums = [[S::load(row), S::load(row.add(S::LANES))]; R];
        }
        let mut a = a;
        for _ in 0..depth {
            let right = [S::load(b), S::load(b.add(S::LANES))];
            for (i, sums) in sums.iter_mut().enumerate() {
                let left = S::splat(*a.add(i * a_row));
                sums[0] = S::fma(left, right[0], sums[0]);
                sums[1] = S::fma(left, right[1], sums[1]);
            }
            b = b.add(2 * S::LANES);
            a = a.add(a_depth);
        }
        for (i, sums) in sums.iter().enumerate() {
            S::store(c.add(i * c_row), sums[0]);
            S::store(c.add(i * c_row + S::LANES), sums[1]);
        }
    }
}

#[cfg(test)]
mod tests;
