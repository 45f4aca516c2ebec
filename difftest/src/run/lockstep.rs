//! Lock-step: at each step all sides start from the same opened weights and velocities, and every probed tensor is compared.

use crate::bound::network::Bounds;
use crate::check::Outcome;
use crate::check::bit_exact::BitExact;
use crate::check::divergence::{self, Evidence};
use crate::check::error_bound;
use crate::check::gradient_bound::GradientBound;
use crate::check::range::Range;
use crate::compare::{self, Comparison, Verdict, real};
use crate::config::Config;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::explain::cause::{self, Budget};
use crate::explain::health::Health;
use crate::generate;
use crate::interrupt;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::{Opens, SIDES, Side, Spent, Tensors};
use fixtures::Dataset;
use reference::spec::{ProbePoint, Rounding};
use serde::Serialize;
use std::collections::BTreeMap;

/// One element looked at closely (`--probe`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detail {
    /// Step and place.
    pub at: String,
    /// f64.
    pub real: f64,
    /// Integer model.
    pub integer: i64,
    /// Secure.
    pub secure: i64,
    /// |secure - f64|, real.
    pub error: f64,
    /// Bound, real.
    pub bound: f64,
    /// In words.
    pub verdict: &'static str,
}

impl Detail {
    /// Error / bound: 0 where there is no error, whatever the bound.
    fn closeness(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error / self.bound }
    }
}

/// Bound / largest error, of each step in which anything differed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tightness {
    /// Of the worst-case bound.
    pub worst_case: Vec<f64>,
    /// Of the statistical bound.
    pub statistical: Vec<f64>,
}

/// What a run found.
#[derive(Debug)]
pub struct Findings {
    /// By tensor, all judged steps together.
    pub tensors: BTreeMap<ProbePoint, Comparison>,
    /// The same elements under the statistical bound, where there is one.
    pub statistical: BTreeMap<ProbePoint, Comparison>,
    /// How tight both bounds were in each step.
    pub tightness: BTreeMap<ProbePoint, Tightness>,
    /// The cause of every difference, step by step.
    pub budgets: Vec<(usize, Budget)>,
    /// The worst elements of the tensor asked for with `--probe`.
    pub details: Vec<Detail>,
    /// Every check.
    pub checks: Vec<Outcome>,
    /// Verdict of each side.
    pub divergence: Vec<(&'static str, divergence::Verdict)>,
    /// How each side's training went.
    pub watch: [Health; 3],
    /// Part of the test set classified correctly: f64, secure.
    pub accuracy: (f64, f64),
    /// Sums over all steps: f64, integer, secure.
    pub spent: [Spent; 3],
    /// Steps taken.
    pub steps: usize,
}

/// How many of the worst elements `--probe` shows.
const DETAILS: usize = 10;

/// Runs `config.steps` steps. `progress` hears of every step done.
///
/// # Errors
/// A side that cannot go on; a name for `--probe` that no tensor has.
pub fn run<S: Opens>(
    config: &Config,
    data: &Dataset,
    secure: &mut S,
    progress: impl FnMut(usize),
) -> Result<Findings, Error> {
    run_watched(config, data, secure, progress, |_| ())
}

/// The same; `failing` hears of every step after which a check has failed, before the next step begins.
///
/// # Errors
/// Those of [`run`].
pub fn run_watched<S: Opens>(
    config: &Config,
    data: &Dataset,
    secure: &mut S,
    mut progress: impl FnMut(usize),
    mut failing: impl FnMut(usize),
) -> Result<Findings, Error> {
    let engine = secure.name();
    let config = &Config { engine: (engine != SIDES[2]).then_some(engine), ..config.clone() };
    let sides = [SIDES[0], SIDES[1], engine];
    let spec = &config.spec;
    let mut parameters = generate::initial(spec, config.seed)?;
    let mut f64_side = Real::new(spec.clone(), &parameters)?;
    let mut integer = Integer::replaying(spec.clone())?;
    secure.load(&parameters)?;

    let mut tensors: BTreeMap<ProbePoint, Comparison> = BTreeMap::new();
    let mut statistics: BTreeMap<ProbePoint, Comparison> = BTreeMap::new();
    let mut tightness: BTreeMap<ProbePoint, Tightness> = BTreeMap::new();
    let (mut details, mut budgets) = (Vec::new(), Vec::new());
    let (mut bit_exact, mut gradient_bound, mut range) =
        (BitExact::default(), GradientBound::default(), Range::default());
    let mut watches = sides.map(|side| Evidence::new(side, spec.fixed));
    let mut watch = sides.map(|side| Health::new(side, spec));
    let mut spent = [Spent::default(); 3];
    let (mut judged, mut steps) = (0, 0);
    let wanted = |point: &ProbePoint| config.only_probe.as_ref().is_none_or(|name| *name == point.to_string());

    for (step, rows) in generate::batches(data.train.len(), spec.sgd.batch, config.seed).take(config.steps).enumerate()
    {
        let batch = generate::rows(&data.train, &rows, spec.fixed);
        if step > 0 {
            parameters = secure.parameters()?;
            f64_side.load(&parameters)?;
        }
        integer.load(&parameters)?;

        let secure_step = secure.step(&batch, Default::default())?;
        let real_step = f64_side.step(&batch, Default::default())?;
        steps = step + 1;
        // An engine that cannot hand out its coins leaves nothing to replay: the model draws its own, and the bounds, which hold for all, judge.
        let blind = spec.rounding == Rounding::Probabilistic && secure_step.tape.entries().next().is_none();
        if blind {
            integer.draw(config.seed);
            bit_exact.without_coins();
        }
        let integer_step = integer.step(&batch, secure_step.tape);
        bit_exact.truncations(&integer.replayed, secure.truncated(), spec.network.layers());
        let integer_step = match integer_step {
            Ok(done) => done,
            Err(e) => {
                // The coins of a truncation whose operand differs cannot be replayed: the difference itself lies before.
                let computed = |p: &ProbePoint| integer.unfinished.contains_key(p);
                bit_exact.step(config, step, &integer.unfinished, &secure_step.tensors, computed);
                range.step(step, &integer.violations);
                bit_exact.refused(config, step, &e);
                failing(step);
                break;
            }
        };
        for (total, one) in spent.iter_mut().zip([real_step.spent, integer_step.spent, secure_step.spent]) {
            *total += one;
        }

        let f = spec.fixed.fraction_bits;
        range.step(step, &integer.violations);
        watches[0].step(step, &real_step.tensors, |v| *v);
        watches[1].step(step, &integer_step.tensors, |v| real(*v, f));
        watches[2].step(step, &secure_step.tensors, |v| real(*v, f));
        if let Some((step, violation)) = range.first() {
            watches[1].violated(*step, violation.to_string());
        }
        let [f64_watch, integer_watch, secure_watch] = &mut watch;
        f64_watch.reals(spec, &batch.labels, &real_step.tensors)?;
        integer_watch.units(spec, &batch.labels, &integer_step.tensors)?;
        secure_watch.units(spec, &batch.labels, &secure_step.tensors)?;

        if config.only_step.is_none_or(|only| only == step) {
            if let Some(name) = &config.only_probe
                && !real_step.tensors.keys().any(wanted)
            {
                let names: Vec<_> = real_step.tensors.keys().map(ToString::to_string).collect();
                return Err(Error::Usage(format!(
                    "--probe {name} is no tensor of this run; choose one of {}",
                    names.join(", ")
                )));
            }
            if !blind {
                bit_exact.step(config, step, &integer_step.tensors, &secure_step.tensors, wanted);
            }
            let start = parameters.decode(spec.fixed, &spec.sgd);
            let sides = (&real_step.tensors, &integer_step.tensors, &secure_step.tensors);
            // What differs from a model with other coins has no cause of its own.
            if !blind {
                budgets.push((step, cause::step(spec, &start, &batch, sides, &integer.violations, wanted)?));
            }
            // The bounds are theorems about arithmetic that stays in range.
            let mut bounds = None;
            if range.first().is_none() {
                let run = (step, error_bound::elements(spec).saturating_mul(config.steps as u64));
                let found = error_bound::judge(spec, run, &start, &batch, (sides.0, sides.2), wanted)?;
                judged += 1;
                for (point, comparison) in found.worst_case {
                    tightness.entry(point).or_default().worst_case.extend(comparison.tightness());
                    tensors.entry(point).or_insert_with(Comparison::empty).merge(comparison);
                    if config.only_probe.is_some() {
                        details.extend(worst(config, step, point, &found.bounds, sides));
                    }
                }
                for (point, comparison) in found.statistical {
                    tightness.entry(point).or_default().statistical.extend(comparison.tightness());
                    statistics.entry(point).or_insert_with(Comparison::empty).merge(comparison);
                }
                bounds = Some(found.bounds);
            }
            let point = ProbePoint::HeadGradient;
            if let Some(gradient) = secure_step.tensors.get(&point) {
                let bounded = bounds.as_ref().map(|b| &b[&point]);
                gradient_bound.step(config, step, &real_step.tensors[&point], gradient, bounded);
            }
        }
        let outside = tensors.values().chain(statistics.values()).any(|c| c.outside > 0);
        if bit_exact.failed() || gradient_bound.failed() || range.first().is_some() || outside {
            failing(step);
        }
        progress(steps);
        if interrupt::requested() {
            break;
        }
    }

    let unjudged = range.first().map(|(step, _)| format!("not judged from step {step} on, where the range was left"));
    let test = Evaluation::of(data, spec.fixed);
    let accuracy = (test.accuracy(&mut f64_side)?, test.accuracy(secure)?);
    // The integer model is loaded from the secure side's parameters at every step.
    watch.iter_mut().zip([accuracy.0, accuracy.1, accuracy.1]).for_each(|(w, accuracy)| w.accuracy = accuracy);
    let (chance, epoch) = (test.chance(), data.train.len().div_ceil(spec.sgd.batch));
    let divergence: Vec<_> = watches
        .iter()
        .map(|w| (w.side, w.verdict(if w.side == "real" { accuracy.0 } else { accuracy.1 }, &chance, steps, epoch)))
        .collect();
    let checks = vec![
        bit_exact.finish(config),
        error_bound::finish(config, &tensors, &statistics, judged, unjudged),
        gradient_bound.finish(config),
        range.finish(config),
        divergence::finish(config, &divergence),
    ];
    details.sort_by(|a: &Detail, b| b.closeness().total_cmp(&a.closeness()));
    details.truncate(DETAILS);
    Ok(Findings {
        tensors,
        statistical: statistics,
        tightness,
        budgets,
        details,
        checks,
        divergence,
        watch,
        accuracy,
        spent,
        steps,
    })
}

/// The elements of one tensor that came nearest to their bounds.
fn worst(
    config: &Config,
    step: usize,
    point: ProbePoint,
    bounds: &Bounds,
    (reals, integers, secures): (&Tensors<f64>, &Tensors<i64>, &Tensors<i64>),
) -> Vec<Detail> {
    let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
    let (bounded, secure) = (&bounds[&point], &secures[&point]);
    let verdicts = compare::verdicts(&reals[&point], secure, scale, bounded);
    let columns = secure.ncols();
    let mut list: Vec<_> = verdicts
        .into_iter()
        .enumerate()
        .map(|(flat, verdict)| {
            let at = [flat / columns, flat % columns];
            let (value, units) = (reals[&point][at], secure[at]);
            Detail {
                at: format!("step {step}, {}", compare::place(&point, (at[0], at[1]))),
                real: value,
                integer: integers.get(&point).map_or(0, |t| t[at]),
                secure: units,
                error: (real(units, scale) - value).abs(),
                bound: bounded.radius[at],
                verdict: match verdict {
                    Verdict::Equal => "equal",
                    Verdict::Within { .. } => "within",
                    Verdict::Ambiguous { .. } => "ambiguous",
                    Verdict::Outside { .. } => "OUTSIDE",
                },
            }
        })
        .collect();
    list.sort_by(|a, b| b.closeness().total_cmp(&a.closeness()));
    list.truncate(DETAILS);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::secure::Secure;
    use crate::side::{Batch, Step};
    use fixtures::Split;
    use reference::fixed::{Parameters, Tape};
    use reference::spec::{FixedSpec, Head, NetworkSpec, SgdSpec, TrainSpec};

    fn config(head: Head, rounding: Rounding) -> Config {
        let spec = TrainSpec {
            network: NetworkSpec::dense(16, 7, 10, 2),
            head,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 8, ..SgdSpec::default() },
        };
        Config::new(spec, 3, 3)
    }

    /// 4 x 4 images, every label.
    fn data() -> Dataset {
        let split = |rows: usize| Split {
            images: (0..rows * 16).map(|i| (i * i * 37 % 251) as u8).collect(),
            labels: (0..rows).map(|i| (i * 7 % 10) as u8).collect(),
            height: 4,
            width: 4,
        };
        Dataset { train: split(40), test: split(20) }
    }

    /// A secure side with an error planted in one tensor of one step.
    struct Planted {
        secure: Secure,
        step: usize,
        point: ProbePoint,
        units: i64,
    }

    impl Side for Planted {
        type Value = i64;

        fn name(&self) -> &'static str {
            "secure"
        }

        fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
            self.secure.load(parameters)
        }

        fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
            let mut done = self.secure.step(batch, tape)?;
            if self.step == 0
                && let Some(tensor) = done.tensors.get_mut(&self.point)
            {
                let columns = tensor.ncols();
                tensor[[2, columns - 1]] += self.units;
            }
            self.step = self.step.wrapping_sub(1);
            Ok(done)
        }

        fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
            self.secure.correct(batch)
        }
    }

    impl Opens for Planted {
        fn parameters(&mut self) -> Result<Parameters, Error> {
            self.secure.parameters()
        }
    }

    fn check<'a>(found: &'a Findings, name: &str) -> &'a Outcome {
        found.checks.iter().find(|c| c.name == name).unwrap()
    }

    #[test]
    fn every_head_and_rounding_passes_on_the_real_engine() {
        for head in Head::ALL {
            for rounding in Rounding::ALL {
                let config = config(head, rounding);
                let mut secure = Secure::start(config.spec.clone(), None, true).unwrap();
                let found = run(&config, &data(), &mut secure, |_| ()).unwrap();
                for name in ["bit-exact", "error-bound", "gradient-bound", "range"] {
                    let outcome = check(&found, name);
                    assert!(outcome.passed, "{head} {rounding}: {outcome:?}");
                }
                assert!(found.tensors.values().all(|c| c.elements > 0));
                let compared: u64 = found.tensors.values().map(|c| c.elements).sum();
                assert_eq!(compared, 3 * error_bound::elements(&config.spec), "{head}");
            }
        }
    }

    #[test]
    fn an_error_of_one_unit_anywhere_is_named_with_step_tensor_and_index() {
        for point in [
            ProbePoint::PreActivation(1),
            ProbePoint::Logits,
            ProbePoint::HeadGradient,
            ProbePoint::WeightGradient(2),
            ProbePoint::Weights(1),
        ] {
            let config = config(Head::ReluGrad, Rounding::Probabilistic);
            let secure = Secure::start(config.spec.clone(), None, true).unwrap();
            let found = run(&config, &data(), &mut Planted { secure, step: 1, point, units: 1 }, |_| ()).unwrap();
            let outcome = check(&found, "bit-exact");
            let text = outcome.failure.as_ref().expect("a planted error fails");
            let columns = if point == ProbePoint::Weights(1) || point == ProbePoint::PreActivation(1) { 7 } else { 10 };
            assert!(text.contains(&format!("step 1, {point}[2, {}]", columns - 1)), "{text}");
            assert!(
                text.contains(&format!(
                    "again: difftest --head relu-grad --layers 2 --hidden 7 --batch 8 --seed 3 --step 1 --probe {point}"
                )),
                "{text}"
            );
        }
    }

    /// An operand planted in one truncation is named; it comes before the tensor that the truncation makes.
    #[test]
    fn the_first_operation_that_differs_is_named_with_both_operands() {
        for rounding in Rounding::ALL {
            let config = config(Head::Softmax, rounding);
            let mut secure = Secure::start(config.spec.clone(), Some(5), true).unwrap();
            let mut integer = Integer::replaying(config.spec.clone()).unwrap();
            let parameters = generate::initial(&config.spec, 3).unwrap();
            let rows = generate::batches(40, 8, 3).next().unwrap();
            let batch = generate::rows(&data().train, &rows, config.spec.fixed);
            secure.load(&parameters).unwrap();
            integer.load(&parameters).unwrap();
            let done = secure.step(&batch, Tape::default()).unwrap();
            let model = integer.step(&batch, done.tape).unwrap().tensors;
            assert_eq!(secure.truncated().len(), integer.replayed.len());
            let mut check = BitExact::default();
            check.truncations(&integer.replayed, secure.truncated(), 2);
            check.step(&config, 0, &model, &done.tensors, |_| true);
            assert!(check.finish(&config).passed, "every operand and tensor agrees");

            let mut faulty = secure.truncated().to_vec();
            let planted = faulty.iter_mut().find(|t| t.name == "head/divide/e4").unwrap();
            planted.operands[3] += 2;
            let mut tensors = done.tensors.clone();
            tensors.get_mut(&ProbePoint::HeadGradient).unwrap()[[3, 1]] += 1;
            let mut check = BitExact::default();
            check.truncations(&integer.replayed, &faulty, 2);
            check.step(&config, 0, &model, &tensors, |_| true);
            let text = check.finish(&config).failure.unwrap();
            assert!(text.contains("head_gradient[3, 1]"), "{text}");
            assert!(text.contains("first operation: head/divide/e4 is given"), "{text}");
        }
    }

    /// Somebody else's engine, which hands out no coins, and in `change` may get a tensor of every step wrong.
    struct Own<F> {
        secure: Secure,
        change: F,
    }

    impl<F: Fn(&mut Tensors<i64>)> Side for Own<F> {
        type Value = i64;

        fn name(&self) -> &'static str {
            "sandpaper"
        }

        fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
            self.secure.load(parameters)
        }

        fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
            let mut done = self.secure.step(batch, tape)?;
            (self.change)(&mut done.tensors);
            Ok(Step { tape: Tape::default(), ..done })
        }

        fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
            self.secure.correct(batch)
        }
    }

    impl<F: Fn(&mut Tensors<i64>)> Opens for Own<F> {
        fn parameters(&mut self) -> Result<Parameters, Error> {
            self.secure.parameters()
        }
    }

    fn own(rounding: Rounding, change: impl Fn(&mut Tensors<i64>)) -> Findings {
        let config = config(Head::ReluGrad, rounding);
        let secure = Secure::start(config.spec.clone(), None, true).unwrap();
        run(&config, &data(), &mut Own { secure, change }, |_| ()).unwrap()
    }

    #[test]
    fn an_engine_without_coins_is_judged_by_its_bounds_under_its_own_name() {
        let found = own(Rounding::Probabilistic, |_| ());
        let exact = check(&found, "bit-exact");
        assert_eq!((exact.word(), found.steps), ("OPEN", 3));
        assert!(exact.summary.starts_with("sandpaper hands out no coins"), "{}", exact.summary);
        for name in ["error-bound", "gradient-bound", "range"] {
            assert!(check(&found, name).passed, "{:?}", check(&found, name));
        }
        assert_eq!(found.divergence[2].0, "sandpaper");

        let point = ProbePoint::BiasGradient(2);
        let found = own(Rounding::Probabilistic, |t| t.get_mut(&point).unwrap()[[0, 3]] += 1 << 16);
        assert_eq!(check(&found, "bit-exact").word(), "OPEN");
        let text = check(&found, "error-bound").failure.as_ref().unwrap();
        assert!(text.contains("step 0, layer2/db[0, 3]") && text.contains("sandpaper "), "{text}");
        assert!(text.contains("again: the caller's own run of sandpaper") && !text.contains("difftest --"), "{text}");
    }

    #[test]
    fn a_tensor_of_another_shape_is_told_by_its_shape() {
        let point = ProbePoint::WeightGradient(2);
        let found = own(Rounding::Nearest, |t| drop(t.insert(point, ndarray::Array2::zeros((3, 3)))));
        let text = check(&found, "bit-exact").failure.as_ref().unwrap();
        assert!(text.contains("layer2/dW: sandpaper has shape (3, 3), expected (7, 10)"), "{text}");
        assert!(!check(&found, "error-bound").passed, "a tensor is missing there");
    }

    #[test]
    fn an_error_beyond_the_bound_is_outside() {
        let config = config(Head::Softmax, Rounding::Nearest);
        let secure = Secure::start(config.spec.clone(), None, true).unwrap();
        let planted = &mut Planted { secure, step: 2, point: ProbePoint::Logits, units: 9 };
        let found = run(&config, &data(), planted, |_| ()).unwrap();
        let text = check(&found, "error-bound").failure.as_ref().expect("nine units are too many");
        assert!(text.contains("step 2, logits[2, 9]"), "{text}");
        assert_eq!(found.tensors[&ProbePoint::Logits].outside, 1);
    }

    #[test]
    fn a_run_can_be_narrowed_to_one_tensor_of_one_step() {
        let mut config = config(Head::Softmax, Rounding::Nearest);
        (config.only_step, config.only_probe) = (Some(1), Some("logits".into()));
        let mut secure = Secure::start(config.spec.clone(), None, true).unwrap();
        let found = run(&config, &data(), &mut secure, |_| ()).unwrap();
        assert_eq!(found.tensors.keys().collect::<Vec<_>>(), [&ProbePoint::Logits]);
        assert_eq!((found.tensors[&ProbePoint::Logits].elements, found.details.len()), (80, DETAILS));
        config.only_probe = Some("logit".into());
        let error = run(&config, &data(), &mut secure, |_| ()).unwrap_err().to_string();
        assert!(error.contains("choose one of") && error.contains("head_gradient"), "{error}");
    }
}
