//! Lock-step: at each step all sides start from the same opened weights and velocities, and every probed tensor is
//! compared.

use super::distances::Distances;
use super::training::Training;
use crate::check::Outcome;
use crate::check::comparison::{self, Judged};
use crate::check::divergence::{self, Ending};
use crate::check::judge::{self, Judge};
use crate::config::Config;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::explain::cause::{self, Budget};
use crate::explain::health::Health;
use crate::generate;
use crate::interrupt;
use crate::keeping::Keeping;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::{Batch, Opens, SIDES, Side, Spent};
use crate::trace::{Start, Trace};
use fixtures::Dataset;
use reference::fixed::{Parameters, Tape};
use reference::spec::{Rounding, TrainSpec};

/// The traces of a lock-step run: the tested side draws its coins, the integer side replays them, and both start each
/// step from what the tested side opened. The run is over with the batches, or with the first step that a side does not
/// finish.
pub struct Lockstep<'r, S, B> {
    spec: &'r TrainSpec,
    batches: B,
    real: Real,
    integer: Integer,
    tested: &'r mut S,
    /// Where the next step starts, if that is not to be opened.
    start: Option<Parameters>,
    step: usize,
    /// Seed of the integer side's own coins, where the tested side hands out none.
    seed: u64,
    over: bool,
}

impl<'r, S: Opens, B: Iterator<Item = Batch>> Lockstep<'r, S, B> {
    /// A run from `start`, whose first step has the number `step`.
    ///
    /// # Errors
    /// An invalid specification; shapes that do not fit it; a peer that fails.
    pub fn new(
        spec: &'r TrainSpec,
        (step, start): (usize, Parameters),
        batches: B,
        tested: &'r mut S,
    ) -> Result<Self, Error> {
        let (real, integer) = (Real::new(spec.clone(), &start)?, Integer::replaying(spec.clone())?);
        tested.load(&start)?;
        Ok(Lockstep { spec, batches, real, integer, tested, start: Some(start), step, seed: 0, over: false })
    }

    /// Changes the seed of the coins that the integer side draws where the tested side hands out none.
    pub fn seeded(self, seed: u64) -> Self {
        Lockstep { seed, ..self }
    }

    /// The real and the tested side as the last step left them.
    pub fn sides(&mut self) -> (&mut Real, &mut S) {
        (&mut self.real, self.tested)
    }

    /// Goes on with `run` where the tested side has last kept a state, and says after how many steps; 0: from the
    /// beginning, for it has none.
    ///
    /// # Errors
    /// A state that is not before the end of a run of `steps` steps; a peer that fails.
    pub fn resume(&mut self, keeping: &Keeping, steps: usize) -> Result<usize, Error> {
        let Some(kept) = self.tested.kept(&keeping.run)? else { return Ok(0) };
        let before = keeping.fits(kept, steps)?;
        self.tested.resume(&keeping.run)?;
        (self.start, self.step) = (None, before);
        if let Some(last) = before.checked_sub(1) {
            self.batches.nth(last);
        }
        Ok(before)
    }

    /// Has the tested side keep what it needs to go on after the last step.
    ///
    /// # Errors
    /// A peer that fails.
    pub fn keep(&mut self, keeping: &Keeping) -> Result<(), Error> {
        self.tested.keep(&keeping.run, self.step as u64)
    }

    /// One step of all sides. One that the tested side does not finish is told in the trace, as what it started from is
    /// of interest.
    fn take(&mut self, batch: Batch) -> Result<Trace, Error> {
        let start = match self.start.take() {
            Some(start) => start,
            None => self.tested.parameters()?,
        };
        self.real.load(&start)?;
        self.integer.load(&start)?;
        let start = Start::new(start, self.spec);
        let mut trace = Trace::new(self.step, self.spec, self.tested.name(), Some(start), batch);
        self.step += 1;
        let tested = match self.tested.step(&trace.batch, Tape::default()) {
            Ok(done) => done,
            Err(error) => {
                trace.stopped = Some(error);
                return Ok(trace);
            }
        };
        trace.coins = tested.tape.clone();
        trace.blind = self.spec.rounding == Rounding::Probabilistic && tested.tape.is_empty();
        if trace.blind {
            self.integer.draw(self.seed);
        }
        trace.tested = (tested.tensors, tested.spent).into();
        trace.tested_truncated = self.tested.take_truncated();
        let real = self.real.step(&trace.batch, Tape::default())?;
        trace.real = (real.tensors, real.spent).into();
        match self.integer.step(&trace.batch, tested.tape) {
            Ok(done) => trace.integer = (done.tensors, done.spent).into(),
            Err(error) => {
                trace.integer.tensors = std::mem::take(&mut self.integer.unfinished);
                trace.refused = Some(error);
            }
        }
        trace.truncated = std::mem::take(&mut self.integer.replayed);
        trace.violations = std::mem::take(&mut self.integer.violations);
        Ok(trace)
    }
}

impl<S: Opens, B: Iterator<Item = Batch>> Iterator for Lockstep<'_, S, B> {
    type Item = Result<Trace, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let batch = self.batches.next()?;
        let taken = self.take(batch);
        self.over = !taken.as_ref().is_ok_and(Trace::complete);
        Some(taken)
    }
}

/// The findings of a run.
#[derive(Debug)]
pub struct Findings {
    /// The distances of all judged steps.
    pub distances: Distances,
    /// The cause of every difference, step by step.
    pub budgets: Vec<(usize, Budget)>,
    /// The outcome of every check.
    pub checks: Vec<Outcome>,
    /// Verdict of each side.
    pub divergence: Vec<(&'static str, divergence::Verdict)>,
    /// How each side's training went.
    pub watch: [Health; 3],
    /// Part of the test set that the real and the tested side classify correctly.
    pub accuracy: (f64, f64),
    /// Sums over all steps: real, integer, tested.
    pub spent: [Spent; 3],
    /// The number of steps taken.
    pub steps: usize,
    /// Steps that were taken before, by the run that this one has resumed.
    pub before: usize,
}

/// Runs `config.steps` steps and judges each, or those that are left of a run that is resumed. `seen` is given every
/// step after that, and whether any check has failed by then; a step that the tested side did not finish as well,
/// before the run ends with the error.
///
/// # Errors
/// A side that cannot go on; a name for `--probe` that no tensor has.
pub fn run<S: Opens>(
    config: &Config,
    data: &Dataset,
    tested: &mut S,
    mut seen: impl FnMut(Trace, bool),
) -> Result<Findings, Error> {
    let engine = tested.name();
    let config = &Config { engine: (engine != SIDES[2]).then_some(engine), ..config.clone() };
    let spec = &config.spec;
    let elements = comparison::elements(spec).saturating_mul(config.steps as u64);
    let mut judge = Judge::new(config, judge::all(config, Some(&data.train))?, elements);
    let mut training = Training::new([SIDES[0], SIDES[1], engine], spec);
    let (mut distances, mut budgets) = (Distances::default(), Vec::new());
    let start = (0, generate::initial(spec, config.seed)?);
    let rows = generate::batches(data.train.len(), spec.sgd.batch, config.seed).take(config.steps);
    let batches = rows.map(|rows| generate::rows(&data.train, &rows, spec.fixed));
    let mut run = Lockstep::new(spec, start, batches, tested)?.seeded(config.seed);
    let before = config.resumed().map_or(Ok(0), |keeping| run.resume(keeping, config.steps))?;
    while let Some(trace) = run.next() {
        let mut trace = trace?;
        let step = trace.step + 1;
        if let Some(error) = trace.stopped.take() {
            seen(trace, true);
            return Err(error);
        }
        training.see(&trace)?;
        let (judged, budget) = judged(config, &trace, &mut judge)?;
        budgets.extend(budget.map(|budget| (trace.step, budget)));
        if let Some(judged) = judged {
            distances.see(config, &trace, &judged);
        }
        seen(trace, judge.failed());
        if let Some(keeping) = config.keeping.as_ref().filter(|keeping| keeping.after(step, config.steps)) {
            run.keep(keeping)?;
        }
        if interrupt::requested() {
            break;
        }
    }

    let test = Evaluation::of(data, spec.fixed);
    let (real, tested) = run.sides();
    let accuracy = (test.accuracy(real)?, test.accuracy(tested)?);
    // The integer side is loaded from the tested side's parameters at every step.
    let end = Ending {
        accuracy: [accuracy.0, accuracy.1, accuracy.1],
        chance: test.chance(),
        steps: before + training.steps,
        epoch: data.train.len().div_ceil(spec.sgd.batch),
    };
    let Training { spent, steps, .. } = training;
    let (divergence, watch) = training.finish(&end);
    let mut checks = judge.finish();
    checks.push(divergence::outcome(config, &divergence));
    Ok(Findings { distances, budgets, checks, divergence, watch, accuracy, spent, steps, before })
}

/// Shows a step to the judge, and meanwhile tells the cause of every difference, where the step is compared.
fn judged(config: &Config, trace: &Trace, judge: &mut Judge) -> Result<(Option<Judged>, Option<Budget>), Error> {
    let explained = trace.complete() && !trace.blind && config.compares(trace.step);
    let (mut budget, mut judged) = (None, Ok(None));
    rayon::in_place_scope(|scope| {
        scope.spawn(|_| budget = explained.then(|| cause::of(trace, |point| config.wants(point))));
        judged = judge.see(trace);
    });
    Ok((judged?, budget.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use crate::check::bit_exact::BitExact;
    use crate::run::distances;
    use crate::side::secure::Secure;
    use crate::side::{Step, Tensors};
    use fixtures::Split;
    use reference::spec::{FixedSpec, Head, NetworkSpec, ProbePoint, SgdSpec};

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
                let found = run(&config, &data(), &mut secure, |_, _| ()).unwrap();
                for name in ["bit-exact", "error-bound", "gradient-bound", "range"] {
                    let outcome = check(&found, name);
                    assert!(outcome.passed, "{head} {rounding}: {outcome:?}");
                }
                assert!(found.distances.tensors.values().all(|c| c.elements > 0));
                let compared: u64 = found.distances.tensors.values().map(|c| c.elements).sum();
                assert_eq!(compared, 3 * comparison::elements(&config.spec), "{head}");
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
            let found = run(&config, &data(), &mut Planted { secure, step: 1, point, units: 1 }, |_, _| ()).unwrap();
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
            let parameters = generate::initial(&config.spec, 3).unwrap();
            let rows = generate::batches(40, 8, 3).next().unwrap();
            let batch = generate::rows(&data().train, &rows, config.spec.fixed);
            let mut run = Lockstep::new(&config.spec, (0, parameters), std::iter::once(batch), &mut secure).unwrap();
            let mut trace = run.next().unwrap().unwrap();
            assert_eq!(trace.truncated.len(), trace.tested_truncated.len());
            let outcome = |trace: &Trace| {
                let mut check = Box::new(BitExact::new(&config));
                check.see(trace, None);
                check.finish()
            };
            assert!(outcome(&trace).passed, "every operand and tensor agrees");

            let planted = trace.tested_truncated.iter_mut().find(|t| t.name == "head/divide/e4").unwrap();
            planted.operands[3] += 2;
            trace.tested.tensors.get_mut(&ProbePoint::HeadGradient).unwrap()[[3, 1]] += 1;
            let text = outcome(&trace).failure.unwrap();
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
        run(&config, &data(), &mut Own { secure, change }, |_, _| ()).unwrap()
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
        let found = run(&config, &data(), planted, |_, _| ()).unwrap();
        let text = check(&found, "error-bound").failure.as_ref().expect("nine units are too many");
        assert!(text.contains("step 2, logits[2, 9]"), "{text}");
        assert_eq!(found.distances.tensors[&ProbePoint::Logits].outside, 1);
    }

    #[test]
    fn a_run_can_be_narrowed_to_one_tensor_of_one_step() {
        let mut config = config(Head::Softmax, Rounding::Nearest);
        (config.only_step, config.only_probe) = (Some(1), Some("logits".into()));
        let mut secure = Secure::start(config.spec.clone(), None, true).unwrap();
        let found = run(&config, &data(), &mut secure, |_, _| ()).unwrap();
        assert_eq!(found.distances.tensors.keys().collect::<Vec<_>>(), [&ProbePoint::Logits]);
        assert_eq!(
            (found.distances.tensors[&ProbePoint::Logits].elements, found.distances.details.len()),
            (80, distances::DETAILS)
        );
        config.only_probe = Some("logit".into());
        let error = run(&config, &data(), &mut secure, |_, _| ()).unwrap_err().to_string();
        assert!(error.contains("choose one of") && error.contains("head_gradient"), "{error}");
    }
}
