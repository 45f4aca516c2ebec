//! Inputs by seed: batches of the training set and initial weights, identical for all sides.

use crate::compare::real;
use crate::error::Error;
use crate::side::Batch;
use fixtures::Split;
use ndarray::{Array1, Array2};
use reference::fixed::{LayerValues, Parameters};
use reference::spec::fault::{Fault, planted};
use reference::spec::{FixedSpec, TrainSpec};

/// Pixels of the given rows, (rows, inputs), scale f: pixel / 256, exact from f = 8 on, to the nearest below.
pub fn units(split: &Split, rows: &[u32], fixed: FixedSpec) -> Array2<i64> {
    let units = split.units(rows, &every_pixel(|p| fixed.encode_pixel(p)));
    matrix(split, rows, units)
}

/// Pixels of the given rows as the reals that [`units`] stand for, (rows, inputs).
pub fn rounded(split: &Split, rows: &[u32], fixed: FixedSpec) -> Array2<f64> {
    let reals = split.reals(rows, &every_pixel(|p| real(fixed.encode_pixel(p), fixed.fraction_bits)));
    matrix(split, rows, reals)
}

/// Rows of a split as a batch.
pub fn rows(split: &Split, rows: &[u32], fixed: FixedSpec) -> Batch {
    Batch {
        units: units(split, rows, fixed),
        reals: matrix(split, rows, split.reals(rows, &every_pixel(|p| f64::from(p) / 256.0))),
        labels: labels(split, rows),
    }
}

/// The classes of the given rows.
pub fn labels(split: &Split, rows: &[u32]) -> Vec<usize> {
    let mut labels: Vec<_> = rows.iter().map(|&r| usize::from(split.labels[r as usize])).collect();
    if planted(Fault::LabelShift) {
        let classes = split.labels.iter().map(|&l| usize::from(l) + 1).max().unwrap_or(1);
        labels.iter_mut().for_each(|l| *l = (*l + 1) % classes);
    }
    labels
}

/// A number for each of the 256 pixels that there are.
fn every_pixel<T>(of: impl Fn(u8) -> T) -> [T; 256] {
    std::array::from_fn(|pixel| of(pixel as u8))
}

fn matrix<T>(split: &Split, rows: &[u32], pixels: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((rows.len(), split.inputs()), pixels).expect("an image has `inputs` pixels")
}

/// The training batches, endless: one seeded shuffle an epoch.
pub fn batches(rows: usize, batch: usize, seed: u64) -> impl Iterator<Item = Vec<u32>> {
    batches_after(0, rows, batch, seed)
}

/// The batches from the one after the first `done` on.
pub fn batches_after(done: u32, rows: usize, batch: usize, seed: u64) -> impl Iterator<Item = Vec<u32>> {
    let epoch = rows.div_ceil(batch.max(1)).max(1);
    let (first, rest) = (done as usize / epoch, done as usize % epoch);
    (first as u64..).flat_map(move |epoch| reference::batches::epoch(rows, batch, seed, epoch)).skip(rest)
}

/// Glorot-uniform weights rounded to units, biases and velocities zero.
///
/// # Errors
/// A network whose weights do not fit the format.
pub fn initial(spec: &TrainSpec, seed: u64) -> Result<Parameters, Error> {
    let layers: Vec<_> = reference::batches::glorot_uniform(&spec.network, seed)
        .into_iter()
        .map(|weights| LayerValues {
            bias: Array1::zeros(weights.ncols()),
            weight_velocity: Array2::zeros(weights.dim()),
            bias_velocity: Array1::zeros(weights.ncols()),
            weights,
        })
        .collect();
    Ok(Parameters::encode(&layers, spec.fixed, &spec.sgd)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_takes_the_batches_that_come_next() {
        let all: Vec<_> = batches(10, 4, 7).take(9).collect();
        for done in 0..9 {
            assert!(batches_after(done, 10, 4, 7).take(9 - done as usize).eq(all[done as usize..].iter().cloned()));
        }
        assert!(batches_after(u32::MAX, 10, 4, 7).next().is_some(), "at once, however many were done");
    }
}
