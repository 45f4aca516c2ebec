//! Inverse of a normalised number by Goldschmidt's iteration; quotient and reciprocal from it.
//!
//! computes   w ~ 2^59 / u; quotient x / s 2^f; reciprocal 2^2f / s
//! requires   2^30 <= u < 2^31; 0 <= x <= s; s in the range given to normalise
//! error      [`inverse_relative_error`], [`quotient_error_units`], [`reciprocal_error_units`]: proven below, measured
//!            on grids
//! source     arithmetic, section 8; Catrina and Saxena (FC 2010), section 4.3
//!
//! # The bound
//! Let U = u 2^-30 in [1, 2), one ulp = 2^-29, and every truncation be off by at most h (1 or 1/2,
//! [`truncate::error_units`]). The start w2 = A2 - U/2 is exact, |1 - U w2| <= 0.0858. With e2 = 1 - U w2 + a, w4 = w2
//! (1 + e2) + b, e4 = e2^2 + c, w8 = w4 (1 + e4) + d, e8 = e4^2 + e, w = w8 (1 + e8) + g and |a|..|g| <= h ulp,
//! expanding gives
//!
//! U w - 1 = a / (1 - e2) - e2^8 + U b (1 + e4)(1 + e8) + U w4 c (1 + e8 + 2 e4) + U d (1 + e8) + U w8 e + U g,
//!
//! at most h (1.094 + 2.015 + 1.016 + 2.001 + 1.001 + 2) = 9.13 h ulp, and 0.0858^8 = 1.58 ulp.

use super::normalise::{Normalised, normalise};
use super::truncate::{self, trunc};
use super::{Arithmetic, ModelError, Unreduced};
use spec::constants::DIV_A2;
use spec::{BitRange, FixedSpec, Rounding};

/// Bound on |u w / 2^59 - 1|; proven.
pub const fn inverse_relative_error(rounding: Rounding) -> f64 {
    (9.13 * truncate::error_units(rounding) + 1.58) / (1u64 << 29) as f64
}

/// Bound on |quotient - x / s 2^f| in units, for exact 0 <= x <= s; proven: the inverse's error at a value of at most
/// one, and a truncation.
pub const fn quotient_error_units(fixed: FixedSpec, rounding: Rounding) -> f64 {
    inverse_relative_error(rounding) * fixed.one() as f64 + truncate::error_units(rounding)
}

/// Bound on |reciprocal - 2^2f / s| in units, where that exact value is `value_units`; proven: a relative and an
/// absolute part.
pub const fn reciprocal_error_units(rounding: Rounding, value_units: f64) -> f64 {
    inverse_relative_error(rounding) * value_units + truncate::error_units(rounding)
}

/// w of every u, with truncations named `at`/e2 to `at`/w16.
///
/// # Errors
/// Those of [`trunc`].
pub fn inverse(a: &mut Arithmetic, at: &str, u: &[i64]) -> Result<Vec<i64>, ModelError> {
    const ONE: i128 = 1 << 29;
    let name = |part: &str| format!("{at}/{part}");
    let times = |x: &[i64], y: &[i64]| Unreduced::new(x.iter().zip(y).map(|(&x, &y)| i128::from(x) * i128::from(y)));
    let grown =
        |w: &[i64], e: &[i64]| Unreduced::new(w.iter().zip(e).map(|(&w, &e)| i128::from(w) * (ONE + i128::from(e))));

    // u w2 < 1.062 2^61 is the largest product here; every other stays below 2^60.
    let w2: Vec<i64> = u.iter().map(|&u| DIV_A2.wrapping_sub(u)).collect();
    let mut e2 = trunc(a, &name("e2"), &times(u, &w2), 32)?;
    e2.iter_mut().for_each(|e| *e = (ONE as i64).wrapping_sub(*e));
    let w4 = trunc(a, &name("w4"), &grown(&w2, &e2), 31)?;
    let e4 = trunc(a, &name("e4"), &times(&e2, &e2), 29)?;
    let w8 = trunc(a, &name("w8"), &grown(&w4, &e4), 29)?;
    let e8 = trunc(a, &name("e8"), &times(&e4, &e4), 29)?;
    trunc(a, &name("w16"), &grown(&w8, &e8), 29)
}

/// x / s at scale f: row `i` of `x` (`x.len() / s.len()` elements, any common scale) over `s[i]`, which is in `range`.
///
/// Also returns the normalisation of `s`, which knows where it is empty.
///
/// # Errors
/// Those of [`trunc`].
pub fn quotient(
    a: &mut Arithmetic,
    at: &str,
    x: &[i64],
    s: &[i64],
    range: BitRange,
) -> Result<(Vec<i64>, Normalised), ModelError> {
    let n = normalise(a, &format!("{at}/normalise"), s, range);
    let w = inverse(a, at, &n.scaled)?;
    let columns = x.len().checked_div(s.len()).unwrap_or(0);
    let name = format!("{at}/quotient");
    for (i, &x) in x.iter().enumerate() {
        a.monitor.check(&name, i, x.into(), &(0..=s[i / columns].into()));
    }
    // x N <= s N < 2^31 and w <= 2^29: below 2^60.
    let product =
        |(i, &x): (usize, &i64)| i128::from(x.wrapping_mul(n.factor[i / columns])) * i128::from(w[i / columns]);
    let shift = 59 - a.fixed.fraction_bits;
    let q = trunc(a, &name, &Unreduced::new(x.iter().enumerate().map(product)), shift)?;
    Ok((q, n))
}

/// 1 / s at scale f, for `s` at scale f in `range`. Up to 2^2f units, so not an ordinary value for the smallest `s`.
///
/// # Errors
/// Those of [`trunc`].
pub fn reciprocal(a: &mut Arithmetic, at: &str, s: &[i64], range: BitRange) -> Result<Vec<i64>, ModelError> {
    let n = normalise(a, &format!("{at}/normalise"), s, range);
    let w = inverse(a, at, &n.scaled)?;
    // N <= 2^30 and w <= 2^29 (1 + 2^-25): below 2^60.
    let product = n.factor.iter().zip(w).map(|(&n, w)| i128::from(n) * i128::from(w));
    trunc(a, &format!("{at}/reciprocal"), &Unreduced::new(product), 59 - 2 * a.fixed.fraction_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::{World, positive_values, roundings};
    use proptest::prelude::*;

    /// 2^30..2^31: a grid of `steps` points with both ends.
    fn grid(steps: i64) -> Vec<i64> {
        (0..=steps).map(|i| ((1 << 30) + i * (1 << 30) / steps).min((1 << 31) - 1)).collect()
    }

    #[test]
    fn inverse_over_a_dense_grid() {
        // Worst seen: 9.73e-9 of 1.15e-8 (nearest), 1.55e-8 of 2.00e-8 (floors).
        for (rounding, coins) in roundings() {
            let mut world = World { coins, ..World::new(rounding) };
            let u = grid(1 << 18);
            let w = inverse(&mut world.arithmetic(), "t", &u).unwrap();
            let relative = |(u, w): (&i64, &i64)| (((u * w) as f64) / 2f64.powi(59) - 1.0).abs();
            let worst = u.iter().zip(&w).map(relative).fold(0.0, f64::max);
            let share = worst / inverse_relative_error(rounding);
            assert!((0.6..1.0).contains(&share), "{rounding}: {worst:e} is {share} of the bound");
            assert_eq!(world.monitor.total(), 0);
        }
    }

    #[test]
    fn reciprocal_of_every_small_and_a_grid_of_large_values() {
        for f in [8, 12, 16, 17] {
            let s = positive_values(if f == 16 { 20 } else { 14 });
            for (rounding, coins) in roundings() {
                let mut world = World { coins, ..World::with_fraction_bits(rounding, f) };
                let r = reciprocal(&mut world.arithmetic(), "t", &s, BitRange::new(0, 31)).unwrap();
                let mut share = (0.0, 0);
                for (&s, r) in s.iter().zip(r) {
                    let exact = 2f64.powi(2 * f as i32) / s as f64;
                    let this = (r as f64 - exact).abs() / reciprocal_error_units(rounding, exact);
                    share = if this > share.0 { (this, s) } else { share };
                }
                assert!((0.4..=1.0).contains(&share.0), "f = {f}, {rounding}: {share:?}");
                assert_eq!(world.monitor.total(), 0);
            }
        }
    }

    #[test]
    fn quotient_of_every_small_denominator() {
        for f in [8, 12, 16, 17] {
            let s = positive_values(if f == 16 { 20 } else { 14 });
            for (rounding, coins) in roundings() {
                let mut world = World { coins, ..World::with_fraction_bits(rounding, f) };
                let numerators = |&s: &i64| [1, s / 3, s - 1];
                let x: Vec<i64> = s.iter().flat_map(numerators).collect();
                let (q, _) = quotient(&mut world.arithmetic(), "t", &x, &s, BitRange::new(0, 31)).unwrap();
                let error =
                    |(i, q): (usize, &i64)| (*q as f64 - x[i] as f64 * 2f64.powi(f as i32) / s[i / 3] as f64).abs();
                let worst = q.iter().enumerate().map(error).fold(0.0, f64::max);
                let bound = quotient_error_units(world.fixed, rounding);
                assert!(
                    worst <= bound && worst >= 0.9 * truncate::error_units(rounding),
                    "f = {f}: {worst} of {bound}"
                );
                assert_eq!(world.monitor.total(), 0);
            }
        }
    }

    #[test]
    fn zero_over_zero_is_zero_and_says_empty() {
        let mut world = World::new(Rounding::Probabilistic);
        let (q, n) = quotient(&mut world.arithmetic(), "t", &[0, 0, 3, 4], &[0, 7], BitRange::new(0, 31)).unwrap();
        assert_eq!((&q[..2], n.empty, world.monitor.total()), (&[0, 0][..], vec![1, 0], 0));
        assert_eq!(quotient(&mut world.arithmetic(), "t", &[], &[], BitRange::new(0, 31)).unwrap().0, []);
        quotient(&mut world.arithmetic(), "t", &[8, -1], &[7, 7], BitRange::new(0, 31)).unwrap();
        assert_eq!(world.monitor.counts()["t/quotient"], 2, "0 <= x <= s is required");
    }

    proptest! {
        #[test]
        fn a_quotient_is_inside_its_bound(s in 1i64..1 << 31, part in 0.0f64..=1.0, seed: u64, which in 0usize..2) {
            let rounding = Rounding::ALL[which];
            let mut world = World { coins: crate::fixed::Coins::seeded(seed), ..World::new(rounding) };
            let x = (part * s as f64) as i64;
            let (q, _) = quotient(&mut world.arithmetic(), "t", &[x], &[s], BitRange::new(0, 31)).unwrap();
            let error = (q[0] as f64 - x as f64 * 65536.0 / s as f64).abs();
            prop_assert!(error <= quotient_error_units(world.fixed, rounding), "{x} / {s} = {}", q[0]);
        }
    }
}
