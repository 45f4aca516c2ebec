//! Operands: boundary values first, then random ones from a fixed seed.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use spec::cases::{self, DIVISORS, EXPONENTIAL, RING};

pub fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(2020)
}

/// Ring elements of every size, the edges first.
pub fn anything(n: usize) -> Vec<i64> {
    let mut rng = rng();
    let random = |i: usize| rng.random::<i64>() >> (i % 64);
    cases::values(RING).chain((0..n).map(random)).take(n).collect()
}

/// Arguments of the exponential, and ring elements of every size.
pub fn exponents() -> Vec<i64> {
    let mut rng = rng();
    let mut d: Vec<i64> = cases::values(EXPONENTIAL).collect();
    d.extend((0..600).map(|i| -(rng.random_range(0..1i64 << (1 + i % 22)))));
    d.extend(anything(300));
    // Integer part 0 modulo 32: the carry into n' = 31.
    d.extend((0..200).map(|_| rng.random_range(45426..90852)));
    d
}

/// Positive numbers of every size below 2^26, powers of two and their neighbours, and zero.
pub fn divisors() -> Vec<i64> {
    let mut v: Vec<i64> = cases::values(DIVISORS).collect();
    for k in 0..26 {
        v.extend([(1i64 << k) - 1, 1 << k, (1 << k) + 1]);
    }
    let mut rng = rng();
    v.extend((0..400).map(|i| rng.random_range(0..1i64 << (1 + i % 25))));
    v
}

/// `blocks` x `len` random bits, a word for every 64 of a block: the words, and the bits as numbers.
pub fn bits(blocks: usize, len: usize) -> (Vec<u64>, Vec<i64>) {
    let mut rng = rng();
    let words: Vec<u64> = (0..blocks * len / 64).map(|_| rng.random()).collect();
    let bits = words.iter().flat_map(|w| (0..64).map(move |k| (w >> k & 1) as i64)).collect();
    (words, bits)
}

/// Rows of logits at the thresholds, with ties, all negative, of every size, and beyond the range.
pub fn logits(rows: usize, classes: usize, epsilon: i64) -> Vec<i64> {
    let mut rng = rng();
    let edges = cases::logits(epsilon);
    (0..rows * classes)
        .map(|i| match (i / classes) % 6 {
            0 => edges[rng.random_range(0..edges.len())].value,
            1 => -rng.random_range(0..1i64 << 20),
            2 => rng.random_range(-(1i64 << 17)..1 << 17),
            3 => rng.random_range(0..=1),
            4 => rng.random_range(-(1i64 << 24)..1 << 24),
            _ => rng.random::<i64>() >> rng.random_range(0..63),
        })
        .collect()
}
