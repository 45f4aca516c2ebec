//! The AVX-512 tile: 16 rows by 8 columns of 64-bit accumulators, `vpmullq` with a broadcast operand from memory,
//! `vpaddq`.
//!
//! On Zen 4 `vpmullq` runs once a cycle on a full vector, the same rate as the f64 multiply-add, but the addition
//! competes for the same units. One vector of columns lets the broadcast be part of the multiplication: measured 24 G
//! multiply-adds/s, against 22 for two, three or four vectors of columns and 29.5 for f64. The only dependency from
//! step to step is the addition (one cycle), so 16 accumulators hide everything, and 16 × 8 fits the paper's 128 units
//! without padding.
#![allow(unsafe_code)]

use super::blocked::{self, Block, Left, Out, Plan, ROW_STEP, Tile};
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
    pub fn product(self, a: View, b: View, out: &mut [u64], plan: Plan) {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(tile: Avx512, a: View, b: View, out: &mut [u64], plan: Plan) {
            blocked::product(tile, a, b, out, plan)
        }
        // SAFETY: `self` exists, so the features do.
        unsafe { compiled(self, a, b, out, plan) }
    }
}

impl Tile for Avx512 {
    const ROWS: usize = 16;
    const COLS: usize = 8;

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(tile: Avx512, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
            blocked::rows(tile, a, range, block, out)
        }
        // SAFETY: `self` exists, so the features do.
        unsafe { compiled(self, a, range, block, out) }
    }

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool) {
        blocked::check(self, depth, a, b, out, step);
        // SAFETY: `self` exists, so the features do; the lengths that `rows` needs were just checked.
        unsafe {
            blocked::by_rows!(
                a,
                rows(depth, a, b, out, step, add),
                1,
                2,
                3,
                4,
                5,
                6,
                7,
                8,
                9,
                10,
                11,
                12,
                13,
                14,
                15,
                16
            )
        }
    }
}

/// # Safety
/// What [`blocked::check`] checks, with R rows and BY_DEPTH as in `a`.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn rows<const R: usize, const BY_DEPTH: bool>(
    depth: usize,
    a: Left<'_>,
    b: &[u64],
    out: &mut [u64],
    step: usize,
    add: bool,
) {
    let (row_step, depth_step) = if BY_DEPTH { (1, a.depth_step) } else { (ROW_STEP, 1) };
    let mut sums = [_mm512_setzero_si512(); R];
    let (mut x, mut y) = (a.data.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 8 p of `b`, `x` at p * depth_step of `a`, p < depth: inside by this function's
        // contract. The steps past the last element are never read, hence `wrapping_add`.
        unsafe {
            let y = _mm512_loadu_si512(y.cast());
            for r in 0..R {
                let x = _mm512_set1_epi64(*x.add(r * row_step) as i64);
                sums[r] = _mm512_add_epi64(sums[r], _mm512_mullo_epi64(x, y));
            }
        }
        x = x.wrapping_add(depth_step);
        y = y.wrapping_add(Avx512::COLS);
    }
    for (r, &sum) in sums.iter().enumerate() {
        // SAFETY: row r < R of `out` has 8 elements from r * step on, by contract.
        unsafe {
            let place = out.as_mut_ptr().add(r * step).cast();
            let sum = if add { _mm512_add_epi64(sum, _mm512_loadu_si512(place)) } else { sum };
            _mm512_storeu_si512(place.cast(), sum);
        }
    }
}
