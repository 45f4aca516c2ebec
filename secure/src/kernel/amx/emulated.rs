//! The tile unit in plain Rust, after the manual's pseudocode: lets the tests run layout and sums on any processor.

use super::{LimbSums, Tile, TileUnit};

pub(in crate::kernel) struct Emulated;

impl TileUnit for Emulated {
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8] {
        std::array::from_fn(|limb| values.map(|v| v.to_le_bytes()[limb]))
    }

    fn limb_sums(&mut self, left: &[[Tile; 8]], right: &[[Tile; 8]], sums: &mut LimbSums) {
        assert!(left.len() == right.len() && !left.is_empty());
        *sums = [[[0; 16]; 16]; 8];
        for (left, right) in left.iter().zip(right) {
            for (weight, sums) in sums.iter_mut().enumerate() {
                for i in 0..=weight {
                    dot(&left[i], &right[weight - i], sums);
                }
            }
        }
    }
}

/// `TDPBUUD`: sums[m][n] += sum over k < 16, t < 4 of a[m][4 k + t] b[k][4 n + t].
pub(super) fn dot(a: &Tile, b: &Tile, sums: &mut [[u32; 16]; 16]) {
    let (a, b) = (a.0.as_chunks::<64>().0, b.0.as_chunks::<64>().0);
    for (a, sums) in a.iter().zip(sums) {
        for (k, a) in a.as_chunks::<4>().0.iter().enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                for t in 0..4 {
                    // No wrap: the headroom of the kernel; the test profile would stop at an overflow.
                    *sum += u32::from(a[t]) * u32::from(b[k][4 * n + t]);
                }
            }
        }
    }
}
