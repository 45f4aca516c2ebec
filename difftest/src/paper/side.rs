//! The three sides as an evaluation sees them: they train on batches, say how many test rows they get right, and show
//! their weights.

use super::cell::{Cost, Epoch, Id, Nearness, Sent, Side};
use super::published;
use crate::bound;
use crate::chance::Chance;
use crate::check::divergence::Evidence;
use crate::compare;
use crate::error::Error;
use crate::generate;
use crate::side::Trains;
use crate::side::integer::Integer as IntegerSide;
use crate::side::real::Real as RealSide;
use crate::side::secure::Secure;
use crate::side::{Batch, Opens, Side as _, Tensors};
use crate::timing::Stopwatch;
use fixtures::{Dataset, Split};
use ndarray::Array2;
use reference::f64::{Layer, Network, RealHead};
use reference::fixed::{Coins, LayerValues, Model as Fixed, Tape};
use reference::spec::{FixedSpec, ProbePoint, TrainSpec};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What all cells train and are tested on, loaded once.
#[derive(Debug)]
pub struct Data {
    all: Dataset,
    test: Batch,
    classes: usize,
    digest: String,
}

impl Data {
    /// The first `rows` rows of both splits, or all of them.
    pub fn new(mut data: Dataset, rows: Option<usize>) -> Self {
        let (inputs, classes) = (data.train.inputs(), data.classes());
        let mut digest = Sha256::new();
        for split in [&mut data.train, &mut data.test] {
            let rows = rows.map_or(split.len(), |n| n.min(split.len()));
            split.images.truncate(rows * inputs);
            split.labels.truncate(rows);
            digest.update(&split.images);
            digest.update(&split.labels);
        }
        let test: Vec<u32> = (0..data.test.len() as u32).collect();
        Data {
            test: generate::rows(&data.test, &test, FixedSpec::default()),
            all: data,
            classes,
            digest: digest.finalize().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }

    /// Both splits.
    pub fn all(&self) -> &Dataset {
        &self.all
    }

    fn train(&self) -> &Split {
        &self.all.train
    }

    /// Width of the data.
    pub fn inputs(&self) -> usize {
        self.train().inputs()
    }

    /// Training rows and test rows.
    pub fn rows(&self) -> (usize, usize) {
        (self.train().len(), self.test.labels.len())
    }

    /// Pixels of the test rows, real.
    pub fn test(&self) -> &Array2<f64> {
        &self.test.reals
    }

    /// Classes that a network needs, by the labels of all rows of both splits.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What accuracy on the test rows means for a side that has learnt nothing.
    pub fn chance(&self) -> Chance {
        Chance::of(self.test.labels.iter().copied())
    }

    /// SHA-256 of all pixels and labels.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// One side in training.
pub trait Trainee {
    /// Trains on these batches, and lets `look` see what this side can show.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn train(&mut self, batches: &[Vec<u32>], look: &mut Look) -> Result<(), Error>;

    /// Test rows classified correctly.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn correct(&mut self) -> Result<usize, Error>;

    /// The weights as they are; the secure side opens them.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn weights(&mut self) -> Result<Vec<LayerValues>, Error>;

    /// What training sent so far; nothing on plaintext sides.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn cost(&mut self) -> Result<Option<Cost>, Error> {
        Ok(None)
    }

    /// Seconds of the same steps in real numbers, on the secure side, which has the machine for itself.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn plain_seconds(&mut self, _batches: &[Vec<u32>]) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// Error against real numbers and its bound in one step from the weights as they are; empty where nothing is
    /// proven. Training is not changed.
    ///
    /// # Errors
    /// A side that cannot go on.
    fn nearness(&mut self, _rows: &[u32]) -> Result<BTreeMap<String, Nearness>, Error> {
        Ok(BTreeMap::new())
    }
}

/// Starts a side from the seed's initial weights.
///
/// # Errors
/// A network that does not fit the format, a side that cannot start.
pub fn start<'d>(id: &Id, spec: &TrainSpec, data: &'d Data) -> Result<Box<dyn Trainee + 'd>, Error> {
    let start = generate::initial(spec, id.seed)?;
    Ok(match id.side {
        Side::Real => {
            let layers =
                start.decode(spec.fixed, &spec.sgd).into_iter().map(|l| Layer::at_rest(l.weights, l.bias)).collect();
            Box::new(Real { network: Network::new(layers)?, spec: spec.clone(), data })
        }
        Side::Integer => {
            let mut model = Fixed::new(spec.clone())?;
            model.load(start)?;
            Box::new(Integer { model, coins: Coins::seeded(id.seed), code: id.code, data })
        }
        Side::Secure => {
            let mut secure = Secure::start(spec.clone(), None, false)?;
            secure.load(&start)?;
            let rows: Vec<u32> = (0..data.train().len() as u32).collect();
            let units = generate::units(data.train(), &rows, spec.fixed);
            secure.share_data(&units, &generate::labels(data.train(), &rows))?;
            let plain = RealSide::new(spec.clone(), &start)?;
            Box::new(Shared { secure, plain, cost: Cost::default(), spec: spec.clone(), data })
        }
    })
}

/// What is watched during one attempt; looking is not counted as training time.
#[derive(Debug)]
pub struct Look {
    head: RealHead,
    watch: Evidence,
    limit: f64,
    step: usize,
    looking: Duration,
    labels: Vec<usize>,
    /// Weights and logits beyond the format, and layers that are dead: what the watch must see.
    striking: Tensors<f64>,
    epoch: Epoch,
    finite_losses: usize,
    alive: Vec<Vec<bool>>,
    /// The first operand that left its range.
    pub left_range: Option<String>,
    /// Operands out of range in that step, by operation.
    pub violations: BTreeMap<String, u64>,
    /// The first step whose logits left the range.
    pub logits_leave: Option<usize>,
}

const NO_EPOCH: Epoch = Epoch {
    steps: 0,
    seconds: 0.0,
    cpu_seconds: None,
    other_cpu_seconds: None,
    plain_seconds: None,
    correct: 0,
    loss: None,
    infinite_losses: None,
    largest_batch_loss: None,
    largest_logit: None,
    largest_weight: None,
    largest_gradient: None,
    dead_units: Vec::new(),
    nearness: BTreeMap::new(),
    sketch: Vec::new(),
};

/// Raises a maximum; what is not finite counts as the largest number.
fn raise(largest: &mut Option<f64>, value: f64) {
    let value = if value.is_finite() { value } else { f64::MAX };
    *largest = Some(largest.map_or(value, |l| l.max(value)));
}

impl Look {
    /// Nothing seen yet.
    pub fn new(id: &Id, spec: &TrainSpec) -> Self {
        Look {
            head: RealHead::of(spec),
            watch: Evidence::new(id.side.name(), spec.fixed),
            limit: spec.fixed.limit() as f64 / spec.fixed.one() as f64,
            step: 0,
            looking: Duration::ZERO,
            labels: Vec::new(),
            striking: Tensors::new(),
            epoch: NO_EPOCH,
            finite_losses: 0,
            alive: Vec::new(),
            left_range: None,
            violations: BTreeMap::new(),
            logits_leave: None,
        }
    }

    /// The evidence for a verdict.
    pub fn watch(&self) -> &Evidence {
        &self.watch
    }

    /// Ends an epoch: what was seen in it.
    pub fn take_epoch(&mut self) -> Epoch {
        let mut epoch = std::mem::replace(&mut self.epoch, NO_EPOCH);
        epoch.loss = epoch.loss.map(|sum| sum / self.finite_losses.max(1) as f64).filter(|_| self.finite_losses > 0);
        epoch.dead_units = self.alive.drain(..).map(|layer| layer.iter().filter(|alive| !**alive).count()).collect();
        self.finite_losses = 0;
        epoch
    }

    /// One tensor of the step that is being computed.
    fn tensor<T: Copy>(&mut self, point: ProbePoint, tensor: &Array2<T>, real: impl Fn(T) -> f64) {
        let start = Instant::now();
        // NaN must not get lost in a maximum.
        let largest = || tensor.iter().fold(0.0f64, |m, &v| if real(v).abs() <= m { m } else { real(v).abs() });
        match point {
            ProbePoint::Logits | ProbePoint::Weights(_) | ProbePoint::Bias(_) => {
                let largest = largest();
                let beyond = largest.is_nan() || largest >= self.limit;
                if point == ProbePoint::Logits {
                    raise(&mut self.epoch.largest_logit, largest);
                    self.loss(&tensor.map(|&v| real(v)));
                    if beyond {
                        self.logits_leave.get_or_insert(self.step);
                    }
                } else {
                    raise(&mut self.epoch.largest_weight, largest);
                }
                if beyond {
                    self.striking.insert(point, tensor.map(|&v| real(v)));
                }
            }
            ProbePoint::HeadGradient => raise(&mut self.epoch.largest_gradient, largest()),
            ProbePoint::Activation(layer) => {
                self.alive.resize_with(self.alive.len().max(layer), || vec![false; tensor.ncols()]);
                let alive = &mut self.alive[layer - 1];
                let mut any = false;
                for row in tensor.rows() {
                    row.iter().zip(alive.iter_mut()).for_each(|(&v, alive)| {
                        any |= real(v) != 0.0;
                        *alive |= real(v) != 0.0;
                    });
                }
                if !any {
                    self.striking.insert(point, tensor.map(|&v| real(v)));
                }
            }
            _ => {}
        }
        self.looking += start.elapsed();
    }

    fn loss(&mut self, logits: &Array2<f64>) {
        if self.labels.is_empty() {
            return;
        }
        let (mut sum, mut finite, mut infinite) = (0.0, 0, 0);
        for (row, &label) in logits.rows().into_iter().zip(&self.labels) {
            match self.head.loss(&row.to_vec(), label) {
                Ok(Some(f64::INFINITY)) => infinite += 1,
                Ok(Some(loss)) => {
                    sum += loss;
                    finite += 1;
                }
                // A head without a loss.
                _ => return,
            }
        }
        *self.epoch.infinite_losses.get_or_insert(0) += infinite;
        if finite > 0 {
            raise(&mut self.epoch.largest_batch_loss, sum / finite as f64);
            let total = self.epoch.loss.unwrap_or(0.0) + sum;
            self.epoch.loss = Some(if total.is_finite() { total } else { f64::MAX });
            self.finite_losses += finite;
        }
    }

    /// Ends a step that took from `start` until now.
    fn step(&mut self, start: Instant) {
        self.epoch.seconds += start.elapsed().saturating_sub(std::mem::take(&mut self.looking)).as_secs_f64();
        self.epoch.steps += 1;
        self.watch.step(self.step, &std::mem::take(&mut self.striking), |v| *v);
        if let Some(at) = &self.left_range {
            self.watch.violated(self.step, at.clone());
        }
        self.step += 1;
    }

    /// The weights at the end of an epoch, for a side that shows nothing during it, and what they make of `x`.
    pub fn weights(&mut self, layers: &[LayerValues], x: &Array2<f64>) {
        // The step that has just been done.
        self.step = self.step.saturating_sub(1);
        for (l, layer) in (1..).zip(layers) {
            self.tensor(ProbePoint::Weights(l), &layer.weights, |v| v);
            self.tensor(ProbePoint::Bias(l), &layer.bias.clone().insert_axis(ndarray::Axis(0)), |v| v);
        }
        let mut input = x.view();
        let mut activation;
        for (l, layer) in (1..).zip(layers) {
            let z = input.dot(&layer.weights) + &layer.bias;
            if l == layers.len() {
                self.tensor(ProbePoint::Logits, &z, |v| v);
                break;
            }
            activation = z.mapv_into(|v| v.max(0.0));
            self.tensor(ProbePoint::Activation(l), &activation, |v| v);
            input = activation.view();
        }
        self.watch.step(self.step, &std::mem::take(&mut self.striking), |v| *v);
        self.step += 1;
        self.looking = Duration::ZERO;
    }
}

/// Real numbers.
struct Real<'d> {
    network: Network,
    spec: TrainSpec,
    data: &'d Data,
}

impl Trainee for Real<'_> {
    fn train(&mut self, batches: &[Vec<u32>], look: &mut Look) -> Result<(), Error> {
        for rows in batches {
            let batch = generate::rows(self.data.train(), rows, self.spec.fixed);
            look.labels.clone_from(&batch.labels);
            let start = Instant::now();
            let mut probe = |point, tensor: &Array2<f64>| look.tensor(point, tensor, |v| v);
            self.network.step(&self.spec, &batch.reals, &batch.labels, &mut probe)?;
            look.step(start);
        }
        Ok(())
    }

    fn correct(&mut self) -> Result<usize, Error> {
        let predicted = self.network.predict(&self.data.test.reals)?;
        Ok(predicted.iter().zip(&self.data.test.labels).filter(|(p, l)| p == l).count())
    }

    fn weights(&mut self) -> Result<Vec<LayerValues>, Error> {
        let layer = |l: &Layer| LayerValues {
            weights: l.weights.clone(),
            bias: l.bias.clone(),
            weight_velocity: l.weight_velocity.clone(),
            bias_velocity: l.bias_velocity.clone(),
        };
        Ok(self.network.layers.iter().map(layer).collect())
    }
}

/// The integer model. It stops at the first operand out of range: from there on results depend on masks that it does
/// not have.
struct Integer<'d> {
    model: Fixed,
    coins: Coins,
    /// Whether the head is relu-grad in the order of the published code.
    code: bool,
    data: &'d Data,
}

impl Trainee for Integer<'_> {
    fn train(&mut self, batches: &[Vec<u32>], look: &mut Look) -> Result<(), Error> {
        let fixed = self.model.spec().fixed;
        let unit = 1.0 / fixed.one() as f64;
        for rows in batches {
            let units = generate::units(self.data.train(), rows, fixed);
            look.labels = generate::labels(self.data.train(), rows);
            let labels = look.labels.clone();
            let start = Instant::now();
            // Looking at nothing but tensors of scale f.
            let mut probe = |point, tensor: &Array2<i64>| look.tensor(point, tensor, |v| v as f64 * unit);
            if self.code {
                self.model.step_with(&units, &labels, &mut self.coins, &mut probe, &published::relu_grad)?;
            } else {
                self.model.step(&units, &labels, &mut self.coins, &mut probe)?;
            }
            let monitor = self.model.monitor();
            look.left_range = monitor.violations().first().map(ToString::to_string);
            look.violations.clone_from(monitor.counts());
            look.step(start);
            if look.left_range.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn correct(&mut self) -> Result<usize, Error> {
        // Evaluation has coins of its own, so that it does not change the training, and violations that are not the
        // training's.
        let seen = self.model.monitor_mut().take();
        let predicted = self.model.predict(&self.data.test.units, &mut Coins::seeded(0));
        *self.model.monitor_mut() = seen;
        Ok(predicted?.iter().zip(&self.data.test.labels).filter(|(p, l)| p == l).count())
    }

    fn weights(&mut self) -> Result<Vec<LayerValues>, Error> {
        let spec = self.model.spec();
        Ok(self.model.parameters().decode(spec.fixed, &spec.sgd))
    }

    fn nearness(&mut self, rows: &[u32]) -> Result<BTreeMap<String, Nearness>, Error> {
        // No bound is proven for the published code's order.
        if self.code {
            return Ok(BTreeMap::new());
        }
        let (spec, parameters) = (self.model.spec(), self.model.parameters());
        let batch = generate::rows(self.data.train(), rows, spec.fixed);
        let mut integer = IntegerSide::with_coins(spec.clone(), Coins::seeded(0))?;
        integer.load(parameters)?;
        let ours = integer.step(&batch, Tape::default())?.tensors;
        // The bounds are theorems about arithmetic that stays in range.
        if self.model.monitor().total() + integer.violations.total() > 0 {
            return Ok(BTreeMap::new());
        }
        let theirs = RealSide::new(spec.clone(), parameters)?.step(&batch, Tape::default())?.tensors;
        let start = parameters.decode(spec.fixed, &spec.sgd);
        let bounds = bound::network::step(spec, &start, &batch.reals, &batch.labels, &theirs)?;
        let unit = 1.0 / spec.fixed.one() as f64;
        let layers = (1..=spec.network.layers()).map(ProbePoint::WeightGradient);
        let told = [ProbePoint::Logits, ProbePoint::HeadGradient].into_iter().chain(layers).map(|point| {
            let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
            let found = compare::tensor(0, &theirs[&point], &ours[&point], scale, &bounds[&point]);
            let (error, bound) = (found.max_error / unit, found.bound_there / unit);
            (point.to_string(), Nearness { error, bound, closest: found.closest, outside: found.outside })
        });
        Ok(told.collect())
    }
}

/// Three parties. They show the number of correct test rows and, between epochs, the weights.
struct Shared<'d> {
    secure: Secure,
    /// Trains beside them, for its time only.
    plain: RealSide,
    cost: Cost,
    spec: TrainSpec,
    data: &'d Data,
}

impl Trainee for Shared<'_> {
    fn train(&mut self, batches: &[Vec<u32>], look: &mut Look) -> Result<(), Error> {
        let watch = Stopwatch::start(crate::parties::Processes::Own);
        let spent = self.secure.engine().train(batches)?;
        let took = watch.stop();
        look.epoch.seconds += took.wall;
        if let (Some(own), Some(others)) = (took.processor, took.others) {
            *look.epoch.cpu_seconds.get_or_insert(0.0) += own;
            *look.epoch.other_cpu_seconds.get_or_insert(0.0) += others;
        }
        look.epoch.steps += batches.len();
        look.step += batches.len();
        self.cost.steps += batches.len() as u64;
        self.cost.rounds += spent.rounds;
        self.cost.messages += spent.messages;
        self.cost.bytes += spent.bytes;
        for (protocol, sent) in spent.by_step {
            let Sent { rounds, bytes } = self.cost.by_protocol.entry(protocol.into()).or_default();
            *rounds += sent.rounds;
            *bytes += sent.bytes;
        }
        Ok(())
    }

    fn correct(&mut self) -> Result<usize, Error> {
        let test = &self.data.test;
        let x = test.units.as_slice().unwrap_or_default();
        Ok(self.secure.engine().count_correct(x, &test.labels)?)
    }

    fn weights(&mut self) -> Result<Vec<LayerValues>, Error> {
        Ok(self.secure.parameters()?.decode(self.spec.fixed, &self.spec.sgd))
    }

    fn cost(&mut self) -> Result<Option<Cost>, Error> {
        Ok(Some(self.cost.clone()))
    }

    fn plain_seconds(&mut self, batches: &[Vec<u32>]) -> Result<Option<f64>, Error> {
        let mut seconds = 0.0;
        for rows in batches {
            seconds += self.plain.train(&generate::rows(self.data.train(), rows, self.spec.fixed))?;
        }
        Ok(Some(seconds))
    }
}
