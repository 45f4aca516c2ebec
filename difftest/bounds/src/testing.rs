//! The steps that the bounds are tested on: the reference's, once in real numbers and once in units.

use crate::{Batch, Tensors};
use ndarray::{Array1, Array2};
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::f64::Network;
use reference::fixed::{Coins, LayerUnits, Model, Monitor, Parameters};
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

const BATCH: usize = 24;

/// A small network: 20 inputs, hidden layers of 9, 6 classes, batches of 24.
pub fn spec(head: Head, rounding: Rounding, layers: usize, extra_velocity_bits: u32) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec::dense(20, 9, 6, layers),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: BATCH, learning_rate: 0.05, extra_velocity_bits, ..SgdSpec::default() },
    }
}

/// Parameters and a batch that make every part of a network work: logits of a few units of size, both signs, live
/// velocities.
pub fn inputs(spec: &TrainSpec, rng: &mut ChaCha12Rng) -> (Parameters, Batch) {
    let one = spec.fixed.one() as f64;
    let mut units = |limit: f64| (rng.random_range(-limit..limit) * one).round() as i64;
    let layers = (1..=spec.network.layers())
        .map(|l| {
            let (rows, columns) = spec.network.shape(l);
            LayerUnits {
                weights: Array2::from_shape_simple_fn((rows, columns), || units(1.0)),
                bias: Array1::from_shape_simple_fn(columns, || units(0.5)),
                weight_velocity: Array2::from_shape_simple_fn((rows, columns), || units(0.02)),
                bias_velocity: Array1::from_shape_simple_fn(columns, || units(0.02)),
            }
        })
        .collect();
    let pixels = Array2::from_shape_simple_fn((spec.sgd.batch, spec.network.inputs()), || rng.random_range(0..256i64));
    let labels = (0..spec.sgd.batch).map(|_| rng.random_range(0..spec.network.classes())).collect();
    let f = spec.fixed.fraction_bits;
    let batch = Batch { units: pixels.mapv(|p| p << (f - 8)), reals: pixels.mapv(|p| p as f64 / 256.0), labels };
    (Parameters { layers }, batch)
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
