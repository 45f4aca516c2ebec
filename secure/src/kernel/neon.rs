//! The NEON tile, for 64-bit ARM (Apple silicon, Graviton): 4 rows by 8 columns; products mod 2^64 from 32-bit ones.
//!
//! computes   with x = x_1 2^32 + x_0 and y likewise, x y = x_0 y_0 + (x_1 y_0 + x_0 y_1) 2^32 mod 2^64. The low
//!            products are summed mod 2^64, the cross terms mod 2^32, and the two sums are joined once, at the end
//! cost       four `umlal` and four `mla` for eight products, all of them multiply-accumulate by an element of a
//!            register. The scalar `madd` needs as many instructions, but fewer of them run in a cycle (figures in
//!            `secure/docs/kernels.md`)
//! layout     a panel row of B is eight low halves, then eight high halves. Sums take 24 registers, the panel row 4,
//!            four elements of A 2: 30 of 32
//! source     Arm Architecture Reference Manual for A-profile, chapter C7 (`UMLAL`, `MLA` by element)
#![allow(unsafe_code)]

use super::blocked::{self, Block, Left, Out, Plan, ROW_STEP, Tile};
use super::view::View;
use std::arch::aarch64::*;

/// Proof that this CPU has NEON: made by [`Neon::new`] only.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    pub fn new() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }

    /// [`blocked::product`] on this tile.
    pub fn product(self, a: View, b: View, out: &mut [u64], plan: Plan) {
        blocked::product(self, a, b, out, plan)
    }
}

impl Tile for Neon {
    const ROWS: usize = 4;
    const COLS: usize = 8;
    const TRANSPOSE: usize = 3;

    fn piece(self, a: View, range: (usize, usize), block: Block<'_>, out: Out<'_>) {
        blocked::rows(self, a, range, block, out);
    }

    #[inline(always)]
    fn arrange(panel: &mut [u64]) {
        for row in panel.as_chunks_mut::<8>().0 {
            let columns = *row;
            for (c, pair) in columns.as_chunks::<2>().0.iter().enumerate() {
                row[c] = pair[0] & 0xffff_ffff | pair[1] << 32;
                row[c + 4] = pair[0] >> 32 | pair[1] & !0xffff_ffff;
            }
        }
    }

    #[inline(always)]
    fn run(self, depth: usize, a: Left<'_>, b: &[u64], out: &mut [u64], step: usize, add: bool) {
        blocked::check(self, depth, a, b, out, step);
        // SAFETY: `self` exists, so the feature does; the lengths that `rows` needs were just checked.
        unsafe { blocked::by_rows!(a, rows(depth, a, b, out, step, add), 1, 2, 3, 4) }
    }
}

/// # Safety
/// What [`blocked::check`] checks, with R rows and BY_DEPTH as in `a`.
#[target_feature(enable = "neon")]
unsafe fn rows<const R: usize, const BY_DEPTH: bool>(
    depth: usize,
    a: Left<'_>,
    b: &[u64],
    out: &mut [u64],
    step: usize,
    add: bool,
) {
    let (row_step, depth_step) = if BY_DEPTH { (1, a.depth_step) } else { (ROW_STEP, 1) };
    let mut low = [[vdupq_n_u64(0); 4]; R];
    let mut cross = [[vdupq_n_u32(0); 2]; R];
    let (mut x, mut y) = (a.data.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: `y` is at element 8 p of `b`, `x` at p * depth_step of `a`, p < depth: inside by this function's
        // contract. The steps past the last element are never read, hence `wrapping_add`.
        unsafe {
            let halves = |at: usize| vreinterpretq_u32_u64(vld1q_u64(y.add(at)));
            let (y0, y1) = ([halves(0), halves(2)], [halves(4), halves(6)]);
            for r in 0..R {
                // Low half, high half.
                let x = vreinterpret_u32_u64(vld1_u64(x.add(r * row_step)));
                for q in 0..2 {
                    low[r][2 * q] = vmlal_lane_u32::<0>(low[r][2 * q], vget_low_u32(y0[q]), x);
                    low[r][2 * q + 1] = vmlal_high_lane_u32::<0>(low[r][2 * q + 1], y0[q], x);
                    cross[r][q] = vmlaq_lane_u32::<1>(cross[r][q], y0[q], x);
                    cross[r][q] = vmlaq_lane_u32::<0>(cross[r][q], y1[q], x);
                }
            }
        }
        x = x.wrapping_add(depth_step);
        y = y.wrapping_add(Neon::COLS);
    }
    for r in 0..R {
        for pair in 0..4 {
            let cross = cross[r][pair / 2];
            let cross = if pair % 2 == 0 { vget_low_u32(cross) } else { vget_high_u32(cross) };
            let sum = vaddq_u64(low[r][pair], vshll_n_u32::<32>(cross));
            // SAFETY: row r < R of `out` has 8 elements from r * step on, by contract.
            unsafe {
                let place = out.as_mut_ptr().add(r * step + 2 * pair);
                let sum = if add { vaddq_u64(sum, vld1q_u64(place)) } else { sum };
                vst1q_u64(place, sum);
            }
        }
    }
}
