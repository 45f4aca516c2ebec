//! Traces for tests: steps of the integer model on a small network.

use crate::generate;
use crate::side::integer::Integer;
use crate::side::{Batch, Opens, Side};
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
    let pixels =
        Array2::from_shape_simple_fn(dim, || if rng.random_bool(0.3) { 0 } else { rng.random_range(0..256i64) });
    Batch {
        units: pixels.mapv(|p| p << spec.fixed.fraction_bits >> 8),
        reals: pixels.mapv(|p| p as f64 / 256.0),
        labels: (0..spec.sgd.batch).map(|_| rng.random_range(0..spec.network.classes())).collect(),
    }
}

/// Weights that bring logits of a few units of size, both signs, and velocities that move.
fn start(spec: &TrainSpec, seed: u64) -> Parameters {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut start = generate::initial(spec, seed).expect("weights fit");
    let limit = spec.fixed.one() / 3;
    for layer in &mut start.layers {
        layer.bias.mapv_inplace(|_| rng.random_range(-limit..limit));
        layer.weight_velocity.mapv_inplace(|_| rng.random_range(-900..900i64));
        layer.bias_velocity.mapv_inplace(|_| rng.random_range(-900..900i64));
    }
    start
}

/// A clean trace of a specification.
pub fn record(spec: &TrainSpec, steps: usize, seed: u64) -> TraceFile {
    run(spec, steps, seed, |_, rng| batch(spec, rng))
}

/// Two steps on batches, and from parameters, that the caller may choose.
pub fn record_batches(
    spec: &TrainSpec,
    seed: u64,
    next: impl FnMut(&mut Parameters, &mut ChaCha12Rng) -> Batch,
) -> TraceFile {
    run(spec, 2, seed, next)
}

fn run(
    spec: &TrainSpec,
    steps: usize,
    seed: u64,
    mut next: impl FnMut(&mut Parameters, &mut ChaCha12Rng) -> Batch,
) -> TraceFile {
    let mut trace = TraceFile::new(export::header("integer model", spec).expect("rates fit"));
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut side = Integer::with_coins(spec.clone(), Coins::seeded(seed)).expect("a valid specification");
    let mut before = start(spec, seed);
    for step in 0..steps {
        let batch = next(&mut before, &mut rng);
        side.load(&before).expect("parameters of this network");
        let done = side.step(&batch, Tape::default()).expect("a step");
        trace.record(step, &before, &batch, &done.tensors);
        before = side.parameters().expect("the model has parameters");
    }
    trace
}

/// A clean trace.
pub fn trace(head: Head, rounding: Rounding, layers: usize, steps: usize) -> TraceFile {
    record(&spec(head, rounding, layers), steps, 7)
}
