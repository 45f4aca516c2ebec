//! The portable tile: plain loops over fixed-size arrays, for any processor; the standard that every other kernel is
//! tested against.

use super::blocked::{self, Block, Left, Out, ROW_STEP, Tile, check};
use super::view::View;

#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Tile for Portable {
    const ROWS: usize = 4;
    const COLS: usize = 4;

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        blocked::rows(self, a, range, block, out);
    }

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool) {
        check(self, depth, a, b, out, step);
        let (row_step, depth_step) = if a.by_depth { (1, a.depth_step) } else { (ROW_STEP, 1) };
        match a.rows {
            1 => rows::<1>(depth, a.data, row_step, depth_step, b, out, step, add),
            2 => rows::<2>(depth, a.data, row_step, depth_step, b, out, step, add),
            3 => rows::<3>(depth, a.data, row_step, depth_step, b, out, step, add),
            _ => rows::<4>(depth, a.data, row_step, depth_step, b, out, step, add),
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "a tile is a loop nest of its own, not an interface")]
#[inline(always)]
fn rows<const R: usize>(
    depth: usize,
    a: &[u64],
    row_step: usize,
    depth_step: usize,
    b: &[u64],
    out: &mut [u64],
    step: usize,
    add: bool,
) {
    const COLS: usize = Portable::COLS;
    let mut sums = [[0u64; COLS]; R];
    for (p, b) in b.as_chunks::<COLS>().0[..depth].iter().enumerate() {
        for r in 0..R {
            let x = a[r * row_step + p * depth_step];
            for c in 0..COLS {
                sums[r][c] = sums[r][c].wrapping_add(x.wrapping_mul(b[c]));
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (out, sum) in out[r * step..].iter_mut().zip(sums) {
            *out = if add { out.wrapping_add(*sum) } else { *sum };
        }
    }
}
