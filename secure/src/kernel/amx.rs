//! The AMX kernel: 64-bit products from 8-bit ones on int8 tiles.
//!
//! computes   with byte limbs x = sum_i x_i 2^8i, y likewise: x y mod 2^64 = sum over i + j <= 7 of x_i y_j 2^8(i+j),
//!            36 limb products. The sum C_s over i + j = s and the whole depth is one tile accumulator; the result is
//!            sum_s C_s 2^8s, wrapping
//! headroom   C_s < 8 · depth · 255^2 < 2^32 for depth <= 8192; a block has at most `DEPTH` = 1024
//! layout     A: 16 rows × 64 depths of one limb; B: 16 groups of four depths × 16 columns (`TDPBUUD` adds four byte
//!            products). Every tile is one aligned kilobyte in the order of use: with strided tiles the loads, not the
//!            products, set the pace
//! source     Intel Architecture Instruction Set Extensions Programming Reference (319433), chapter on AMX
//!
//! Everything but the instructions themselves ([`unit`]) is safe and generic over [`TileUnit`], so that the tests run
//! it with an emulation on any processor.

#[cfg(test)]
pub(super) mod emulated;
#[cfg(test)]
#[cfg(target_os = "linux")]
pub(super) mod trapped;
mod unit;

use super::blocked::Plan;
use super::view::View;
use rayon::prelude::*;
use std::cell::Cell;
use std::sync::OnceLock;
use unit::{Amx, Permission};

/// One tile register's worth: 16 rows of 64 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Tile([u8; 1024]);

/// What a block needs of a tile machine.
pub(super) trait TileUnit {
    /// Byte limb i of 64 values, for i = 0..8.
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8];
    /// `sums[s]` = C_s of a 16 × 16 block: the sum over i + j = s <= 7 and over the depth of limb i of A times limb j
    /// of B. `left` and `right` are strips of the same depth, eight tiles, one a limb, for every 64 depths; a strip has
    /// one depth at least. The sums do not exceed 32 bits (see above).
    fn limb_sums(&mut self, left: &[[Tile; 8]], right: &[[Tile; 8]], sums: &mut LimbSums);
}

/// C_s of a block for s = 0..8.
pub(super) type LimbSums = [[[u32; SIDE]; SIDE]; 8];

/// Rows and columns of an output block; depth of a tile.
const SIDE: usize = 16;
const DEEP: usize = 64;
/// Depth and rows of A of a block: a mebibyte of tiles, half of this machine family's L2.
const DEPTH: usize = 1024;
const ROWS_BLOCK: usize = 128;

/// Whether this machine can run the kernel: asked once per process, and granted only after a product has come out
/// right.
fn permission() -> Result<Permission, &'static str> {
    static ANSWER: OnceLock<Result<Permission, String>> = OnceLock::new();
    let answer = ANSWER.get_or_init(|| Permission::request().and_then(|granted| self_test(granted).map(|()| granted)));
    answer.as_ref().copied().map_err(String::as_str)
}

/// The reason why this machine cannot run the kernel.
pub(super) fn why_not() -> Option<String> {
    permission().err().map(str::to_string)
}

fn self_test(granted: Permission) -> Result<(), String> {
    let (m, k, n) = (19, 130, 21);
    let word = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let a: Vec<u64> = (0..m * k).map(word).collect();
    let b: Vec<u64> = (0..k * n).map(|i| word(i + a.len())).collect();
    let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
    let (mut found, mut expected) = (vec![0; m * n], vec![0; m * n]);
    product(|| Amx::begin(granted), a, b, &mut found, Plan { accumulate: false, pieces: 1 });
    super::Kernel::Portable.matmul(a, b, &mut expected, false);
    if found == expected { Ok(()) } else { Err("its self-test gave a wrong product".into()) }
}

/// [`product`] by the tile unit of this processor; panics unless [`why_not`] is `None`.
pub(super) fn run(a: View, b: View, out: &mut [u64], plan: Plan) {
    let granted = permission().expect("AMX is not available");
    product(|| Amx::begin(granted), a, b, out, plan);
}

/// A times B, every piece on the tile unit of the thread that takes it.
pub(super) fn product<U: TileUnit>(begin: impl Fn() -> U + Sync, a: View, b: View, out: &mut [u64], plan: Plan) {
    let ((m, k), (_, n)) = (a.shape(), b.shape());
    let height = plan.height(m, SIDE, ROWS_BLOCK);
    let mut right = RIGHT.take();
    for from in (0..k).step_by(DEPTH) {
        let depths = (from, k.min(from + DEPTH));
        right.clear();
        pack_right(&begin(), b, depths, &mut right);
        let add = plan.accumulate || from > 0;
        let piece = |(i, out): (usize, &mut [u64])| rows(&mut begin(), a, (i * height, depths), (&right, n), out, add);
        if plan.pieces == 1 {
            out.chunks_mut(height * n).enumerate().for_each(piece);
        } else {
            out.par_chunks_mut(height * n).enumerate().for_each(piece);
        }
    }
    RIGHT.set(right);
}

/// Rows `first..` of A at some depths times B, packed, of n columns; `out` begins with the first of them and ends with
/// the last.
fn rows<U: TileUnit>(
    unit: &mut U,
    a: View,
    (first, (from, to)): (usize, (usize, usize)),
    (right, n): (&[Tile], usize),
    out: &mut [u64],
    add: bool,
) {
    let rows = out.len() / n;
    // Tiles of a strip of 16 rows or columns: 8 limbs for every 64 depths.
    let strip = 8 * (to - from).div_ceil(DEEP);
    let mut left = LEFT.take();
    left.clear();
    pack_left(unit, a, (first, first + rows), (from, to), &mut left);
    for (j, right) in (0..n).step_by(SIDE).zip(right.chunks_exact(strip)) {
        for (r, left) in (0..rows).step_by(SIDE).zip(left.chunks_exact(strip)) {
            let sums = block(unit, left, right);
            let cols = SIDE.min(n - j);
            for (row, sums) in sums.iter().enumerate().take(rows - r) {
                let out = &mut out[(r + row) * n + j..][..cols];
                for (out, &sum) in out.iter_mut().zip(sums) {
                    *out = if add { out.wrapping_add(sum) } else { sum };
                }
            }
        }
    }
    LEFT.set(left);
}

thread_local! {
    static LEFT: Cell<Vec<Tile>> = const { Cell::new(Vec::new()) };
    static RIGHT: Cell<Vec<Tile>> = const { Cell::new(Vec::new()) };
}

/// One 16 × 16 block over the depth of its strips.
fn block<U: TileUnit>(unit: &mut U, left: &[Tile], right: &[Tile]) -> [[u64; 16]; 16] {
    let mut sums = [[[0; 16]; 16]; 8];
    unit.limb_sums(left.as_chunks().0, right.as_chunks().0, &mut sums);
    let mut total = [[0u64; 16]; 16];
    for (weight, sums) in sums.iter().enumerate() {
        for (total, sum) in total.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            *total = total.wrapping_add(u64::from(*sum) << (8 * weight));
        }
    }
    total
}

/// Rows `i..i + 16` (below `end`) at depths `p..p + 64` (below `to`) of `view`, zero elsewhere.
fn patch(view: View, (i, end): (usize, usize), (p, to): (usize, usize)) -> [[u64; DEEP]; SIDE] {
    let (rows, depth) = (SIDE.min(end - i), DEEP.min(to - p));
    let mut patch = [[0; DEEP]; SIDE];
    if view.transposed {
        for q in 0..depth {
            for (r, &x) in view.stored(p + q, i, i + rows).iter().enumerate() {
                patch[r][q] = x;
            }
        }
    } else {
        for (r, row) in patch.iter_mut().enumerate().take(rows) {
            row[..depth].copy_from_slice(view.stored(i + r, p, p + depth));
        }
    }
    patch
}

fn pack_left<U: TileUnit>(
    unit: &U,
    a: View,
    (first, end): (usize, usize),
    (from, to): (usize, usize),
    tiles: &mut Vec<Tile>,
) {
    for i in (first..end).step_by(SIDE) {
        for p in (from..to).step_by(DEEP) {
            let mut limbs = [Tile([0; 1024]); 8];
            for (r, values) in patch(a, (i, end), (p, to)).iter().enumerate() {
                for (tile, bytes) in limbs.iter_mut().zip(unit.split(values)) {
                    tile.0[64 * r..][..64].copy_from_slice(&bytes);
                }
            }
            tiles.extend_from_slice(&limbs);
        }
    }
}

fn pack_right<U: TileUnit>(unit: &U, b: View, (from, to): (usize, usize), tiles: &mut Vec<Tile>) {
    let n = b.shape().1;
    for j in (0..n).step_by(SIDE) {
        for p in (from..to).step_by(DEEP) {
            let mut limbs = [Tile([0; 1024]); 8];
            for (c, values) in patch(b.t(), (j, n), (p, to)).iter().enumerate() {
                for (tile, bytes) in limbs.iter_mut().zip(unit.split(values)) {
                    for (row, four) in tile.0.as_chunks_mut::<64>().0.iter_mut().zip(bytes.as_chunks::<4>().0) {
                        row[4 * c..][..4].copy_from_slice(four);
                    }
                }
            }
            tiles.extend_from_slice(&limbs);
        }
    }
}
