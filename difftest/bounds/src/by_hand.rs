//! The table of [`crate::network`] once more, one element at a time. A radius that is wider than its rule says proves
//! less than it should, and no run would notice.

use crate::Tensors;
use crate::network::{self, Bounds, From};
use crate::rules::{Errors, gamma};
use crate::testing::{self, inputs, spec};
use ndarray::{Array2, Axis};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::LayerValues;
use reference::spec::{Head, ParameterPoints, ProbePoint, Rounding, TrainSpec};

const LAYERS: usize = 3;

/// One step of a network of three layers with the bounds of its tensors.
struct Step {
    spec: TrainSpec,
    start: Vec<LayerValues>,
    /// How far the other side's parameters may be from these; zero in a step that both sides start alike.
    apart: Vec<LayerValues>,
    per_term: bool,
    x: Array2<f64>,
    real: Tensors<f64>,
    bounds: Bounds,
}

impl Step {
    fn of(rounding: Rounding, extra_velocity_bits: u32, apart: bool, per_term: bool) -> Self {
        let spec = spec(Head::ReluProb, rounding, LAYERS, extra_velocity_bits);
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        let (parameters, mut batch) = inputs(&spec, &mut rng);
        // Pixels that are no whole number of units, as they are in a coarse format.
        batch.reals.column_mut(2).mapv_inplace(|x| x + 2f64.powi(-20));
        let real = testing::real(&spec, &parameters, &batch);
        let start = parameters.decode(spec.fixed, &spec.sgd);
        let mut off = |_: &f64| if apart { rng.random_range(0.0..1e-4) } else { 0.0 };
        let apart_by = start.iter().map(|l| LayerValues {
            weights: l.weights.map(&mut off),
            bias: l.bias.map(&mut off),
            ..l.clone()
        });
        let apart_by: Vec<_> = apart_by.collect();
        let bounds = if apart || per_term {
            let from = From { values: &start, radii: if apart { &apart_by } else { &[] }, per_term };
            let errors = Errors::new(rounding, spec.fixed);
            network::gradients(&spec, &errors, from, &batch.reals, &batch.labels, &real).unwrap()
        } else {
            network::step(&spec, &start, &batch.reals, &batch.labels, &real).unwrap()
        };
        Step { spec, start, apart: apart_by, per_term, x: batch.reals, real, bounds }
    }

    fn all() -> Vec<Self> {
        let kinds = [(0, false, false), (5, false, false), (0, true, false), (0, false, true), (0, true, true)];
        let of = |rounding| kinds.map(|(extra, apart, per_term)| Step::of(rounding, extra, apart, per_term));
        Rounding::ALL.into_iter().flat_map(of).collect()
    }

    /// The largest error of one truncation.
    fn truncation(&self) -> f64 {
        let units = if self.spec.rounding == Rounding::Nearest { 0.5 } else { 1.0 };
        units / self.spec.fixed.one() as f64
    }

    /// The largest error of the truncations of a dot product.
    fn truncations(&self, terms: usize) -> f64 {
        if self.per_term { terms as f64 * self.truncation() } else { self.truncation() }
    }

    /// Magnitude and radius of an element of a layer's input.
    fn input(&self, l: usize, row: usize, k: usize) -> (f64, f64) {
        if l > 1 {
            let point = ProbePoint::Activation(l - 1);
            return (self.real[&point][[row, k]].abs(), self.bounds[&point].radius[[row, k]]);
        }
        let pixel = self.x[[row, k]];
        let whole = (pixel * self.spec.fixed.one() as f64).fract() == 0.0;
        (pixel, if whole { 0.0 } else { 0.5 / self.spec.fixed.one() as f64 })
    }

    /// Magnitude and radius of an element of the gradient of a layer's output.
    fn gradient(&self, l: usize, row: usize, k: usize) -> (f64, f64) {
        let point = if l == LAYERS { ProbePoint::HeadGradient } else { ProbePoint::ActivationGradient(l) };
        (self.real[&point][[row, k]].abs(), self.bounds[&point].radius[[row, k]])
    }

    /// Every element of a tensor has the radius that its rule says, but for the rounding of f64 itself.
    fn keeps(&self, point: ProbePoint, rule: impl Fn(usize, usize) -> f64) {
        for ((i, k), &radius) in self.bounds[&point].radius.indexed_iter() {
            let rule = rule(i, k);
            assert!((radius - rule).abs() <= 1e-12 * rule, "{point}[{i}, {k}]: {radius:e}, by its rule {rule:e}");
        }
    }
}

#[test]
fn forward_radii_are_those_of_the_table() {
    for step in Step::all() {
        for l in 1..=LAYERS {
            let (inputs, _) = step.spec.network.shape(l);
            let (layer, apart, g) = (&step.start[l - 1], &step.apart[l - 1], gamma(inputs + 2));
            let pre = if l == LAYERS { ProbePoint::Logits } else { ProbePoint::PreActivation(l) };
            step.keeps(pre, |row, j| {
                let term = |k: usize| {
                    let (x, dx) = step.input(l, row, k);
                    (dx + g * x) * layer.weights[[k, j]].abs() + (x + dx) * apart.weights[[k, j]]
                };
                let bias = g * layer.bias[j].abs() + apart.bias[j];
                (0..inputs).map(term).sum::<f64>() + bias + step.truncations(inputs)
            });
            if l < LAYERS {
                step.keeps(ProbePoint::Activation(l), |row, j| {
                    let (z, dz) = (step.real[&pre][[row, j]], step.bounds[&pre].radius[[row, j]]);
                    if z < 0.0 { (z + dz).max(0.0) } else { dz }
                });
            }
        }
    }
}

#[test]
fn gradients_radii_are_those_of_the_table() {
    for step in Step::all() {
        let batch = step.x.nrows();
        let own = gamma(batch + 2);
        for l in 1..=LAYERS {
            step.keeps(ProbePoint::WeightGradient(l), |k, j| {
                let term = |row: usize| {
                    let ((x, dx), (g, dg)) = (step.input(l, row, k), step.gradient(l, row, j));
                    x * (dg + own * g) + dx * (g + dg)
                };
                (0..batch).map(term).sum()
            });
            step.keeps(ProbePoint::BiasGradient(l), |_, j| {
                let term = |row: usize| step.gradient(l, row, j);
                (0..batch).map(term).map(|(g, dg)| dg + own * g).sum()
            });
        }
    }
}

#[test]
fn radii_through_a_layer_are_those_of_the_table() {
    for step in Step::all() {
        for l in 2..=LAYERS {
            let (_, outputs) = step.spec.network.shape(l);
            let (weights, apart) = (&step.start[l - 1].weights, &step.apart[l - 1].weights);
            let pre = ProbePoint::PreActivation(l - 1);
            step.keeps(ProbePoint::ActivationGradient(l - 1), |row, k| {
                let (z, dz) = (step.real[&pre][[row, k]], step.bounds[&pre].radius[[row, k]]);
                assert!(z.abs() > dz, "undecided: choose another seed");
                let term = |j: usize| {
                    let (g, dg) = step.gradient(l, row, j);
                    (dg + gamma(outputs + 2) * g) * weights[[k, j]].abs() + (g + dg) * apart[[k, j]]
                };
                let sum: f64 = (0..outputs).map(term).sum();
                if z > 0.0 && sum > 0.0 { sum + step.truncations(outputs) } else { 0.0 }
            });
        }
    }
}

#[test]
fn radii_of_an_update_are_those_of_the_table() {
    for step in Step::all().iter().filter(|step| step.bounds.contains_key(&ProbePoint::Weights(1))) {
        let sgd = &step.spec.sgd;
        let units = sgd.units(step.spec.fixed).unwrap();
        let rate = sgd.learning_rate / sgd.batch as f64;
        let (rate_off, momentum_off) = ((units.real_rate() - rate).abs(), (units.real_momentum() - sgd.momentum).abs());
        let truncation = step.truncation();
        let fresh = truncation / 2f64.powi(sgd.extra_velocity_bits as i32);
        for (l, layer) in (1..).zip(&step.start) {
            let row = |v: &ndarray::Array1<f64>| v.clone().insert_axis(Axis(0));
            let weights = (ParameterPoints::weights(l), layer.weights.clone(), layer.weight_velocity.clone());
            let bias = (ParameterPoints::bias(l), row(&layer.bias), row(&layer.bias_velocity));
            for (ParameterPoints { gradient, velocity, value }, w, v) in [weights, bias] {
                step.keeps(velocity, |i, k| {
                    let (v, d) = (v[[i, k]].abs(), step.real[&gradient][[i, k]].abs());
                    let product = units.real_rate() * step.bounds[&gradient].radius[[i, k]];
                    let own = gamma(8) * (rate * d + sgd.momentum * v);
                    v * momentum_off + d * rate_off + product + fresh + own
                });
                step.keeps(value, |i, k| {
                    let (after, radius) = (step.real[&velocity][[i, k]], step.bounds[&velocity].radius[[i, k]]);
                    let again = if sgd.extra_velocity_bits > 0 { truncation } else { 0.0 };
                    radius + again + gamma(8) * (w[[i, k]].abs() + after.abs())
                });
            }
        }
    }
}
