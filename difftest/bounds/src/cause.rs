//! The cause of every difference: secure - f64, element by element, as a sum of parts that each have one cause.
//!
//! A chain of plaintext models leads from f64 to secure. Neighbours differ in one respect, which is the cause of what
//! they differ by; the parts add up because the chain telescopes. All of them walk one training step from the same
//! opened parameters:
//!
//! | model | constants | comparisons | functions | truncations | cause of the difference to the next |
//! | --- | --- | --- | --- | --- | --- |
//! | f64 | real | own | exact | none | *encoding* |
//! | coded | encoded | own | exact | none | *branch* |
//! | decided | encoded | the integer model's | exact | none | *approximation* |
//! | unrounded | encoded | the integer model's | the fixed-point algorithms | none | *rounding* |
//! | integer | encoded | own | the fixed-point algorithms | as recorded | *protocol* |
//! | secure | | | | | |
//!
//! * *encoding*: learning rate, momentum, eps and data in fixed point; also f64's own rounding, some 1e-11 units.
//! * *branch*: a comparison (ReLU, threshold, maximum, a sum below one unit) that the integer model decides otherwise
//!   than real numbers do.
//! * *approximation*: exp by a polynomial of the encoded log2 e, cut off below half a unit, and 1/s by Goldschmidt's
//!   iteration.
//! * *rounding*: truncation, what it does inside those functions included.
//! * *range*: instead of branch, approximation and rounding, downstream of an operand that the integer model's monitor
//!   saw out of its range.
//! * *protocol*: secure differs from the integer model: always a fault.
//!
//! Each walk is computed as a change of its neighbour's (Z' = Z + (X' - X) W, ...): equal operands give equal results,
//! and small parts do not vanish in the rounding of large ones.

mod row;

use crate::compare::real as decoded;
use crate::operation::affects;
use crate::{Batch, Tensors, row as head_row};
use ndarray::{Array2, Axis, Zip};
use rayon::prelude::*;
use reference::fixed::{LayerValues, Monitor};
use reference::spec::{HeadPoint, ParameterPoints, ProbePoint, SpecError, TrainSpec};
use row::Decisions;
use serde::Serialize;
use std::collections::BTreeMap;

/// Why secure and f64 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Constants and data in fixed point.
    Encoding,
    /// The rounding of truncations.
    Rounding,
    /// Algorithms in place of exp and 1/s.
    Approximation,
    /// An operand out of its range, upstream.
    Range,
    /// A comparison that went the other way.
    Branch,
    /// Secure is not the integer model.
    Protocol,
}

impl Cause {
    /// All, in the order of the report.
    pub const ALL: [Cause; 6] =
        [Cause::Encoding, Cause::Rounding, Cause::Approximation, Cause::Range, Cause::Branch, Cause::Protocol];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Encoding => "encoding",
            Cause::Rounding => "rounding",
            Cause::Approximation => "approximation",
            Cause::Range => "range",
            Cause::Branch => "branch",
            Cause::Protocol => "protocol",
        }
    }
}

/// One number an element, summed up. Real.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sums {
    /// With signs: divided by the elements it is the bias.
    pub sum: f64,
    /// The sum of magnitudes, real.
    pub magnitude: f64,
    /// The largest magnitude.
    pub largest: f64,
}

impl Sums {
    fn add(&mut self, v: f64) {
        self.merge(&Sums { sum: v, magnitude: v.abs(), largest: v.abs() });
    }

    fn merge(&mut self, o: &Sums) {
        self.sum += o.sum;
        self.magnitude += o.magnitude;
        self.largest = self.largest.max(o.largest);
    }
}

/// The differences of one tensor by cause, over one step or, merged, over many. Real.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TensorBudget {
    /// The number of elements booked.
    pub elements: u64,
    /// secure - f64.
    pub total: Sums,
    /// Its parts, in the order of [`Cause::ALL`].
    pub parts: [Sums; 6],
}

impl TensorBudget {
    /// The part of one cause.
    pub fn part(&self, cause: Cause) -> &Sums {
        &self.parts[cause as usize]
    }

    /// Adds another step, or another tensor.
    pub fn merge(&mut self, o: &TensorBudget) {
        self.elements += o.elements;
        self.total.merge(&o.total);
        self.parts.iter_mut().zip(&o.parts).for_each(|(a, b)| a.merge(b));
    }
}

/// The budget of every tensor of one step.
pub type Budget = BTreeMap<ProbePoint, TensorBudget>;

/// The three models between f64 and the integer model, for one step.
#[derive(Debug)]
pub struct Chain {
    coded: Tensors<f64>,
    decided: Tensors<f64>,
    unrounded: Tensors<f64>,
}

/// Which comparisons, functions and constants a walk uses: one row of the table above.
struct Walk<'a> {
    spec: &'a TrainSpec,
    start: &'a [LayerValues],
    labels: &'a [usize],
    /// X_0 here, and the neighbour's.
    data: (&'a Array2<f64>, &'a Array2<f64>),
    /// The tensors of the neighbour.
    near: &'a Tensors<f64>,
    /// Comparisons decided by these tensors instead of the walk's own.
    decisions: Option<&'a Tensors<i64>>,
    /// Whether the neighbour has the same functions, so that a row with the same operands and decisions is the same.
    same_functions: bool,
    /// Encoded lr / batch and momentum, minus the neighbour's.
    constants: (f64, f64),
    /// Encoded lr / batch.
    rate: f64,
}

impl Chain {
    /// Walks one step from `start`. `real` are f64's tensors, `integer` the integer model's, of the same step.
    ///
    /// # Errors
    /// The optimiser's constants cannot be encoded.
    ///
    /// # Panics
    /// If a tensor is missing or has another shape than the specification says: the caller's mistake.
    pub fn walk(
        spec: &TrainSpec,
        start: &[LayerValues],
        batch: &Batch,
        real: &Tensors<f64>,
        integer: &Tensors<i64>,
    ) -> Result<Self, SpecError> {
        let units = spec.sgd.units(spec.fixed)?;
        let (rate, momentum) = (units.real_rate(), units.real_momentum());
        let off = (rate - spec.sgd.learning_rate / spec.sgd.batch as f64, momentum - spec.sgd.momentum);
        let data = batch.units.mapv(|u| decoded(u, spec.fixed.fraction_bits));
        let coded = Walk {
            spec,
            start,
            labels: &batch.labels,
            data: (&data, &batch.reals),
            near: real,
            decisions: None,
            same_functions: true,
            constants: off,
            rate,
        };
        let coded_tensors = coded.tensors();
        let decided = Walk {
            data: (&data, &data),
            near: &coded_tensors,
            decisions: Some(integer),
            constants: (0.0, 0.0),
            ..coded
        };
        let decided_tensors = decided.tensors();
        let unrounded = Walk { near: &decided_tensors, same_functions: false, ..decided }.tensors();
        Ok(Chain { coded: coded_tensors, decided: decided_tensors, unrounded })
    }

    /// The parts of every element of one tensor, in the order of [`Cause::ALL`], row-major. `out_of_range`: whether an
    /// operand upstream was.
    pub fn parts(
        &self,
        point: &ProbePoint,
        (real, integer, secure): (&Array2<f64>, &Array2<i64>, &Array2<i64>),
        scale: u32,
        out_of_range: bool,
    ) -> impl Iterator<Item = [f64; 6]> {
        let (coded, decided, unrounded) = (&self.coded[point], &self.decided[point], &self.unrounded[point]);
        let plain = real.iter().zip(coded).zip(decided).zip(unrounded);
        plain.zip(integer).zip(secure).map(move |(((((&f, &c), &d), &u), &i), &s)| {
            let protocol = decoded(s.wrapping_sub(i), scale);
            let i = decoded(i, scale);
            match out_of_range {
                true => [c - f, 0.0, 0.0, i - c, 0.0, protocol],
                false => [c - f, i - u, u - d, 0.0, d - c, protocol],
            }
        })
    }
}

/// The budget of a step: every tensor that all three sides show and `wanted` asks for. `monitor` holds the step's range
/// violations.
///
/// # Errors
/// Those of [`Chain::walk`].
///
/// # Panics
/// As [`Chain::walk`].
pub fn step(
    spec: &TrainSpec,
    start: &[LayerValues],
    batch: &Batch,
    (real, integer, secure): (&Tensors<f64>, &Tensors<i64>, &Tensors<i64>),
    monitor: &Monitor,
    wanted: &(dyn Fn(&ProbePoint) -> bool + Sync),
) -> Result<Budget, SpecError> {
    let chain = Chain::walk(spec, start, batch, real, integer)?;
    let of = |(point, real): (&ProbePoint, &Array2<f64>)| {
        let (integer, secure) = (integer.get(point)?, secure.get(point)?);
        let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
        let out_of_range = monitor.counts().keys().any(|operation| affects(operation, point, start.len()));
        let mut sums = TensorBudget { elements: real.len() as u64, ..TensorBudget::default() };
        let totals = real.iter().zip(secure).map(|(f, &s)| decoded(s, scale) - f);
        for (parts, total) in chain.parts(point, (real, integer, secure), scale, out_of_range).zip(totals) {
            sums.total.add(total);
            sums.parts.iter_mut().zip(parts).for_each(|(sum, part)| sum.add(part));
        }
        Some((*point, sums))
    };
    Ok(real.par_iter().filter(|(point, _)| wanted(point)).filter_map(of).collect())
}

/// base + (x - x_near) w, and base itself where nothing moved.
fn moved(base: &Array2<f64>, x: &Array2<f64>, x_near: &Array2<f64>, w: ndarray::ArrayView2<f64>) -> Array2<f64> {
    if x == x_near { base.clone() } else { base + &(x - x_near).dot(&w) }
}

/// The input of a layer here, and the neighbour's.
type Input<'w> = (Array2<f64>, &'w Array2<f64>);

impl Walk<'_> {
    fn tensors(&self) -> Tensors<f64> {
        let mut out = Tensors::new();
        let (inputs, masks) = self.forward(&mut out);
        self.head(&mut out);
        self.backward(&mut out, &inputs, &masks);
        self.update(&mut out);
        out
    }

    /// The forward pass: (X_{l-1} here, the neighbour's) of every layer l, and the masks of the hidden layers.
    fn forward(&self, out: &mut Tensors<f64>) -> (Vec<Input<'_>>, Vec<Array2<bool>>) {
        let (near, layers) = (self.near, self.start.len());
        let mut inputs = vec![(self.data.0.clone(), self.data.1)];
        let mut masks: Vec<Array2<bool>> = Vec::new();
        for (l, layer) in (1..).zip(self.start) {
            let point = if l == layers { ProbePoint::Logits } else { ProbePoint::PreActivation(l) };
            let (x, x_near) = &inputs[l - 1];
            let z = moved(&near[&point], x, x_near, layer.weights.view());
            if l < layers {
                let mask = match self.decisions {
                    Some(integer) => integer[&point].mapv(|z| z > 0),
                    None => z.mapv(|z| z > 0.0),
                };
                let active = Zip::from(&z).and(&mask).map_collect(|&z, &m| if m { z } else { 0.0 });
                out.insert(ProbePoint::Activation(l), active.clone());
                inputs.push((active, &near[&ProbePoint::Activation(l)]));
                masks.push(mask);
            }
            out.insert(point, z);
        }
        (inputs, masks)
    }

    /// The backward pass, given what [`Walk::forward`] returned.
    fn backward(&self, out: &mut Tensors<f64>, inputs: &[Input<'_>], masks: &[Array2<bool>]) {
        let (near, layers) = (self.near, self.start.len());
        let mut gradient = ProbePoint::HeadGradient;
        for l in (1..=layers).rev() {
            let layer = &self.start[l - 1];
            let (g, g_near) = (&out[&gradient], &near[&gradient]);
            let (x, x_near) = &inputs[l - 1];
            let dg = g - g_near;
            let still = dg.iter().all(|&d| d == 0.0);
            let mut dw = near[&ProbePoint::WeightGradient(l)].clone();
            let mut db = near[&ProbePoint::BiasGradient(l)].clone();
            if !still {
                dw += &x_near.t().dot(&dg);
                db += &dg.sum_axis(Axis(0)).insert_axis(Axis(0));
            }
            if x != *x_near {
                dw += &(x - *x_near).t().dot(g);
            }
            if l > 1 {
                let below = ProbePoint::ActivationGradient(l - 1);
                let mask = &masks[l - 2];
                // X > 0 where the neighbour's mask is set, but for units of 0 and forced ones, whose gradient shows it
                // as well.
                let mut next = near[&below].clone();
                let delta = if still { Array2::zeros(next.dim()) } else { dg.dot(&layer.weights.t()) };
                let near_mask = self.near_mask(l - 1);
                let full = (*mask != near_mask).then(|| g.dot(&layer.weights.t()));
                for (at, value) in next.indexed_iter_mut() {
                    *value = match (mask[at], near_mask[at], &full) {
                        (false, ..) => 0.0,
                        (true, false, Some(full)) => full[at],
                        _ => *value + delta[at],
                    };
                }
                out.insert(below, next);
            }
            out.insert(ProbePoint::WeightGradient(l), dw);
            out.insert(ProbePoint::BiasGradient(l), db);
            gradient = ProbePoint::ActivationGradient(l - 1);
        }
    }

    /// The neighbour's mask of hidden layer `l`: the integer model's where it was decided by it, its own otherwise.
    fn near_mask(&self, l: usize) -> Array2<bool> {
        match (self.same_functions, self.decisions) {
            (false, Some(integer)) => integer[&ProbePoint::PreActivation(l)].mapv(|z| z > 0),
            _ => self.near[&ProbePoint::PreActivation(l)].mapv(|z| z > 0.0),
        }
    }

    fn head(&self, out: &mut Tensors<f64>) {
        let (spec, near) = (self.spec, self.near);
        let logits = out[&ProbePoint::Logits].clone();
        let points: Vec<ProbePoint> = near.keys().filter(|point| head_row::of_head(point)).copied().collect();
        let mut tensors: Vec<_> = points.iter().map(|p| near[p].clone()).collect();
        let batch = logits.nrows();
        let coded_eps = spec.epsilon_units() as f64 / spec.fixed.one() as f64;
        for (row, &label) in self.labels.iter().enumerate() {
            let x = logits.row(row).to_vec();
            let x_near = near[&ProbePoint::Logits].row(row).to_vec();
            let decisions = match self.decisions {
                Some(integer) => Decisions::integer(spec, &integer[&ProbePoint::Logits].row(row).to_vec()),
                None => Decisions::real(spec, coded_eps, &x),
            };
            let unit = 1.0 / spec.fixed.one() as f64;
            let vanishing = self.decisions.is_some() && near[&ProbePoint::Head(HeadPoint::Sum)][[row, 0]] < unit;
            if self.same_functions && x == x_near && !vanishing {
                let near_eps = if self.decisions.is_some() { coded_eps } else { spec.epsilon };
                if decisions.same_branches(&Decisions::real(spec, near_eps, &x)) {
                    continue;
                }
            }
            let values = row::values(spec, &x, label, &decisions, !self.same_functions);
            for (point, tensor) in points.iter().zip(&mut tensors) {
                for (k, &v) in values.of(point).iter().enumerate() {
                    tensor[head_row::place(point, batch, row, k)] = v;
                }
            }
        }
        out.extend(points.into_iter().zip(tensors));
    }

    fn update(&self, out: &mut Tensors<f64>) {
        let (off_rate, off_momentum) = self.constants;
        for (l, layer) in (1..).zip(self.start) {
            let row = |v: &ndarray::Array1<f64>| v.clone().insert_axis(Axis(0));
            let tensors = [
                (ParameterPoints::weights(l), layer.weight_velocity.clone()),
                (ParameterPoints::bias(l), row(&layer.bias_velocity)),
            ];
            for (ParameterPoints { gradient, velocity, value }, v) in tensors {
                let (d, d_near) = (&out[&gradient], &self.near[&gradient]);
                // momentum' v - rate' d' as a change of momentum v - rate d.
                let change = Zip::from(&v)
                    .and(d)
                    .and(d_near)
                    .map_collect(|&v, &d, &n| off_momentum * v - off_rate * n - self.rate * (d - n));
                let next = &self.near[&velocity] + &change;
                out.insert(value, &self.near[&value] + &change);
                out.insert(velocity, next);
            }
        }
    }
}

#[cfg(test)]
mod tests;
