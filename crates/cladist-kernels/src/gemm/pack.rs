//! Right-hand sides in the order in which products read them.

use rayon::prelude::*;

use crate::pool::Buffer;
use crate::simd::{Kernel, Simd, dispatch};

/// Values of a cache line.
const LINE: usize = 16;

/// A right-hand side in panels: column group by column group, each `[k][width]`, the last padded with zeros.
#[derive(Debug, Default)]
pub struct Packed {
    /// At least what the panels need, and room to begin at a cache line.
    data: Buffer,
    /// Where the panels begin.
    first: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) width: usize,
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
        self.width = tile_size().1;
        (self.k, self.n) = (k, n);
        let len = n.div_ceil(self.width) * self.width * k;
        // Every value is written by the packers, so old contents may stay.
        if self.data.len() < len + LINE {
            self.data = Buffer::new(len + LINE);
            // A register that lies across two cache lines takes two loads.
            self.first = self.data.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        }
    }

    /// The values of a panel, `[k][width]`.
    pub(super) fn panel(&self, number: usize) -> &[f32] {
        &self.data[self.first + number * self.width * self.k..][..self.width * self.k]
    }

    fn panels(&mut self) -> (&mut [f32], usize) {
        let size = self.width * self.k;
        let len = self.n.div_ceil(self.width.max(1)) * size;
        (&mut self.data[self.first..][..len], size.max(1))
    }

    /// Makes every panel by `panel(first column, values, width)`.
    fn fill(
        &mut self,
        (k, n): (usize, usize),
        parallel: bool,
        panel: impl Fn(usize, &mut [f32], usize) + Sync,
    ) {
        self.reset(k, n);
        let width = self.width;
        let (panels, size) = self.panels();
        let make = |(number, out): (usize, &mut [f32])| panel(number * width, out, width);
        if parallel {
            panels.par_chunks_exact_mut(size).enumerate().for_each(make);
        } else {
            panels.chunks_exact_mut(size).enumerate().for_each(make);
        }
    }

    fn rows(&mut self, parallel: bool, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(k == 0 || b.len() >= (k - 1) * stride + n);
        self.fill((k, n), parallel, |first, out, width| pack_panel(out, b, first, n, stride, width));
    }

    fn columns(&mut self, parallel: bool, b: &[f32], k: usize, n: usize, stride: usize) {
        assert!(n == 0 || b.len() >= (n - 1) * stride + k);
        self.fill((k, n), parallel, |first, out, width| {
            pack_panel_transposed(out, b, first, n, k, stride, width);
        });
    }

    /// Packs `b[k][n]` with `stride` values from row to row.
    pub fn pack(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        self.rows(false, b, k, n, stride);
    }

    /// Like [`Packed::pack`], on all cores.
    pub fn pack_parallel(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        self.rows(true, b, k, n, stride);
    }

    /// Packs the transpose of `b[n][k]`, `stride` values from row to row: weights as `[out, in]` for `x·Wᵀ`.
    pub fn pack_transposed(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        self.columns(false, b, k, n, stride);
    }

    /// Like [`Packed::pack_transposed`], on all cores.
    pub fn pack_transposed_parallel(&mut self, b: &[f32], k: usize, n: usize, stride: usize) {
        self.columns(true, b, k, n, stride);
    }
}

fn pack_panel(out: &mut [f32], b: &[f32], first: usize, n: usize, stride: usize, width: usize) {
    dispatch(PackPanel { out, b: &b[first..], columns: width.min(n - first), stride, width });
}

struct PackPanel<'a> {
    out: &'a mut [f32],
    b: &'a [f32],
    columns: usize,
    stride: usize,
    width: usize,
}

impl Kernel for PackPanel<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { out, b, columns, stride, width } = self;
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            // SAFETY: the machine has the instructions of this kernel.
            unsafe { copy::<S>(&b[row * stride..][..columns], &mut out[..columns]) };
            out[columns..].fill(0.0);
        }
    }
}

/// Copies some ten values: a call of `memcpy` would take longer than the copy.
#[inline(always)]
pub(super) unsafe fn copy<S: Simd>(from: &[f32], to: &mut [f32]) {
    let n = from.len().min(to.len());
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    if n < S::LANES {
        for i in 0..n {
            // SAFETY: both are as long as `n`.
            unsafe { to.add(i).write(from.add(i).read()) };
        }
        return;
    }
    // SAFETY: every start is at most n − LANES; the last register may overlap the one before.
    unsafe {
        for i in (0..n - S::LANES).step_by(S::LANES) {
            S::store(to.add(i), S::load(from.add(i)));
        }
        S::store(to.add(n - S::LANES), S::load(from.add(n - S::LANES)));
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

/// Rows and columns of a tile on this machine.
pub(super) fn tile_size() -> (usize, usize) {
    struct Size;
    impl Kernel for Size {
        type Output = (usize, usize);
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> (usize, usize) {
            (S::ROWS, 2 * S::LANES)
        }
    }
    dispatch(Size)
}
