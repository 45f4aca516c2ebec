//! Traces of the secure engine: of ordinary training, and of a batch made of corner cases.

use super::free::Free;
use crate::error::Error;
use crate::generate;
use crate::side::secure::Secure;
use crate::side::{Batch, Side, Tensors};
use crate::trace::{TraceFile, coins, export};
use fixtures::Split;
use ndarray::{Array1, Array2};
use reference::fixed::{LayerUnits, Parameters};
use reference::spec::{FixedSpec, Head, NetworkSpec, ProbePoint, Rounding, SgdSpec, TrainSpec};

/// Trains `steps` steps on shares from initial weights by `seed`, and records each with all of its tensors.
///
/// # Errors
/// A specification that the engine cannot work with; a party that fails.
pub fn training(
    spec: &TrainSpec,
    split: &Split,
    steps: usize,
    seed: u64,
    insecure_seed: Option<u64>,
) -> Result<TraceFile, Error> {
    let start = generate::initial(spec, seed)?;
    let batches = generate::batches(split.len(), spec.sgd.batch, seed);
    let batches = batches.take(steps).map(|rows| generate::rows(split, &rows, spec.fixed));
    run(spec, start, batches, insecure_seed)
}

/// One step of a network that computes x = max(0, x) - max(0, -x), so that the rows of the batch are the logits, and
/// hidden units are exactly 0 wherever a row is: values on, below and above every threshold, ties, rows without a
/// positive value, small and large ones.
///
/// # Errors
/// As for [`training`].
pub fn corners(head: Head, rounding: Rounding) -> Result<TraceFile, Error> {
    const CLASSES: usize = 10;
    let mut rows = corner_rows();
    if head == Head::ReluEps {
        // Its reciprocals reach 2^f, and gradients of large inputs would leave the range of the update.
        rows.iter_mut().flatten().filter(|v| v.abs() >= 1 << 15).for_each(|v| *v >>= 20);
    }
    let spec = TrainSpec {
        network: NetworkSpec { widths: vec![CLASSES, 2 * CLASSES, CLASSES] },
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: rows.len(), learning_rate: 1e-3, ..SgdSpec::default() },
    };
    let one = spec.fixed.one();
    let signed = |i: usize, j: usize| match (i == j, i + CLASSES == j) {
        (true, _) => one,
        (_, true) => -one,
        _ => 0,
    };
    let first = Array2::from_shape_fn((CLASSES, 2 * CLASSES), |(i, j)| signed(i, j));
    let second = first.t().as_standard_layout().into_owned();
    let layer = |weights: Array2<i64>| LayerUnits {
        weight_velocity: Array2::from_shape_fn(weights.dim(), |(i, j)| (i as i64 - 4) * 37 + j as i64),
        bias_velocity: Array1::from_shape_fn(weights.ncols(), |j| j as i64 * 11 - 40),
        bias: Array1::zeros(weights.ncols()),
        weights,
    };
    let labels: Vec<usize> = (0..rows.len()).map(|i| i % CLASSES).collect();
    let units = Array2::from_shape_fn((rows.len(), CLASSES), |(i, j)| rows[i][j]);
    let batch = Batch { reals: units.mapv(|u| u as f64 / one as f64), units, labels };
    run(&spec, Parameters { layers: vec![layer(first), layer(second)] }, [batch].into_iter(), None)
}

/// Logits in units of 2^-16.
fn corner_rows() -> Vec<[i64; 10]> {
    const EPS: i64 = 6554;
    let edges = [-1, 0, 1, EPS - 1, EPS, EPS + 1, 65_536, -65_536, 3 * 65_536, 20 * 65_536];
    let mut rows: Vec<[i64; 10]> = (0..10).map(|k| std::array::from_fn(|j| edges[(j + k) % 10])).collect();
    rows.push([0; 10]);
    rows.push([-5; 10]);
    rows.push(std::array::from_fn(|j| -(j as i64) * 40_000));
    rows.push([70_000; 10]);
    rows.push([EPS; 10]);
    rows.push(std::array::from_fn(|j| if j == 3 || j == 8 { 131_072 } else { -9 }));
    rows.push(std::array::from_fn(|j| (1 << (2 * j)) + j as i64));
    rows.push(std::array::from_fn(|j| 65_536 * j as i64 - 13 * 65_536));
    rows.push(std::array::from_fn(|j| if j == 9 { 2_000_000 } else { 1 }));
    rows.push(std::array::from_fn(|j| 12_345 * (j as i64 * 7 % 11) - 30_000));
    // Above half of the range, where a comparison needs the top bit of a value.
    rows.push(std::array::from_fn(|j| if j == 4 { (1 << 30) + 65_539 } else { 3 * j as i64 }));
    rows.push(std::array::from_fn(|j| -(1 << 30) - 1000 * j as i64));
    rows.extend((0..12).map(|k: i64| std::array::from_fn(|j| (k * 7919 + j as i64 * 104_729) % 400_000 - 100_000)));
    rows
}

fn run(
    spec: &TrainSpec,
    mut start: Parameters,
    batches: impl Iterator<Item = Batch>,
    insecure_seed: Option<u64>,
) -> Result<TraceFile, Error> {
    let mut file = TraceFile::new(export::header(export::ENGINE, spec)?);
    let mut side = Secure::start(spec.clone(), insecure_seed, true)?;
    side.load(&start)?;
    let mut run = Free::new(spec, batches);
    run.tested = Some(&mut side);
    for trace in run {
        let trace = trace?;
        file.record(trace.step, &start, &trace.batch, &trace.tested.tensors);
        coins::write(&mut file, trace.step, &trace.coins);
        let layers = (1..=spec.network.layers()).map(|l| left(&trace.tested.tensors, l));
        let layers = layers.collect::<Option<_>>();
        start = Parameters { layers: layers.ok_or_else(|| secure::Error::misuse("a step without its parameters"))? };
    }
    Ok(file)
}

/// The parameters of layer `l` as a step has left them.
fn left(tensors: &Tensors<i64>, l: usize) -> Option<LayerUnits> {
    let row = |point| tensors.get(&point).map(|t| t.row(0).to_owned());
    Some(LayerUnits {
        weights: tensors.get(&ProbePoint::Weights(l))?.clone(),
        bias: row(ProbePoint::Bias(l))?,
        weight_velocity: tensors.get(&ProbePoint::WeightVelocity(l))?.clone(),
        bias_velocity: row(ProbePoint::BiasVelocity(l))?,
    })
}
