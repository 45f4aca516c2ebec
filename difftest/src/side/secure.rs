//! [`secure::engine`] as a side: three parties on three threads of this process.

use super::{Batch, Opens, Side, Spent, Step, Tensors, Trains, flat};
use crate::error::Error;
use crate::explain::origin::Truncated;
use ndarray::{Array1, Array2};
use reference::fixed::{LayerUnits, Parameters, Rounded, Tape};
use reference::spec::TrainSpec;
use secure::clock::Phase;
use secure::cost::Spent as Cost;
use secure::engine::{Engine, EngineConfig, ParameterUnits, Probe, RoundingRecord};
use secure::nn::dense::LayerShare;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Training on shares.
pub struct Secure {
    engine: Engine,
    spec: TrainSpec,
    truncated: Vec<Truncated>,
}

/// The recorded coins as the integer model takes them.
pub fn tape(rounding: Vec<RoundingRecord>) -> Tape {
    let mut tape = Tape::default();
    for RoundingRecord { name, coins, wraps, .. } in rounding {
        tape.push(name, Rounded { coins, wraps });
    }
    tape
}

/// Parameters as the engine takes them.
pub fn units(parameters: &Parameters) -> ParameterUnits {
    let layer = |l: &LayerUnits| l.map(|matrix| flat(matrix).into_owned(), |row| row.to_vec());
    ParameterUnits { layers: parameters.layers.iter().map(layer).collect() }
}

/// Opened probes by name.
///
/// # Errors
/// A probe whose size is not its shape's.
pub fn tensors(probes: Vec<Probe>) -> Result<Tensors<i64>, Error> {
    let tensor = |p: Probe| match Array2::from_shape_vec((p.rows, p.cols), p.units) {
        Ok(tensor) => Ok((p.point, tensor)),
        Err(e) => Err(Error::opened(format!("probe {}", p.point), e)),
    };
    probes.into_iter().map(tensor).collect()
}

fn spent(cost: &Cost, seconds: f64) -> Spent {
    Spent { seconds, rounds: cost.rounds, messages: cost.messages, bytes: cost.bytes }
}

impl Secure {
    /// Starts the parties; without a seed their randomness is the operating system's. `record` hands out tensors and
    /// coins of each step.
    ///
    /// # Errors
    /// A specification or machine that the engine cannot work with.
    pub fn start(spec: TrainSpec, insecure_seed: Option<u64>, record: bool) -> Result<Self, Error> {
        let config = EngineConfig { seed: insecure_seed, record, pin_to_cores: !record, ..EngineConfig::new(spec) };
        Ok(Secure::over(crate::parties::start(config)?))
    }

    /// A side whose parties run already.
    pub fn over(engine: Engine) -> Self {
        let spec = engine.spec().clone();
        Secure { engine, spec, truncated: Vec::new() }
    }

    /// Where the parties' time went, added up over the three.
    ///
    /// # Errors
    /// A party that fails.
    pub fn times(&mut self) -> Result<BTreeMap<Phase, Duration>, Error> {
        Ok(self.engine.times()?)
    }

    /// The parties, for what a side does not show: costs by protocol.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

impl Side for Secure {
    type Value = i64;

    fn name(&self) -> &'static str {
        "secure"
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        Ok(self.engine.load(&units(parameters))?)
    }

    fn step(&mut self, batch: &Batch, _: Tape) -> Result<Step<i64>, Error> {
        let mut report = self.engine.step(&flat(&batch.units), &batch.labels)?;
        let truncated =
            |r: &mut RoundingRecord| Truncated { name: r.name.clone(), operands: std::mem::take(&mut r.operands) };
        self.truncated = report.rounding.iter_mut().map(truncated).collect();
        let spent = spent(&report.spent, report.seconds);
        Ok(Step { tensors: tensors(report.probes)?, tape: tape(report.rounding), spent })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        Ok(self.engine.count_correct(&flat(&batch.units), &batch.labels)?)
    }
}

impl Opens for Secure {
    fn parameters(&mut self) -> Result<Parameters, Error> {
        let opened = self.engine.parameters()?;
        let matrix = |(rows, cols): (usize, usize), v| {
            Array2::from_shape_vec((rows, cols), v).map_err(|e| Error::opened("opened parameters", e))
        };
        let layers = (1..)
            .zip(opened.layers)
            .map(|(l, units)| {
                let shape = self.spec.network.shape(l);
                Ok(LayerUnits {
                    weights: matrix(shape, units.weights)?,
                    bias: Array1::from(units.bias),
                    weight_velocity: matrix(shape, units.weight_velocity)?,
                    bias_velocity: Array1::from(units.bias_velocity),
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Parameters { layers })
    }

    fn keep(&mut self, run: &str, step: u64) -> Result<(), Error> {
        Ok(self.engine.keep(run, step)?)
    }

    fn kept(&mut self, run: &str) -> Result<Option<u64>, Error> {
        Ok(self.engine.kept(run)?)
    }

    fn resume(&mut self, run: &str) -> Result<Option<u64>, Error> {
        Ok(self.engine.resume(run)?)
    }

    fn take_truncated(&mut self) -> Vec<Truncated> {
        std::mem::take(&mut self.truncated)
    }
}

impl Trains for Secure {
    fn share_data(&mut self, units: &Array2<i64>, labels: &[usize]) -> Result<(), Error> {
        Ok(self.engine.load_data(units.as_slice().unwrap_or_default(), labels)?)
    }

    fn shares(&mut self) -> Result<[Vec<LayerShare>; 3], Error> {
        Ok(self.engine.shares()?)
    }

    fn load_shares(&mut self, shares: [Vec<LayerShare>; 3]) -> Result<(), Error> {
        Ok(self.engine.load_shares(shares)?)
    }

    fn train(&mut self, batches: &[Vec<u32>]) -> Result<Spent, Error> {
        let start = Instant::now();
        let cost = self.engine.train(batches)?;
        Ok(spent(&cost, start.elapsed().as_secs_f64()))
    }
}
