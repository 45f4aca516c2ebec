//! Operands of the cases: boundary values first, then random ones.

use ndarray::Array2;
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::spec::Rounding;
use reference::spec::cases::{self, RING};
use secure::buffer::Words;
use secure::protocol::input::deal;
use secure::share::{BitShare, Share};

/// Nearest first: without coins, values themselves are compared.
pub(super) const ROUNDINGS: [Rounding; 2] = [Rounding::Nearest, Rounding::Probabilistic];

pub(super) fn share(rows: usize, cols: usize, units: &[i64]) -> [Share; 3] {
    deal(rows, cols, units, None).expect("the operating system gives randomness")
}

pub(super) fn column(units: &[i64]) -> [Share; 3] {
    share(units.len(), 1, units)
}

/// `n` ring elements of every size, both signs, the edges first.
pub(super) fn anything(rng: &mut ChaCha12Rng, n: usize) -> Vec<i64> {
    // In the range of every protocol: a fault shows inside of it.
    let edges = cases::values(RING).filter(|v| v.unsigned_abs() <= 1 << 61);
    edges.chain(std::iter::repeat_with(|| rng.random::<i64>() >> rng.random_range(0..63))).take(n).collect()
}

/// `n` ordinary values of every size, the edges first.
pub(super) fn ordinary(rng: &mut ChaCha12Rng, n: usize) -> Vec<i64> {
    anything(rng, n).into_iter().map(|v| if v.unsigned_abs() >= 1 << 31 { v >> 33 } else { v }).collect()
}

/// Positive integers below 2^bits, zero, powers of two and their neighbours first.
pub(super) fn positive(rng: &mut ChaCha12Rng, n: usize, bits: u32) -> Vec<i64> {
    let mut v = vec![1, 0, 2, 3];
    v.extend((2..bits).flat_map(|k| [(1i64 << k) - 1, 1 << k, (1 << k) + 1]));
    while v.len() < n {
        let size = rng.random_range(1..bits);
        v.push(rng.random_range(1..1i64 << size));
    }
    v.truncate(n);
    v
}

/// The lowest bits of a share as shared bits, a block for each row: the exclusive or of the components' lowest bits is
/// that of their sum.
pub(super) fn low_bits(x: &Share) -> BitShare {
    let (blocks, len) = x.shape();
    let words = len.div_ceil(64);
    let pack = |v: &[u64]| {
        let mut out = Words::zeros(blocks * words);
        for (i, w) in v.iter().enumerate() {
            out[i / len * words + i % len / 64] |= (w & 1) << (i % len % 64);
        }
        out
    };
    BitShare { blocks, len, own: pack(&x.own), next: pack(&x.next) }
}

pub(super) fn odd(v: &[i64]) -> Vec<i64> {
    v.iter().map(|v| v & 1).collect()
}

pub(super) fn array(v: &[i64], rows: usize) -> Array2<i64> {
    Array2::from_shape_vec((rows, v.len() / rows), v.to_vec()).expect("whole rows")
}

pub(super) fn flat(m: Array2<i64>) -> Vec<i64> {
    m.into_raw_vec_and_offset().0
}
