//! The blocked matrix product that the vector kernels share: packing, cache blocks, choice of orientation.
//!
//! computes   out (+)= A · B over Z_2^64, exact, in any order of summation (addition wraps, so the order cannot matter)
//! layout     B is packed in panels of `COLS` columns, depth-major and zero-padded. A is packed in strips of `ROWS`
//!            rows, each in the order in which A is stored (the tile reads both), so neither X·W nor X^T·G transposes
//!            anything
//! source     K. Goto, R. van de Geijn, *Anatomy of high-performance matrix multiplication* (ACM TOMS 34(3), 2008)

use super::view::View;
use rayon::prelude::*;
use std::cell::Cell;

/// Depth of a block. An 8-column panel of B is then at most 16 KiB and stays in L1 while the strips of A stream from
/// L2; the tile of `out` is touched once in 256 steps.
const DEPTH: usize = 256;
/// Distance between the rows of a strip that is packed row by row: a constant, so that it is part of the tile's
/// addresses, and no multiple of 4 KiB or a large power of two, so that the rows of a strip do not compete for the same
/// cache sets.
pub(super) const ROW_STEP: usize = DEPTH + 8;
/// Rows of A in a block: with `DEPTH`, 256 KiB, a quarter of a common L2.
const ROWS_BLOCK: usize = 128;
/// Columns of B in a block: 512 KiB.
const COLS_BLOCK: usize = 256;
/// A register tile: the innermost product of one kernel.
pub(super) trait Tile: Copy + Send + Sync {
    /// Most rows of A at once.
    const ROWS: usize;
    /// Columns of B at once, the width of a packed panel.
    const COLS: usize;
    /// Cost of transposing one element while packing, in multiply-adds of this tile: an estimate that only decides
    /// between the two orientations.
    const TRANSPOSE: usize = 6;
    /// `out[r * step + c] (+)= sum over p < depth of a(r, p) * b[p * COLS + c]`, for `a.rows` rows and `COLS` columns.
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool);
    /// Whether packed operands are followed by companions of the same size, made by `companion`.
    const COMPANIONS: bool = false;
    /// Puts a packed panel, `[depth][COLS]`, into the order that `run` reads.
    #[inline(always)]
    fn arrange(_panel: &mut [u64]) {}
    /// What a packed element of A (`LEFT`) or B has beside it for this tile.
    #[inline(always)]
    fn companion<const LEFT: bool>(_packed: u64) -> u64 {
        0
    }
    /// [`rows`], compiled for this kernel: another thread of the pool calls it from code that is not.
    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>);
}

/// A strip of up to `Tile::ROWS` rows of A. Element (r, p) is `data[r * ROW_STEP + p]`, or `data[r + p * depth_step]`
/// if `by_depth`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub data: &'a [u64],
    /// As long as `data`, element by element, if the tile has companions, else empty.
    pub companion: &'a [u64],
    pub rows: usize,
    pub by_depth: bool,
    pub depth_step: usize,
}

/// Calls `$rows::<R, BY_DEPTH>$arguments` with the constants of strip `$a`, for the numbers of rows that are listed.
macro_rules! by_rows {
    ($a:expr, $rows:ident $arguments:tt, $($count:literal),+) => {
        match ($a.rows, $a.by_depth) {
            $(
                ($count, false) => $rows::<$count, false> $arguments,
                ($count, true) => $rows::<$count, true> $arguments,
            )+
            _ => unreachable!("check admits no other number of rows"),
        }
    };
}
pub(super) use by_rows;

/// The bounds that a tile relies on: every element it reads or writes lies in its slice.
#[inline(always)]
pub(super) fn check<T: Tile>(_: T, depth: usize, a: Left<'_>, b: &[u64], out: &[u64], step: usize) {
    assert!(depth > 0 && (1..=T::ROWS).contains(&a.rows));
    let last = if a.by_depth { a.rows - 1 + (depth - 1) * a.depth_step } else { (a.rows - 1) * ROW_STEP + depth - 1 };
    assert!(last < a.data.len() && depth * panel_words::<T>() <= b.len() && (a.rows - 1) * step + T::COLS <= out.len());
    assert!(!T::COMPANIONS || last < a.companion.len());
}

/// Words of a packed panel for one depth.
const fn panel_words<T: Tile>() -> usize {
    if T::COMPANIONS { 2 * T::COLS } else { T::COLS }
}

/// How a product is written: added to what is there or over it, and in how many pieces of rows, which any thread of the
/// pool may take.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub accumulate: bool,
    pub pieces: usize,
}

impl Plan {
    /// Rows of a piece of m: whole tiles of `tile` rows, at most `block`.
    pub fn height(self, m: usize, tile: usize, block: usize) -> usize {
        m.div_ceil(self.pieces).next_multiple_of(tile).min(block.next_multiple_of(tile))
    }
}

/// A times B.
#[inline(always)]
pub(super) fn product<T: Tile>(tile: T, a: View, b: View, out: &mut [u64], plan: Plan) {
    let ((m, k), (_, n)) = (a.shape(), b.shape());
    let cost = |m: usize, n: usize, transposed: bool| {
        k * (m * n.next_multiple_of(T::COLS) + if transposed { n * T::TRANSPOSE } else { 0 })
    };
    // (A B)^T = B^T A^T: worth it when n is far from a multiple of the panel, or when it saves a transposition.
    if cost(n, m, !a.transposed) < cost(m, n, b.transposed) {
        // The rows of the transpose are columns of `out`: they cannot be handed out apart.
        let plan = Plan { pieces: 1, ..plan };
        return blocks(tile, b.t(), a.t(), Out { data: out, row_step: 1, col_step: n }, plan);
    }
    blocks(tile, a, b, Out { data: out, row_step: n, col_step: 1 }, plan)
}

/// Where a product goes.
pub(super) struct Out<'a> {
    data: &'a mut [u64],
    row_step: usize,
    col_step: usize,
}

/// 0..k in blocks of equal size (within one), at most `DEPTH`.
fn depth_blocks(k: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = k.div_ceil(DEPTH);
    (0..count).map(move |i| (i * k / count, (i + 1) * k / count))
}

#[inline(always)]
fn blocks<T: Tile>(tile: T, a: View, b: View, mut out: Out, plan: Plan) {
    let ((m, k), (_, n)) = (a.shape(), b.shape());
    let height = plan.height(m, T::ROWS, ROWS_BLOCK);
    let width = n.next_multiple_of(T::COLS);
    let panels = COLS_BLOCK.min(width).div_ceil(T::COLS);
    let mut right_buffer = Buffer::take(&RIGHT, panels * panel_words::<T>() * DEPTH.min(k));
    for (from, to) in depth_blocks(k) {
        for j in (0..n).step_by(COLS_BLOCK) {
            let columns = (j, n.min(j + COLS_BLOCK));
            let right =
                &mut right_buffer.slice()[..(columns.1 - j).div_ceil(T::COLS) * panel_words::<T>() * (to - from)];
            pack_right::<T>(b, (from, to), columns, right);
            let block = Block { depths: (from, to), columns, right, add: plan.accumulate || from > 0 };
            if plan.pieces == 1 {
                for i in (0..m).step_by(height) {
                    rows(tile, a, (i, m.min(i + height)), block, out.rows_from(i));
                }
            } else {
                // The right operand is packed once for all pieces.
                out.data.par_chunks_mut(height * n).enumerate().for_each(|(i, data)| {
                    let first = i * height;
                    tile.piece(a, (first, m.min(first + height)), block, Out { data, row_step: n, col_step: 1 });
                });
            }
        }
    }
    right_buffer.give_back(&RIGHT);
}

/// Some depths and columns of B, packed.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    depths: (usize, usize),
    columns: (usize, usize),
    right: &'a [u64],
    add: bool,
}

/// Rows `first..end` of A, at most `ROWS_BLOCK`, times a block of B; `out` begins with the first of them.
#[inline(always)]
pub(super) fn rows<T: Tile>(tile: T, a: View, (first, end): (usize, usize), block: Block, mut out: Out) {
    let Block { depths: (from, to), columns: (j, columns_end), right, add } = block;
    let (rows, depth) = (end - first, to - from);
    let in_place = readable_in_place(a) && !T::COMPANIONS;
    let words = if in_place { 0 } else { rows.next_multiple_of(T::ROWS) * ROW_STEP };
    let mut buffer = Buffer::take(&LEFT, if T::COMPANIONS { 2 * words } else { words });
    let (left, companion) = buffer.slice().split_at_mut(words);
    if !in_place {
        pack_left::<T>(a, (first, end), (from, to), left);
        for (y, &x) in companion.iter_mut().zip(&*left) {
            *y = T::companion::<true>(x);
        }
    }
    for (q, panel) in right.chunks_exact(panel_words::<T>() * depth).enumerate() {
        let column = j + q * T::COLS;
        for r in (0..rows).step_by(T::ROWS) {
            let part = r * ROW_STEP..(r + T::ROWS) * ROW_STEP;
            let (data, depth_step) = if in_place {
                (&a.data[from * a.stored_cols() + first + r..], a.stored_cols())
            } else {
                (&left[part.clone()], T::ROWS)
            };
            let companion = if T::COMPANIONS { &companion[part] } else { &companion[..0] };
            let strip = Left { data, companion, rows: T::ROWS.min(rows - r), by_depth: a.transposed, depth_step };
            out.tile(tile, depth, strip, panel, (r, column, T::COLS.min(columns_end - column)), add);
        }
    }
    buffer.give_back(&LEFT);
}

/// A transposed operand can be read where it lies: a strip is a few columns of the stored matrix. Unless its rows are
/// so far apart that the strip's lines would compete for a few sets of the cache.
fn readable_in_place(a: View) -> bool {
    a.transposed && !a.stored_cols().is_multiple_of(128)
}

#[repr(align(64))]
struct Scratch([u64; 128]);

impl Out<'_> {
    fn rows_from(&mut self, i: usize) -> Out<'_> {
        Out { data: &mut self.data[i * self.row_step..], row_step: self.row_step, col_step: self.col_step }
    }

    /// One tile at (i, j); adds where earlier depth blocks or the caller's values are there already.
    #[inline(always)]
    fn tile<T: Tile>(
        &mut self,
        tile: T,
        depth: usize,
        a: Left,
        b: &[u64],
        (i, j, cols): (usize, usize, usize),
        add: bool,
    ) {
        let start = i * self.row_step + j * self.col_step;
        if self.col_step == 1 && cols == T::COLS {
            return tile.run(depth, a, b, &mut self.data[start..], self.row_step, add);
        }
        let mut scratch = Scratch([0; 128]);
        tile.run(depth, a, b, &mut scratch.0, T::COLS, false);
        for r in 0..a.rows {
            for c in 0..cols {
                let out = &mut self.data[start + r * self.row_step + c * self.col_step];
                let sum = scratch.0[r * T::COLS + c];
                *out = if add { out.wrapping_add(sum) } else { sum };
            }
        }
    }
}

/// Rows `i..end` of A at depths `from..to`, strip after strip, each in A's own storage order.
#[inline(always)]
fn pack_left<T: Tile>(a: View, (i, end): (usize, usize), (from, to): (usize, usize), buffer: &mut [u64]) {
    if a.transposed {
        for p in from..to {
            for (q, strip) in a.stored(p, i, end).chunks(T::ROWS).enumerate() {
                let target = &mut buffer[q * T::ROWS * ROW_STEP + (p - from) * T::ROWS..];
                target[..strip.len()].copy_from_slice(strip);
            }
        }
    } else {
        for r in i..end {
            buffer[(r - i) * ROW_STEP..][..to - from].copy_from_slice(a.stored(r, from, to));
        }
    }
}

/// Depths `from..to` and columns `j..end` of B, panel after panel, `[depth][COLS]`, the last one padded with zeros.
#[inline(always)]
fn pack_right<T: Tile>(b: View, (from, to): (usize, usize), (j, end): (usize, usize), buffer: &mut [u64]) {
    let depth = to - from;
    for (q, panel) in buffer.chunks_exact_mut(panel_words::<T>() * depth).enumerate() {
        let (panel, companion) = panel.split_at_mut(T::COLS * depth);
        let first = j + q * T::COLS;
        let cols = T::COLS.min(end - first);
        if b.transposed {
            if cols < T::COLS {
                panel.fill(0);
            }
            for c in 0..cols {
                for (p, &x) in b.stored(first + c, from, to).iter().enumerate() {
                    panel[p * T::COLS + c] = x;
                }
            }
        } else {
            for (p, row) in panel.chunks_exact_mut(T::COLS).enumerate() {
                let data = b.stored(from + p, first, first + cols);
                if cols == T::COLS {
                    row[..T::COLS].copy_from_slice(&data[..T::COLS]);
                } else {
                    row[..cols].copy_from_slice(data);
                    row[cols..].fill(0);
                }
            }
        }
        T::arrange(panel);
        for (y, &x) in companion.iter_mut().zip(&*panel) {
            *y = T::companion::<false>(x);
        }
    }
}

thread_local! {
    static LEFT: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
    static RIGHT: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

/// A packing buffer of this thread, aligned to 64 bytes, kept for the next product: no allocation in the steady state.
struct Buffer {
    memory: Vec<u64>,
    start: usize,
    len: usize,
}

impl Buffer {
    fn take(place: &'static std::thread::LocalKey<Cell<Vec<u64>>>, len: usize) -> Self {
        let mut memory = place.take();
        if memory.len() < len + 8 {
            memory.resize(len + 8, 0);
        }
        let start = memory.as_ptr().align_offset(64).min(8);
        Buffer { memory, start, len }
    }

    fn slice(&mut self) -> &mut [u64] {
        &mut self.memory[self.start..self.start + self.len]
    }

    fn give_back(self, place: &'static std::thread::LocalKey<Cell<Vec<u64>>>) {
        place.set(self.memory);
    }
}
