//! log(s) for positive s: the leading bit, and a polynomial of degree 8 on the rest.
//!
//! computes   ln(s 2^-f) 2^f, scale f in and out; s = 0 counts as 1
//! requires   s in the range given to normalise
//! error      [`error_units`]: proven up to the fit of the polynomial, which is measured; the whole is measured on
//!            grids
//! source     arithmetic, section 10; Aly and Smart (eprint 2019/354), section 5
//!
//! # The bound
//! Let h be a truncation's error (1 or 1/2) and ulp = 2^-20, |v| <= 1/2. v1 and v2 are off by h ulp; v3 by h (|v1| +
//! |v2| + 1) <= 1.75 h ulp; v4 by h (2 v2 + 1) <= 1.5 h ulp. Weighted with |L2| = 0.2222, |L3| = 0.0988, |t| <= 0.0677
//! and, for the error of t itself times v4 <= 1/16, |L5|..|L8| = 0.0259, 0.0141, 0.0103, 0.0066: at most 0.502 h ulp. v
//! itself is exact.

use super::normalise::normalise;
use super::truncate::{self, trunc};
use super::{Arithmetic, ModelError, Unreduced};
use spec::constants::{LN_2, LOG_L0, LOG_L1, LOG_L2, LOG_L3, LOG_L4, LOG_L5, LOG_L6, LOG_L7, LOG_L8};
use spec::{BitRange, FixedSpec, Rounding};

/// Largest distance of the polynomial with its rounded coefficients from ln(1.5 + v); measured on a grid of 2^20
/// points.
pub const FIT_ERROR: f64 = 1.774e-7;

/// Bound on |result - ln(s 2^-f) 2^f| in units: the fit, the powers of v, and the last truncation.
pub const fn error_units(fixed: FixedSpec, rounding: Rounding) -> f64 {
    let h = truncate::error_units(rounding);
    (FIT_ERROR + 0.502 * h / (1u64 << 20) as f64) * fixed.one() as f64 + h
}

/// log of every element, which is in `range`.
///
/// # Errors
/// Those of [`trunc`].
pub fn log(a: &mut Arithmetic, s: &[i64], range: BitRange) -> Result<Vec<i64>, ModelError> {
    let f = a.fixed.fraction_bits;
    let n = normalise(a, "loss/log/normalise", s, range);
    let times = |x: &[i64], y: &[i64]| Unreduced::new(x.iter().zip(y).map(|(&x, &y)| i128::from(x) * i128::from(y)));

    let v: Vec<i64> = n.scaled.iter().map(|u| u.wrapping_sub(3 << 29)).collect();
    let v1 = trunc(a, "loss/log/v1", &Unreduced::new(v.iter().map(|&v| v.into())), 10)?;
    let v2 = trunc(a, "loss/log/v2", &times(&v, &v), 40)?; // v^2 <= 2^58
    let v3 = trunc(a, "loss/log/v3", &times(&v1, &v2), 20)?;
    let v4 = trunc(a, "loss/log/v4", &times(&v2, &v2), 20)?;
    // |ln s| <= 27 ln 2 < 18.8 at scale 56: below 2^61.
    let series = (0..s.len()).map(|i| {
        let terms = [(LOG_L5, v1[i]), (LOG_L6, v2[i]), (LOG_L7, v3[i]), (LOG_L8, v4[i])];
        let t = terms.iter().fold(LOG_L4, |t, &(l, v)| t.wrapping_add(l.wrapping_mul(v)));
        let low = [(LN_2, n.leading[i] - i64::from(f)), (LOG_L1, v[i]), (LOG_L2, v2[i]), (LOG_L3, v3[i]), (t, v4[i])];
        low.iter().fold(i128::from(LOG_L0), |sum, &(l, v)| sum + i128::from(l) * i128::from(v))
    });
    trunc(a, "loss/log/result", &Unreduced::new(series), 56 - f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::{World, positive_values, roundings};

    #[test]
    fn the_fit_of_the_rounded_coefficients() {
        let scaled = [
            (LOG_L0, 56),
            (LOG_L1, 26),
            (LOG_L2, 36),
            (LOG_L3, 36),
            (LOG_L4, 36),
            (LOG_L5, 16),
            (LOG_L6, 16),
            (LOG_L7, 16),
            (LOG_L8, 16),
        ];
        let coefficients = scaled.map(|(l, scale)| l as f64 * 2f64.powi(-scale));
        let worst = (0..=1 << 20).map(|i| f64::from(i) / 2f64.powi(20) - 0.5).map(|v| {
            let p = coefficients.iter().rev().fold(0.0, |p, l| p * v + l);
            (p - (1.5 + v).ln()).abs()
        });
        let worst = worst.fold(0.0, f64::max);
        assert!(worst <= FIT_ERROR && worst > 0.99 * FIT_ERROR, "{worst:e}");
    }

    /// Worst seen at f = 16: 0.5175 at s = 16,660,309 (nearest), 1.0143 at s = 2,030 (ceilings).
    #[test]
    fn every_small_and_a_grid_of_large_values() {
        for f in [8, 12, 16, 17] {
            let s = positive_values(if f == 16 { 20 } else { 14 });
            for (rounding, coins) in roundings() {
                let mut world = World { coins, ..World::with_fraction_bits(rounding, f) };
                let result = log(&mut world.arithmetic(), &s, BitRange::new(0, 31)).unwrap();
                let unit = 2f64.powi(-(f as i32));
                let mut worst = (0.0, 0);
                for (&s, r) in s.iter().zip(result) {
                    let error = (r as f64 - (s as f64 * unit).ln() / unit).abs();
                    worst = if error > worst.0 { (error, s) } else { worst };
                }
                let bound = error_units(world.fixed, rounding);
                assert!(worst.0 <= bound && worst.0 > 0.6 * bound, "f = {f}, {rounding}: {worst:?} of {bound}");
                assert_eq!(world.monitor.total(), 0);
            }
        }
    }

    #[test]
    fn one_and_zero() {
        let mut world = World::new(Rounding::Nearest);
        let l = log(&mut world.arithmetic(), &[1 << 16, 0, 1], BitRange::new(0, 31)).unwrap();
        assert_eq!(l[1], l[2], "0 counts as one unit");
        assert!(l[0].abs() <= 1, "log 1 = {}", l[0]);
    }
}
