//! Matrices of bits, and their products with matrices of words.
//!
//! computes   L V over Z_2^64 for bits L and words V: each row of the product is a sum of some rows of V
//! cost       a quarter of an addition a bit: for every four rows of V and eight of its columns the sixteen possible sums are made once, and each
//!            row of L picks one of them. The tables of 64 rows are 16 KiB and stay in L1
//! source     V. L. Arlazarov, E. A. Dinic, M. A. Kronrod, I. A. Faradzhev, *On economical construction of the transitive closure of an oriented
//!            graph* (1970), the "method of the four Russians"; here over a ring of words

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::Kernel;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::view::View;
use super::wide::{Pass, run_wide_for};
use rayon::prelude::*;
use std::cell::Cell;

/// Bits of a word, rows of V that share a set of tables.
const WORD: usize = 64;
/// Rows of V that share a table.
const GROUP: usize = 4;
/// Columns of V in a table: one 512-bit vector.
const COLS: usize = 8;

/// A matrix of bits, 64 a word: bit c mod 64 of word c / 64 of a row is its column c. What is beyond the last column is not looked at.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    words: &'a [u64],
    rows: usize,
    cols: usize,
}

impl<'a> Bits<'a> {
    /// The matrix `words`, `rows × cols`.
    pub fn new(words: &'a [u64], rows: usize, cols: usize) -> Self {
        assert_eq!(Some(words.len()), rows.checked_mul(Self::words_for(cols)), "{rows} × {cols} bits");
        Bits { words, rows, cols }
    }

    /// Words of a row of `cols` bits.
    pub fn words_for(cols: usize) -> usize {
        cols.div_ceil(WORD)
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Writes the transpose, `cols` rows of `rows` bits.
    pub fn transpose(self, out: &mut [u64]) {
        let (step, out_step) = (Self::words_for(self.cols), Self::words_for(self.rows));
        assert_eq!(out.len(), self.cols * out_step, "the transpose of {} × {} bits", self.rows, self.cols);
        let (mut block, mut turned) = ([0; WORD], [0; WORD]);
        for i in 0..out_step {
            let rows = WORD.min(self.rows - i * WORD);
            for j in 0..step {
                block[rows..].fill(0);
                for (r, word) in block.iter_mut().enumerate().take(rows) {
                    *word = self.words[(i * WORD + r) * step + j];
                }
                super::to_planes(&block, 0, WORD as u32, &mut turned);
                for (c, &word) in turned.iter().enumerate().take(self.cols - j * WORD) {
                    out[(j * WORD + c) * out_step + i] = word;
                }
            }
        }
    }
}

/// The lowest bits of `values`, a row-major matrix of `cols` columns, as words of [`Bits`].
pub fn lowest_bits(values: &[u64], cols: usize, out: &mut [u64]) {
    if cols.is_multiple_of(WORD) {
        return super::to_planes(values, 0, 1, out);
    }
    assert_eq!(out.len(), values.len() / cols * Bits::words_for(cols), "the lowest bits of rows of {cols}");
    let rows = values.chunks_exact(cols).zip(out.chunks_exact_mut(Bits::words_for(cols)));
    rows.for_each(|(row, out)| super::to_planes(row, 0, 1, out));
}

impl Kernel {
    /// `out = L · V` over Z_2^64: L is m × k, V is k × n, `out` is m × n row-major. In up to `pieces` pieces of columns, for the threads of the rayon
    /// pool that it is called in; the result does not depend on their number.
    ///
    /// Panics if the shapes do not fit: a fault of the caller, not of any input.
    pub fn bit_matmul_in(self, pieces: usize, left: Bits, right: View, out: &mut [u64]) {
        let ((m, k), (depth, n)) = (left.shape(), right.shape());
        assert_eq!(k, depth, "{m} × {k} bits cannot be multiplied by a {depth} × {n} matrix");
        assert_eq!(Some(out.len()), m.checked_mul(n), "the product is {m} × {n}, the output has {}", out.len());
        if out.is_empty() {
            return;
        }
        // One panel of the product after another, so that each is a slice of its own whoever makes it.
        let mut kept = PANELS.take();
        let panels = n.div_ceil(COLS);
        kept.resize(kept.len().max(m * panels), Row([0; COLS]));
        let product = &mut kept[..m * panels];
        let one = |(j, out): (usize, &mut [Row])| {
            let columns = (j * COLS, n.min((j + 1) * COLS));
            #[cfg(target_arch = "x86_64")]
            if let (Kernel::Avx512 | Kernel::Ifma | Kernel::Amx, Some(sums)) = (self, Avx512::new()) {
                return panel(sums, left, right, columns, out);
            }
            panel(Plain(self), left, right, columns, out);
        };
        // Below this size a piece costs more than it saves.
        const WORTH_A_PIECE: usize = 1 << 20;
        let pieces = pieces.min(m * k * n / WORTH_A_PIECE).max(1);
        if pieces == 1 {
            product.chunks_mut(m).enumerate().for_each(one);
        } else {
            product.par_chunks_mut(m).with_min_len(panels.div_ceil(pieces)).enumerate().for_each(one);
        }
        for (r, row) in out.chunks_exact_mut(n).enumerate() {
            let (whole, rest) = row.as_chunks_mut::<COLS>();
            let mut panels = product[r..].iter().step_by(m);
            whole.iter_mut().zip(&mut panels).for_each(|(out, panel)| *out = panel.0);
            if let Some(last) = panels.next() {
                rest.copy_from_slice(&last.0[..rest.len()]);
            }
        }
        PANELS.set(kept);
    }
}

thread_local! {
    /// Kept for the next product: no allocation in the steady state.
    static PANELS: Cell<Vec<Row>> = const { Cell::new(Vec::new()) };
}

/// Eight columns of a row: one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([u64; COLS]);

/// The sums of all subsets of four rows of V: number 5 is row 0 plus row 2.
type Table = [Row; 1 << GROUP];

/// Making tables and picking from them.
trait Sums: Copy {
    /// The tables of 64 rows. Their numbers 0 are zero before and after.
    fn fill(self, rows: &[Row; WORD], tables: &mut [Table; WORD / GROUP]);
    /// Adds to row r of `out` what word `r * step` picks, four bits from each table.
    fn add(self, tables: &[Table], words: &[u64], step: usize, out: &mut [Row]);
}

/// Columns `j..end` of the product, all rows.
fn panel(sums: impl Sums, left: Bits, right: View, (j, end): (usize, usize), out: &mut [Row]) {
    out.fill(Row([0; COLS]));
    let step = Bits::words_for(left.cols);
    // Rows of V, 0 beyond its last row and column.
    let mut rows = [Row([0; COLS]); WORD];
    let mut tables = [[Row([0; COLS]); 1 << GROUP]; WORD / GROUP];
    for w in 0..step {
        let (from, to) = (w * WORD, left.cols.min((w + 1) * WORD));
        if right.transposed {
            for c in j..end {
                for (row, &x) in rows.iter_mut().zip(right.stored(c, from, to)) {
                    row.0[c - j] = x;
                }
            }
        } else {
            for (row, p) in rows.iter_mut().zip(from..to) {
                match right.stored(p, j, end).try_into() {
                    Ok(whole) => row.0 = whole,
                    Err(_) => row.0[..end - j].copy_from_slice(right.stored(p, j, end)),
                }
            }
        }
        rows[to - from..].fill(Row([0; COLS]));
        sums.fill(&rows, &mut tables);
        sums.add(&tables[..(to - from).div_ceil(GROUP)], &left.words[w..], step, out);
    }
}

/// Plain loops, compiled for the vectors of a kernel.
#[derive(Clone, Copy)]
struct Plain(Kernel);

impl Sums for Plain {
    fn fill(self, rows: &[Row; WORD], tables: &mut [Table; WORD / GROUP]) {
        run_wide_for(self.0, Fill { rows, tables });
    }

    fn add(self, tables: &[Table], words: &[u64], step: usize, out: &mut [Row]) {
        run_wide_for(self.0, Add { tables, words, step, out });
    }
}

struct Fill<'a> {
    rows: &'a [Row; WORD],
    tables: &'a mut [Table; WORD / GROUP],
}

impl Pass for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (table, rows) in self.tables.iter_mut().zip(self.rows.as_chunks::<GROUP>().0) {
            for (r, row) in rows.iter().enumerate() {
                for subset in 0..1 << r {
                    table[subset + (1 << r)] = plus(table[subset], *row);
                }
            }
        }
    }
}

struct Add<'a> {
    tables: &'a [Table],
    words: &'a [u64],
    step: usize,
    out: &'a mut [Row],
}

impl Pass for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, words) in self.out.iter_mut().zip(self.words.chunks(self.step)) {
            let (mut word, mut sum) = (words[0], *out);
            for table in self.tables {
                sum = plus(sum, table[word as usize % (1 << GROUP)]);
                word >>= GROUP;
            }
            *out = sum;
        }
    }
}

#[inline(always)]
fn plus(a: Row, b: Row) -> Row {
    Row(std::array::from_fn(|c| a.0[c].wrapping_add(b.0[c])))
}
