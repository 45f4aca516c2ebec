//! The AVX2 tile: 4 rows by 4 columns; products mod 2^64 from three 32-bit ones.
//!
//! With x = x_1 2^32 + x_0 and y likewise, x y = x_0 y_0 + (x_1 y_0 + x_0 y_1) 2^32 mod 2^64. The two parts are summed apart, each wrapping mod
//! 2^64, and the shift is done once at the end: a step costs three `vpmuludq` and three additions for four products.
#![allow(unsafe_code)]

use super::blocked::{self, Block, Left, Out, Plan, ROW_STEP, Tile};
use super::view::View;
use std::arch::x86_64::*;

/// Proof that this CPU has AVX2: made by [`Avx2::new`] only.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub fn new() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }

    /// [`blocked::product`], compiled for AVX2 throughout.
    pub fn product(self, a: View, b: View, out: &mut [u64], plan: Plan) {
        #[target_feature(enable = "avx2")]
        fn compiled(tile: Avx2, a: View, b: View, out: &mut [u64], plan: Plan) {
            blocked::product(tile, a, b, out, plan)
        }
        // SAFETY: `self` exists, so the feature does.
        unsafe { compiled(self, a, b, out, plan) }
    }
}

impl Tile for Avx2 {
    const ROWS: usize = 4;
    const COLS: usize = 4;

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        #[target_feature(enable = "avx2")]
        fn compiled(tile: Avx2, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
            blocked::rows(tile, a, range, block, out)
        }
        // SAFETY: `self` exists, so the feature does.
        unsafe { compiled(self, a, range, block, out) }
    }

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool) {
        blocked::check(self, depth, a, b, out, step);
        // SAFETY: `self` exists, so the features do; the lengths that `rows` needs were just checked.
        unsafe {
            match (a.rows, a.by_depth) {
                (1, false) => rows::<1, false>(depth, a, b, out, step, add),
                (2, false) => rows::<2, false>(depth, a, b, out, step, add),
                (3, false) => rows::<3, false>(depth, a, b, out, step, add),
                (4, false) => rows::<4, false>(depth, a, b, out, step, add),
                (1, true) => rows::<1, true>(depth, a, b, out, step, add),
                (2, true) => rows::<2, true>(depth, a, b, out, step, add),
                (3, true) => rows::<3, true>(depth, a, b, out, step, add),
                (4, true) => rows::<4, true>(depth, a, b, out, step, add),
                _ => unreachable!("check admits 1..=4 rows"),
            }
        }
    }
}

/// # Safety
/// What [`blocked::check`] checks, with R rows and BY_DEPTH as in `a`.
#[target_feature(enable = "avx2")]
unsafe fn rows<const R: usize, const BY_DEPTH: bool>(
    depth: usize,
    a: Left<'_>,
    b: &[u64],
    out: &mut [u64],
    step: usize,
    add: bool,
) {
    let (row_step, depth_step) = if BY_DEPTH { (1, a.depth_step) } else { (ROW_STEP, 1) };
    let mut low = [_mm256_setzero_si256(); R];
    let mut cross = [_mm256_setzero_si256(); R];
    let (mut x, mut y) = (a.data.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 4 p of `b`, `x` at p * depth_step of `a`, p < depth: inside by this function's contract. The steps past the
        // last element are never read, hence `wrapping_add`. A little-endian element's halves are two readable u32.
        unsafe {
            let y0 = _mm256_loadu_si256(y.cast());
            let y1 = _mm256_srli_epi64::<32>(y0);
            for r in 0..R {
                let halves = x.add(r * row_step).cast::<i32>();
                let (x0, x1) = (_mm256_set1_epi32(*halves), _mm256_set1_epi32(*halves.add(1)));
                low[r] = _mm256_add_epi64(low[r], _mm256_mul_epu32(x0, y0));
                cross[r] = _mm256_add_epi64(cross[r], _mm256_mul_epu32(x1, y0));
                cross[r] = _mm256_add_epi64(cross[r], _mm256_mul_epu32(x0, y1));
            }
        }
        x = x.wrapping_add(depth_step);
        y = y.wrapping_add(Avx2::COLS);
    }
    for r in 0..R {
        let sum = _mm256_add_epi64(low[r], _mm256_slli_epi64::<32>(cross[r]));
        // SAFETY: row r < R of `out` has 4 elements from r * step on, by contract.
        unsafe {
            let place = out.as_mut_ptr().add(r * step).cast();
            let sum = if add { _mm256_add_epi64(sum, _mm256_loadu_si256(place)) } else { sum };
            _mm256_storeu_si256(place, sum);
        }
    }
}
