//! The portable tile: plain loops over fixed-size arrays, for any processor; the standard that every other kernel is tested against.

use super::blocked::{Left, Tile};

#[derive(Clone, Copy)]
pub(super) struct Portable;

const COLS: usize = 4;

impl Tile for Portable {
    const ROWS: usize = 4;
    const COLS: usize = COLS;

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], acc: &mut [u64]) {
        match a.rows {
            1 => rows::<1>(depth, a, b, acc),
            2 => rows::<2>(depth, a, b, acc),
            3 => rows::<3>(depth, a, b, acc),
            _ => rows::<4>(depth, a, b, acc),
        }
    }
}

#[inline(always)]
fn rows<const R: usize>(depth: usize, a: Left<'_>, b: &[u64], acc: &mut [u64]) {
    a.check(depth, R);
    let mut sums = [[0u64; COLS]; R];
    for (p, b) in b.as_chunks::<COLS>().0[..depth].iter().enumerate() {
        for r in 0..R {
            let x = a.data[r * a.row_step + p * a.depth_step];
            for c in 0..COLS {
                sums[r][c] = sums[r][c].wrapping_add(x.wrapping_mul(b[c]));
            }
        }
    }
    acc.copy_from_slice(sums.as_flattened());
}
