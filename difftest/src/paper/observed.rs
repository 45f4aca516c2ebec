//! The observations of one attempt, epoch by epoch: from the traces of the real or integer side, or from the opened
//! weights of the secure side.

use super::cell::{Epoch, Id, Side};
use crate::check::divergence::Evidence;
use crate::compare::real;
use crate::side::{Spent, Tensors};
use crate::timing::Took;
use crate::trace::Trace;
use ndarray::Array2;
use reference::f64::RealHead;
use reference::fixed::LayerValues;
use reference::spec::{FixedSpec, ProbePoint, TrainSpec};
use std::collections::BTreeMap;

/// The observations of an attempt so far.
#[derive(Debug)]
pub struct Observed {
    side: Side,
    head: RealHead,
    fixed: FixedSpec,
    evidence: Evidence,
    step: usize,
    epoch: Epoch,
    /// Rows whose losses the sum in `epoch` is of.
    finite_losses: usize,
    /// Of each hidden layer, the units that were positive for some row of the epoch.
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

/// The tensors that a plaintext side must show.
pub fn shown(point: &ProbePoint) -> bool {
    use ProbePoint::{Activation, Bias, HeadGradient, Logits, Weights};
    matches!(point, Logits | Weights(_) | Bias(_) | HeadGradient | Activation(_))
}

/// Raises a maximum; what is not finite counts as the largest number.
fn raise(largest: &mut Option<f64>, value: f64) {
    let value = if value.is_finite() { value } else { f64::MAX };
    *largest = Some(largest.map_or(value, |l| l.max(value)));
}

/// The largest magnitude; NaN does not get lost in it.
fn largest<T: Copy>(tensor: &Array2<T>, real: impl Fn(T) -> f64) -> f64 {
    tensor.iter().fold(0.0f64, |m, &v| if real(v).abs() <= m { m } else { real(v).abs() })
}

impl Observed {
    /// Nothing seen yet.
    pub fn new(id: &Id, spec: &TrainSpec) -> Self {
        Observed {
            side: id.side,
            head: RealHead::of(spec),
            fixed: spec.fixed,
            evidence: Evidence::new(id.side.name(), spec.fixed),
            step: 0,
            epoch: NO_EPOCH,
            finite_losses: 0,
            alive: Vec::new(),
            left_range: None,
            violations: BTreeMap::new(),
            logits_leave: None,
        }
    }

    /// The evidence for a verdict.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Ends an epoch: what was seen in it.
    pub fn take_epoch(&mut self) -> Epoch {
        let mut epoch = std::mem::replace(&mut self.epoch, NO_EPOCH);
        epoch.loss = epoch.loss.map(|sum| sum / self.finite_losses.max(1) as f64).filter(|_| self.finite_losses > 0);
        epoch.dead_units = self.alive.drain(..).map(|layer| layer.iter().filter(|alive| !**alive).count()).collect();
        self.finite_losses = 0;
        epoch
    }

    /// Looks at a step of a plaintext side.
    pub fn see(&mut self, trace: &Trace) {
        let f = self.fixed.fraction_bits;
        let Spent { seconds, .. } = if self.side == Side::Real {
            self.tensors(&trace.real.tensors, &trace.batch.labels, |v| v);
            trace.real.spent
        } else {
            self.tensors(&trace.integer.tensors, &trace.batch.labels, |v| real(v, f));
            trace.integer.spent
        };
        if let Some(violation) = trace.violations.violations().first() {
            self.evidence.violated(self.step, violation.to_string());
            self.left_range = Some(violation.to_string());
            self.violations.clone_from(trace.violations.counts());
        }
        self.epoch.seconds += seconds;
        self.epoch.steps += 1;
        self.step += 1;
    }

    /// Counts steps of the secure side, which shows nothing of them but what they took.
    pub fn trained(&mut self, steps: usize, took: &Took) {
        self.epoch.seconds += took.wall;
        if let (Some(own), Some(others)) = (took.processor, took.others) {
            *self.epoch.cpu_seconds.get_or_insert(0.0) += own;
            *self.epoch.other_cpu_seconds.get_or_insert(0.0) += others;
        }
        self.epoch.steps += steps;
        self.step += steps;
    }

    /// Looks at the weights at the end of an epoch of a side that shows nothing during it, and at what they make of
    /// `x`, (rows, inputs), real.
    pub fn opened(&mut self, layers: &[LayerValues], x: &Array2<f64>) {
        let mut tensors = Tensors::new();
        for (l, layer) in (1..).zip(layers) {
            tensors.insert(ProbePoint::Weights(l), layer.weights.clone());
            tensors.insert(ProbePoint::Bias(l), layer.bias.clone().insert_axis(ndarray::Axis(0)));
        }
        let mut input = x.clone();
        for (l, layer) in (1..).zip(layers) {
            let z = input.dot(&layer.weights) + &layer.bias;
            if l == layers.len() {
                tensors.insert(ProbePoint::Logits, z);
                break;
            }
            input = z.mapv_into(|v| v.max(0.0));
            tensors.insert(ProbePoint::Activation(l), input.clone());
        }
        // The step that has just been done.
        self.step = self.step.saturating_sub(1);
        self.tensors(&tensors, &[], |v| v);
        self.step += 1;
    }

    /// Looks at the tensors of a step; without labels there are no losses.
    fn tensors<T: Copy>(&mut self, tensors: &Tensors<T>, labels: &[usize], real: impl Fn(T) -> f64) {
        let limit = self.fixed.limit() as f64 / self.fixed.one() as f64;
        // Tensors beyond the format and layers that are dead: what is evidence.
        let mut striking = Tensors::new();
        for (&point, tensor) in tensors {
            match point {
                ProbePoint::Logits | ProbePoint::Weights(_) | ProbePoint::Bias(_) => {
                    let largest = largest(tensor, &real);
                    let beyond = largest.is_nan() || largest >= limit;
                    if point == ProbePoint::Logits {
                        raise(&mut self.epoch.largest_logit, largest);
                        self.losses(&tensor.map(|&v| real(v)), labels);
                        if beyond {
                            self.logits_leave.get_or_insert(self.step);
                        }
                    } else {
                        raise(&mut self.epoch.largest_weight, largest);
                    }
                    if beyond {
                        striking.insert(point, tensor.map(|&v| real(v)));
                    }
                }
                ProbePoint::HeadGradient => raise(&mut self.epoch.largest_gradient, largest(tensor, &real)),
                ProbePoint::Activation(layer) => {
                    let alive = self.activation(layer, &tensor.map(|&v| real(v) != 0.0));
                    if !alive {
                        striking.insert(point, tensor.map(|&v| real(v)));
                    }
                }
                _ => {}
            }
        }
        self.evidence.step(self.step, &striking, |v| *v);
    }

    /// Notes which units of a hidden layer are positive for some row; whether any is.
    fn activation(&mut self, layer: usize, positive: &Array2<bool>) -> bool {
        self.alive.resize_with(self.alive.len().max(layer), || vec![false; positive.ncols()]);
        let alive = &mut self.alive[layer - 1];
        for row in positive.rows() {
            row.iter().zip(alive.iter_mut()).for_each(|(&positive, alive)| *alive |= positive);
        }
        positive.iter().any(|&p| p)
    }

    /// Adds the losses of the rows of a batch.
    fn losses(&mut self, logits: &Array2<f64>, labels: &[usize]) {
        if labels.is_empty() {
            return;
        }
        let (mut sum, mut finite, mut infinite) = (0.0, 0, 0);
        for (row, &label) in logits.rows().into_iter().zip(labels) {
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
}
