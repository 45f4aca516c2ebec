//! The IFMA tile: 14 rows by 8 columns; products mod 2^64 from 52-bit ones, for AVX-512 processors where `vpmullq` is
//! slow.
//!
//! computes   with x = x_1 2^52 + x_0 and y likewise, x y = low52(x_0 y_0) + (high52(x_0 y_0) + x_0 y_1 + x_1 y_0) 2^52
//!            mod 2^64. `vpmadd52luq` and `vpmadd52huq` read the lower 52 bits of their operands and add to 64-bit
//!            sums. The other two terms are needed mod 2^12 only: `vpdpwssd` adds the two products of 12-bit halves in
//!            the lower 32 bits of the sum of the high parts, the rest of which does not matter
//! cost       three multiply-accumulates for eight products. `vpmullq` is three operations on Intel's processors, with
//!            the addition four
//! layout     beside every packed element of A lie x_1 and the lower 12 bits of x_0 as 16-bit values, beside one of B
//!            the lower 12 bits of y_0 and y_1. 28 registers of sums, two of B; A is broadcast from memory
//! source     Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (the instructions); uops.info
//!            (operations of each by processor)
#![allow(unsafe_code)]

use super::blocked::{self, Block, Left, Out, Plan, ROW_STEP, Tile};
use super::view::View;
use std::arch::x86_64::*;

/// Proof that this CPU has AVX-512 F, DQ, IFMA and VNNI: made by [`Ifma::new`] only.
#[derive(Clone, Copy)]
pub(super) struct Ifma(());

impl Ifma {
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vnni"))
        .then_some(Ifma(()))
    }

    /// Whether this processor is one of those where `vpmullq` is three operations: all of Intel's that have it. On
    /// AMD's it is one.
    pub fn pays() -> bool {
        let vendor = __cpuid(0);
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
    }

    /// [`blocked::product`], compiled for AVX-512 throughout.
    pub fn product(self, a: View, b: View, out: &mut [u64], plan: Plan) {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(tile: Ifma, a: View, b: View, out: &mut [u64], plan: Plan) {
            blocked::product(tile, a, b, out, plan)
        }
        // SAFETY: `self` exists, so the features do.
        unsafe { compiled(self, a, b, out, plan) }
    }
}

impl Tile for Ifma {
    const ROWS: usize = 14;
    const COLS: usize = 8;
    const COMPANIONS: bool = true;

    #[inline(always)]
    fn companion<const LEFT: bool>(packed: u64) -> u64 {
        let (low, high) = (packed & 0xfff, packed >> 52);
        if LEFT { high | low << 16 } else { low | high << 16 }
    }

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn compiled(tile: Ifma, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
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
            blocked::by_rows!(a, rows(depth, a, b, out, step, add), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
        }
    }
}

/// # Safety
/// What [`blocked::check`] checks, with R rows and BY_DEPTH as in `a`.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vnni")]
unsafe fn rows<const R: usize, const BY_DEPTH: bool>(
    depth: usize,
    a: Left<'_>,
    b: &[u64],
    out: &mut [u64],
    step: usize,
    add: bool,
) {
    let (row_step, depth_step) = if BY_DEPTH { (1, a.depth_step) } else { (ROW_STEP, 1) };
    let mut low = [_mm512_setzero_si512(); R];
    let mut high = [_mm512_setzero_si512(); R];
    let (mut x, mut x_halves) = (a.data.as_ptr(), a.companion.as_ptr());
    let (mut y, mut y_halves) = (b.as_ptr(), b[Ifma::COLS * depth..].as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 8 p of `b` and `y_halves` 8 depth after it, `x` and `x_halves` at p * depth_step of
        // `a`, p < depth: inside by this function's contract. The steps past the last element are never read, hence
        // `wrapping_add`. The lower half of a little-endian element is a readable u32 at its address.
        unsafe {
            let (whole, halves) = (_mm512_loadu_si512(y.cast()), _mm512_loadu_si512(y_halves.cast()));
            for r in 0..R {
                let x = _mm512_set1_epi64(*x.add(r * row_step) as i64);
                let x_halves = _mm512_set1_epi32(*x_halves.add(r * row_step).cast::<i32>());
                low[r] = _mm512_madd52lo_epu64(low[r], x, whole);
                high[r] = _mm512_madd52hi_epu64(high[r], x, whole);
                high[r] = _mm512_dpwssd_epi32(high[r], x_halves, halves);
            }
        }
        x = x.wrapping_add(depth_step);
        x_halves = x_halves.wrapping_add(depth_step);
        y = y.wrapping_add(Ifma::COLS);
        y_halves = y_halves.wrapping_add(Ifma::COLS);
    }
    for r in 0..R {
        let sum = _mm512_add_epi64(low[r], _mm512_slli_epi64::<52>(high[r]));
        // SAFETY: row r < R of `out` has 8 elements from r * step on, by contract.
        unsafe {
            let place = out.as_mut_ptr().add(r * step).cast();
            let sum = if add { _mm512_add_epi64(sum, _mm512_loadu_si512(place)) } else { sum };
            _mm512_storeu_si512(place.cast(), sum);
        }
    }
}
