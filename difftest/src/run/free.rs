//! Free-running mode: every side trains on its own from a common start; their drift, losses and accuracies are
//! compared.
//!
//! The noise floor is a second secure run with other coins: where the distance between secure and f64 is no larger than
//! the distance between two secure runs, the coins explain it. Divergence is looked for at every step of the plaintext
//! sides, and of the secure side where its weights are opened, about twenty times a run.

use crate::check::Outcome;
use crate::check::divergence::{self, Divergence, Ending};
use crate::check::encoding::Encodings;
use crate::check::judge::Judge;
use crate::check::range::Range;
use crate::checkpoint::Trained;
use crate::config::Config;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::explain::health::Health;
use crate::generate;
use crate::interrupt;
use crate::keeping::Keeping;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::{Batch, Opens, SIDES, Shows, Side, Spent, Tensors, Trains};
use crate::trace::Trace;
use fixtures::Dataset;
use ndarray::{Axis, Zip};
use reference::f64::{Network, RealHead};
use reference::fixed::{Coins, Parameters, Tape};
use reference::spec::{ProbePoint, TrainSpec};
use secure::nn::dense::LayerShare;
use serde::Serialize;

/// One point of the curves. Distances are root mean squares over all weights, real.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The number of steps done, over all of the run.
    pub step: usize,
    /// The distance from the real to the secure side's weights.
    pub drift: f64,
    /// The distance between the weights of two secure runs with other coins.
    pub noise: f64,
    /// Loss on the first rows of the test set under the real and the secure side's weights; none for `relu-grad`, null
    /// where infinite.
    pub loss: Option<(Option<f64>, Option<f64>)>,
    /// Accuracy on those rows: real, secure.
    pub accuracy: (f64, f64),
}

/// The findings of a free run.
#[derive(Debug)]
pub struct Findings {
    /// The points of the curves, by step.
    pub curve: Vec<Point>,
    /// `range` and `divergence`.
    pub checks: Vec<Outcome>,
    /// Verdict of each side.
    pub divergence: Vec<(&'static str, divergence::Verdict)>,
    /// How each side's training went, by its weights at the beginning and at the end on the first test rows.
    pub watch: [Health; 3],
    /// Part of the test set classified correctly: real, secure.
    pub accuracy: (f64, f64),
    /// Sums over all steps: real, integer, secure.
    pub spent: [Spent; 3],
    /// The number of steps taken.
    pub steps: usize,
    /// Steps that were taken before, by the run that this one has resumed.
    pub before: usize,
    /// The models that the real side and the first secure run have trained.
    pub trained: Trained,
}

/// The rows that a run uses, each once, and its batches in terms of them.
struct Plan {
    rows: Vec<u32>,
    /// Of the steps that a run which is resumed has taken.
    taken: Vec<Vec<u32>>,
    batches: Vec<Vec<u32>>,
    /// Steps between two points of the curves.
    piece: usize,
}

impl Plan {
    /// `done` steps of the seed's batches were taken before.
    fn new(config: &Config, data: &Dataset, done: u32) -> Self {
        let mut place = vec![None; data.train.len()];
        let mut rows = Vec::new();
        let batches = generate::batches_after(done, data.train.len(), config.spec.sgd.batch, config.seed);
        let mut batches: Vec<_> = batches.take(config.steps).collect();
        for row in batches.iter_mut().flatten() {
            let at = place[*row as usize].get_or_insert_with(|| {
                rows.push(*row);
                rows.len() as u32 - 1
            });
            *row = *at;
        }
        Plan { rows, taken: Vec::new(), batches, piece: config.steps.div_ceil(20) }
    }

    /// The rest of the plan after `steps` steps. The rows that are shared stay the same.
    fn after(mut self, steps: usize) -> Self {
        let rest = self.batches.split_off(steps);
        Plan { taken: self.batches, batches: rest, ..self }
    }

    /// Steps to be taken until the next state is kept, after `done` of the plan's, [`FEW`] at most.
    fn few(&self, keeping: Option<&Keeping>, done: usize) -> usize {
        keeping.map_or(FEW, |keeping| FEW.min(keeping.every - (self.taken.len() + done) % keeping.every))
    }

    fn pieces(&self) -> impl Iterator<Item = &[Vec<u32>]> {
        self.batches.chunks(self.piece)
    }

    /// A batch in terms of the data set's own rows.
    fn original(&self, batch: &[u32]) -> Vec<u32> {
        batch.iter().map(|&r| self.rows[r as usize]).collect()
    }
}

/// What one secure run found.
struct SecureRun {
    /// Its opened parameters before the first step.
    start: Parameters,
    /// Its opened parameters at every point of the curves.
    opened: Vec<Parameters>,
    /// The number of steps taken.
    done: usize,
    spent: Spent,
    /// On the test set.
    accuracy: f64,
    shares: [Vec<LayerShare>; 3],
}

/// Whether a run is over, given how many of its steps are done and the secure side's loss and accuracy on the first
/// test rows.
pub type Ends<'e> = &'e dyn Fn(usize, Option<f64>, f64) -> bool;

/// Steps that a secure run takes before it looks whether it is interrupted.
const FEW: usize = 50;

/// One secure run from where training was left, or from the seed's initial weights, over the plan, or to where it
/// `ends` or is interrupted if it may; that one keeps states, if any are kept. One that is resumed shares the same
/// things as it did when it began, and then takes up its state.
fn secure_run<S: Trains>(
    config: &Config,
    data: &Dataset,
    (plan, ends): (&Plan, Option<Ends<'_>>),
    from: Option<&Trained>,
    mut secure: S,
    progress: &mut impl FnMut(usize),
) -> Result<SecureRun, Error> {
    let mut start = match from {
        Some(trained) => {
            secure.load_shares(trained.shares.clone())?;
            secure.parameters()?
        }
        None => {
            let start = generate::initial(&config.spec, config.seed)?;
            secure.load(&start)?;
            start
        }
    };
    secure.share_data(
        &generate::units(&data.train, &plan.rows, config.spec.fixed),
        &generate::labels(&data.train, &plan.rows),
    )?;
    if let Some(keeping) = config.resumed().filter(|_| !plan.taken.is_empty()) {
        secure.resume(&keeping.run)?;
        start = secure.parameters()?;
    }
    let keeping = config.keeping.as_ref().filter(|_| ends.is_some());
    let test = Evaluation::of(data, config.spec.fixed);
    let sample = sample(&test)?;
    let (mut opened, mut spent, mut done) = (Vec::new(), Spent::default(), 0);
    for mut piece in plan.pieces() {
        while !piece.is_empty() {
            let (few, rest) = piece.split_at(piece.len().min(plan.few(keeping, done)));
            spent += secure.train(few)?;
            (piece, done) = (rest, done + few.len());
            let step = plan.taken.len() + done;
            if let Some(keeping) = keeping.filter(|keeping| keeping.after(step, config.steps)) {
                secure.keep(&keeping.run, step as u64)?;
            }
            progress(few.len());
            if ends.is_some() && interrupt::requested() {
                break;
            }
        }
        let parameters = secure.parameters()?;
        let side = Real::new(config.spec.clone(), &parameters)?;
        opened.push(parameters);
        let (loss, accuracy) = on_sample(&config.spec, &side, &sample)?;
        let step = plan.taken.len() + done;
        if ends.is_some_and(|ends| ends(step, loss, accuracy) || interrupt::requested()) {
            break;
        }
    }
    let accuracy = test.accuracy(&mut secure)?;
    Ok(SecureRun { start, opened, done, spent, accuracy, shares: secure.shares()? })
}

/// The real side where the others begin: this one keeps no states, and takes the steps of a run that is resumed again.
fn real_side(
    config: &Config,
    data: &Dataset,
    plan: &Plan,
    from: Option<&Trained>,
    start: &Parameters,
) -> Result<Real, Error> {
    let spec = &config.spec;
    let mut real = match from {
        Some(trained) => Real::with(spec.clone(), trained.real.clone())?,
        None if plan.taken.is_empty() => Real::new(spec.clone(), start)?,
        None => Real::new(spec.clone(), &generate::initial(spec, config.seed)?)?,
    };
    for rows in &plan.taken {
        real.train(&generate::rows(&data.train, &plan.original(rows), spec.fixed))?;
    }
    let shown = |point: &ProbePoint| matches!(point, ProbePoint::Weights(_) | ProbePoint::Bias(_));
    Ok(real.showing(Shows::Only(shown)))
}

/// The plan of what is left of a run that is resumed: of all of it, if its parties have kept nothing.
fn rest<S: Trains>(config: &Config, plan: Plan, secure: &mut S) -> Result<Plan, Error> {
    let Some(keeping) = config.resumed() else { return Ok(plan) };
    let kept = secure.kept(&keeping.run)?.map_or(Ok(0), |step| keeping.fits(step, config.steps))?;
    Ok(plan.after(kept))
}

/// The first rows of the test set.
fn sample(test: &Evaluation<'_>) -> Result<Batch, Error> {
    test.sample().ok_or(Error::EmptyTestSet)
}

/// Loss, if the head has one, and accuracy of a network on rows.
fn on_sample(spec: &TrainSpec, side: &Real, rows: &Batch) -> Result<(Option<f64>, f64), Error> {
    let loss = side.network().mean_loss(&RealHead::of(spec), &rows.reals, &rows.labels)?;
    Ok((loss, side.network().accuracy(&rows.reals, &rows.labels)?))
}

/// The traces of a free run: each side that takes part trains on its own from the parameters that it has; the others
/// show nothing.
pub struct Free<'r, B> {
    spec: &'r TrainSpec,
    batches: B,
    /// The real side, if it takes part.
    pub real: Option<&'r mut Real>,
    /// The integer side with its own coins, if it takes part.
    pub integer: Option<&'r mut Integer>,
    /// The tested side, if it takes part and shows its steps.
    pub tested: Option<&'r mut dyn Side<Value = i64>>,
    step: usize,
}

impl<'r, B: Iterator<Item = Batch>> Free<'r, B> {
    /// A run of no side yet.
    pub fn new(spec: &'r TrainSpec, batches: B) -> Self {
        Free { spec, batches, real: None, integer: None, tested: None, step: 0 }
    }

    fn take(&mut self, batch: Batch) -> Result<Trace, Error> {
        let name = self.tested.as_ref().map_or("secure", |side| side.name());
        let mut trace = Trace::new(self.step, self.spec, name, None, batch);
        self.step += 1;
        if let Some(real) = &mut self.real {
            let done = real.step(&trace.batch, Tape::default())?;
            trace.real = (done.tensors, done.spent).into();
        }
        if let Some(integer) = &mut self.integer {
            let done = integer.step(&trace.batch, Tape::default())?;
            trace.integer = (done.tensors, done.spent).into();
            trace.violations = std::mem::take(&mut integer.violations);
        }
        if let Some(tested) = &mut self.tested {
            let done = tested.step(&trace.batch, Tape::default())?;
            trace.coins = done.tape;
            trace.tested = (done.tensors, done.spent).into();
        }
        Ok(trace)
    }
}

impl<B: Iterator<Item = Batch>> Iterator for Free<'_, B> {
    type Item = Result<Trace, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(self.take(batch))
    }
}

/// Runs all sides, `from` where training was left, or from the seed's initial weights: the real side from its own
/// weights, the integer side from those that the secure side opens, batches from the next one on. `start_secure` starts
/// secure run 0 or 1, which must draw different coins; one at a time, for their data is large. `progress` hears of
/// steps done: [`RUNS`] times `config.steps` in all. The first secure run may end early, and the others then end where
/// it did.
///
/// # Errors
/// A side that cannot go on.
pub fn run<S: Trains>(
    config: &Config,
    data: &Dataset,
    from: Option<&Trained>,
    ends: Ends<'_>,
    mut start_secure: impl FnMut(u64) -> Result<S, Error>,
    mut progress: impl FnMut(usize),
) -> Result<Findings, Error> {
    let before = from.map_or(0, |t| t.steps);
    let mut secure = start_secure(0)?;
    let mut plan = rest(config, Plan::new(config, data, before), &mut secure)?;
    let resumed = plan.taken.len();
    progress(RUNS * resumed);
    let ours = secure_run(config, data, (&plan, Some(ends)), from, secure, &mut progress)?;
    // The others train as far as this one did, whatever ended it.
    plan.batches.truncate(ours.done);
    let theirs = secure_run(config, data, (&plan, None), from, start_secure(1)?, &mut progress)?;
    let spec = &config.spec;
    let mut real = real_side(config, data, &plan, from, &ours.start)?;
    let mut integer = Integer::with_coins(spec.clone(), Coins::seeded(config.seed.wrapping_add(1)))?;
    integer.load(&ours.start)?;
    let test = Evaluation::of(data, spec.fixed);
    let mut plain = Plain {
        config,
        data,
        plan: &plan,
        sample: sample(&test)?,
        judge: Judge::new(config, vec![Box::new(Encodings::new(config, None)?), Box::new(Range::new(config))], 0),
        divergence: Divergence::new(SIDES, spec),
        curve: Vec::new(),
        spent: [Spent::default(); 3],
        done: resumed,
    };
    for (piece, opened) in plan.pieces().zip(ours.opened.iter().zip(&theirs.opened)) {
        plain.piece(piece, opened, (&mut real, &mut integer), &mut progress)?;
    }

    let Plain { sample, judge, divergence, curve, mut spent, done, .. } = plain;
    spent[2] = ours.spent;
    let accuracy = [test.accuracy(&mut real)?, test.accuracy(&mut integer)?, ours.accuracy];
    let (epoch, steps) = (data.train.len().div_ceil(spec.sgd.batch), before as usize + done);
    let end = Ending { accuracy, chance: test.chance(), steps, epoch };
    let divergence = divergence.verdicts(&end);
    let last = ours.opened.last().unwrap_or(&ours.start);
    let watch = healths(spec, &ours.start, (&real, &integer.parameters()?, last), &sample, accuracy)?;
    let mut checks = judge.finish();
    checks.push(divergence::outcome(config, &divergence));
    let trained = Trained { steps: before.saturating_add(done as u32), real: real.layers(), shares: ours.shares };
    let (accuracy, steps) = ((accuracy[0], accuracy[2]), done - resumed);
    Ok(Findings { curve, checks, divergence, watch, accuracy, spent, steps, before: resumed, trained })
}

/// The health of every side's training: from its start and its last weights, on one sample.
fn healths(
    spec: &TrainSpec,
    start: &Parameters,
    (real, integer, secure): (&Real, &Parameters, &Parameters),
    sample: &Batch,
    accuracy: [f64; 3],
) -> Result<[Health; 3], Error> {
    let mut all = SIDES.map(|side| Health::new(side, spec));
    for (side, accuracy) in all.iter_mut().zip(accuracy) {
        side.opened(spec, start, sample)?;
        side.accuracy = accuracy;
    }
    let [on_real, on_integer, on_secure] = &mut all;
    on_real.network(spec, real.network(), sample)?;
    on_integer.opened(spec, integer, sample)?;
    on_secure.opened(spec, secure, sample)?;
    Ok(all)
}

/// The plaintext sides of a run, beside what the secure runs opened.
struct Plain<'p> {
    config: &'p Config,
    data: &'p Dataset,
    plan: &'p Plan,
    sample: Batch,
    judge: Judge<'p>,
    divergence: Divergence,
    curve: Vec<Point>,
    spent: [Spent; 3],
    done: usize,
}

impl Plain<'_> {
    /// Trains up to the next point of the curves, where both secure runs `opened` their parameters.
    fn piece(
        &mut self,
        piece: &[Vec<u32>],
        opened: (&Parameters, &Parameters),
        (real, integer): (&mut Real, &mut Integer),
        progress: &mut impl FnMut(usize),
    ) -> Result<(), Error> {
        let (spec, train) = (&self.config.spec, &self.data.train);
        let batches = piece.iter().map(|rows| generate::rows(train, &self.plan.original(rows), spec.fixed));
        let mut run = Free::new(spec, batches);
        (run.real, run.integer, run.step) = (Some(&mut *real), Some(integer), self.done);
        for trace in run.by_ref() {
            let trace = trace?;
            self.judge.see(&trace)?;
            self.divergence.see(&trace);
            for (total, one) in self.spent.iter_mut().zip(trace.spent()) {
                *total += one;
            }
            self.done += 1;
            progress(1);
        }
        self.point(opened, real)
    }

    /// Compares the weights after a piece.
    fn point(&mut self, (ours, theirs): (&Parameters, &Parameters), real: &Real) -> Result<(), Error> {
        let spec = &self.config.spec;
        let secure = Real::new(spec.clone(), ours)?;
        let last = self.done - 1;
        self.divergence.side(2).step(last, &weights_of(&secure), |v| *v);
        // Logits are looked at here only: a training step of these sides shows none.
        for (number, side) in [(0, real), (2, &secure)] {
            let logits = side.network().forward(&self.sample.reals)?;
            self.divergence.side(number).step(last, &Tensors::from([(ProbePoint::Logits, logits)]), |v| *v);
        }
        let (on_real, on_secure) = (on_sample(spec, real, &self.sample)?, on_sample(spec, &secure, &self.sample)?);
        let finite = |v: f64| v.is_finite().then_some(v);
        self.curve.push(Point {
            step: self.done,
            drift: distance(real.network(), secure.network()),
            noise: distance(Real::new(spec.clone(), theirs)?.network(), secure.network()),
            loss: on_real.0.zip(on_secure.0).map(|(a, b)| (finite(a), finite(b))),
            accuracy: (on_real.1, on_secure.1),
        });
        Ok(())
    }
}

/// Passes over the batches that [`run`] makes: two secure, one of the plaintext sides.
pub const RUNS: usize = 3;

/// The weights and biases of a network as probed tensors.
fn weights_of(side: &Real) -> Tensors<f64> {
    let layers = (1..).zip(&side.network().layers);
    layers
        .flat_map(|(l, layer)| {
            [
                (ProbePoint::Weights(l), layer.weights.clone()),
                (ProbePoint::Bias(l), layer.bias.clone().insert_axis(Axis(0))),
            ]
        })
        .collect()
}

/// Root mean square of the differences of all weights.
fn distance(a: &Network, b: &Network) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for (a, b) in a.layers.iter().zip(&b.layers) {
        Zip::from(&a.weights).and(&b.weights).for_each(|a, b| sum += (a - b).powi(2));
        count += a.weights.len();
    }
    (sum / count.max(1) as f64).sqrt()
}
