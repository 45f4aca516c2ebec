//! Comparison by the sign bit, and what is built from it: thresholds, argmax, maximum.
//!
//! computes   sign(V) = bit K-1 of V mod 2^K
//! requires   |V| < 2^(K-1), the difference of the compared values included; outside, the bit is what it is
//! error      none
//! source     arithmetic, sections 3 and 5

use super::Arithmetic;

/// Bit K-1 of V: 1 where an ordinary V is negative.
pub const fn sign(v: i64, value_bits: u32) -> i64 {
    (v >> (value_bits - 1)) & 1
}

/// The sign of every exact operand; operands that are not ordinary are reported under the name `at`.
pub fn signs(a: &mut Arithmetic, at: &str, operands: impl IntoIterator<Item = i128>) -> Vec<i64> {
    let limit = i128::from(a.fixed.limit());
    let allowed = 1 - limit..=limit - 1;
    let one = |(i, v)| {
        a.monitor.check(at, i, v, &allowed);
        sign(v as i64, a.fixed.value_bits)
    };
    operands.into_iter().enumerate().map(one).collect()
}

/// `[x > t]` = sign(t - x).
pub fn above(a: &mut Arithmetic, at: &str, x: &[i64], t: i64) -> Vec<i64> {
    signs(a, at, x.iter().map(|&x| i128::from(t) - i128::from(x)))
}

/// `[x >= t]` = 1 - sign(x - t).
pub fn at_least(a: &mut Arithmetic, at: &str, x: &[i64], t: i64) -> Vec<i64> {
    let below = signs(a, at, x.iter().map(|&x| i128::from(x) - i128::from(t)));
    below.into_iter().map(|b| 1 - b).collect()
}

/// e of section 5, (rows, classes) flat: 1 at the largest logit of each row, ties to the lowest index.
///
/// At most one indicator of a row is set, whatever the range; where differences left it, possibly none. Violations are
/// reported at index (row * classes + i) * classes + j of the pair i < j.
pub fn argmax(a: &mut Arithmetic, at: &str, x: &[i64], classes: usize) -> Vec<i64> {
    let limit = i128::from(a.fixed.limit());
    let allowed = 1 - limit..=limit - 1;
    let mut e = vec![1; x.len()];
    for (row, (x, e)) in x.chunks_exact(classes).zip(e.chunks_exact_mut(classes)).enumerate() {
        for i in 0..classes {
            for j in i + 1..classes {
                let difference = i128::from(x[i]) - i128::from(x[j]);
                a.monitor.check(at, (row * classes + i) * classes + j, difference, &allowed);
                let less = sign(difference as i64, a.fixed.value_bits);
                e[i] *= 1 - less;
                e[j] *= less;
            }
        }
    }
    e
}

/// sum_i e_i x_i of each row.
pub fn maximum(x: &[i64], indicators: &[i64], classes: usize) -> Vec<i64> {
    let dot = |(x, e): (&[i64], &[i64])| x.iter().zip(e).fold(0i64, |sum, (x, e)| sum.wrapping_add(x.wrapping_mul(*e)));
    x.chunks_exact(classes).zip(indicators.chunks_exact(classes)).map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::World;
    use proptest::prelude::*;
    use spec::{FixedSpec, Rounding::Nearest};

    #[test]
    fn the_sign_of_every_ordinary_value_of_a_small_width() {
        for v in -127..128 {
            assert_eq!(sign(v, 8), i64::from(v < 0));
            assert_eq!(sign(v + (77 << 8), 8), i64::from(v < 0), "only V mod 2^K counts");
        }
        for (v, bit) in [(0, 0), (1, 0), (-1, 1), ((1 << 31) - 1, 0), (1 - (1 << 31), 1), (1 << 31, 1)] {
            assert_eq!(sign(v, 32), bit);
        }
    }

    #[test]
    fn thresholds_at_one_unit() {
        let mut world = World::new(Nearest);
        let mut a = world.arithmetic();
        let x = [6552, 6553, 6554, 6555, -6554, 0];
        assert_eq!(above(&mut a, "above", &x, 6554), [0, 0, 0, 1, 0, 0]);
        assert_eq!(at_least(&mut a, "at least", &x, 6554), [0, 0, 1, 1, 0, 0]);
        assert_eq!(world.monitor.total(), 0);
        above(&mut world.arithmetic(), "above", &[0, i64::MIN, 1 - (1 << 31)], 0);
        let seen = world.monitor.violations();
        assert_eq!((seen.len(), seen[0].index, seen[0].operand), (1, 1, 1 << 63), "the difference is exact");
    }

    /// Every row of three logits over a range with ties.
    #[test]
    fn argmax_is_the_lowest_index_of_the_largest() {
        let mut world = World::new(Nearest);
        let cube = (0..343).map(|c| [c % 7 - 3, c / 7 % 7 - 3, c / 49 - 3]);
        for x in cube {
            let largest = *x.iter().max().unwrap();
            let first = x.iter().position(|&v| v == largest).unwrap();
            let e = argmax(&mut world.arithmetic(), "argmax", &x, 3);
            assert_eq!(e, (0..3).map(|i| i64::from(i == first)).collect::<Vec<_>>(), "{x:?}");
            assert_eq!(maximum(&x, &e, 3), [largest]);
        }
    }

    proptest! {
        /// Even where differences left the range and comparisons are no order any more.
        #[test]
        fn argmax_never_sets_two_indicators(x in prop::collection::vec(any::<i64>(), 12), value_bits in 8u32..=32) {
            let mut world = World::new(Nearest);
            world.fixed = FixedSpec { fraction_bits: 4, value_bits };
            let e = argmax(&mut world.arithmetic(), "argmax", &x, 4);
            for row in e.chunks_exact(4) {
                prop_assert!(row.iter().sum::<i64>() <= 1);
            }
        }
    }
}
