//! `rounding`: coins follow their probabilities. A probabilistic truncation of V by s bits must round up with
//! probability (V mod 2^s) / 2^s, independently of everything else. The operand V is the integer model's, the coin is
//! the one that the parties' shares imply. Coins are tested by class (sign of V, sixteenth of the fraction) and all
//! together, which is the mean error; each test is a two-sided tail bound for coins with probabilities of their own,
//! which may depend on the coins before ([`statistics::coins`]): later operands of a step, and later steps, do. Under
//! nearest rounding there are no coins: parties with other randomness must agree in every tensor.

use super::parties::{self, Randomness, Rows, rows, start};
use crate::check::Outcome;
use crate::config::Config;
use crate::error::Error;
use crate::side::flat;
use crate::side::secure::{tape, tensors};
use crate::statistics::{self, FALSE_ALARM};
use ndarray::Array2;
use reference::fixed::truncate::fraction;
use reference::fixed::{Coins, Model, Parameters, Replayed};
use reference::spec::{Rounding, TrainSpec};

/// Coins under probabilistic rounding: training steps are taken until there are as many.
const ENOUGH: usize = 20_000;

/// Runs with other randomness under nearest rounding.
const RUNS: u64 = 20;

/// Classes of the fraction.
const CLASSES: usize = 16;

/// Coins with the probability of each, by class.
#[derive(Debug, Clone)]
struct Classes([Vec<(bool, f64)>; 2 * CLASSES]);

impl Classes {
    fn new() -> Self {
        Classes(std::array::from_fn(|_| Vec::new()))
    }

    fn add(&mut self, truncation: &Replayed) {
        let Replayed { shift, operands, coins, .. } = truncation;
        for (&v, &coin) in operands.iter().zip(coins) {
            let p = fraction(v, *shift) as f64 / 2f64.powi(*shift as i32);
            let class = ((p * CLASSES as f64) as usize).min(CLASSES - 1) + if v < 0 { CLASSES } else { 0 };
            self.0[class].push((coin, p));
        }
    }

    fn all(&self) -> impl Iterator<Item = (bool, f64)> {
        self.0.iter().flatten().copied()
    }

    /// Mean of coin - probability, i.e. of the rounding error in units, and its standard deviation if the coins are
    /// right.
    fn mean(&self) -> (f64, f64) {
        let n = self.all().count().max(1) as f64;
        let sum: f64 = self.all().map(|(coin, p)| f64::from(u8::from(coin)) - p).sum();
        let variance: f64 = self.all().map(|(_, p)| p * (1.0 - p)).sum();
        (sum / n, variance.sqrt() / n)
    }

    /// In words, with what was expected of it.
    fn describe(&self, class: usize) -> String {
        let coins = &self.0[class];
        let (up, expected) = (coins.iter().filter(|c| c.0).count(), coins.iter().map(|c| c.1).sum::<f64>());
        let sign = if class < CLASSES { "V >= 0" } else { "V < 0" };
        let low = (class % CLASSES) as f64 / CLASSES as f64;
        format!(
            "{sign}, fraction in [{low}, {}): {up} of {} coins up, {expected:.1} expected",
            low + 1.0 / CLASSES as f64,
            coins.len()
        )
    }

    fn outcome(&self, config: &Config) -> Outcome {
        let tests = (2 * CLASSES + 1) as f64;
        let threshold = FALSE_ALARM - tests.log2();
        let least = (0..2 * CLASSES)
            .map(|class| (statistics::coins(self.0[class].iter().copied()), class))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .expect("there are classes");
        let whole = statistics::coins(self.all());
        let (mean, deviation) = self.mean();
        let summary = format!(
            "{} coins: mean error {mean:+.1e} +- {deviation:.0e} units, 2^{whole:.0}; least likely of {} classes \
             2^{:.0}; fails below 2^{threshold:.0}",
            self.all().count(),
            2 * CLASSES,
            least.0
        );
        let what = if least.0 < threshold {
            Some(format!("{}; chance 2^{:.0}", self.describe(least.1), least.0))
        } else if whole < threshold {
            Some(format!(
                "mean error {mean:+.2e} units, {:.1} standard deviations; chance 2^{whole:.0}",
                mean / deviation
            ))
        } else {
            None
        };
        Outcome::new("rounding", summary, what.map(|what| failure(config, &what)))
    }
}

fn failure(config: &Config, what: &str) -> String {
    parties::failure("rounding", config, what)
}

/// Trains on fresh parties until there are enough coins, and gives the verdict on them.
///
/// # Errors
/// A party fails.
pub fn check(config: &Config, spec: &TrainSpec, parameters: &Parameters) -> Result<Outcome, Error> {
    match spec.rounding {
        Rounding::Probabilistic => {
            let (mut engine, _) = start(spec, parameters, Randomness::new(config.insecure_seed, 3)?)?;
            let mut model = Model::new(spec.clone())?;
            model.load(parameters.clone())?;
            let mut classes = Classes::new();
            for step in 0.. {
                let Rows { units, labels } = rows(spec, config.seed.wrapping_add(step));
                let report = engine.step(&flat(&units), &labels)?;
                let mut coins = Coins::Observed { tape: tape(report.rounding), seen: Vec::new() };
                if let Err(e) = model.step(&units, &labels, &mut coins, &mut |_, _| ()) {
                    let summary = format!("the coins of step {step} of the side experiment cannot be");
                    return Ok(Outcome::new("rounding", summary, Some(failure(config, &e.to_string()))));
                }
                if let Coins::Observed { seen, .. } = coins {
                    seen.iter().for_each(|t| classes.add(t));
                }
                if classes.all().count() >= ENOUGH {
                    break;
                }
            }
            Ok(classes.outcome(config))
        }
        Rounding::Nearest => {
            let Rows { units, labels } = rows(spec, config.seed);
            let (mut first, mut elements, mut what) = (None, 0, None);
            for n in 0..RUNS {
                let (mut engine, _) = start(spec, parameters, Randomness::new(config.insecure_seed, 4 + n)?)?;
                let report = engine.step(&flat(&units), &labels)?;
                if let Some(r) = report.rounding.iter().find(|r| !r.coins.is_empty()) {
                    what.get_or_insert(format!("truncation {} drew coins under nearest rounding", r.name));
                }
                let found = tensors(report.probes)?;
                elements = found.values().map(Array2::len).sum();
                let first = first.get_or_insert_with(|| found.clone());
                if let Some((point, _)) = found.iter().find(|(point, tensor)| first.get(point) != Some(tensor)) {
                    what.get_or_insert(format!("{point} differs between two runs under nearest rounding"));
                }
            }
            let summary = format!("nearest: {elements} elements equal in {RUNS} runs with other randomness");
            Ok(Outcome::new("rounding", summary, what.map(|what| failure(config, &what))))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::small as config;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use reference::spec::Head;

    #[test]
    fn the_engine_passes_under_both_roundings() {
        for rounding in Rounding::ALL {
            let config = config(Head::Softmax, rounding);
            let spec = parties::spec(&config.spec);
            let parameters = crate::generate::initial(&spec, 1).unwrap();
            let outcome = check(&config, &spec, &parameters).unwrap();
            assert!(outcome.passed, "{outcome:?}");
        }
    }

    /// Coins that are up with probability `of(p)` instead of p, on fractions of every size.
    fn drawn(n: usize, of: impl Fn(f64) -> f64) -> Outcome {
        let (mut rng, mut classes) = (ChaCha12Rng::seed_from_u64(8), Classes::new());
        let operands: Vec<i64> = (0..n).map(|_| rng.random_range(-(1 << 40)..1 << 40)).collect();
        let coins = operands.iter().map(|&v| rng.random::<f64>() < of(fraction(v, 16) as f64 / 65536.0)).collect();
        classes.add(&Replayed { name: "t".into(), shift: 16, operands, coins });
        classes.outcome(&config(Head::Softmax, Rounding::Probabilistic))
    }

    /// The verdict on coins of their probabilities.
    pub(crate) fn right_coins() -> Outcome {
        drawn(40_000, |p| p)
    }

    /// The verdict on truncations that cut off.
    pub(crate) fn coins_that_always_round_down() -> Outcome {
        drawn(4_000, |_| 0.0)
    }

    #[test]
    fn right_coins_pass_and_wrong_ones_do_not() {
        assert!(right_coins().passed);
        let floors = coins_that_always_round_down();
        assert!(floors.failure.unwrap().contains("0 of"), "all floors");
        let fair = drawn(4_000, |_| 0.5);
        assert!(
            fair.failure.unwrap().contains("fraction in [0"),
            "a fair coin has mean error 0, but not in its classes"
        );
        assert!(!drawn(100_000, |p| p + 0.03).passed, "a bias of 0.03 units");
        assert!(!drawn(100_000, |p| p - 0.03).passed, "and the other sign");
    }

    #[test]
    fn a_coin_on_an_exact_multiple_is_impossible() {
        let mut classes = Classes::new();
        classes.add(&Replayed { name: "t".into(), shift: 4, operands: vec![32], coins: vec![true] });
        assert!(!classes.outcome(&config(Head::Softmax, Rounding::Probabilistic)).passed);
    }
}
