//! Clean runs: nothing is planted, so that whatever a check says is known to be right or wrong.
//!
//! A run of its own shape, format and data ([`run`]) may honestly leave the range of its number format: with 17
//! fraction bits a logit of one unit has the `relu-eps` gradient 2^16, and values end at 2^14. Whether it does is asked
//! of the integer model before any party starts ([`forecast`]), and decides what is demanded of the checks: in range
//! nothing may be found; out of range `range` has to fail, and nothing else may.

use super::harness::Finding;
use super::training::failures;
use crate::count::counted;
use crate::error::Error;
use crate::explain::cause::Cause;
use crate::generate;
use crate::side::integer::Integer;
use crate::side::{Shows, Side};
use fixtures::{Dataset, Split};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::{Coins, Tape};
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

/// Runs of the integer model, each with coins of its own, that a forecast under probabilistic rounding takes.
pub const DRAWS: u64 = 64;

/// The forecast that the integer model alone makes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// In every draw of the coins every operand stays in its range.
    Inside,
    /// In every draw of the coins some operand leaves its range.
    Outside,
    /// An operand is so close to its limit that some coins carry it over and others do not: either verdict is right.
    Coins,
}

/// The outcome of one clean run.
#[derive(Debug, Clone)]
pub struct Clean {
    /// The integer model's forecast of its training.
    pub forecast: Forecast,
    /// The text with which check `range` then failed, if it did.
    pub range: Option<Finding>,
    /// The fault of the verdicts, if there is one: a false alarm, or a run out of range that passed.
    pub wrong: Option<Finding>,
}

impl Clean {
    /// Judges what the checks of a training said, in the order of the report, against its forecast.
    pub fn judge(forecast: Forecast, mut said: Vec<Finding>) -> Self {
        let range = said.iter().position(|f| f.check == "range").map(|i| said.remove(i));
        let false_alarm = said.into_iter().next();
        let wrong = match (forecast, &range) {
            (Forecast::Inside, Some(range)) => false_alarm.or(Some(range.clone())),
            (Forecast::Outside, None) => false_alarm.or_else(|| Some(missed())),
            _ => false_alarm,
        };
        Clean { forecast, range, wrong }
    }
}

/// Clean runs, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs with a wrong verdict.
    pub wrong: u64,
    /// Runs in range, by their forecast.
    pub inside: u64,
    /// Runs out of range, by their forecast.
    pub outside: u64,
    /// Of those, the runs that `range` names.
    pub named: u64,
    /// Runs whose coins decide.
    pub coins: u64,
}

impl Tally {
    /// Counts one run.
    pub fn count(&mut self, clean: &Clean) {
        self.wrong += u64::from(clean.wrong.is_some());
        match clean.forecast {
            Forecast::Inside => self.inside += 1,
            Forecast::Coins => self.coins += 1,
            Forecast::Outside => {
                self.outside += 1;
                self.named += u64::from(clean.range.is_some());
            }
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { wrong, inside, outside, named, coins } = self;
        let runs = inside + outside + coins;
        write!(f, "{} in {}: {inside} in range", counted(*wrong, "wrong verdict"), counted(runs, "clean run"))?;
        if *outside > 0 {
            write!(f, ", {outside} out of range, {named} of them named so by `range`")?;
        }
        if *coins > 0 {
            write!(f, ", {coins} in or out as the coins fall")?;
        }
        Ok(())
    }
}

/// A run out of range of which `range` says nothing.
fn missed() -> Finding {
    Finding {
        check: "range",
        place: "training",
        cause: Cause::Range.name(),
        detail: format!("passes a run that leaves its range in all {DRAWS} draws of the integer model's coins"),
        step: None,
    }
}

/// A data set of its own: images of a size, a kind and a number of classes that follow from `rng`.
fn data(rng: &mut ChaCha12Rng, classes: usize) -> Dataset {
    let (height, width, kind) = (rng.random_range(1..=6), rng.random_range(1..=6), rng.random_range(0..5));
    let split = |rng: &mut ChaCha12Rng, rows: usize| {
        // One class may be the only one, and some may be missing.
        let most = if rng.random_bool(0.1) { 1 } else { classes };
        let labels: Vec<u8> = (0..rows).map(|_| rng.random_range(0..most) as u8).collect();
        let pixel = |label: u8, k: usize, rng: &mut ChaCha12Rng| -> u8 {
            match kind {
                0 => 0,
                1 => 255,
                2 => rng.random(),
                3 => {
                    if rng.random_bool(0.9) {
                        0
                    } else {
                        rng.random()
                    }
                }
                _ => {
                    if k % classes == usize::from(label) {
                        255
                    } else {
                        rng.random_range(0..120)
                    }
                }
            }
        };
        let mut images = Vec::with_capacity(rows * height * width);
        for &label in &labels {
            images.extend((0..height * width).map(|k| pixel(label, k, rng)));
        }
        Split { images, labels, height, width }
    };
    let rows = rng.random_range(1..60);
    Dataset { train: split(rng, rows), test: split(rng, 10) }
}

/// The specification and the data set of a run that follow from its seed: head, rounding, depth, widths, number of
/// classes, batch, number format, threshold and optimiser.
pub fn run(seed: u64) -> (TrainSpec, Dataset) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed ^ 0x5eed);
    let (head, rounding) = (Head::ALL[seed as usize % 5], Rounding::ALL[seed as usize / 5 % 2]);
    let classes = if rng.random() { rng.random_range(2..=12) } else { 10 };
    let data = data(&mut rng, classes);
    let mut widths = vec![data.train.inputs()];
    widths.extend((1..rng.random_range(1..=4)).map(|_| rng.random_range(1..24)));
    widths.push(classes);
    let sgd = SgdSpec {
        learning_rate: 0.05 * rng.random_range(0.01..1.0f64),
        momentum: [0.0, 0.5, 0.9][rng.random_range(0..3)],
        batch: rng.random_range(1..50),
        extra_velocity_bits: rng.random_range(0..=4),
    };
    let fixed = FixedSpec { fraction_bits: rng.random_range(8..=17), ..FixedSpec::default() };
    let epsilon = rng.random_range(0.05..0.5);
    (TrainSpec { network: NetworkSpec { widths }, head, epsilon, rounding, fixed, sgd }, data)
}

/// Steps of the run that follows from a seed: one to three.
fn steps(seed: u64) -> usize {
    1 + seed as usize / 10 % 3
}

/// The integer model's forecast of the lock-step training that follows from `seed`, before any party starts: it trains
/// on its own from the same initial weights on the same batches, under probabilistic rounding [`DRAWS`] times.
///
/// # Errors
/// A specification that is none.
pub fn forecast(seed: u64) -> Result<Forecast, Error> {
    let (spec, data) = run(seed);
    let start = generate::initial(&spec, seed)?;
    let rows = generate::batches(data.train.len(), spec.sgd.batch, seed).take(steps(seed));
    let batches: Vec<_> = rows.map(|rows| generate::rows(&data.train, &rows, spec.fixed)).collect();
    let draws = if spec.rounding == Rounding::Probabilistic { DRAWS } else { 1 };
    let mut outside = 0;
    for draw in 0..draws {
        let mut model = Integer::with_coins(spec.clone(), Coins::seeded(draw))?.showing(Shows::Only(|_| false));
        model.load(&start)?;
        for batch in &batches {
            model.step(batch, Tape::default())?;
            if model.violations.total() > 0 {
                outside += 1;
                break;
            }
        }
    }
    Ok(match outside {
        0 => Forecast::Inside,
        n if n == draws => Forecast::Outside,
        _ => Forecast::Coins,
    })
}

/// The lock-step training that follows from `seed`, judged against its forecast.
///
/// # Errors
/// A harness that cannot run.
pub fn training(seed: u64) -> Result<Clean, Error> {
    let (spec, data) = run(seed);
    Ok(Clean::judge(forecast(seed)?, failures(spec, steps(seed), seed, &data)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::spec::ProbePoint;

    fn said(checks: &[&'static str]) -> Vec<Finding> {
        let one = |&check| Finding { check, place: "training", cause: "protocol", detail: String::new(), step: None };
        checks.iter().map(one).collect()
    }

    /// One such run as it was met. Real numbers say the same of the logits that the model computes: the gradient of
    /// `relu-eps` at a positive logit x of the true class is 1 / (S + 10 e) - 1 / (x + e), e one unit, and values end
    /// at 2^14.
    #[test]
    fn a_run_that_no_coins_keep_in_its_format_is_out_of_range_and_named_so() {
        let seed = 5024;
        let (spec, data) = run(seed);
        assert_eq!((spec.head, spec.fixed.fraction_bits, spec.fixed.value_bits), (Head::ReluEps, 17, 32));
        let rows = generate::batches(data.train.len(), spec.sgd.batch, seed).next().unwrap();
        let batch = generate::rows(&data.train, &rows, spec.fixed);
        let mut model = Integer::with_coins(spec.clone(), Coins::seeded(1)).unwrap();
        model.load(&generate::initial(&spec, seed).unwrap()).unwrap();
        let logits = &model.step(&batch, Tape::default()).unwrap().tensors[&ProbePoint::Logits];
        let gradient = |row: usize| {
            let positive = |units: &i64| f64::from(*units as i32).max(0.0) * f64::powi(2.0, -17);
            let (e, x) = (f64::powi(2.0, -17), positive(&logits[[row, batch.labels[row]]]));
            let sum = logits.row(row).iter().map(|v| positive(v) + e).sum::<f64>();
            if x > 0.0 { 1.0 / sum - 1.0 / (x + e) } else { 0.0 }
        };
        let largest = (0..logits.nrows()).map(|row| gradient(row).abs()).fold(0.0, f64::max);
        assert!(largest > f64::powi(2.0, 14), "{largest}");

        assert_eq!(forecast(seed).unwrap(), Forecast::Outside);
        let clean = training(seed).unwrap();
        assert!(clean.wrong.is_none(), "{:?}", clean.wrong);
        let range = clean.range.expect("the verdict is right").detail;
        assert!(range.contains("step 0: head_gradient["), "{range}");
    }

    #[test]
    fn what_is_demanded_follows_from_the_forecast() {
        use Forecast::{Coins, Inside, Outside};
        for (forecast, checks, wrong) in [
            (Inside, &[][..], None),
            (Inside, &["range"], Some("range")),
            (Inside, &["bit-exact", "range"], Some("bit-exact")),
            (Outside, &["range"], None),
            (Outside, &[], Some("range")),
            (Outside, &["bit-exact", "range"], Some("bit-exact")),
            (Outside, &["bit-exact"], Some("bit-exact")),
            (Coins, &[], None),
            (Coins, &["range"], None),
            (Coins, &["error-bound", "range"], Some("error-bound")),
        ] {
            let clean = Clean::judge(forecast, said(checks));
            assert_eq!(clean.wrong.map(|f| f.check), wrong, "{forecast:?} {checks:?}");
            assert_eq!(clean.range.is_some(), checks.contains(&"range"), "{forecast:?} {checks:?}");
        }
        let mut tally = Tally::default();
        for (forecast, checks) in [(Inside, &[][..]), (Outside, &["range"]), (Outside, &[]), (Coins, &["range"])] {
            tally.count(&Clean::judge(forecast, said(checks)));
        }
        let text = "1 wrong verdict in 4 clean runs: 1 in range, 2 out of range, 1 of them named so by `range`, 1 in \
                    or out as the coins fall";
        assert_eq!(tally.to_string(), text);
        let mut tally = Tally::default();
        tally.count(&Clean::judge(Inside, vec![]));
        assert_eq!(tally.to_string(), "0 wrong verdicts in 1 clean run: 1 in range");
        let missed = Clean::judge(Outside, vec![]).wrong.unwrap();
        assert!(missed.detail.starts_with("passes a run that leaves its range"), "{missed:?}");
    }
}
