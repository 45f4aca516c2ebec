//! Truncation: division of an unreduced value by 2^s.
//!
//! computes   probabilistic: floor(V / 2^s) + c, P[c = 1] = (V mod 2^s) / 2^s exactly; nearest: floor((V + 2^(s-1)) /
//!            2^s)
//! requires   |V| < 2^62 (nearest: V + 2^(s-1) too), 1 <= s <= 61; half of that and s <= 60 for a matrix product, which
//!            [`trunc_doubled`] takes twice; outside, the formula of section 2 holds literally
//! error      probabilistic: in (-1, 1) result units, mean 0; nearest: in (-1/2, 1/2] (proven; exhaustive on a 12-bit
//!            ring)
//! source     arithmetic, section 2; compare Catrina and Saxena (FC 2010), section 3

use super::tape::{Replayed, Rounded};
use super::{Arithmetic, Coins, ModelError};
use rand::RngCore;
use spec::Rounding;

/// First magnitude of an unreduced value that is out of range, 2^62.
pub const UNREDUCED_LIMIT: i64 = 1 << 62;
/// First magnitude of a matrix product, or of a sum with one, that is out of range: 2^61, as the protocol knows its
/// double.
pub const PRODUCT_LIMIT: i64 = 1 << 61;

/// Bound on |trunc(V, s) - V / 2^s| in result units; proven. Probabilistic rounding stays strictly below.
pub const fn error_units(rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Probabilistic => 1.0,
        Rounding::Nearest => 0.5,
    }
}

/// Products and dot products in the ring, and what they were before they wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreduced {
    ring: Vec<i64>,
    beyond: Vec<(usize, i128)>,
}

impl Unreduced {
    /// From exact values.
    pub fn new(exact: impl IntoIterator<Item = i128>) -> Self {
        let mut beyond = Vec::new();
        let reduce = |(i, v): (usize, i128)| {
            if i64::try_from(v).is_err() {
                beyond.push((i, v));
            }
            v as i64
        };
        let ring = exact.into_iter().enumerate().map(reduce).collect();
        Unreduced { ring, beyond }
    }

    /// From ring values, with the exact value (increasing index) of those that wrapped.
    pub fn with_exact(ring: Vec<i64>, beyond: Vec<(usize, i128)>) -> Self {
        Unreduced { ring, beyond }
    }

    /// Modulo 2^64, flat.
    pub fn ring(&self) -> &[i64] {
        &self.ring
    }

    /// (flat index, exact value) of the elements that do not fit 64 bits.
    pub fn beyond(&self) -> &[(usize, i128)] {
        &self.beyond
    }

    /// Modulo 2^64, flat.
    pub fn into_ring(self) -> Vec<i64> {
        self.ring
    }
}

/// V' read as unsigned, shifted, and the offset taken off again: section 2 without the wrap term.
fn shift(v: i64, s: u32) -> i64 {
    let shifted = (v.wrapping_add(UNREDUCED_LIMIT) as u64) >> s;
    (shifted as i64).wrapping_sub(UNREDUCED_LIMIT >> s)
}

/// Whether the truncation of V is exact whatever the masks: V' < 2^63. V includes nearest's half.
fn in_range(v: i64) -> bool {
    v.wrapping_add(UNREDUCED_LIMIT) >= 0
}

/// V mod 2^s, in units of 2^-s: the chance of a coin, times 2^s.
pub const fn fraction(v: i64, s: u32) -> u64 {
    v as u64 & ((1 << s) - 1)
}

/// One probabilistic truncation with its coin.
pub fn probabilistic(v: i64, s: u32, coin: bool) -> i64 {
    shift(v, s).wrapping_add(coin.into())
}

/// One truncation to the nearest, ties up.
pub fn nearest(v: i64, s: u32) -> i64 {
    shift(v.wrapping_add(1 << (s - 1)), s)
}

/// trunc(V, s) of every element, under the name `at`.
///
/// # Errors
/// A tape that has no entry of this name (probabilistic rounding), the wrong number of coins, a coin on an exact
/// multiple, or a wrap where the operand is in range.
pub fn trunc(a: &mut Arithmetic, at: &str, v: &Unreduced, s: u32) -> Result<Vec<i64>, ModelError> {
    a.monitor.unreduced(at, v, UNREDUCED_LIMIT, half(a.rounding, s));
    ring_trunc(a, at, v.ring(), s)
}

/// trunc(2 V, s + 1) of every element, for a matrix product or a sum with one: V is known modulo 2^63.
///
/// # Errors
/// Those of [`trunc`].
pub fn trunc_doubled(a: &mut Arithmetic, at: &str, v: &Unreduced, s: u32) -> Result<Vec<i64>, ModelError> {
    a.monitor.unreduced(at, v, PRODUCT_LIMIT, half(a.rounding, s));
    let doubled: Vec<i64> = v.ring().iter().map(|v| v.wrapping_mul(2)).collect();
    ring_trunc(a, at, &doubled, s + 1)
}

/// What nearest rounding adds first.
const fn half(rounding: Rounding, s: u32) -> i64 {
    match rounding {
        Rounding::Probabilistic => 0,
        Rounding::Nearest => 1 << (s - 1),
    }
}

/// Section 2 on ring elements, in range or not.
fn ring_trunc(a: &mut Arithmetic, at: &str, ring: &[i64], s: u32) -> Result<Vec<i64>, ModelError> {
    debug_assert!((1..=61).contains(&s), "truncation {at} by {s} bits");
    let half = half(a.rounding, s);
    let rounded = match &mut *a.coins {
        Coins::Tape(tape) | Coins::Observed { tape, .. } => match (tape.pop(at), a.rounding) {
            (Some(rounded), _) => Some(rounded),
            (None, Rounding::Nearest) => Some(Rounded::default()),
            (None, Rounding::Probabilistic) => return Err(ModelError::MissingCoins { name: at.into() }),
        },
        _ => None,
    };
    let mut y: Vec<i64> = match (a.rounding, &mut *a.coins) {
        (Rounding::Nearest, _) => ring.iter().map(|&v| nearest(v, s)).collect(),
        (_, Coins::Random(rng)) => {
            let mut coin = |v| fraction(rng.next_u64() as i64, s) < fraction(v, s);
            ring.iter().map(|&v| probabilistic(v, s, coin(v))).collect()
        }
        (_, Coins::Extreme { up }) => ring.iter().map(|&v| probabilistic(v, s, *up && fraction(v, s) != 0)).collect(),
        (_, Coins::Tape(_) | Coins::Observed { .. }) => ring.iter().map(|&v| shift(v, s)).collect(),
    };
    if let Some(rounded) = rounded {
        replay(at, ring, s, half, &rounded, &mut y)?;
        if let Coins::Observed { seen, .. } = &mut *a.coins {
            seen.push(Replayed { name: at.into(), shift: s, operands: ring.to_vec(), coins: rounded.coins });
        }
    }
    Ok(y)
}

/// Checks a tape entry against the operands and adds its coins and wraps to the floors (or nearest values) `y`.
fn replay(at: &str, ring: &[i64], s: u32, half: i64, rounded: &Rounded, y: &mut [i64]) -> Result<(), ModelError> {
    let name = || at.to_owned();
    let expected = if half == 0 { ring.len() } else { 0 };
    if rounded.coins.len() != expected {
        return Err(ModelError::CoinCount { name: name(), found: rounded.coins.len(), expected });
    }
    for (index, (y, &coin)) in y.iter_mut().zip(&rounded.coins).enumerate() {
        if coin && fraction(ring[index], s) == 0 {
            return Err(ModelError::CoinOnMultiple { name: name(), index });
        }
        *y = y.wrapping_add(coin.into());
    }
    let mut least = 0;
    for &(index, wrap) in &rounded.wraps {
        if index < least || index >= ring.len() || wrap != -1 {
            return Err(ModelError::BadWrap { name: name(), index, wrap, elements: ring.len() });
        }
        if in_range(ring[index].wrapping_add(half)) {
            return Err(ModelError::WrapInRange { name: name(), index, wrap, operand: ring[index] });
        }
        y[index] = y[index].wrapping_add(i64::from(wrap) << (64 - s));
        least = index + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::World;
    use crate::fixed::{Monitor, Tape};
    use Rounding::{Nearest, Probabilistic};
    use spec::cases::{self, RING};

    /// An operand of a w-bit ring times 2^(64-w) behaves as it does there: the 64-bit formula covers the small ring.
    #[test]
    fn every_value_and_shift_of_a_twelve_bit_ring() {
        const SPARE: u32 = 52;
        for s in 1..=61 - SPARE {
            for small in -(1i64 << 11)..1 << 11 {
                let (v, shift, unit) = (small << SPARE, s + SPARE, 1i64 << s);
                let (floor, rest) = (small.div_euclid(unit), small.rem_euclid(unit));
                assert_eq!(fraction(v, shift), (rest as u64) << SPARE);
                // Out of range the borrow of V' is lost: the result is off by the ring over the divisor.
                let lost = |v: i64| if (-(1 << 10)..3 << 10).contains(&v) { 0 } else { 1 << (12 - s) };
                for coin in [false, true] {
                    assert_eq!(probabilistic(v, shift, coin), floor + lost(small) + i64::from(coin), "{small} >> {s}");
                }
                let up = small + unit / 2;
                // The half can carry over the top of the ring.
                let up = if up >= 1 << 11 { up - (1 << 12) } else { up };
                assert_eq!(nearest(v, shift), up.div_euclid(unit) + lost(up), "nearest {small} >> {s}");
            }
        }
    }

    #[test]
    fn edge_values_under_both_roundings() {
        let in_range = |v: &i64| v.unsigned_abs() < (1 << 61) + 100;
        for v in cases::values(RING).filter(in_range).flat_map(|v| [v, -v, v - 1, 1 - v]) {
            for s in [1, 11, 16, 31, 39, 42, 44, 61] {
                let wide = |v: i64| i128::from(v).div_euclid(1 << s) as i64;
                assert_eq!(probabilistic(v, s, false), wide(v));
                assert_eq!(probabilistic(v, s, true), wide(v) + 1);
                assert_eq!(nearest(v, s), wide(v + (1 << (s - 1))));
            }
        }
    }

    #[test]
    fn a_random_coin_is_up_as_often_as_the_fraction_says() {
        // 2^16 coins each: 5 standard deviations of the binomial, and exact multiples never move.
        const N: usize = 1 << 16;
        for (v, p) in [
            (5i128 << 16, 0.0),
            ((5 << 16) + 16384, 0.25),
            (-(5 << 16) + 1, 1.0 / 65536.0),
            ((1 << 61) + 60000, 60000.0 / 65536.0),
        ] {
            let mut world = World::new(Probabilistic);
            let y = trunc(&mut world.arithmetic(), "t", &Unreduced::new(vec![v; N]), 16).unwrap();
            let floor = (v >> 16) as i64;
            let ups: i64 = y.iter().map(|y| y - floor).inspect(|c| assert!((0..=1).contains(c))).sum();
            let sigma = (N as f64 * p * (1.0 - p)).sqrt();
            assert!((ups as f64 - N as f64 * p).abs() <= 5.0 * sigma, "{v}: {ups} of {N}, p {p}");
        }
    }

    fn replayed(rounding: Rounding, values: &[i64], rounded: Rounded) -> Result<Vec<i64>, ModelError> {
        let mut tape = Tape::default();
        tape.push("t", rounded);
        let mut world = World { coins: Coins::Tape(tape), ..World::new(rounding) };
        trunc(&mut world.arithmetic(), "t", &Unreduced::new(values.iter().map(|&v| v.into())), 4)
    }

    #[test]
    fn a_tape_is_replayed_or_refused() {
        let out = 1i64 << 62; // V' = 2^63
        let coins = |c: &[bool]| Rounded { coins: c.to_vec(), wraps: vec![] };
        let wrap = |c: &[bool], i, e| Rounded { coins: c.to_vec(), wraps: vec![(i, e)] };
        assert_eq!(replayed(Probabilistic, &[17, -1], coins(&[true, false])), Ok(vec![2, -1]));
        assert_eq!(replayed(Probabilistic, &[out], wrap(&[false], 0, -1)), Ok(vec![(1 << 58) - (1 << 60)]));
        assert_eq!(replayed(Nearest, &[out - 8, 24], wrap(&[], 0, -1)), Ok(vec![(1 << 58) - (1 << 60), 2]));
        let name = || "t".to_owned();
        let bad = |index, wrap| ModelError::BadWrap { name: name(), index, wrap, elements: 1 };
        for (rounding, values, tape, error) in [
            (Probabilistic, vec![1, 2], coins(&[true]), ModelError::CoinCount { name: name(), found: 1, expected: 2 }),
            (Nearest, vec![1], coins(&[true]), ModelError::CoinCount { name: name(), found: 1, expected: 0 }),
            (Probabilistic, vec![1, 16], coins(&[true; 2]), ModelError::CoinOnMultiple { name: name(), index: 1 }),
            (
                Nearest,
                vec![out - 9],
                wrap(&[], 0, -1),
                ModelError::WrapInRange { name: name(), index: 0, wrap: -1, operand: out - 9 },
            ),
            (Nearest, vec![out], wrap(&[], 1, -1), bad(1, -1)),
            (Nearest, vec![out], wrap(&[], 0, -2), bad(0, -2)),
            // The protocol takes a borrow for none, never the other way round.
            (Nearest, vec![out], wrap(&[], 0, 1), bad(0, 1)),
            (Nearest, vec![out], Rounded { coins: vec![], wraps: vec![(0, -1), (0, -1)] }, bad(0, -1)),
        ] {
            assert_eq!(replayed(rounding, &values, tape), Err(error));
        }
        let mut world = World { coins: Coins::Tape(Tape::default()), ..World::new(Probabilistic) };
        let mut tape = Tape::default();
        tape.push("t", coins(&[true, false]));
        let mut observed = World { coins: Coins::Observed { tape, seen: vec![] }, ..World::new(Probabilistic) };
        trunc(&mut observed.arithmetic(), "t", &Unreduced::new([17, -1]), 4).unwrap();
        let Coins::Observed { seen, .. } = &observed.coins else { panic!("it stays observed") };
        let given = Replayed { name: name(), shift: 4, operands: vec![17, -1], coins: vec![true, false] };
        assert_eq!((seen, observed.coins.finish()), (&vec![given], Ok(())));
        let missing = trunc(&mut world.arithmetic(), "t", &Unreduced::new([3]), 1);
        assert_eq!(missing, Err(ModelError::MissingCoins { name: name() }));
        world.rounding = Nearest;
        assert_eq!(trunc(&mut world.arithmetic(), "t", &Unreduced::new([3]), 1), Ok(vec![2]));
    }

    /// Both edges of the doubled range, and the values beside them.
    #[test]
    fn a_doubled_truncation_is_that_of_the_value_up_to_half_the_range() {
        const TOP: i64 = 1 << 61;
        let mut v: Vec<i64> = vec![TOP - 1, -TOP, 0, 1, -1, 5, -5, (1 << 46) + 77, -(1 << 60) + 3];
        for (rounding, coins) in [
            (Nearest, Coins::seeded(0)),
            (Probabilistic, Coins::Extreme { up: false }),
            (Probabilistic, Coins::Extreme { up: true }),
        ] {
            for s in [1, 2, 16, 39, 60] {
                v[0] = TOP - 1 - half(rounding, s);
                let operand = Unreduced::new(v.iter().map(|&v| v.into()));
                let mut world = World { coins: coins.clone(), ..World::new(rounding) };
                let doubled = trunc_doubled(&mut world.arithmetic(), "t", &operand, s).unwrap();
                let allowed = world.monitor.take().total();
                assert_eq!(doubled, trunc(&mut world.arithmetic(), "t", &operand, s).unwrap(), "{rounding}, {s} bits");
                assert_eq!((allowed, world.monitor.total()), (1, 0), "-2^61 is exact, but reported");
                let beyond = Unreduced::new([i128::from(TOP - half(rounding, s)), i128::from(-TOP) - 1]);
                trunc_doubled(&mut world.arithmetic(), "t", &beyond, s).unwrap();
                assert_eq!(world.monitor.total(), 2, "{rounding}, {s} bits: both are out of range");
            }
        }
        // One beyond it the bit that is not known is missed: 2^61 may read as 2^61, never as what it is modulo 2^62.
        let mut world = World::new(Nearest);
        let lost = trunc_doubled(&mut world.arithmetic(), "t", &Unreduced::new([3 << 61, -(3 << 61)]), 8).unwrap();
        assert_eq!(lost, [-(1 << 53), 1 << 53]);
    }

    #[test]
    fn the_monitor_sees_exactly_what_can_wrap() {
        for (rounding, half) in [(Probabilistic, 0), (Nearest, 8)] {
            let mut world = World { monitor: Monitor::new(9), ..World::new(rounding) };
            let top = (1i128 << 62) - half;
            trunc(&mut world.arithmetic(), "t", &Unreduced::new([top - 1, top, 1 - (1 << 62), 1 << 65]), 4).unwrap();
            let seen: Vec<_> = world.monitor.violations().iter().map(|v| (v.index, v.operand)).collect();
            assert_eq!(seen, [(1, top), (3, 1 << 65)]);
        }
    }
}
