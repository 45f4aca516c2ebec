//! Traces for tests: steps of the integer model on a small network.

use crate::generate;
use crate::model::integer::Integer;
use crate::model::{Batch, Model, Opens};
use crate::trace::{TraceFile, export};
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::{Coins, Parameters, Tape};
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

/// A small network: 12 inputs, hidden layers of 7, 5 classes, batches of 8.
pub fn spec(head: Head, rounding: Rounding, layers: usize) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec::dense(12, 7, 5, layers),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 8, learning_rate: 0.05, ..SgdSpec::default() },
    }
}

/// A batch of pixels with values of every size.
pub fn batch(spec: &TrainSpec, rng: &mut ChaCha12Rng) -> Batch {
    let dim = (spec.sgd.batch, spec.network.inputs());
    let pixels = Array2::from_shape_simple_fn(dim, || if rng.random_bool(0.3) { 0 } else { rng.random_range(0..256i64) });
    Batch {
        units: pixels.mapv(|p| p << (spec.fixed.fraction_bits - 8)),
        reals: pixels.mapv(|p| p as f64 / 256.0),
        labels: (0..spec.sgd.batch).map(|_| rng.random_range(0..spec.network.classes())).collect(),
    }
}

/// Weights that bring logits of a few units of size, both signs, and velocities that move.
fn start(spec: &TrainSpec, seed: u64) -> Parameters {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut start = generate::initial(spec, seed).expect("weights fit");
    for layer in &mut start.layers {
        layer.bias.mapv_inplace(|_| rng.random_range(-20_000..20_000));
        layer.weight_velocity.mapv_inplace(|_| rng.random_range(-900..900));
        layer.bias_velocity.mapv_inplace(|_| rng.random_range(-900..900));
    }
    start
}

/// A clean trace of a specification.
pub fn record(spec: &TrainSpec, steps: usize, seed: u64) -> TraceFile {
    let mut trace = TraceFile::new(export::header("integer model", spec).expect("rates fit"));
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut side = Integer::with_coins(spec.clone(), Coins::seeded(seed)).expect("a valid specification");
    side.load(&start(spec, seed)).expect("parameters of this network");
    for step in 0..steps {
        let before = side.parameters().expect("the model has parameters");
        let batch = batch(spec, &mut rng);
        let done = side.step(&batch, Tape::default()).expect("a step");
        trace.record(step, &before, &batch, &done.tensors);
    }
    trace
}

/// A clean trace.
pub fn trace(head: Head, rounding: Rounding, layers: usize, steps: usize) -> TraceFile {
    record(&spec(head, rounding, layers), steps, 7)
}
