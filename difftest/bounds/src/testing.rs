//! The steps that the bounds are tested on: the reference's, once in real numbers and once in units.

use crate::Tensors;
use ndarray::Array2;
use reference::f64::Network;
use reference::fixed::{Coins, Model, Monitor, Parameters};
use reference::spec::TrainSpec;

/// The rows of one step.
pub struct Batch {
    /// (rows, inputs), scale f.
    pub units: Array2<i64>,
    /// (rows, inputs), the numbers that the units stand for, exactly.
    pub reals: Array2<f64>,
    /// Class of each row.
    pub labels: Vec<usize>,
}

/// Every tensor of one step in real numbers from `parameters`.
pub fn real(spec: &TrainSpec, parameters: &Parameters, batch: &Batch) -> Tensors<f64> {
    let mut tensors = Tensors::new();
    let mut network = Network::new(parameters.decode(spec.fixed, &spec.sgd)).unwrap();
    let see = &mut |point, tensor: &Array2<f64>| drop(tensors.insert(point, tensor.clone()));
    network.step(spec, &batch.reals, &batch.labels, see).unwrap();
    tensors
}

/// Training in units with coins of its own.
pub struct Integer {
    model: Model,
    coins: Coins,
    /// Range violations of the last step.
    pub violations: Monitor,
}

impl Integer {
    pub fn with_coins(spec: TrainSpec, coins: Coins) -> Self {
        Integer { model: Model::new(spec).unwrap(), coins, violations: Monitor::default() }
    }

    pub fn load(&mut self, parameters: &Parameters) {
        self.model.load(parameters.clone()).unwrap();
    }

    /// Every tensor of one step.
    pub fn step(&mut self, batch: &Batch) -> Tensors<i64> {
        let mut tensors = Tensors::new();
        let see = &mut |point, tensor: &Array2<i64>| drop(tensors.insert(point, tensor.clone()));
        self.model.step(&batch.units, &batch.labels, &mut self.coins, see).unwrap();
        self.violations = self.model.monitor_mut().take();
        tensors
    }

    pub fn parameters(&self) -> Parameters {
        self.model.parameters().clone()
    }
}
