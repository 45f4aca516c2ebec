//! The AVX2 tile: 3 rows by 8 columns; products mod 2^64 from 32-bit ones.
//!
//! computes   with x = x_1 2^32 + x_0 and y likewise, x y = x_0 y_0 + (x_1 y_0 + x_0 y_1) 2^32 mod 2^64. The low
//!            products are summed mod 2^64. The cross terms are needed mod 2^32 only, so `vpmulld` gives eight of them
//!            at once, summed mod 2^32. The two sums are joined once, at the end
//! cost       two `vpmuludq`, two `vpmulld` and four additions for eight products
//! layout     a panel row of B is eight low halves in the order of columns 0, 4, 1, 5, 2, 6, 3, 7, then eight high
//!            halves likewise: `vpmuludq` reads every other half, columns 0 to 3, and after a shift by 32 columns 4 to
//!            7. Sums, operands and broadcasts fill 14 of the 16 registers
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
    const ROWS: usize = 3;
    const COLS: usize = 8;
    const TRANSPOSE: usize = 3;

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        #[target_feature(enable = "avx2")]
        fn compiled(tile: Avx2, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
            blocked::rows(tile, a, range, block, out)
        }
        // SAFETY: `self` exists, so the feature does.
        unsafe { compiled(self, a, range, block, out) }
    }

    #[inline(always)]
    fn arrange(panel: &mut [u64]) {
        const LOW: u64 = 0xffff_ffff;
        for row in panel.as_chunks_mut::<8>().0 {
            for c in 0..4 {
                let (first, second) = (row[c], row[c + 4]);
                row[c] = first & LOW | second << 32;
                row[c + 4] = first >> 32 | second & !LOW;
            }
        }
    }

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool) {
        blocked::check(self, depth, a, b, out, step);
        // SAFETY: `self` exists, so the features do; the lengths that `rows` needs were just checked.
        unsafe { blocked::by_rows!(a, rows(depth, a, b, out, step, add), 1, 2, 3) }
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
    let mut low = [[_mm256_setzero_si256(); 2]; R];
    let mut cross = [_mm256_setzero_si256(); R];
    let (mut x, mut y) = (a.data.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 8 p of `b`, `x` at p * depth_step of `a`, p < depth: inside by this function's
        // contract. The steps past the last element are never read, hence `wrapping_add`. A little-endian element's
        // halves are two readable u32.
        unsafe {
            let y0 = _mm256_loadu_si256(y.cast());
            let y0_odd = _mm256_srli_epi64::<32>(y0);
            let y1 = _mm256_loadu_si256(y.add(4).cast());
            for r in 0..R {
                let halves = x.add(r * row_step).cast::<i32>();
                let (x0, x1) = (_mm256_set1_epi32(*halves), _mm256_set1_epi32(*halves.add(1)));
                low[r][0] = _mm256_add_epi64(low[r][0], _mm256_mul_epu32(x0, y0));
                low[r][1] = _mm256_add_epi64(low[r][1], _mm256_mul_epu32(x0, y0_odd));
                cross[r] = _mm256_add_epi32(cross[r], _mm256_mullo_epi32(x1, y0));
                cross[r] = _mm256_add_epi32(cross[r], _mm256_mullo_epi32(x0, y1));
            }
        }
        x = x.wrapping_add(depth_step);
        y = y.wrapping_add(Avx2::COLS);
    }
    for r in 0..R {
        // Even halves of `cross` belong to columns 0 to 3, odd ones to 4 to 7.
        let high = [_mm256_slli_epi64::<32>(cross[r]), _mm256_and_si256(cross[r], _mm256_set1_epi64x(!0xffff_ffff))];
        for half in 0..2 {
            let sum = _mm256_add_epi64(low[r][half], high[half]);
            // SAFETY: row r < R of `out` has 8 elements from r * step on, by contract.
            unsafe {
                let place = out.as_mut_ptr().add(r * step + 4 * half).cast();
                let sum = if add { _mm256_add_epi64(sum, _mm256_loadu_si256(place)) } else { sum };
                _mm256_storeu_si256(place, sum);
            }
        }
    }
}
