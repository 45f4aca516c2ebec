//! A network's weights in 128 numbers, such that distances between networks can still be told.
//!
//! computes   s_j = sum_i r_ij w_i with r_ij = +-1, a fixed pseudorandom matrix, the same for every network
//! property   E sum_j (s_j - t_j)^2 / 128 = |w - v|^2; the distance's relative standard error is 1/sqrt(2 * 128) = 6 %
//! source     Achlioptas, *Database-friendly random projections* (JCSS 2003), the dense variant

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Numbers of a sketch.
pub const WIDTH: usize = 128;

/// The sketch of all weights, in order; empty if one of them is not finite.
pub fn sketch(weights: &mut dyn Iterator<Item = &f64>) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut sums = [0.0f64; WIDTH];
    for &w in weights {
        for half in sums.chunks_exact_mut(64) {
            let signs = rng.next_u64();
            half.iter_mut().enumerate().for_each(|(j, s)| *s += if signs >> j & 1 == 1 { w } else { -w });
        }
    }
    let finite = sums.iter().all(|s| s.abs() <= f64::from(f32::MAX));
    if finite { sums.map(|s| s as f32).to_vec() } else { Vec::new() }
}

/// Estimated root mean square of the differences of `weights` weights.
pub fn distance(a: &[f32], b: &[f32], weights: usize) -> Option<f64> {
    (a.len() == WIDTH && b.len() == WIDTH && weights > 0).then(|| {
        let squares: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (squares / WIDTH as f64 / weights as f64).sqrt()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_survive_within_their_error() {
        let a: Vec<f64> = (0..5000).map(|i| f64::from(i * 7919 % 1000) / 1000.0).collect();
        for step in [1e-4, 1e-2, 1.0] {
            let b: Vec<f64> = a.iter().enumerate().map(|(i, a)| a + step * (1.0 + (i % 3) as f64)).collect();
            let rms = (a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 5000.0).sqrt();
            let told = distance(&sketch(&mut a.iter()), &sketch(&mut b.iter()), 5000).unwrap();
            // Four standard errors.
            assert!((told / rms - 1.0).abs() < 0.25, "{told} for {rms}");
        }
        assert_eq!(distance(&sketch(&mut a.iter()), &sketch(&mut a.iter()), 5000), Some(0.0));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_finite() {
        assert!(sketch(&mut [1.0, f64::NAN].iter()).is_empty());
        assert_eq!(distance(&sketch(&mut [1.0].iter()), &[], 1), None);
    }
}
