//! The training watch: what tells a training that works from one that only seems to. Losses, accuracy against chance,
//! dead units, updates that vanish, velocities that rounding keeps from decaying, how much of their range logits and
//! weights use. It watches and judges nothing: the check is `divergence`.

use crate::compare::real;
use crate::error::Error;
use crate::side::real::Real;
use crate::side::{Batch, Tensors};
use ndarray::{Array2, Axis};
use reference::f64::{Network, RealHead};
use reference::fixed::Parameters;
use reference::spec::{ProbePoint, Rounding, TrainSpec};
use serde::Serialize;

/// One layer of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Layer {
    /// Layer, from 1.
    pub layer: usize,
    /// Units without a positive activation in any row, and all units; hidden layers only.
    pub dead: Option<(usize, usize)>,
    /// Part of the weights whose gradient is not zero and whose velocity is below 2^-f: their update vanishes.
    pub vanishing: Option<f64>,
    /// Part of the weights whose velocity would never decay: rounding momentum times it gives it back. Nearest rounding
    /// of fixed point only.
    pub stuck: Option<f64>,
    /// The largest such velocity, units.
    pub stuck_up_to: i64,
}

/// A mean loss, real; `None` where it is infinite or not a number.
pub type Loss = Option<f64>;

/// The health of one side's training. A value that the side does not show is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// `real`, `integer` or `secure`.
    pub side: &'static str,
    /// Mean loss at the beginning and at the end; `None` for a head without one.
    pub loss: Option<(Loss, Loss)>,
    /// Part of the test set classified correctly at the end.
    pub accuracy: f64,
    /// Largest |logit|, real.
    pub largest_logit: f64,
    /// Largest |weight| or |bias|, real.
    pub largest_weight: f64,
    /// The first magnitude that fixed point does not hold, real.
    pub limit: f64,
    /// Every layer, in the last step seen.
    pub layers: Vec<Layer>,
}

impl Health {
    /// Nothing seen yet.
    pub fn new(side: &'static str, spec: &TrainSpec) -> Self {
        let limit = real(spec.fixed.limit(), spec.fixed.fraction_bits);
        Health { side, loss: None, accuracy: 0.0, largest_logit: 0.0, largest_weight: 0.0, limit, layers: Vec::new() }
    }

    /// Looks at a step of a side whose tensors are reals.
    ///
    /// # Errors
    /// Labels that do not fit.
    pub fn reals(&mut self, spec: &TrainSpec, labels: &[usize], tensors: &Tensors<f64>) -> Result<(), Error> {
        let scale = 2f64.powi((spec.fixed.fraction_bits + spec.sgd.extra_velocity_bits) as i32);
        self.layers = layers(spec, tensors, |v| v * scale, false)?;
        self.values(spec, labels, tensors, |v| v)
    }

    /// Looks at a step of a side whose tensors are units.
    ///
    /// # Errors
    /// Labels that do not fit.
    pub fn units(&mut self, spec: &TrainSpec, labels: &[usize], tensors: &Tensors<i64>) -> Result<(), Error> {
        self.layers = layers(spec, tensors, |v| v as f64, true)?;
        self.values(spec, labels, tensors, |v| real(v, spec.fixed.fraction_bits))
    }

    fn values<T: Copy>(
        &mut self,
        spec: &TrainSpec,
        labels: &[usize],
        tensors: &Tensors<T>,
        value: impl Fn(T) -> f64,
    ) -> Result<(), Error> {
        for (point, tensor) in tensors {
            let largest = match point {
                ProbePoint::Logits => &mut self.largest_logit,
                ProbePoint::Weights(_) | ProbePoint::Bias(_) => &mut self.largest_weight,
                _ => continue,
            };
            *largest = tensor.iter().fold(*largest, |m, &v| greater(m, value(v)));
        }
        if let Some(logits) = tensors.get(&ProbePoint::Logits) {
            let loss = RealHead::of(spec).mean_loss(&logits.map(|&v| value(v)), labels)?;
            self.lose(loss);
        }
        Ok(())
    }

    /// Notes a mean loss.
    fn lose(&mut self, loss: Option<f64>) {
        let Some(loss) = loss else { return };
        let loss = loss.is_finite().then_some(loss);
        self.loss = Some((self.loss.map_or(loss, |(first, _)| first), loss));
    }

    /// Looks at a network and what it makes of `rows`.
    ///
    /// # Errors
    /// Shapes or labels that do not fit.
    pub fn network(&mut self, spec: &TrainSpec, network: &Network, rows: &Batch) -> Result<(), Error> {
        let depth = network.layers.len();
        self.layers.clear();
        let mut input = rows.reals.clone();
        for (l, layer) in (1..).zip(&network.layers) {
            self.largest_weight =
                layer.weights.iter().chain(&layer.bias).fold(self.largest_weight, |m, &v| greater(m, v));
            let z = input.dot(&layer.weights) + &layer.bias;
            if l == depth {
                self.largest_logit = z.iter().fold(self.largest_logit, |m, &v| greater(m, v));
            }
            input = z.mapv_into(|v| v.max(0.0));
            let dead = (l < depth).then(|| dead(&input));
            self.layers.push(Layer { layer: l, dead, vanishing: None, stuck: None, stuck_up_to: 0 });
        }
        self.lose(network.mean_loss(&RealHead::of(spec), &rows.reals, &rows.labels)?);
        Ok(())
    }

    /// Looks at opened parameters: all that a side shows which trains without opening anything else.
    ///
    /// # Errors
    /// Shapes or labels that do not fit.
    pub fn opened(&mut self, spec: &TrainSpec, parameters: &Parameters, rows: &Batch) -> Result<(), Error> {
        self.network(spec, Real::new(spec.clone(), parameters)?.network(), rows)?;
        let velocities = (1..).zip(&parameters.layers);
        let velocities = velocities.map(|(l, layer)| (ProbePoint::WeightVelocity(l), layer.weight_velocity.clone()));
        for (seen, velocity) in self.layers.iter_mut().zip(layers(spec, &velocities.collect(), |v| v as f64, true)?) {
            (seen.stuck, seen.stuck_up_to) = (velocity.stuck, velocity.stuck_up_to);
        }
        Ok(())
    }
}

/// The larger magnitude; not a number, once there, stays.
fn greater(most: f64, v: f64) -> f64 {
    if most.is_nan() || v.abs() <= most { most } else { v.abs() }
}

/// Columns that are zero in every row, and all columns.
fn dead<T: Default + PartialEq>(active: &Array2<T>) -> (usize, usize) {
    let zero = T::default();
    (active.axis_iter(Axis(1)).filter(|unit| unit.iter().all(|v| *v == zero)).count(), active.ncols())
}

/// Every layer of one step. `units` turns a velocity into units of 2^-(f + x); `fixed`: whether the side rounds.
///
/// # Errors
/// Learning rate or momentum that fixed point cannot represent.
pub fn layers<T: Copy + Default + PartialEq>(
    spec: &TrainSpec,
    tensors: &Tensors<T>,
    units: impl Fn(T) -> f64,
    fixed: bool,
) -> Result<Vec<Layer>, Error> {
    let sgd = spec.sgd.units(spec.fixed)?;
    let update = 2f64.powi(sgd.extra as i32);
    let half = 1i128 << (sgd.shift - 1);
    let kept = |v: i64| v != 0 && (i128::from(sgd.momentum) * i128::from(v) + half) >> sgd.shift == v.into();
    let layer = |layer| {
        let velocity = tensors.get(&ProbePoint::WeightVelocity(layer))?;
        let n = velocity.len().max(1) as f64;
        let vanishing = tensors.get(&ProbePoint::WeightGradient(layer)).map(|gradient| {
            let vanishes = |(v, g): &(&T, &T)| units(**v).abs() < update && **g != T::default();
            velocity.iter().zip(gradient).filter(vanishes).count() as f64 / n
        });
        let stuck: Option<Vec<i64>> = (fixed && spec.rounding == Rounding::Nearest)
            .then(|| velocity.iter().map(|&v| units(v) as i64).filter(|&v| kept(v)).map(i64::abs).collect());
        Some(Layer {
            layer,
            dead: tensors.get(&ProbePoint::Activation(layer)).map(dead),
            vanishing,
            stuck: stuck.as_ref().map(|s| s.len() as f64 / n),
            stuck_up_to: stuck.and_then(|s| s.into_iter().max()).unwrap_or(0),
        })
    };
    Ok((1..=spec.network.layers()).filter_map(layer).collect())
}

/// A value of every layer that has one, in per cent.
pub fn percentages(layers: &[Layer], of: impl Fn(&Layer) -> Option<f64>) -> String {
    let all: Vec<_> = layers.iter().filter_map(of).map(|v| format!("{:.1}", 100.0 * v)).collect();
    if all.is_empty() { "-".into() } else { format!("{} %", all.join(" / ")) }
}

/// Dead units of every hidden layer.
pub fn dead_units(layers: &[Layer]) -> String {
    let all: Vec<_> = layers.iter().filter_map(|l| l.dead).map(|(dead, of)| format!("{dead}/{of}")).collect();
    if all.is_empty() { "-".into() } else { all.join(" ") }
}

/// First and last loss.
pub fn losses(loss: Option<(Loss, Loss)>) -> String {
    let one = |v: Loss| v.map_or("infinite".into(), |v| format!("{v:.4}"));
    loss.map_or("-".into(), |(first, last)| format!("{} -> {}", one(first), one(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small as config;
    use ndarray::array;
    use reference::spec::Head;

    #[test]
    fn velocities_up_to_four_units_are_stuck_under_nearest_rounding_only() {
        let spec = config(Head::Softmax, Rounding::Nearest).spec;
        let tensors = Tensors::from([
            (ProbePoint::WeightVelocity(1), array![[0i64, 0, 4, -4, 5, -6, 9, 100]]),
            (ProbePoint::WeightGradient(1), array![[0, 9, 0, 0, 0, 0, 0, 0]]),
            (ProbePoint::Activation(1), array![[0, 3], [0, 0]]),
        ]);
        let of = |spec: &TrainSpec, fixed| layers(spec, &tensors, |v| v as f64, fixed).unwrap()[0];
        let nearest = of(&spec, true);
        // M is rounded down here: M 5 stays just below 4.5 and goes to 4.
        assert_eq!((nearest.stuck, nearest.stuck_up_to), (Some(2.0 / 8.0), 4));
        assert_eq!((nearest.vanishing, nearest.dead), (Some(1.0 / 8.0), Some((1, 2))));
        assert_eq!(of(&spec, false).stuck, None, "f64 does not round");
        let spec = TrainSpec { rounding: Rounding::Probabilistic, ..spec };
        assert_eq!(of(&spec, true).stuck, None, "fair coins let every velocity decay");
    }

    #[test]
    fn with_extra_velocity_bits_an_update_vanishes_below_a_unit_of_the_weights() {
        let mut spec = config(Head::Softmax, Rounding::Nearest).spec;
        spec.sgd.extra_velocity_bits = 8;
        let tensors = Tensors::from([
            (ProbePoint::WeightVelocity(1), array![[255i64, -255, 256, 0]]),
            (ProbePoint::WeightGradient(1), array![[1, 1, 1, 0]]),
        ]);
        assert_eq!(layers(&spec, &tensors, |v| v as f64, true).unwrap()[0].vanishing, Some(0.5));
    }

    #[test]
    fn first_and_last_loss_largest_values_and_what_is_not_a_number() {
        let spec = config(Head::Softmax, Rounding::Nearest).spec;
        let classes = spec.network.classes();
        let mut side = Health::new("real", &spec);
        for height in [0.0, 5.0, f64::NAN] {
            let logits = Array2::from_shape_fn((1, classes), |(_, c)| if c == 0 { height } else { 0.0 });
            side.reals(&spec, &[0], &Tensors::from([(ProbePoint::Logits, logits)])).unwrap();
        }
        let (first, last) = side.loss.unwrap();
        assert!((first.unwrap() - (classes as f64).ln()).abs() < 1e-12);
        assert_eq!(last, None);
        assert!(side.largest_logit.is_nan());
        assert_eq!(losses(side.loss), format!("{:.4} -> infinite", (classes as f64).ln()));
        let none = Health::new("real", &config(Head::ReluGrad, Rounding::Nearest).spec);
        assert_eq!(losses(none.loss), "-");
    }
}
