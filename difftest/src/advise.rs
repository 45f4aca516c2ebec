//! Precision advice: how much of its range every tensor uses, and the smallest number format in which a training still
//! works.
//!
//! A format *passes* if the integer model trains in it without a single operand out of range, and classifies the test
//! set as well as f64 does, up to [`DEVIATIONS`] standard deviations of the difference of two samples of its size.
//! (That the secure engine computes what the integer model computes is given: bit for bit, and confirmed for the format
//! that is named.) The smallest fraction bits are looked for with the widest values, then the smallest value bits at
//! that precision, by bisection; its last two trials are a format that passes and the one below that does not.

use crate::check::Outcome;
use crate::check::divergence::Evidence;
use crate::compare::real;
use crate::config::{Config, Mode};
use crate::count::counted;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::explain::health;
use crate::run::free::Free;
use crate::run::lockstep;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::secure::Secure;
use crate::side::{Side, Tensors};
use crate::{generate, report};
use fixtures::Dataset;
use reference::fixed::Coins;
use reference::spec::{FixedSpec, HeadPoint, ProbePoint, SgdUnits, TrainSpec};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How far below f64's the accuracy may be.
pub const DEVIATIONS: f64 = 3.0;

/// Steps that the three parties confirm.
const CONFIRMED: usize = 3;

/// Largest fraction bits.
const FRACTION_BITS: u32 = 17;

/// Largest value bits.
const VALUE_BITS: u32 = 32;

/// The extent of one tensor's elements over a training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extent {
    /// The name of the tensor.
    pub tensor: String,
    /// Smallest and largest element of the real side.
    pub real: (f64, f64),
    /// Smallest and largest element of the integer side, as reals.
    pub integer: (f64, f64),
    /// Bits of the largest magnitude, in units of the tensor's scale.
    pub bits: u32,
    /// Bits that its range has.
    pub allowed: u32,
}

impl Extent {
    /// Bits to spare; negative if the range was left.
    pub fn headroom(&self) -> i64 {
        i64::from(self.allowed) - i64::from(self.bits)
    }
}

/// The outcome of the training in one format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The number format that was tried.
    pub fixed: FixedSpec,
    /// Steps taken; fewer than asked for if the range was left.
    pub steps: usize,
    /// Part of the test set classified correctly, if the training ended.
    pub accuracy: Option<f64>,
    /// Why it does not pass.
    pub failure: Option<String>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    schema: u32,
    /// The command that repeats the starting run.
    pub command: String,
    /// The specification that is trained; `fixed` is the format of the profile.
    pub spec: TrainSpec,
    /// Steps of each training.
    pub steps: usize,
    /// Part of the test set that f64 classifies correctly.
    pub real_accuracy: f64,
    /// Extents at the starting format.
    pub profile: Vec<Extent>,
    /// The last step at the starting format.
    pub health: Vec<health::Layer>,
    /// Every format that was tried.
    pub trials: Vec<Trial>,
    /// The smallest format that passes.
    pub smallest: Option<FixedSpec>,
    /// Its confirmation by three parties.
    pub confirmed: Vec<Outcome>,
}

impl Advice {
    /// Whether a format passes, and three parties agree.
    pub fn holds(&self) -> bool {
        self.smallest.is_some() && self.confirmed.iter().all(|c| c.passed)
    }
}

/// Magnitude bits that a tensor may have: K - 1 for ordinary values. A velocity is multiplied by M < 2^s, a weight
/// gradient by c < 2^10 and 2^x, before they are truncated from below 2^61.
fn allowed(point: &ProbePoint, spec: &TrainSpec, units: &SgdUnits) -> u32 {
    match point {
        ProbePoint::WeightGradient(_) => 51 - units.extra,
        ProbePoint::WeightVelocity(_) | ProbePoint::BiasVelocity(_) => 61 - units.shift,
        // Only ever multiplied by bits; the gradient that it goes into is ordinary again.
        ProbePoint::Head(HeadPoint::Reciprocal) => 62,
        _ => spec.fixed.value_bits - 1,
    }
}

/// Smallest and largest element so far.
#[derive(Debug, Default)]
struct Extremes<T>(BTreeMap<ProbePoint, (T, T)>);

impl<T: Copy + PartialOrd> Extremes<T> {
    fn step(&mut self, tensors: &Tensors<T>) {
        for (point, tensor) in tensors {
            for &v in tensor {
                let (lo, hi) = self.0.entry(*point).or_insert((v, v));
                *lo = if v < *lo { v } else { *lo };
                *hi = if v > *hi { v } else { *hi };
            }
        }
    }
}

/// The training as f64 and as the integer model see it.
struct Training<'a> {
    config: &'a Config,
    data: &'a Dataset,
    batches: Vec<Vec<u32>>,
    real_accuracy: f64,
    trials: Vec<Trial>,
}

impl<'a> Training<'a> {
    fn batches(config: &Config, data: &Dataset) -> Vec<Vec<u32>> {
        generate::batches(data.train.len(), config.spec.sgd.batch, config.seed).take(config.steps).collect()
    }

    /// Accuracy below which a format does not pass.
    fn least_accuracy(&self) -> f64 {
        let (p, n) = (self.real_accuracy, self.data.test.len() as f64);
        p - DEVIATIONS * (2.0 * p * (1.0 - p) / n).sqrt()
    }

    /// Trains in one format; `seen` is shown the tensors of every step. Stops where the range is left.
    fn trial(&mut self, fixed: FixedSpec, mut seen: impl FnMut(&Tensors<i64>)) -> Result<bool, Error> {
        let spec = TrainSpec { fixed, ..self.config.spec.clone() };
        let mut trial = Trial { fixed, steps: 0, accuracy: None, failure: None };
        match Integer::with_coins(spec.clone(), Coins::seeded(self.config.seed)) {
            // A format that the specification refuses does not pass.
            Err(e) => trial.failure = Some(e.to_string()),
            Ok(mut side) => match generate::initial(&spec, self.config.seed) {
                Err(e) => trial.failure = Some(e.to_string()),
                Ok(start) => {
                    side.load(&start)?;
                    self.train(&mut side, &mut trial, &mut seen)?;
                }
            },
        }
        let passed = trial.failure.is_none();
        self.trials.push(trial);
        Ok(passed)
    }

    fn train(&self, side: &mut Integer, trial: &mut Trial, seen: &mut impl FnMut(&Tensors<i64>)) -> Result<(), Error> {
        let spec = TrainSpec { fixed: trial.fixed, ..self.config.spec.clone() };
        let mut evidence = Evidence::new("integer", trial.fixed);
        let batches = self.batches.iter().map(|rows| generate::rows(&self.data.train, rows, trial.fixed));
        let mut run = Free::new(&spec, batches);
        run.integer = Some(&mut *side);
        for trace in run {
            let trace = trace?;
            trial.steps = trace.step + 1;
            seen(&trace.integer.tensors);
            evidence.step(trace.step, &trace.integer.tensors, |&v| real(v, trial.fixed.fraction_bits));
            if let Some(violation) = trace.violations.violations().first() {
                trial.failure = Some(format!("step {}: {violation}", trace.step));
                return Ok(());
            }
        }
        let accuracy = Evaluation::of(self.data, trial.fixed).accuracy(side)?;
        trial.accuracy = Some(accuracy);
        // Below what the real side learnt by far is below chance too, so few steps or rows are judged by the comparison
        // with it.
        let chance = Evaluation::of(self.data, trial.fixed).chance();
        let verdict = evidence.verdict(accuracy, &chance, self.batches.len(), usize::MAX);
        if verdict.fails() {
            trial.failure = Some(verdict.to_string());
        } else if accuracy < self.least_accuracy() {
            trial.failure =
                Some(format!("accuracy {:.2} % is below {:.2} %", 100.0 * accuracy, 100.0 * self.least_accuracy()));
        }
        Ok(())
    }

    /// The smallest of lo..=hi that passes, given that hi does and as far as passing is monotone.
    fn smallest(&mut self, lo: u32, hi: u32, fixed: impl Fn(u32) -> FixedSpec) -> Result<u32, Error> {
        let (mut fails, mut passes) = (lo.saturating_sub(1), hi);
        while passes - fails > 1 {
            let middle = (passes + fails).div_ceil(2);
            *(if self.trial(fixed(middle), |_| ())? { &mut passes } else { &mut fails }) = middle;
        }
        Ok(passes)
    }

    /// The smallest format that passes: fewest fraction bits first, then fewest value bits.
    fn smallest_format(&mut self) -> Result<Option<FixedSpec>, Error> {
        let widest = |fraction_bits| FixedSpec { fraction_bits, value_bits: VALUE_BITS };
        // Fewer fraction bits leave more range: where the widest format fails, a coarser one may still pass.
        for finest in (4..=FRACTION_BITS).rev() {
            if self.trial(widest(finest), |_| ())? {
                let f = self.smallest(4, finest, widest)?;
                let format = |value_bits| FixedSpec { fraction_bits: f, value_bits };
                return Ok(Some(format(self.smallest(f + 5, VALUE_BITS, format)?)));
            }
        }
        Ok(None)
    }
}

/// The extremes of the real side's tensors in the whole training, and the part of the test set that it then gets right.
///
/// # Errors
/// A side that cannot go on; one that has not learnt, so that nothing can be said of formats.
fn real_extremes(config: &Config, data: &Dataset, batches: &[Vec<u32>]) -> Result<(Extremes<f64>, f64), Error> {
    let (spec, mut reals) = (&config.spec, Extremes::<f64>::default());
    let mut side = Real::new(spec.clone(), &generate::initial(spec, config.seed)?)?;
    let mut run = Free::new(spec, batches.iter().map(|rows| generate::rows(&data.train, rows, spec.fixed)));
    run.real = Some(&mut side);
    for trace in run {
        reals.step(&trace?.real.tensors);
    }
    let test = Evaluation::of(data, spec.fixed);
    let (accuracy, chance) = (test.accuracy(&mut side)?, test.chance());
    if accuracy < chance.learnt() {
        return Err(Error::AtChance { steps: config.steps, accuracy, chance });
    }
    Ok((reals, accuracy))
}

/// Profiles the training of `config` and looks for the smallest format.
///
/// # Errors
/// A side that cannot go on.
pub fn run(config: &Config, data: &Dataset) -> Result<Advice, Error> {
    let spec = &config.spec;
    let units = spec.sgd.units(spec.fixed)?;
    let batches = Training::batches(config, data);
    let (reals, real_accuracy) = real_extremes(config, data, &batches)?;
    let mut training = Training { config, data, batches, real_accuracy, trials: Vec::new() };

    let (mut integers, mut last) = (Extremes::<i64>::default(), Tensors::new());
    training.trial(spec.fixed, |tensors| {
        integers.step(tensors);
        last.clone_from(tensors);
    })?;
    let smallest = training.smallest_format()?;
    let extent = |(point, &(lo, hi)): (&ProbePoint, &(i64, i64))| {
        let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
        Extent {
            tensor: point.to_string(),
            real: reals.0.get(point).copied().unwrap_or_default(),
            integer: (real(lo, scale), real(hi, scale)),
            bits: u64::BITS - lo.unsigned_abs().max(hi.unsigned_abs()).leading_zeros(),
            allowed: allowed(point, spec, &units),
        }
    };
    let confirmed = match smallest {
        Some(fixed) => confirm(config, data, fixed)?,
        None => Vec::new(),
    };
    Ok(Advice {
        schema: report::SCHEMA,
        command: config.command(&format!("--mode free --steps {}", config.steps)),
        spec: spec.clone(),
        steps: config.steps,
        real_accuracy,
        profile: integers.0.iter().map(extent).collect(),
        health: health::layers(spec, &last, |v| v as f64, true)?,
        trials: training.trials,
        smallest,
        confirmed,
    })
}

/// A few lock-step steps of three parties in this format: equal to the integer model, inside the bounds, in range.
fn confirm(config: &Config, data: &Dataset, fixed: FixedSpec) -> Result<Vec<Outcome>, Error> {
    let spec = TrainSpec { fixed, ..config.spec.clone() };
    let config = Config { spec, mode: Mode::Lockstep, steps: config.steps.min(CONFIRMED), ..config.clone() };
    let mut secure = Secure::start(config.spec.clone(), config.insecure_seed, true)?;
    let found = lockstep::run(&config, data, &mut secure, |_, _| ())?;
    Ok(found.checks.into_iter().filter(|c| c.name != "divergence").collect())
}

/// The advice as text for people.
pub fn text(advice: &Advice) -> String {
    let mut out = String::new();
    profile_text(advice, &mut out);
    health_text(advice, &mut out);
    trials_text(advice, &mut out);
    for c in &advice.confirmed {
        out += &c.line();
    }
    for failure in advice.confirmed.iter().filter_map(|c| c.failure.as_ref()) {
        let _ = writeln!(out, "\n{failure}");
    }
    out
}

fn format_text(fixed: FixedSpec) -> String {
    format!("f = {}, K = {}", fixed.fraction_bits, fixed.value_bits)
}

/// The range of every tensor.
fn profile_text(advice: &Advice, out: &mut String) {
    let _ = writeln!(
        out,
        "range profile at {}, {}\n{:<26} {:>12} {:>12} {:>12} {:>12} {:>5} {:>8} {:>9}",
        format_text(advice.spec.fixed),
        counted(advice.steps, "step"),
        "tensor",
        "real min",
        "real max",
        "integer min",
        "integer max",
        "bits",
        "allowed",
        "headroom"
    );
    for e in &advice.profile {
        let (real, integer) = (e.real, e.integer);
        let _ = writeln!(
            out,
            "{:<26} {:>12.5} {:>12.5} {:>12.5} {:>12.5} {:>5} {:>8} {:>9}",
            e.tensor,
            real.0,
            real.1,
            integer.0,
            integer.1,
            e.bits,
            e.allowed,
            e.headroom()
        );
    }
    out.push_str("bits: of the largest magnitude in units; allowed: bits that keep the next operation in range\n");
}

/// The health of every layer after the last step.
fn health_text(advice: &Advice, out: &mut String) {
    out.push_str("\nlast step\n");
    for h in &advice.health {
        let dead = h.dead.map_or(String::new(), |(dead, of)| format!("{dead} of {of} units dead, "));
        let stuck = h.stuck.map_or(String::new(), |stuck| {
            let (part, up_to) = (100.0 * stuck, h.stuck_up_to);
            format!(", {part:.1} % of the velocities stuck (up to {up_to} units): rounding keeps them from decaying")
        });
        let vanishing = 100.0 * h.vanishing.unwrap_or(0.0);
        let _ = writeln!(out, "  layer {}: {dead}{vanishing:.1} % of the updates vanish{stuck}", h.layer);
    }
    if advice.health.iter().any(|h| h.stuck.is_some_and(|s| s > 0.0)) && advice.spec.sgd.extra_velocity_bits == 0 {
        out.push_str("  --velocity-bits 8 keeps velocities finer and lets them decay\n");
    }
}

/// The formats that were tried, and the smallest that passes.
fn trials_text(advice: &Advice, out: &mut String) {
    let _ = writeln!(out, "\nformats tried; real reaches {:.2} %", 100.0 * advice.real_accuracy);
    for t in &advice.trials {
        let accuracy = t.accuracy.map_or(format!("stopped at step {}", t.steps), |a| format!("{:.2} %", 100.0 * a));
        let verdict = t.failure.as_ref().map_or("passes".into(), |f| format!("fails: {f}"));
        let _ = writeln!(out, "  {:<16} {:<20} {verdict}", format_text(t.fixed), accuracy);
    }
    let Some(fixed) = advice.smallest else {
        out.push_str(
            "\nno format passes: the training leaves the range of each or does not learn in it; lower --lr or choose \
             another head\n",
        );
        return;
    };
    let below = |f: u32, k: u32| {
        advice
            .trials
            .iter()
            .find(|t| (t.fixed.fraction_bits, t.fixed.value_bits) == (f, k) && t.failure.is_some())
            .map_or("is the least that the arithmetic takes".to_owned(), |t| {
                format!("one bit fewer fails ({})", t.failure.as_deref().unwrap_or_default())
            })
    };
    let (f, k) = (fixed.fraction_bits, fixed.value_bits);
    let _ = writeln!(
        out,
        "\nsmallest: --fraction-bits {f} --value-bits {k}\n  fraction bits {f}: {}\n  value bits {k}: {}\n",
        below(f - 1, VALUE_BITS),
        below(f, k - 1)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use fixtures::Split;
    use reference::spec::{Head, Rounding, SgdSpec};

    /// Images of 4 x 4 pixels whose class shows in one of them.
    fn data() -> Dataset {
        let split = |rows: usize| Split {
            images: (0..rows * 16).map(|i| if i % 16 == i / 16 % 10 { 255 } else { (i * 37 % 41) as u8 }).collect(),
            labels: (0..rows).map(|i| (i % 10) as u8).collect(),
            height: 4,
            width: 4,
        };
        Dataset { train: split(200), test: split(200) }
    }

    fn config(rounding: Rounding) -> Config {
        let sgd = SgdSpec { batch: 20, learning_rate: 0.5, ..SgdSpec::default() };
        let training = config::Training { head: Head::Softmax, layers: 1, hidden: 8, rounding, epsilon: 0.1, sgd };
        Config { mode: Mode::Free, ..Config::new(training.spec(16).unwrap(), 60, 2) }
    }

    #[test]
    fn the_named_format_passes_and_the_ones_below_do_not() {
        let (config, data) = (config(Rounding::Probabilistic), data());
        let advice = run(&config, &data).unwrap();
        let smallest = advice.smallest.expect("the data is easy");
        assert!(advice.holds() && advice.real_accuracy > 0.9, "{}", text(&advice));
        let trial = |f, k| {
            let found = advice.trials.iter().find(|t| (t.fixed.fraction_bits, t.fixed.value_bits) == (f, k));
            found.map(|t| t.failure.is_none())
        };
        let (f, k) = (smallest.fraction_bits, smallest.value_bits);
        assert!(f < 16 && k < 32, "{smallest:?}");
        assert_eq!(trial(f, k), Some(true), "{}", text(&advice));
        assert!(f == 4 || trial(f - 1, 32) == Some(false), "{}", text(&advice));
        assert!(k == f + 5 || trial(f, k - 1) == Some(false), "{}", text(&advice));
        assert!(advice.profile.iter().all(|e| e.headroom() > 0));
        assert!(text(&advice).contains(&format!("smallest: --fraction-bits {f} --value-bits {k}")));
    }

    /// An answer to change.
    fn advice() -> Advice {
        run(&config(Rounding::Nearest), &data()).unwrap()
    }

    #[test]
    fn advice_holds_if_a_format_passes_and_every_check_of_the_parties() {
        let right = advice();
        let names: Vec<_> = right.confirmed.iter().map(|c| c.name).collect();
        assert_eq!(names, ["encoding", "bit-exact", "error-bound", "gradient-bound", "range"]);
        assert!(right.holds());
        assert!(!Advice { smallest: None, ..right.clone() }.holds());
        for k in 0..names.len() {
            let mut wrong = right.clone();
            wrong.confirmed[k] = Outcome::new(names[k], String::new(), Some("as planted".into()));
            assert!(!wrong.holds() && text(&wrong).ends_with("as planted\n"), "{}", text(&wrong));
        }
    }

    #[test]
    fn a_profile_is_of_the_whole_training_and_says_what_is_left() {
        let advice = advice();
        for e in &advice.profile {
            assert!(e.real.0 < e.real.1 && e.integer.0 < e.integer.1, "{e:?}");
            let scale = if e.tensor.ends_with("dW") { 32 } else { 16 };
            let largest = e.integer.0.abs().max(e.integer.1.abs()) * f64::from(scale).exp2();
            assert_eq!(e.bits, largest.log2().floor() as u32 + 1, "{e:?}");
            assert_eq!(e.headroom(), i64::from(e.allowed) - i64::from(e.bits));
            let near = |a: f64, b: f64| (a - b).abs() < 0.05 * (1.0 + a.abs());
            assert!(near(e.real.0, e.integer.0) && near(e.real.1, e.integer.1), "{e:?}");
        }
        let logits = advice.profile.iter().find(|e| e.tensor == "logits").expect("every tensor has its extent");
        assert!(logits.real.1 - logits.real.0 > 2.0, "more than that of the first step");
        assert!(advice.health.iter().all(|h| h.vanishing.is_some()), "of the last step");
    }

    #[test]
    fn bits_that_a_tensor_may_have() {
        let mut spec = config(Rounding::Nearest).spec;
        spec.sgd.extra_velocity_bits = 3;
        let units = spec.sgd.units(spec.fixed).unwrap();
        let of = |point| allowed(&point, &spec, &units);
        assert_eq!((units.extra, of(ProbePoint::WeightGradient(1))), (3, 48));
        assert_eq!(of(ProbePoint::WeightVelocity(1)), 61 - units.shift);
        assert_eq!(of(ProbePoint::BiasVelocity(1)), 61 - units.shift);
        assert_eq!(of(ProbePoint::Head(HeadPoint::Reciprocal)), 62);
        assert_eq!(of(ProbePoint::Logits), spec.fixed.value_bits - 1);
    }

    #[test]
    fn extremes_are_the_smallest_and_the_largest_of_all_steps() {
        let mut found = Extremes::<i64>::default();
        let tensor = |v: [i64; 3]| Tensors::from([(ProbePoint::Logits, ndarray::array![[v[0], v[1], v[2]]])]);
        for (step, extremes) in [([3, 1, 2], (1, 3)), ([2, -5, 2], (-5, 3)), ([4, 4, 0], (-5, 4))] {
            found.step(&tensor(step));
            assert_eq!(found.0[&ProbePoint::Logits], extremes);
        }
    }

    #[test]
    fn the_least_accuracy_is_three_deviations_of_a_difference_below() {
        let (config, data) = (config(Rounding::Nearest), data());
        let training = Training { config: &config, data: &data, batches: vec![], real_accuracy: 0.9, trials: vec![] };
        assert!((training.least_accuracy() - (0.9 - 3.0 * 0.0009f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn a_training_ends_where_the_range_is_left_or_is_judged_at_its_end() {
        let (config, data) = (config(Rounding::Nearest), data());
        let batches = Training::batches(&config, &data);
        let of =
            |config| Training { config, data: &data, batches: batches.clone(), real_accuracy: 0.9, trials: vec![] };
        let format = |fraction_bits, value_bits| FixedSpec { fraction_bits, value_bits };
        let at_rate = |learning_rate| {
            let mut other = config.clone();
            other.spec.sgd.learning_rate = learning_rate;
            other
        };
        let (high, low) = (at_rate(50.0), at_rate(1.0 / 1024.0));
        let (mut training, mut seen) = (of(&high), 0);
        assert!(!training.trial(format(16, 21), |_| seen += 1).unwrap());
        let left = &training.trials[0];
        let step = left.failure.as_deref().and_then(|f| f.strip_prefix("step ")?.split(':').next()?.parse().ok());
        assert_eq!((step, left.accuracy), (Some(left.steps - 1), None), "{left:?}");
        assert!(seen == left.steps && seen < config.steps);
        let mut training = of(&config);
        assert!(!training.trial(format(60, 62), |_| ()).unwrap() && training.trials[0].steps == 0, "no such format");
        assert!(training.trial(format(16, 32), |_| ()).unwrap());
        assert_eq!(training.trials[1].steps, config.steps);
        // A single step at a rate that moves nothing: too few to be judged by themselves, but far below f64.
        let mut training = of(&low);
        training.batches.truncate(1);
        assert!(!training.trial(format(16, 32), |_| ()).unwrap());
        let failure = training.trials[0].failure.as_deref().unwrap();
        assert!(failure.starts_with("accuracy ") && failure.contains(" % is below 81.00 %"), "{failure}");
    }

    #[test]
    fn the_text_says_what_was_found() {
        let mut advice = advice();
        advice.health = vec![health::Layer {
            layer: 1,
            dead: Some((1, 8)),
            vanishing: Some(0.25),
            stuck: Some(0.5),
            stuck_up_to: 3,
        }];
        let all = text(&advice);
        assert!(all.starts_with("range profile at f = 16, K = 32, 60 steps\ntensor "), "{all}");
        assert!(advice.profile.iter().all(|e| all.contains(&format!("\n{} ", e.tensor))), "{all}");
        assert!(all.contains("\nbits: of the largest magnitude in units; allowed: "), "{all}");
        let layer = "\nlast step\n  layer 1: 1 of 8 units dead, 25.0 % of the updates vanish, 50.0 % of the velocities \
                     stuck (up to 3 units): ";
        assert!(all.contains(layer), "{all}");
        let hint = "--velocity-bits 8";
        assert!(all.contains(hint));
        advice.spec.sgd.extra_velocity_bits = 8;
        assert!(!text(&advice).contains(hint));
        advice.spec.sgd.extra_velocity_bits = 0;
        for stuck in [None, Some(0.0)] {
            advice.health[0].stuck = stuck;
            assert!(!text(&advice).contains(hint));
        }
    }

    #[test]
    fn one_bit_fewer_fails_or_was_not_tried() {
        let mut advice = advice();
        let trial = |fraction_bits, value_bits, failure: Option<&str>| Trial {
            fixed: FixedSpec { fraction_bits, value_bits },
            steps: 7,
            accuracy: None,
            failure: failure.map(str::to_owned),
        };
        advice.smallest = Some(FixedSpec { fraction_bits: 8, value_bits: 20 });
        advice.trials = vec![trial(9, 31, Some("other")), trial(8, 19, None), trial(7, 32, Some("too coarse"))];
        let all = text(&advice);
        assert!(all.contains("  fraction bits 8: one bit fewer fails (too coarse)\n"), "{all}");
        assert!(all.contains("  value bits 20: is the least that the arithmetic takes\n"), "{all}");
        assert!(all.contains("  f = 8, K = 19    stopped at step 7    passes\n"), "{all}");
    }
}
