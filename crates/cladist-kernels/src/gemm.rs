//! Matrix products with the right-hand side packed once and work done on rows while they are in cache.
//!
//! A product runs over blocks of rows, one block a task. Inside a block the packed panels of the right-hand side
//! are walked in order and each panel is multiplied with tiles of `ROWS` rows held in registers.

mod pack;

use rayon::prelude::*;

use crate::pool::Buffer;
use crate::simd::{Kernel, Simd, dispatch};

pub use pack::Packed;
use pack::{copy, tile_size};

/// Depth of a pass: a panel of this depth stays in the first-level cache.
const DEPTH: usize = 384;

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

/// `c[m][n] = start + a[m][k] · b` on all cores; `a` has `a_stride` values from row to row, `c` has `n`.
pub fn product(a: &[f32], a_stride: usize, b: &Packed, c: &mut [f32], start: Start<'_>) {
    let n = b.n;
    if n == 0 || c.is_empty() {
        return;
    }
    let m = c.len() / n;
    assert!(c.len() == m * n);
    let rows = rows_of_a_task(m);
    c.par_chunks_mut(rows * n).enumerate().with_max_len(1).for_each(|(number, block)| {
        product_here(&a[number * rows * a_stride..], a_stride, b, block, n, start);
    });
}

/// Even blocks for every core; what a row becomes does not depend on its block.
pub(crate) fn rows_of_a_task(m: usize) -> usize {
    let (most, cores) = (4 * tile_size().0, rayon::current_num_threads());
    if m <= most { most } else { m.div_ceil(m.div_ceil(most * cores) * cores) }
}

/// A product on this thread, into rows that are `c_stride` values apart.
pub(crate) fn product_here(
    a: &[f32],
    a_stride: usize,
    b: &Packed,
    c: &mut [f32],
    c_stride: usize,
    start: Start<'_>,
) {
    let m = c.len().div_ceil(c_stride);
    if let Start::Bias(bias) = start {
        assert!(bias.len() >= b.n);
    }
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
                let b = &b.panel(panel)[depth * width..][..depths * width];
                let columns = width.min(n - column);
                let mut row = 0;
                while row < m {
                    let rows = S::ROWS.min(m - row);
                    // SAFETY: rows, columns and depths were cut to what the slices hold.
                    unsafe {
                        let a = a.as_ptr().add(row * a_stride + depth);
                        let c = c.as_mut_ptr().add(row * c_stride + column);
                        let init: Init = match start {
                            _ if depth > 0 => (c, c_stride),
                            Start::Zero => (ZEROS.as_ptr(), 0),
                            Start::Bias(bias) => (bias.as_ptr().add(column), 0),
                            Start::Output => (c, c_stride),
                        };
                        let a = (a, a_stride, 1);
                        tile_of::<S>(rows, columns, depths, a, b.as_ptr(), (c, c_stride), init);
                    }
                    row += rows;
                }
            }
        }
    }
}

/// Tokens of one pass over a strip: a panel of this depth stays in the first-level cache.
const TOKENS: usize = 256;

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
    // A strip of outputs is one task: it packs its own columns of `y` and shares the packed `x`, of which as many
    // tokens are taken at once as the second-level cache holds.
    let strip = 2 * tile_size().0;
    let passes = (300_000 / (k * TOKENS)).max(1);
    let mut packed: Vec<Packed> = Vec::new();
    packed.resize_with(passes.min(tokens.div_ceil(TOKENS)), Packed::default);
    for first in (0..tokens).step_by(passes * TOKENS) {
        let parts = |part: usize| {
            let start = first + part * TOKENS;
            (start, TOKENS.min(tokens.saturating_sub(start)))
        };
        for (part, packed) in packed.iter_mut().enumerate() {
            let (start, depth) = parts(part);
            if depth > 0 {
                packed.pack_parallel(&x[start * x_stride..], depth, k, x_stride);
            }
        }
        let packed = &packed;
        c.par_chunks_mut(strip * k).enumerate().with_max_len(1).for_each(|(number, c)| {
            for (part, packed) in packed.iter().enumerate() {
                let (start, depth) = parts(part);
                if depth > 0 {
                    let y = &y[start * y_stride + number * strip..];
                    dispatch(Strip { y, y_stride, depth, b: packed, c });
                }
            }
        });
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
        let mut left = Buffer::new(depth * n);
        for (token, out) in left.chunks_exact_mut(n).enumerate() {
            // SAFETY: the machine has the instructions of this kernel.
            unsafe { copy::<S>(&y[token * y_stride..][..n], out) };
        }
        for (panel, column) in (0..k).step_by(width).enumerate() {
            let panel = b.panel(panel);
            let columns = width.min(k - column);
            let mut row = 0;
            while row < n {
                let rows = S::ROWS.min(n - row);
                // SAFETY: rows, columns and depth were cut to what the slices hold.
                unsafe {
                    let a = left.as_ptr().add(row);
                    let c = c.as_mut_ptr().add(row * k + column);
                    tile_of::<S>(rows, columns, depth, (a, 1, n), panel.as_ptr(), (c, k), (c, k));
                }
                row += rows;
            }
        }
    }
}

/// What a tile starts from: rows of values and the distance between them, 0 if all rows start from the same.
type Init = (*const f32, usize);

/// Zeros to start from.
static ZEROS: [f32; 32] = [0.0; 32];

/// A tile of up to `ROWS` rows and one panel of columns; partial columns go through a buffer.
///
/// `a` is a pointer with the distance between rows and between depths, `c` a pointer with the distance of rows. `init`
/// has `columns` values in a row.
#[inline(always)]
unsafe fn tile_of<S: Simd>(
    rows: usize,
    columns: usize,
    depth: usize,
    a: (*const f32, usize, usize),
    b: *const f32,
    c: (*mut f32, usize),
    init: Init,
) {
    unsafe {
        let width = 2 * S::LANES;
        if columns == width {
            tile_rows::<S>(rows, depth, a, b, c, init);
            return;
        }
        let mut buffer = [0.0f32; 16 * 32];
        for row in 0..rows {
            for column in 0..columns {
                buffer[row * width + column] = *init.0.add(row * init.1 + column);
            }
        }
        let pointer = buffer.as_mut_ptr();
        tile_rows::<S>(rows, depth, a, b, (pointer, width), (pointer, width));
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
    init: Init,
) {
    macro_rules! by_rows {
        ($($n:literal)*) => {
            match rows {
                $($n if $n <= S::ROWS => unsafe { tile::<S, $n>(depth, a, b, c, init) },)*
                _ => {}
            }
        };
    }
    by_rows!(14 13 12 11 10 9 8 7 6 5 4 3 2 1);
}

/// The inner loop: `R` rows times two registers of columns, all sums in registers.
///
/// There is one way to start, whatever it starts from: with several the compiler keeps the sums on the stack.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    depth: usize,
    (a, a_row, a_depth): (*const f32, usize, usize),
    mut b: *const f32,
    (c, c_row): (*mut f32, usize),
    (init, init_row): Init,
) {
    unsafe {
        let mut sums = [[S::splat(0.0); 2]; R];
        for (i, sums) in sums.iter_mut().enumerate() {
            let row = init.add(i * init_row);
            *sums = [S::load(row), S::load(row.add(S::LANES))];
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
