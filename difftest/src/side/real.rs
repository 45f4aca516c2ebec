//! [`reference::f64`] as a side.

use super::{Batch, Probe, Shows, Side, Step};
use crate::error::Error;
use ndarray::Array2;
use reference::f64::Network;
use reference::fixed::{LayerValues, Parameters, Tape};
use reference::spec::TrainSpec;
use std::time::Instant;

/// Plaintext training in real numbers.
#[derive(Debug)]
pub struct Real {
    spec: TrainSpec,
    network: Network,
    shows: Shows,
}

/// The network that opened parameters stand for, exactly: units below 2^53 are f64 numbers.
fn network(spec: &TrainSpec, parameters: &Parameters) -> Result<Network, Error> {
    Ok(Network::new(parameters.decode(spec.fixed, &spec.sgd))?)
}

impl Real {
    /// Starts from `parameters`.
    ///
    /// # Errors
    /// Shapes that are no network.
    pub fn new(spec: TrainSpec, parameters: &Parameters) -> Result<Self, Error> {
        let network = network(&spec, parameters)?;
        Ok(Real { spec, network, shows: Shows::Everything })
    }

    /// Starts from reals that need not be units.
    ///
    /// # Errors
    /// Shapes that are no network.
    pub fn with(spec: TrainSpec, layers: Vec<LayerValues>) -> Result<Self, Error> {
        Ok(Real { spec, network: Network::new(layers)?, shows: Shows::Everything })
    }

    /// Changes which tensors its steps show.
    pub fn showing(self, shows: Shows) -> Self {
        Real { shows, ..self }
    }

    /// Weights and velocities as they are.
    pub fn layers(&self) -> Vec<LayerValues> {
        self.network.layers.clone()
    }

    /// The network as it is.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// One step without probes; returns its seconds.
    ///
    /// # Errors
    /// Shapes or labels that do not fit.
    pub fn train(&mut self, batch: &Batch) -> Result<f64, Error> {
        let start = Instant::now();
        self.train_on(&batch.reals, &batch.labels)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// One step without probes on (batch, inputs) reals and their labels.
    ///
    /// # Errors
    /// Shapes or labels that do not fit.
    pub fn train_on(&mut self, x: &Array2<f64>, labels: &[usize]) -> Result<(), Error> {
        self.network.train_step(&self.spec, x, labels)?;
        Ok(())
    }
}

impl Side for Real {
    type Value = f64;

    fn name(&self) -> &'static str {
        "real"
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        self.network = network(&self.spec, parameters)?;
        Ok(())
    }

    fn step(&mut self, batch: &Batch, _: Tape) -> Result<Step<f64>, Error> {
        let mut probe = Probe::start(self.shows);
        let see = &mut |point, tensor: &Array2<f64>| probe.see(point, tensor);
        self.network.step(&self.spec, &batch.reals, &batch.labels, see)?;
        let spent = probe.spent();
        Ok(Step { tensors: probe.tensors, tape: Tape::default(), spent })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        let predicted = self.network.predict(&batch.reals)?;
        Ok(predicted.iter().zip(&batch.labels).filter(|(p, l)| p == l).count())
    }
}
