//! Wrap-around: off by multiples of a power of two, as where each share is truncated by itself.

use crate::foreign::case::{Case, Cause};

/// Residues are inside the bound once a multiple of the modulus is taken off.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let ring = case.header.ring_bits as i32;
    let f = case.header.fraction_bits? as i32;
    let s = j.shift as i32;
    let mut bits: Vec<(i32, String)> = vec![
        (ring, format!("2^{ring}, the ring")),
        (ring - s, format!("2^{}, the ring after a truncation by {s} bits", ring - s)),
        (ring - f, format!("2^{}, the ring after a truncation by {f} bits", ring - f)),
        (32, "2^32".into()),
        (case.header.value_bits as i32, format!("2^{}, the value width", case.header.value_bits)),
    ];
    bits.retain(|b| b.0 >= 8);
    bits.sort_by_key(|b| -b.0);
    bits.dedup_by_key(|b| b.0);
    bits.into_iter().find_map(|(k, words)| {
        let modulus = 2f64.powi(k);
        let fits = |i: usize| {
            let n = (j.error[i] / modulus).round();
            let rest = j.error[i] - n * modulus;
            let wide = j.error[i].abs() * f64::EPSILON;
            n != 0.0 && rest >= j.low[i] - 1e-6 - wide && rest <= j.high[i] + 1e-6 + wide
        };
        // Truncating each share wraps with probability |V| / 2^ring.
        let operand = |i: usize| (j.expected[i] / j.unit).abs() * 2f64.powi(s - ring);
        let predicted: f64 = (0..j.error.len()).map(operand).sum();
        case.failing(
            "wrap",
            |n, of| {
                format!(
                    "{n} of {of} failing elements are off by multiples of {words} units ({} in value): {:.2} % of \
                     the tensor; local truncation would wrap {predicted:.3} of {} elements",
                    modulus * j.unit,
                    100.0 * n as f64 / j.error.len() as f64,
                    j.error.len()
                )
            },
            fits,
        )
    })
}
