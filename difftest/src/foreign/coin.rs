//! Whether the coins of probabilistic truncations keep their probabilities, and whether they are drawn anew for a
//! repeated input.

use super::judged::Judged;
use crate::statistics;
use std::collections::BTreeMap;

/// A test at this log2 p-value fails: one of 2^50 sound tensors of a step, so that a thousand of them raise a false
/// alarm in one of 2^40 traces.
pub const FALSE_ALARM: f64 = -50.0;

/// The most coins of a tensor that are tested.
const MOST: usize = 1 << 17;

/// The statistics of the coins of one tensor.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Coins {
    /// Coins that could go either way.
    pub tossed: u64,
    /// Mean error in units.
    pub mean_error: f64,
    /// log2 of the chance of coins as surprising as these.
    pub log2_p: f64,
    /// log2 of the chance that coins of equal inputs are as often equal as here.
    pub log2_p_repeats: f64,
}

impl Coins {
    /// Whether chance explains them.
    pub fn sound(&self) -> bool {
        self.log2_p >= FALSE_ALARM && self.log2_p_repeats >= FALSE_ALARM
    }
}

/// (coin, its probability) of every element of a tensor that truncates once and is inside its bound.
pub fn of(judged: &Judged) -> impl Iterator<Item = (bool, f64)> + '_ {
    judged
        .fraction
        .iter()
        .zip(&judged.error)
        .filter(|(r, e)| **r > 0.0 && e.abs() < 1.0)
        .map(|(r, e)| (*e > 0.0, *r))
        .take(MOST)
}

/// Tests the coins of a tensor; `None` if there are fewer than 32.
pub fn test(judged: &Judged) -> Option<Coins> {
    let coins: Vec<_> = of(judged).collect();
    if coins.len() < 32 {
        return None;
    }
    let n = coins.len() as f64;
    let mean_error = coins.iter().map(|(up, r)| f64::from(u8::from(*up)) - r).sum::<f64>() / n;
    Some(Coins { tossed: coins.len() as u64, mean_error, log2_p: unlikely(&coins), log2_p_repeats: repeats(judged) })
}

/// log2 of the chance of coins as surprising: all together, and those of each quarter of the fractions by themselves.
fn unlikely(coins: &[(bool, f64)]) -> f64 {
    let quarter = |k: usize| coins.iter().copied().filter(move |c| ((c.1 * 4.0) as usize).min(3) == k);
    let all = statistics::coins(coins.iter().copied());
    let least = (0..4).map(|k| statistics::coins(quarter(k))).fold(all, f64::min);
    // Five tests: their chances add up.
    (least + 5f64.log2()).min(0.0)
}

/// Inputs that occur more than once: if the coins of every group are equal, the chance of that.
fn repeats(judged: &Judged) -> f64 {
    let mut groups: BTreeMap<u64, (usize, usize, f64)> = BTreeMap::new();
    let elements = judged.fraction.iter().zip(&judged.error).zip(&judged.expected);
    for ((&r, &e), &value) in elements.filter(|((r, e), _)| **r > 0.0 && e.abs() < 1.0).take(MOST) {
        let group = groups.entry(value.to_bits()).or_insert((0, 0, r));
        group.0 += 1;
        group.1 += usize::from(e > 0.0);
    }
    let mut log2_p = 0.0;
    for (n, up, r) in groups.into_values().filter(|g| g.0 > 1) {
        if up != 0 && up != n {
            return 0.0;
        }
        log2_p += (r.powi(n as i32) + (1.0 - r).powi(n as i32)).log2();
    }
    log2_p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_sound_down_to_the_chance_of_a_false_alarm() {
        let of = |log2_p, log2_p_repeats| Coins { tossed: 32, mean_error: 0.0, log2_p, log2_p_repeats }.sound();
        assert!(of(FALSE_ALARM, FALSE_ALARM));
        assert!(!of(FALSE_ALARM - 1e-9, 0.0) && !of(0.0, FALSE_ALARM - 1e-9));
    }

    /// 40 coins of chance 0.2 that are all up are 2^-93 by themselves, and hidden among 3,000 others.
    #[test]
    fn a_quarter_of_the_fractions_is_surprising_by_itself() {
        for (fraction, others) in [(0.2, [0.25, 0.5, 0.75]), (0.8, [0.0625, 0.25, 0.5])] {
            // As many up as there should be.
            let fair = others.into_iter().flat_map(|r| (0..1000).map(move |k| ((k as f64 * r).fract() < r, r)));
            assert!(unlikely(&fair.clone().collect::<Vec<_>>()) > -5.0);
            let odd = (0..40).map(|_| (fraction < 0.5, fraction));
            let all: Vec<_> = fair.chain(odd).collect();
            assert!(statistics::coins(all.iter().copied()) > -20.0, "together they are no surprise");
            assert!(unlikely(&all) < -80.0, "{fraction}");
        }
    }

    /// A tensor of coins: (up, fraction, the value that is truncated).
    fn judged(coins: &[(bool, f64, f64)]) -> Judged {
        let column = |of: fn(&(bool, f64, f64)) -> f64| coins.iter().map(of).collect::<Vec<_>>();
        Judged {
            operation: "an operation",
            tensor: "a tensor".into(),
            step: 0,
            dim: (1, coins.len()),
            output: vec![0.0; coins.len()],
            expected: column(|c| c.2),
            error: column(|c| f64::from(u8::from(c.0)) - c.1),
            low: vec![-1.0; coins.len()],
            high: vec![1.0; coins.len()],
            fraction: column(|c| c.1),
            outside: Vec::new(),
            unit: 1.0,
            truncations: 1,
            shift: 2,
            kind: crate::foreign::judged::Kind::Judged,
            spare: 0.0,
            denominators: Vec::new(),
        }
    }

    #[test]
    fn coins_are_what_was_cut_off_inside_the_bound() {
        let mut tensor = judged(&[(true, 0.25, 1.0), (false, 0.25, 2.0), (false, 0.0, 3.0), (true, 0.5, 4.0)]);
        assert_eq!(of(&tensor).collect::<Vec<_>>(), [(true, 0.25), (false, 0.25), (true, 0.5)]);
        tensor.error[3] = 1.0;
        assert_eq!(of(&tensor).count(), 2, "an error of a unit is no coin's");
        let some = |n: usize| judged(&(0..n).map(|k| (k % 16 == 0, 0.5, k as f64)).collect::<Vec<_>>());
        assert_eq!(test(&some(31)), None);
        let coins = test(&some(32)).unwrap();
        assert_eq!((coins.tossed, coins.mean_error, coins.log2_p_repeats), (32, -0.4375, 0.0));
        let alone = statistics::coins((0..32).map(|k| (k % 16 == 0, 0.5)));
        assert!(alone < -10.0, "{alone}");
        assert_eq!(coins.log2_p, alone + 5f64.log2(), "one of five tests");
    }

    #[test]
    fn equal_coins_of_equal_inputs_are_as_likely_as_they_are() {
        let p = |coins: &[(bool, f64, f64)]| repeats(&judged(coins));
        assert_eq!(p(&[(true, 0.25, 1.0), (true, 0.25, 2.0)]), 0.0, "no input twice");
        assert_eq!(p(&[(true, 0.25, 1.0), (false, 0.25, 1.0), (true, 0.25, 2.0), (true, 0.25, 2.0)]), 0.0);
        let three = [(true, 0.25, 1.0), (true, 0.25, 1.0), (true, 0.25, 1.0), (false, 0.25, 7.0), (false, 0.25, 7.0)];
        let (first, second) = (0.25f64.powi(3) + 0.75f64.powi(3), 0.25f64.powi(2) + 0.75f64.powi(2));
        assert!((p(&three) - (first * second).log2()).abs() < 1e-12);
        let whole = [(false, 0.0, 1.0), (false, 0.0, 1.0)];
        assert_eq!(p(&whole), 0.0, "nothing is cut off, nothing is tossed");
    }
}
