//! Probabilities of what chance would do, small enough to be a verdict.
//!
//! Every function answers with log2 of a p-value: if the null hypothesis holds, the answer is at most -b with
//! probability at most 2^-b, for every b and every sample size. Nothing here is asymptotic: binomial tails are summed,
//! the others are union and Chernoff bounds.

/// A check that fails at this log2 p-value raises a false alarm in one of 2^40 runs.
pub const FALSE_ALARM: f64 = -40.0;

/// `successes` of `trials` independent trials that succeed with probability `p`: exact, two-sided (twice the smaller
/// tail).
pub fn binomial(trials: u64, successes: u64, p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0 } else { trials };
        return if successes == certain { 0.0 } else { f64::NEG_INFINITY };
    }
    let upper = successes as f64 >= trials as f64 * p;
    // The lower tail of successes is the upper tail of failures.
    let (k, p) = if upper { (successes, p) } else { (trials - successes, 1.0 - p) };
    (1.0 + log2_upper_tail(trials, k, p)).min(0.0)
}

/// log2 P\[X >= k\] for k >= n p: the first term, and the ratios of the following ones.
fn log2_upper_tail(n: u64, k: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let (mut term, mut sum) = (1.0, 1.0);
    for j in k..n {
        term *= (n - j) as f64 / (j + 1) as f64 * odds;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    log2_mass(n, k, p) + f64::log2(sum)
}

/// log2 P\[X = k\], 0 < p < 1. Source: Loader, *Fast and accurate computation of binomial probabilities* (2000):
/// deviances and Stirling errors do not cancel as factorials do.
fn log2_mass(n: u64, k: u64, p: f64) -> f64 {
    let (nf, kf) = (n as f64, k as f64);
    if k == 0 {
        return nf * (-p).ln_1p() / std::f64::consts::LN_2;
    }
    if k == n {
        return nf * p.log2();
    }
    let deviance = |x: f64, mean: f64| x * (x / mean).ln() + mean - x;
    let ln = stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance(kf, nf * p)
        - deviance(nf - kf, nf * (1.0 - p))
        + 0.5 * (nf / (std::f64::consts::TAU * kf * (nf - kf))).ln();
    ln / std::f64::consts::LN_2
}

/// ln n! - ln(sqrt(2 pi n) (n/e)^n), n >= 1; beyond 15 the series is exact to 1e-15.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n <= 15 {
        let ln_factorial: f64 = (2..=n).map(|i| (i as f64).ln()).sum();
        return ln_factorial - 0.5 * (std::f64::consts::TAU * x).ln() - x * (x.ln() - 1.0);
    }
    let s = 1.0 / (x * x);
    (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / x
}

/// The values of t that [`coins`] looks at: 2^(j/4) from 2^-16 to 2^6.
fn tilt(j: usize) -> f64 {
    (j as f64 / 4.0 - 16.0).exp2()
}

const TILTS: usize = 89;

/// Coins, each with a probability of its own that may depend on all coins before it: how surprising is the number that
/// came up? log2 of a bound on the chance of one as surprising, either way. A coin that shows what has probability 0 is
/// answered with minus infinity.
///
/// For every t, the product of e^(t c_i) / (1 - p_i + p_i e^t) has expectation 1, whatever the p_i learn from earlier
/// coins (a martingale), so by Markov's inequality it exceeds x with probability at most 1/x; likewise for the coins
/// turned over. The most telling of 89 values of t, 2^-16 to 2^6, counts, with a factor for having chosen it and the
/// side (union bound).
pub fn coins(coins: impl Iterator<Item = (bool, f64)>) -> f64 {
    let mut up = 0u64;
    let mut open = Vec::new();
    for (coin, p) in coins {
        if (coin && p <= 0.0) || (!coin && p >= 1.0) {
            return f64::NEG_INFINITY;
        }
        if p > 0.0 && p < 1.0 {
            open.push(p);
            up += u64::from(coin);
        }
    }
    surprise(up, open)
}

/// Likewise of `up` coins of those whose probabilities `open` holds, none of them 0 or 1.
fn surprise(up: u64, mut open: Vec<f64>) -> f64 {
    let (mut k, mut mean) = (up as f64, open.iter().sum::<f64>());
    if k < mean {
        open.iter_mut().for_each(|p| *p = 1.0 - *p);
        (k, mean) = (open.len() as f64 - k, open.len() as f64 - mean);
    }
    if k <= mean {
        return 0.0;
    }
    // The logarithm is convex in t and least where the tilted mean is k.
    let tilted_mean = |t: f64| open.iter().map(|p| 1.0 / (1.0 + (1.0 / p - 1.0) * (-t).exp())).sum::<f64>();
    let (mut low, mut high) = (0, TILTS - 1);
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        *(if tilted_mean(tilt(middle)) < k { &mut low } else { &mut high }) = middle;
    }
    let ln = |t: f64| open.iter().map(|p| (p * t.exp_m1()).ln_1p()).sum::<f64>() - t * k;
    let least = ln(tilt(low)).min(ln(tilt(high)));
    ((2.0 * TILTS as f64).log2() + least / std::f64::consts::LN_2).min(0.0)
}

/// How evenly the bits of words fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// Words looked at.
    pub words: u64,
    /// The most uneven bit position, lowest bit 0.
    pub bit: u32,
    /// Ones at that position.
    pub ones: u64,
    /// log2 of the p-value for uniform independent words: the exact one of that position, times 64 (union bound).
    pub log2_p: f64,
}

/// Tests words for being uniform: each of the 64 bit positions must be balanced.
pub fn bit_balance(words: &[u64]) -> Balance {
    let (n, mut ones) = (words.len() as u64, [0u64; 64]);
    for some in words.chunks(Counters::MOST) {
        let mut counters = Counters::default();
        some.iter().for_each(|&word| counters.count(word));
        counters.add_to(&mut ones);
    }
    // |ones - n/2| decides, as every position has the same number of trials.
    let bit = (0..64).max_by_key(|&k| (2 * ones[k]).abs_diff(n)).unwrap_or(0);
    let log2_p = if n == 0 { 0.0 } else { (6.0 + binomial(n, ones[bit], 0.5)).min(0.0) };
    Balance { words: n, bit: bit as u32, ones: ones[bit], log2_p }
}

/// How many words had each bit, 64 counters side by side: plane i holds bit i of every counter, so that one addition
/// with carry counts all bits of a word.
#[derive(Default)]
struct Counters([u64; 8]);

impl Counters {
    /// The words that can be counted.
    const MOST: usize = 255;

    fn count(&mut self, word: u64) {
        let mut carry = word;
        for plane in &mut self.0 {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }

    /// Adds the counters to `ones`, bit 0 first.
    fn add_to(self, ones: &mut [u64; 64]) {
        for (i, plane) in self.0.into_iter().enumerate() {
            ones.iter_mut().enumerate().for_each(|(k, ones)| *ones += (plane >> k & 1) << i);
        }
    }
}

/// Words that were there before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// Words looked at.
    pub words: u64,
    /// How many equal an earlier one.
    pub repeated: u64,
    /// The index of the first such, and of the word it repeats.
    pub first: Option<(usize, usize)>,
    /// log2 of the p-value for uniform independent words.
    pub log2_p: f64,
}

/// Tests words for being drawn anew each time: of n uniform 64-bit words, r or more repeat earlier ones with
/// probability at most (n^2 / 2^65)^r (word i repeats one of the i - 1 before it with probability at most (i - 1) /
/// 2^64, whatever those are; summed over all sets of r).
pub fn repeats(words: &[u64]) -> Repeats {
    let mut sorted = words.to_vec();
    sorted.sort_unstable();
    let repeated = sorted.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    let first = if repeated > 0 { first_repeat(words) } else { None };
    let pairs = 2.0 * (words.len().max(1) as f64).log2() - 65.0;
    Repeats { words: words.len() as u64, repeated, first, log2_p: (repeated as f64 * pairs).min(0.0) }
}

/// The index of the first word that equals an earlier one, and the index of that one.
fn first_repeat(words: &[u64]) -> Option<(usize, usize)> {
    let mut seen = std::collections::HashMap::with_capacity(words.len());
    words.iter().enumerate().find_map(|(i, w)| seen.insert(w, i).map(|earlier| (i, earlier)))
}

/// The median, of an even number the mean of the middle two; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, RngCore, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    /// log2 P[X >= k] by Pascal's recurrence over the trials: sums of positive terms only, scaled by 2^1000 so that the
    /// smallest, 0.001^200, are still normal numbers.
    fn log2_upper_tail(n: usize, k: usize, p: f64) -> f64 {
        let mut mass = vec![2f64.powi(1000)];
        for _ in 0..n {
            let mut next = vec![0.0; mass.len() + 1];
            for (j, m) in mass.iter().enumerate() {
                next[j] += m * (1.0 - p);
                next[j + 1] += m * p;
            }
            mass = next;
        }
        mass[k..].iter().sum::<f64>().log2() - 1000.0
    }

    #[test]
    fn a_tail_far_below_the_smallest_number() {
        let want = 131.0 * 0.001f64.log2();
        assert!((binomial(131, 131, 0.001) - (want + 1.0)).abs() < 1e-6);
        assert!((log2_upper_tail(131, 131, 0.001) - want).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn binomial_tails_are_the_sums_of_their_terms(n in 1usize..200, k in 0usize..200, p in 0.001f64..0.999) {
            let k = k.min(n);
            let lower = log2_upper_tail(n, n - k, 1.0 - p);
            let want = if k as f64 >= n as f64 * p { log2_upper_tail(n, k, p) } else { lower };
            let got = binomial(n as u64, k as u64, p);
            prop_assert!((got - (want + 1.0).min(0.0)).abs() < 1e-6, "{} {}", got, want);
        }

        #[test]
        fn chernoff_is_above_the_exact_tail_and_not_far(n in 20u64..500, k in 0u64..500, p in 0.05f64..0.95) {
            let k = k.min(n);
            let exact = binomial(n, k, p);
            let bound = coins((0..n).map(|i| (i < k, p)));
            prop_assert!(bound >= exact - 1e-9, "{} below {}", bound, exact);
            // The bound loses the choice among the tilts, the distance to the best one, and a factor of a few sqrt(n).
            let loss = (TILTS as f64).log2() - 0.01 * exact + 2.0 + (n as f64).log2();
            prop_assert!(bound <= (exact + loss).min(0.0), "{} for {}", bound, exact);
        }
    }

    #[test]
    fn large_counts_and_certain_outcomes() {
        assert_eq!(binomial(1000, 0, 0.0), 0.0);
        assert_eq!(binomial(1000, 1, 0.0), f64::NEG_INFINITY);
        assert_eq!(binomial(7, 7, 1.0), 0.0);
        assert!((binomial(100, 100, 0.5) - -99.0).abs() < 1e-9);
        // Six standard deviations: 2 Phi(-6) = 1.973e-9, up to the discrete step.
        let n = 1u64 << 24;
        let got = binomial(n, n / 2 + 6 * 2048, 0.5);
        assert!((got - 1.973e-9f64.log2()).abs() < 0.01, "{got}");
        assert_eq!(coins([(true, 0.0)].into_iter()), f64::NEG_INFINITY);
        assert_eq!(coins([(true, 1.0), (false, 0.0)].into_iter()), 0.0);
    }

    /// The martingale itself, over every outcome: probabilities that depend on the coins before, and the chance of a
    /// verdict below a limit.
    #[test]
    fn probabilities_may_depend_on_earlier_coins() {
        const N: u32 = 14;
        let limits: Vec<f64> = (-12..=-1).map(f64::from).collect();
        let mut chance = vec![0.0; limits.len()];
        for outcome in 0..1u32 << N {
            // The next coin follows the last ones: the worst that a dependence can do to a sum.
            let (mut p, mut sequence, mut mass) = (0.02, Vec::new(), 1.0);
            for i in 0..N {
                let coin = outcome >> i & 1 == 1;
                sequence.push((coin, p));
                mass *= if coin { p } else { 1.0 - p };
                p = if coin { 0.3 } else { 0.02 };
            }
            let found = coins(sequence.into_iter());
            limits
                .iter()
                .zip(&mut chance)
                .for_each(|(limit, chance)| *chance += if found <= *limit { mass } else { 0.0 });
        }
        assert!(chance[0] > 0.0, "no outcome is surprising");
        for (limit, chance) in limits.iter().zip(chance) {
            assert!(chance <= limit.exp2(), "2^{limit}: {chance}");
        }
    }

    #[test]
    fn fair_samples_pass_and_small_biases_do_not() {
        let mut rng = ChaCha12Rng::seed_from_u64(4);
        let words: Vec<u64> = (0..20_000).map(|_| rng.next_u64()).collect();
        assert!(bit_balance(&words).log2_p > -20.0);
        assert_eq!(repeats(&words).repeated, 0);
        // One bit in 64 is one in 47 of 100.
        let biased: Vec<u64> = words.iter().map(|w| if rng.random_bool(0.06) { w & !(1 << 17) } else { *w }).collect();
        let found = bit_balance(&biased);
        assert!(found.bit == 17 && found.log2_p < FALSE_ALARM, "{found:?}");
        let mut again = words.clone();
        (again[777], again[999]) = (again[3], again[4]);
        let found = repeats(&again);
        assert_eq!((found.repeated, found.first), (2, Some((777, 3))));
        assert!(found.log2_p < FALSE_ALARM);
        let fractions: Vec<f64> = (0..20_000).map(|_| rng.random()).collect();
        let draw = |rng: &mut ChaCha12Rng, shift: f64| {
            coins(fractions.iter().map(|&p| (rng.random::<f64>() < p + shift, p)).collect::<Vec<_>>().into_iter())
        };
        assert!(draw(&mut rng, 0.0) > -20.0);
        assert!(draw(&mut rng, 0.03) < FALSE_ALARM && draw(&mut rng, -0.03) < FALSE_ALARM);
    }

    #[test]
    fn words_that_are_not_random_have_their_exact_probability() {
        let (ones, zeros) = (bit_balance(&[u64::MAX; 16]), bit_balance(&[0; 16]));
        assert_eq!((ones.words, ones.ones, ones.log2_p), (16, 16, 6.0 + 1.0 - 16.0));
        assert_eq!((zeros.words, zeros.ones, zeros.log2_p), (16, 0, 6.0 + 1.0 - 16.0));
        assert_eq!(bit_balance(&[0, u64::MAX]).log2_p, 0.0);
        assert_eq!(bit_balance(&[]).log2_p, 0.0);
        let found = repeats(&[5, 7, 5, 5]);
        assert_eq!((found.words, found.repeated, found.first), (4, 2, Some((2, 0))));
        assert_eq!(found.log2_p, 2.0 * (2.0 * 2.0 - 65.0));
        assert_eq!((repeats(&[5]).repeated, repeats(&[]).log2_p), (0, 0.0));
    }

    /// The largest t, 2^6, turns the bound of coins that all fall alike into their very probability.
    #[test]
    fn coins_that_all_fall_alike_are_as_surprising_as_they_are_rare() {
        let choice = (2.0 * TILTS as f64).log2();
        for (coin, p) in [(true, 0.5), (false, 0.5), (true, 0.25), (false, 0.75)] {
            let found = coins(std::iter::repeat_n((coin, p), 30));
            let each = f64::log2(if coin { p } else { 1.0 - p });
            assert!((found - (choice + 30.0 * each)).abs() < 1e-9, "{coin} {p}: {found}");
        }
        assert_eq!(coins([(true, 0.5), (false, 0.5)].into_iter()), 0.0);
        assert_eq!(coins([(false, 1.0)].into_iter()), f64::NEG_INFINITY);
        assert_eq!(coins(std::iter::empty()), 0.0);
        // What is certain says nothing, however often.
        let certain = [(true, 1.0), (false, 0.0)].into_iter().cycle().take(1000);
        assert!((coins(certain.chain(std::iter::repeat_n((true, 0.5), 30))) - (choice - 30.0)).abs() < 1e-9);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&[4.0]), median(&[])), (Some(4.0), None));
    }

    #[test]
    fn one_success_where_few_are_expected() {
        // 1 - 0.999^100 of at least one, doubled; 0.9^10 of none is above a half, so its double is no surprise.
        assert!((binomial(100, 1, 0.001) - (2.0 * (1.0 - 0.999f64.powi(100))).log2()).abs() < 1e-9);
        assert!((binomial(60, 0, 0.1) - (2.0 * 0.9f64.powi(60)).log2()).abs() < 1e-9);
    }

    #[test]
    fn stirlings_error_is_that_of_the_factorial() {
        for n in 1..60u64 {
            let x = n as f64;
            let ln: f64 = (2..=n).map(|i| (i as f64).ln()).sum();
            let error = ln - 0.5 * (std::f64::consts::TAU * x).ln() - x * x.ln() + x;
            assert!((stirling_error(n) - error).abs() < 1e-13, "{n}: {:e}", stirling_error(n) - error);
        }
    }

    /// 80 of 100 fair coins: the best t is ln 4, and the better of its two neighbours counts.
    #[test]
    fn the_more_telling_neighbour_of_the_best_tilt_counts() {
        let ln = |t: f64| 100.0 * f64::midpoint(1.0, t.exp()).ln() - 80.0 * t;
        let (below, above) = (ln(0.25f64.exp2()), ln(0.5f64.exp2()));
        assert!(above < below);
        let want = 178f64.log2() + above / std::f64::consts::LN_2;
        assert!((coins((0..100).map(|k| (k < 80, 0.5))) - want).abs() < 1e-9);
    }

    /// Half of all bits are ones, but for one position: always, never, or three times of four.
    #[test]
    fn the_most_uneven_bit_is_found_whichever_way_it_leans() {
        let words = |change: fn(u64, u64) -> u64| {
            (0..200).map(|k| change(k, if k % 2 == 0 { 0 } else { u64::MAX })).collect::<Vec<u64>>()
        };
        let found = |change| {
            let Balance { words, bit, ones, log2_p } = bit_balance(&words(change));
            assert_eq!((words, log2_p), (200, (6.0 + binomial(200, ones, 0.5)).min(0.0)));
            (bit, ones)
        };
        assert_eq!(found(|_, w| w | 1 << 5), (5, 200));
        assert_eq!(found(|_, w| w & !(1 << 6)), (6, 0));
        assert_eq!(found(|k, w| if k % 4 == 0 { w | 1 << 63 } else { w }), (63, 150));
        assert_eq!(bit_balance(&[]).log2_p, 0.0);
    }

    /// Around the number of words that one set of counters takes: half of all bits are ones, but for one position.
    #[test]
    fn however_many_words_there_are_every_one_counts() {
        for n in [254, 255, 256, 510, 511, 1000] {
            for (bit, ones) in [(0, n - n / 5), (17, n / 5), (63, n)] {
                let others = |k| if k % 2 == 0 { 0 } else { !(1 << bit) };
                let words: Vec<u64> = (0..n).map(|k| others(k) | u64::from(k < ones) << bit).collect();
                let found = bit_balance(&words);
                assert_eq!((found.words, found.bit, found.ones), (n, bit, ones));
            }
        }
    }

    #[test]
    fn words_that_were_there_before_are_counted_and_weighed() {
        // Of eight words each pair is equal with probability 2^-64, and there are fewer than 2^5 pairs.
        let found = repeats(&[1, 2, 3, 1, 4, 5, 2, 1]);
        assert_eq!((found.words, found.repeated, found.first, found.log2_p), (8, 3, Some((3, 0)), 3.0 * (6.0 - 65.0)));
        assert_eq!((repeats(&[1, 2]).first, repeats(&[1, 2]).log2_p, repeats(&[]).log2_p), (None, 0.0, 0.0));
    }
}
