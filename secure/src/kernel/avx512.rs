//! The AVX-512 tile: 8 rows by 16 columns of 64-bit accumulators, `vpmullq` + `vpaddq`.
//!
//! On Zen 4 `vpmullq` runs once a cycle on a full vector, the same rate as the f64 multiply-add. The only dependency from step to step is
//! the addition (one cycle), so 16 accumulators hide everything; 8 × 16 fits the paper's 128 units without padding.
#![allow(unsafe_code)]

use super::blocked::{self, Left, Right, Tile};
use super::view::View;
use std::arch::x86_64::*;

/// Proof that this CPU has AVX-512 F and DQ: made by [`Avx512::new`] only.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")).then_some(Avx512(()))
    }

    /// [`blocked::product`], compiled for AVX-512 throughout.
    pub fn product(self, a: View, first: usize, b: Right, shape: (usize, usize), out: &mut [u64], accumulate: bool) {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(
            tile: Avx512,
            a: View,
            first: usize,
            b: Right,
            shape: (usize, usize),
            out: &mut [u64],
            accumulate: bool,
        ) {
            blocked::product(tile, a, first, b, shape, out, accumulate)
        }
        // SAFETY: `self` exists, so the features do.
        unsafe { compiled(self, a, first, b, shape, out, accumulate) }
    }

    /// [`blocked::pack`], compiled for AVX-512.
    pub fn pack(self, b: View) -> Vec<u64> {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(tile: Avx512, b: View) -> Vec<u64> {
            blocked::pack(tile, b)
        }
        // SAFETY: as above.
        unsafe { compiled(self, b) }
    }
}

const COLS: usize = 16;

impl Tile for Avx512 {
    const ROWS: usize = 8;
    const COLS: usize = COLS;

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], acc: &mut [u64]) {
        a.check(depth, 8);
        assert!(b.len() >= depth * COLS && acc.len() >= a.rows * COLS);
        // SAFETY: `self` exists, so the features do; the lengths that `rows` needs were just checked.
        unsafe {
            match a.rows {
                1 => rows::<1>(depth, a, b, acc),
                2 => rows::<2>(depth, a, b, acc),
                3 => rows::<3>(depth, a, b, acc),
                4 => rows::<4>(depth, a, b, acc),
                5 => rows::<5>(depth, a, b, acc),
                6 => rows::<6>(depth, a, b, acc),
                7 => rows::<7>(depth, a, b, acc),
                _ => rows::<8>(depth, a, b, acc),
            }
        }
    }
}

/// # Safety
/// `a` holds R rows of `depth` elements in its steps, `b` has `depth * 16` elements, `acc` has `R * 16`.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
unsafe fn rows<const R: usize>(depth: usize, a: Left<'_>, b: &[u64], acc: &mut [u64]) {
    let mut sums = [[_mm512_setzero_si512(); 2]; R];
    let (mut x, mut y) = (a.data.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 16 p of `b`, `x` at p * depth_step of `a`, p < depth: inside by this function's contract. The steps past the
        // last element are never read, hence `wrapping_add`.
        unsafe {
            let (y0, y1) = (_mm512_loadu_si512(y.cast()), _mm512_loadu_si512(y.add(8).cast()));
            for r in 0..R {
                let x = _mm512_set1_epi64(*x.add(r * a.row_step) as i64);
                sums[r][0] = _mm512_add_epi64(sums[r][0], _mm512_mullo_epi64(x, y0));
                sums[r][1] = _mm512_add_epi64(sums[r][1], _mm512_mullo_epi64(x, y1));
            }
        }
        x = x.wrapping_add(a.depth_step);
        y = y.wrapping_add(COLS);
    }
    for (r, sum) in sums.iter().enumerate() {
        // SAFETY: `acc` has R * 16 elements.
        unsafe {
            _mm512_storeu_si512(acc.as_mut_ptr().add(r * COLS).cast(), sum[0]);
            _mm512_storeu_si512(acc.as_mut_ptr().add(r * COLS + 8).cast(), sum[1]);
        }
    }
}
