//! Normalisation: the power of two that brings a positive integer to 31 bits.
//!
//! computes   N and u = s N with 2^30 <= u < 2^31, from the bits t_j = `[s >= 2^j]`; s = 0 counts as 1 where lo = 0
//! requires   2^lo <= s < 2^hi (lo = 0: 0 <= s), hi <= K-1 <= 31; others are reported and go on wrapping
//! error      none
//! source     arithmetic, section 7; Catrina and Saxena (FC 2010), protocol Norm

use super::Arithmetic;
use super::compare::sign;
use spec::BitRange;

/// A column of normalised operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised {
    /// N, a power of two.
    pub factor: Vec<i64>,
    /// u = s N.
    pub scaled: Vec<i64>,
    /// Position of the leading bit of s (0 for s = 0).
    pub leading: Vec<i64>,
    /// `[s < 1]` where lo = 0, else 0.
    pub empty: Vec<i64>,
}

/// Normalises every element of `s`, all in `range`, under the name `at`.
pub fn normalise(a: &mut Arithmetic, at: &str, s: &[i64], range: BitRange) -> Normalised {
    let BitRange { lo, hi } = range;
    let value_bits = a.fixed.value_bits;
    // Inside this range every operand s - 2^j is ordinary.
    let allowed = (if lo == 0 { 0 } else { 1i128 << lo })..=(1i128 << hi) - 1;
    let at_least = |s: i64, j: u32| 1 - sign(s.wrapping_sub(1 << j), value_bits);
    let mut n = Normalised { factor: vec![], scaled: vec![], leading: vec![], empty: vec![] };
    for (i, &s) in s.iter().enumerate() {
        a.monitor.check(at, i, s.into(), &allowed);
        let mut steps = 1i64 << (hi - 1 - lo);
        let mut leading = i64::from(lo);
        for j in lo + 1..hi {
            let t = at_least(s, j);
            steps -= t << (hi - 1 - j);
            leading += t;
        }
        let empty = if lo == 0 { 1 - at_least(s, 0) } else { 0 };
        // Out of range the comparisons are no order any more and N may be no power of two: it wraps like the ring.
        let factor = steps.wrapping_mul(1 << (31 - hi));
        n.factor.push(factor);
        n.scaled.push(s.wrapping_mul(factor).wrapping_add(empty << 30));
        n.leading.push(leading);
        n.empty.push(empty);
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::World;
    use spec::Rounding::Nearest;

    #[test]
    fn every_power_of_two_and_its_neighbours() {
        let mut world = World::new(Nearest);
        for (lo, hi) in [(0, 31), (0, 20), (16, 20), (16, 17)] {
            let range = BitRange::new(lo, hi);
            for j in lo..hi {
                for s in [1 << j, (1 << j) + 1, (1 << (j + 1)) - 1].map(|s: i64| s.min((1 << (j + 1)) - 1)) {
                    let n = normalise(&mut world.arithmetic(), "n", &[s], range);
                    assert_eq!((n.factor[0], n.leading[0], n.empty[0]), (1 << (30 - j), j.into(), 0), "{s} {range:?}");
                    assert!((1 << 30..1 << 31).contains(&n.scaled[0]));
                }
            }
        }
        let zero = normalise(&mut world.arithmetic(), "n", &[0], BitRange::new(0, 31));
        assert_eq!((zero.factor[0], zero.scaled[0], zero.leading[0], zero.empty[0]), (1 << 30, 1 << 30, 0, 1));
        assert_eq!(world.monitor.total(), 0);
    }

    #[test]
    fn what_is_outside_the_range_is_reported() {
        let mut world = World::new(Nearest);
        normalise(&mut world.arithmetic(), "n", &[-1, 1 << 31, i64::MIN, 5], BitRange::new(0, 31));
        normalise(&mut world.arithmetic(), "m", &[65535, 65536, 1 << 20], BitRange::new(16, 20));
        let seen: Vec<_> = world.monitor.violations().iter().map(|v| (v.operation.as_str(), v.index)).collect();
        assert_eq!(seen, [("n", 0), ("n", 1), ("n", 2), ("m", 0), ("m", 2)]);
    }
}
