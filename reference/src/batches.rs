//! Batches and initial weights, the same for every side.
//!
//! Everything is a function of the seed alone: ChaCha12 in the layout of its reference implementation, and integer
//! arithmetic or correctly rounded f64, so results do not depend on the machine or on how a library samples.

use ndarray::Array2;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use spec::NetworkSpec;
use spec::fault::{Fault, planted};

/// Row numbers of the batches of one epoch: ceil(rows / batch) batches, each of exactly `batch` rows.
///
/// The rows come in a uniformly random order that depends on `seed` and `epoch`. The last batch wraps around to the
/// start of the same order to stay full, as in the code of Keller and Sun; a batch larger than the data set wraps
/// several times.
///
/// # Panics
/// If `batch` is 0, or `rows` is 0 or more than 2^32 - 1: [`SgdSpec::units`](spec::SgdSpec::units) and the loaders of
/// data sets refuse these before.
pub fn epoch(rows: usize, batch: usize, seed: u64, epoch: u64) -> Vec<Vec<u32>> {
    assert!(batch > 0, "batch is 0; it must be at least 1");
    assert!(rows > 0, "there are no rows to train on");
    let count = u32::try_from(rows).expect("at most 2^32 - 1 rows");
    let mut order: Vec<u32> = (0..count).collect();
    let mut rng = stream(b"batches", seed, epoch);
    // Fisher and Yates, from the end (Knuth, TAOCP 2, algorithm 3.4.2P).
    for last in (1..count).rev() {
        order.swap(last as usize, below(&mut rng, last + 1) as usize);
    }
    if planted(Fault::RowTwice) {
        order[0] = order[rows - 1];
    }
    let mut endless = order.iter().copied().cycle();
    (0..rows.div_ceil(batch)).map(|_| endless.by_ref().take(batch).collect()).collect()
}

/// Initial weights of each layer, shape (inputs, outputs), real: uniform in [-a, a), a = sqrt(6 / (inputs + outputs)).
/// Biases start at zero. Source: Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural
/// networks* (AISTATS 2010), equation 16.
///
/// A layer's weights depend on the seed, its number and its own shape only.
pub fn glorot_uniform(spec: &NetworkSpec, seed: u64) -> Vec<Array2<f64>> {
    (1..=spec.layers())
        .map(|l| {
            let (inputs, outputs) = spec.shape(l);
            let limit = (6.0 / (inputs + outputs) as f64).sqrt();
            let limit = if planted(Fault::WeightsHalved) { 0.5 * limit } else { limit };
            let mut rng = stream(b"weights", seed, l as u64);
            // 53 random bits make every multiple of 2^-53 in [0, 1) equally likely.
            Array2::from_shape_simple_fn((inputs, outputs), || {
                let unit = (rng.next_u64() >> 11) as f64 * 2f64.powi(-53);
                limit * (2.0 * unit - 1.0)
            })
        })
        .collect()
}

/// An independent stream for each purpose, seed and number: key = seed and purpose, nonce = number.
fn stream(purpose: &[u8; 7], seed: u64, number: u64) -> ChaCha12Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..15].copy_from_slice(purpose);
    let mut rng = ChaCha12Rng::from_seed(key);
    rng.set_stream(number);
    rng
}

/// Uniform in 0..n, n >= 1, without bias. Source: Lemire, *Fast random integer generation in an interval* (2019),
/// algorithm 5.
fn below(rng: &mut impl RngCore, n: u32) -> u32 {
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(n);
        // Of the 2^32 low halves, those below 2^32 mod n would make some results more likely than others.
        if product as u32 >= n.wrapping_neg() % n {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::RngCore;

    #[test]
    fn a_seed_always_gives_the_same_batches_and_weights() {
        // From a second implementation of ChaCha12, the shuffle and the weights, written in another language.
        assert_eq!(epoch(10, 4, 1, 0), [[8, 0, 6, 4], [7, 3, 5, 1], [2, 9, 8, 0]]);
        let weights = glorot_uniform(&NetworkSpec::dense(3, 2, 2, 2), 1);
        assert_eq!((weights[0][(0, 0)], weights[1][(1, 1)]), (-0.15060758465379676, 0.793472472575883));
    }

    proptest! {
        #[test]
        fn every_batch_is_full_and_the_order_is_a_permutation(
            rows in 1..200usize, batch in 1..500usize, seed: u64, number: u64,
        ) {
            let batches = epoch(rows, batch, seed, number);
            prop_assert_eq!(batches.len(), rows.div_ceil(batch));
            prop_assert!(batches.iter().all(|b| b.len() == batch));
            let flat = batches.concat();
            let mut first = flat[..rows].to_vec();
            first.sort_unstable();
            prop_assert!(first.into_iter().eq(0..rows as u32));
            prop_assert!((rows..flat.len()).all(|i| flat[i] == flat[i - rows]));
        }

        #[test]
        fn weights_are_inside_the_limit_and_belong_to_their_layer(
            inputs in 1..40usize, hidden in 1..40usize, layers in 1..4usize, seed: u64,
        ) {
            let spec = NetworkSpec::dense(inputs, hidden, 10, layers);
            let weights = glorot_uniform(&spec, seed);
            prop_assert_eq!(weights.len(), layers);
            for (l, w) in (1..).zip(&weights) {
                let (i, o) = spec.shape(l);
                prop_assert_eq!(w.dim(), (i, o));
                prop_assert!(w.iter().all(|v| v.abs() <= (6.0 / (i + o) as f64).sqrt()));
            }
            let deeper = glorot_uniform(&NetworkSpec::dense(inputs, hidden, 10, layers + 1), seed);
            prop_assert_eq!(&weights[..layers - 1], &deeper[..layers - 1]);
        }
    }

    #[test]
    fn seeds_and_epochs_give_different_orders() {
        let orders = [(1, 0), (1, 1), (2, 0), (2, 1)].map(|(seed, number)| epoch(100, 100, seed, number));
        for i in 0..4 {
            assert!((0..i).all(|j| orders[i] != orders[j]));
        }
    }

    /// All 24 orders of four rows: chi-squared with 23 degrees of freedom stays below 64.0 with probability 1 - 1e-5.
    #[test]
    fn all_orders_are_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        const EPOCHS: u64 = 24_000;
        for number in 0..EPOCHS {
            *counts.entry(epoch(4, 4, 7, number).concat()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let mean = EPOCHS as f64 / 24.0;
        let chi_squared: f64 = counts.values().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
        assert!(chi_squared < 64.0, "{chi_squared}");
    }

    #[test]
    fn a_draw_that_would_bias_is_drawn_again() {
        /// Gives what it was given, last first.
        struct Listed(Vec<u32>);
        impl RngCore for Listed {
            fn next_u32(&mut self) -> u32 {
                self.0.pop().unwrap()
            }
            fn next_u64(&mut self) -> u64 {
                unreachable!("below draws 32 bits")
            }
            fn fill_bytes(&mut self, _: &mut [u8]) {
                unreachable!("below draws 32 bits")
            }
        }
        // 2^32 mod 3 = 1: only the draw 0 is refused. 2^32 mod 2^31 = 0: none is.
        assert_eq!(below(&mut Listed(vec![u32::MAX, 0]), 3), 2);
        assert_eq!(below(&mut Listed(vec![1]), 3), 0);
        assert_eq!(below(&mut Listed(vec![0]), 1 << 31), 0);
        assert_eq!(below(&mut Listed(vec![u32::MAX]), u32::MAX), u32::MAX - 1);
    }

    #[test]
    fn weights_fill_their_interval_evenly() {
        let weights = &glorot_uniform(&NetworkSpec::dense(784, 128, 10, 1), 3)[0];
        let (n, limit) = (weights.len() as f64, (6.0f64 / 794.0).sqrt());
        // Uniform in [-a, a): mean 0, variance a^2 / 3. Five standard errors of each.
        let mean = weights.sum() / n;
        let variance = weights.iter().map(|w| w * w).sum::<f64>() / n;
        assert!(mean.abs() < 5.0 * limit / (3.0 * n).sqrt(), "{mean}");
        assert!((variance / (limit * limit / 3.0) - 1.0).abs() < 5.0 * (0.8 / n).sqrt(), "{variance}");
        assert!(weights.iter().all(|w| w.abs() <= limit) && weights.iter().any(|w| w.abs() > 0.999 * limit));
    }
}
