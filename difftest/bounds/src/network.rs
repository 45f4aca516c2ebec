//! The walk through one training step: one rule an operation of the arithmetic, in the order in which the integer model
//! computes.
//!
//! Both sides start from the same parameters, exactly, unless [`From`] says how far they are apart, as after steps that
//! each side took on its own: |x| dw + dx dw and db are added then. For every probed tensor the walk gives a radius r
//! with |fixed point - f64| <= r, element by element, where the centre is the f64 side's own value (its rounding is
//! part of r). A walk's input is the f64 side's probes: the radius of a tensor is computed from the tensors that go
//! *into* the operation, never from its result.
//!
//! With dx, dw the radii of x, w, t the truncation (1 unit probabilistic, 1/2 nearest), and gamma the relative error of
//! an f64 sum:
//!
//! | operation | rule |
//! | --- | --- |
//! | Z = trunc(X W + b) | (dX + gamma \|X\|) \|W\| + gamma \|b\| + t, W and b being exact; 0 where every product is 0 |
//! | X = ReLU(Z) | max(0, z + dz) - max(0, z) for z < 0, else dz: ReLU never widens |
//! | M = \[Z > 0\] | decided if \|z\| > dz; otherwise both branches are listed |
//! | head | [`crate::head`] |
//! | dW = X^T G | (dX)^T (\|G\| + dG) + \|X\|^T (dG + gamma \|G\|), not truncated |
//! | db = sum G | sum dG + gamma sum \|G\| |
//! | G' = M trunc(G W^T) | (dG + gamma \|G\|) \|W\|^T + t, times M; undecided: 0 or that |
//! | V = trunc(M V - c dW) | \|v\| \|M - momentum\| + \|dW\| \|c - rate\| + c ddW + t: the encodings' errors, never more than promised ([`crate::encoding`]) |
//! | W = W + V | dV (with extra velocity bits: + t) |
//!
//! A sum whose every product is exactly 0 on both sides loses nothing: Z is then b itself, a gradient or velocity is 0,
//! and truncation, which keeps multiples of 2^f as they are, is exact. So a padded row (all zero) or a batch that moves
//! no weight leaves nothing undecided.
//!
//! Products of radii and magnitudes are f64 matrix products themselves; all summands are non-negative, so one factor
//! 1 + gamma(2n + 16) rounds them up. Source: Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.3
//! (running error analysis).

use crate::Tensors;
use crate::branch::{Ambiguity, Branch};
use crate::encoding;
use crate::head::{Decision, HeadRules, RowEnclosure};
use crate::interval::Interval;
use crate::row;
use crate::rules::{Errors, gamma};
use ndarray::{Array2, Axis, Zip};
use reference::fixed::LayerValues;
use reference::spec::{ParameterPoints, ProbePoint, SpecError, TrainSpec};
use std::collections::BTreeMap;

/// The bound of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounded {
    /// Largest distance from the f64 value, real; for elements that depend on an undecided comparison the distance to
    /// the farthest branch.
    pub radius: Array2<f64>,
    /// The undecided comparisons that this tensor depends on directly.
    pub ambiguous: Vec<Ambiguity>,
}

/// The bounds of all tensors of a step.
pub type Bounds = BTreeMap<ProbePoint, Bounded>;

/// Bounds of one step from parameters `start` on the batch `x` (exact reals) with `labels`, given the f64 side's
/// probes.
///
/// # Errors
/// The optimiser's constants cannot be encoded.
///
/// # Panics
/// If `real` lacks a probe or a shape does not fit: the caller's mistake.
pub fn step(
    spec: &TrainSpec,
    start: &[LayerValues],
    x: &Array2<f64>,
    labels: &[usize],
    real: &Tensors<f64>,
) -> Result<Bounds, SpecError> {
    let errors = Errors::new(spec.rounding, spec.fixed);
    let mut bounds = gradients(spec, &errors, From { values: start, radii: &[], per_term: false }, x, labels, real)?;
    update(spec, start, real, &errors, &mut bounds)?;
    Ok(bounds)
}

/// Where a step starts, and how often it truncates.
#[derive(Debug, Clone, Copy)]
pub struct From<'a> {
    /// The f64 side's parameters.
    pub values: &'a [LayerValues],
    /// How far those of the fixed-point side may be from them, real; empty if they are the same. Only radii of weights
    /// and biases matter here.
    pub radii: &'a [LayerValues],
    /// Whether each term of a dot product is truncated, not its sum.
    pub per_term: bool,
}

impl From<'_> {
    /// Truncations of a dot product of `terms` terms.
    fn truncations(&self, terms: usize) -> f64 {
        if self.per_term { terms as f64 } else { 1.0 }
    }
}

/// Bounds of all tensors before the update, for an arithmetic whose truncations and functions have the given errors.
///
/// # Errors
/// Never today; the update's constants are not needed.
///
/// # Panics
/// If `real` lacks a probe or a shape does not fit: the caller's mistake.
pub fn gradients(
    spec: &TrainSpec,
    errors: &Errors,
    from: From,
    x: &Array2<f64>,
    labels: &[usize],
    real: &Tensors<f64>,
) -> Result<Bounds, SpecError> {
    let mut bounds = Bounds::new();
    let magnitude: Vec<_> = from.values.iter().map(|l| l.weights.mapv(f64::abs)).collect();
    let inputs = forward((spec, errors), (from, &magnitude), x, real, &mut bounds);
    head((spec, errors), labels, real, &mut bounds);
    backward(errors, (from, &magnitude), &inputs, real, &mut bounds);
    Ok(bounds)
}

/// Magnitudes and radii of a layer's input, both (batch, in) and real.
type Input = (Array2<f64>, Array2<f64>);

/// Pre-activations, activations and logits. Returns the input of every layer.
fn forward(
    (spec, errors): (&TrainSpec, &Errors),
    (from, magnitude): (From, &[Array2<f64>]),
    x: &Array2<f64>,
    real: &Tensors<f64>,
    bounds: &mut Bounds,
) -> Vec<Input> {
    let layers = from.values.len();
    // Pixels are exact from f = 8 on; below that each is encoded, which keeps what is a whole number of units.
    let units = spec.fixed.one() as f64;
    let encode = |v: f64| if (v * units).fract() == 0.0 { 0.0 } else { errors.encode };
    let mut inputs = vec![(x.mapv(f64::abs), x.mapv(encode))];
    for l in 1..=layers {
        let (x_abs, dx) = &inputs[l - 1];
        let n = x_abs.ncols();
        let g = gamma(n + 2);
        let mut dz = (dx + &(x_abs * g)).dot(&magnitude[l - 1]);
        if let Some(off) = from.radii.get(l - 1) {
            dz = dz + (x_abs + dx).dot(&off.weights) + &off.bias;
        }
        let bias = &from.values[l - 1].bias;
        let truncate = errors.truncate * from.truncations(n);
        for mut row in dz.rows_mut() {
            Zip::from(&mut row).and(bias).for_each(|d, b| *d = lossy(*d, outward(*d + g * b.abs() + truncate, n)));
        }
        if l == layers {
            bounds.insert(ProbePoint::Logits, certain(dz));
            break;
        }
        let z = &real[&ProbePoint::PreActivation(l)];
        let activation =
            Zip::from(z).and(&dz).map_collect(|&z, &d| if z < 0.0 { outward((z + d).max(0.0), 1) } else { d });
        inputs.push((real[&ProbePoint::Activation(l)].mapv(f64::abs), activation.clone()));
        bounds.insert(ProbePoint::PreActivation(l), certain(dz));
        bounds.insert(ProbePoint::Activation(l), certain(activation));
    }
    inputs
}

/// Gradients of weights, biases and activations, from the last layer to the first.
fn backward(
    errors: &Errors,
    (from, magnitude): (From, &[Array2<f64>]),
    inputs: &[Input],
    real: &Tensors<f64>,
    bounds: &mut Bounds,
) {
    let (layers, batch) = (from.values.len(), inputs[0].0.nrows());
    // |G| and dG of the layer at hand.
    let mut g_abs = real[&ProbePoint::HeadGradient].mapv(f64::abs);
    let mut dg = bounds[&ProbePoint::HeadGradient].radius.clone();
    for l in (1..=layers).rev() {
        let (x_abs, dx) = &inputs[l - 1];
        let dg_wide = &dg + &(&g_abs * gamma(batch + 2));
        let mut dw = x_abs.t().dot(&dg_wide);
        if dx.iter().any(|&d| d != 0.0) {
            dw = dw + dx.t().dot(&(&g_abs + &dg));
        }
        bounds.insert(ProbePoint::WeightGradient(l), certain(dw.mapv(|d| outward(d, batch))));
        let db = dg_wide.sum_axis(Axis(0)).insert_axis(Axis(0)).mapv(|d| outward(d, batch));
        bounds.insert(ProbePoint::BiasGradient(l), certain(db));
        if l == 1 {
            break;
        }
        let classes = g_abs.ncols();
        let mut unmasked = (&dg + &(&g_abs * gamma(classes + 2))).dot(&magnitude[l - 1].t());
        if let Some(off) = from.radii.get(l - 1) {
            unmasked = unmasked + (&g_abs + &dg).dot(&off.weights.t());
        }
        let truncate = errors.truncate * from.truncations(classes);
        let unmasked = unmasked.mapv(|d| lossy(d, outward(d + truncate, classes)));
        let gradient_above = if l == layers { ProbePoint::HeadGradient } else { ProbePoint::ActivationGradient(l) };
        let value = real[&gradient_above].dot(&from.values[l - 1].weights.t());
        let (z, dz) = (ProbePoint::PreActivation(l - 1), &bounds[&ProbePoint::PreActivation(l - 1)].radius);
        let masked = mask((&real[&z], dz), (&value, &unmasked), &real[&ProbePoint::ActivationGradient(l - 1)]);
        g_abs = real[&ProbePoint::ActivationGradient(l - 1)].mapv(f64::abs);
        dg = masked.radius.clone();
        bounds.insert(ProbePoint::ActivationGradient(l - 1), masked);
    }
}

/// The radius of a truncated sum of products whose error before truncation is `sum`: where that is 0 every product is,
/// for each has an error in f64, and nothing is cut off.
fn lossy(sum: f64, radius: f64) -> f64 {
    if sum == 0.0 { 0.0 } else { radius }
}

/// Rounds up what was computed with sums of `n` non-negative products in f64.
fn outward(v: f64, n: usize) -> f64 {
    v * (1.0 + gamma(2 * n + 16))
}

fn certain(radius: Array2<f64>) -> Bounded {
    Bounded { radius, ambiguous: Vec::new() }
}

/// The gradient through a ReLU, f64's being `masked`: `value` within its radius where Z > 0, exactly 0 elsewhere.
fn mask(
    (z, dz): (&Array2<f64>, &Array2<f64>),
    (value, unmasked): (&Array2<f64>, &Array2<f64>),
    masked: &Array2<f64>,
) -> Bounded {
    let columns = z.ncols();
    let mut ambiguous = Vec::new();
    let radius = Array2::from_shape_fn(z.dim(), |at| {
        let (z, dz, r) = (z[at], dz[at], unmasked[at]);
        if z > dz {
            return r;
        }
        if z <= -dz {
            return 0.0;
        }
        let open = Interval::around(value[at], r);
        ambiguous.push(Ambiguity {
            elements: vec![at.0 * columns + at.1],
            jumps: vec![!open.contains(0.0)],
            distance: z.abs(),
            branches: vec![Branch(vec![Interval::ZERO]), Branch(vec![open])],
        });
        open.hull(Interval::ZERO).distance(Interval::point(masked[at]))
    });
    Bounded { radius, ambiguous }
}

/// The head, row by row: the fixed-point enclosure around the logits' radii against the real enclosure at the logits
/// themselves.
fn head((spec, errors): (&TrainSpec, &Errors), labels: &[usize], real: &Tensors<f64>, bounds: &mut Bounds) {
    let logits = &real[&ProbePoint::Logits];
    let radii = bounds[&ProbePoint::Logits].radius.clone();
    let (batch, classes) = logits.dim();
    let (fixed_rules, real_rules) = (HeadRules::with(spec, *errors), HeadRules::real(spec));
    let points: Vec<ProbePoint> = real.keys().filter(|point| row::of_head(point)).copied().collect();
    let mut out: Vec<_> = points.iter().map(|point| certain(Array2::zeros(real[point].dim()))).collect();
    // The reference's own rounding: a few dozen operations an element; softmax's argument, at most 745 before exp is 0,
    // weighs most.
    let reference_error = gamma(classes + 2048);

    for (row, &label) in labels.iter().enumerate() {
        let x: Vec<f64> = logits.row(row).to_vec();
        let boxes: Vec<_> = x.iter().zip(radii.row(row)).map(|(&x, &d)| Interval::around(x, d)).collect();
        let decisions = fixed_rules.decide(&x, &boxes);
        let branches = fixed_rules.branches(&boxes, label, &decisions);
        let own = real_rules.at_point(&x, label);
        let jump = real_rules.at_threshold(&x, label, &decisions);
        let distance = decisions
            .iter()
            .zip(&x)
            .filter(|(d, _)| **d == Decision::Either)
            .map(|(_, x)| (x - fixed_rules.threshold()).abs())
            .fold(f64::INFINITY, f64::min);

        for (point, tensor) in points.iter().zip(&mut out) {
            let mut differing = Vec::new();
            for (k, c) in own.of(point).iter().enumerate() {
                let first = branches[0].of(point)[k];
                let hull = branches.iter().fold(first, |h, b| h.hull(b.of(point)[k]));
                let at = row::place(point, batch, row, k);
                let slack = reference_error * (1.0 + c.hi.abs().max(c.lo.abs()));
                tensor.radius[at] = hull.distance(*c) * (1.0 + gamma(4)) + slack;
                let jumps = jump.iter().any(|b| b.of(point)[k] != jump[0].of(point)[k]);
                if jumps || branches.iter().any(|b| b.of(point)[k] != first) {
                    differing.push((k, at.0 * tensor.radius.ncols() + at.1, jumps));
                }
            }
            if !differing.is_empty() {
                let values = |b: &RowEnclosure| Branch(differing.iter().map(|d| b.of(point)[d.0]).collect());
                tensor.ambiguous.push(Ambiguity {
                    elements: differing.iter().map(|d| d.1).collect(),
                    jumps: differing.iter().map(|d| d.2).collect(),
                    distance,
                    branches: branches.iter().map(values).collect(),
                });
            }
        }
    }
    bounds.extend(points.into_iter().zip(out));
}

/// The rules of an update, element by element. All numbers are real.
struct UpdateRules {
    /// The learning rate of the real side, divided by the batch.
    rate: f64,
    /// The largest encoded rate.
    coded_rate: f64,
    momentum: f64,
    /// How far the encoded rate and momentum may be off.
    rate_off: f64,
    momentum_off: f64,
    /// Error of the velocity's truncation, at the velocity's scale.
    velocity_truncation: f64,
    /// Error of the truncation that brings a velocity to the weights' scale; 0 if there is none.
    weight_truncation: f64,
    /// f64: v' = momentum v - rate dW is at most six roundings from exact, w' one more.
    g: f64,
}

impl UpdateRules {
    fn new(spec: &TrainSpec, errors: &Errors) -> Result<Self, SpecError> {
        let (rate, momentum) = (encoding::rate(spec)?, encoding::momentum(spec)?);
        let extra_bits = spec.sgd.extra_velocity_bits;
        Ok(UpdateRules {
            rate: rate.real,
            coded_rate: rate.promised(),
            momentum: spec.sgd.momentum,
            rate_off: rate.slack(),
            momentum_off: momentum.slack(),
            velocity_truncation: errors.truncate * 2f64.powi(-(extra_bits as i32)),
            weight_truncation: if extra_bits > 0 { errors.truncate } else { 0.0 },
            g: gamma(8),
        })
    }

    /// The radius of a velocity that was `v`, from a gradient with the given radius.
    fn velocity(&self, v: f64, gradient: f64, radius: f64) -> f64 {
        if v == 0.0 && gradient == 0.0 && radius == 0.0 {
            return 0.0;
        }
        let product = self.rate * gradient.abs();
        let kept = self.momentum * v.abs();
        let encodings = v.abs() * self.momentum_off + gradient.abs() * self.rate_off;
        let value = encodings + self.coded_rate * radius + self.velocity_truncation;
        outward(value + self.g * (product + kept), 4)
    }

    /// The radius of a weight that was `w`, from its new velocity `v` with the given radius.
    fn weight(&self, w: f64, v: f64, radius: f64) -> f64 {
        if v == 0.0 && radius == 0.0 {
            return 0.0;
        }
        outward(radius + self.weight_truncation + self.g * (w.abs() + v.abs()), 4)
    }
}

/// The tensors of a layer that an update changes, each with its velocity and value before the update.
fn updated(l: usize, layer: &LayerValues) -> [(ParameterPoints, Array2<f64>, Array2<f64>); 2] {
    let row = |v: &ndarray::Array1<f64>| v.clone().insert_axis(Axis(0));
    [
        (ParameterPoints::weights(l), layer.weight_velocity.clone(), layer.weights.clone()),
        (ParameterPoints::bias(l), row(&layer.bias_velocity), row(&layer.bias)),
    ]
}

/// Section 12. All four tensors of every layer.
fn update(
    spec: &TrainSpec,
    start: &[LayerValues],
    real: &Tensors<f64>,
    errors: &Errors,
    bounds: &mut Bounds,
) -> Result<(), SpecError> {
    let rules = UpdateRules::new(spec, errors)?;
    for (l, layer) in (1..).zip(start) {
        for (ParameterPoints { gradient, velocity, value }, v, w) in updated(l, layer) {
            let dv = Zip::from(&v)
                .and(&real[&gradient])
                .and(&bounds[&gradient].radius)
                .map_collect(|&v, &gradient, &r| rules.velocity(v, gradient, r));
            let dw = Zip::from(&w).and(&real[&velocity]).and(&dv).map_collect(|&w, &v, &r| rules.weight(w, v, r));
            bounds.insert(velocity, certain(dv));
            bounds.insert(value, certain(dw));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{self, Comparison};
    use crate::testing::{self, Integer, inputs, spec};
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;
    use reference::fixed::{Coins, Tape};
    use reference::spec::{Head, Rounding};

    /// Steps in lock-step with coins of every kind; all tensors together.
    fn compare(spec: &TrainSpec, seed: u64) -> BTreeMap<ProbePoint, Comparison> {
        let mut all: BTreeMap<ProbePoint, Comparison> = BTreeMap::new();
        let (start, batch) = inputs(spec, &mut ChaCha12Rng::seed_from_u64(seed));
        for coins in [Coins::Extreme { up: false }, Coins::Extreme { up: true }, Coins::seeded(seed)] {
            let mut parameters = start.clone();
            let mut integer = Integer::with_coins(spec.clone(), coins);
            for step in 0..3 {
                integer.load(&parameters);
                let real = testing::real(spec, &parameters, &batch);
                let units = integer.step(&batch);
                assert_eq!(integer.violations.total(), 0, "{:?}", integer.violations.violations());
                let layers = parameters.decode(spec.fixed, &spec.sgd);
                let bounds = super::step(spec, &layers, &batch.reals, &batch.labels, &real).unwrap();
                assert!(bounds.keys().eq(real.keys()) && bounds.keys().eq(units.keys()), "every probe has a bound");
                for (point, bounded) in &bounds {
                    let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
                    let comparison = compare::tensor(step, &real[point], &units[point], scale, bounded);
                    all.entry(*point).or_insert_with(Comparison::empty).merge(comparison);
                }
                parameters = integer.parameters();
            }
        }
        all
    }

    #[test]
    fn no_coin_takes_any_tensor_of_any_network_outside_its_bound() {
        for head in Head::ALL {
            for rounding in Rounding::ALL {
                for layers in 1..=3 {
                    for seed in 0..4 {
                        let extra = if seed == 3 { 6 } else { 0 };
                        for (point, c) in compare(&spec(head, rounding, layers, extra), seed) {
                            assert_eq!(
                                c.outside, 0,
                                "{head} {rounding} {layers} layers, seed {seed}: {point} {:?}",
                                c.first_outside
                            );
                            assert!(c.max_bound.is_finite(), "{head} {point}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_bound_of_a_sum_is_near_what_coins_can_do() {
        // One layer, all floors or all ceilings: logits are off by almost a unit, and the bound is a unit.
        let c = &compare(&spec(Head::Softmax, Rounding::Probabilistic, 1, 0), 9)[&ProbePoint::Logits];
        assert!(c.closest > 0.95, "closest {}", c.closest);
        let c = &compare(&spec(Head::Softmax, Rounding::Nearest, 1, 0), 9)[&ProbePoint::Logits];
        assert!(c.closest > 0.95, "closest {}", c.closest);
    }

    /// Padded rows under weights without biases: every side has exactly 0 there, and nothing hangs on rounding.
    #[test]
    fn exact_zeros_are_exact_and_decided() {
        for rounding in Rounding::ALL {
            for (layers, extra) in [(1, 0), (2, 0), (3, 6)] {
                let spec = spec(Head::Softmax, rounding, layers, extra);
                let (mut start, mut batch) = inputs(&spec, &mut ChaCha12Rng::seed_from_u64(5));
                for layer in &mut start.layers {
                    layer.bias.fill(0);
                    layer.weight_velocity.fill(0);
                    layer.bias_velocity.fill(0);
                }
                for mut row in batch.units.rows_mut().into_iter().take(20) {
                    row.fill(0);
                }
                batch.units.column_mut(3).fill(0);
                batch.reals = batch.units.mapv(|u| u as f64 / spec.fixed.one() as f64);
                let mut integer = Integer::with_coins(spec.clone(), Coins::Extreme { up: true });
                if rounding == Rounding::Nearest {
                    integer = Integer::with_coins(spec.clone(), Coins::Tape(Tape::default()));
                }
                integer.load(&start);
                let real = testing::real(&spec, &start, &batch);
                let units = integer.step(&batch);
                let parameters = start.decode(spec.fixed, &spec.sgd);
                let bounds = step(&spec, &parameters, &batch.reals, &batch.labels, &real).unwrap();
                for (point, bounded) in &bounds {
                    let scale = point.scale(spec.fixed, extra);
                    let c = compare::tensor(0, &real[point], &units[point], scale, bounded);
                    assert_eq!(c.outside, 0, "{rounding} {layers} {point} {:?}", c.first_outside);
                    let of_padding = |a: &Ambiguity| a.elements.iter().any(|&e| e / bounded.radius.ncols() < 20);
                    assert!(!bounded.ambiguous.iter().any(of_padding), "{rounding} {layers} {point}");
                    let first_layer =
                        |p: &ProbePoint| matches!(p, ProbePoint::WeightVelocity(1) | ProbePoint::Weights(1));
                    if first_layer(point) {
                        assert!(bounded.radius.row(3).iter().all(|&r| r == 0.0), "a pixel that is never lit: {point}");
                        assert!(bounded.radius.row(4).iter().any(|&r| r > 0.0), "{point}");
                    }
                    if let ProbePoint::PreActivation(_) | ProbePoint::Logits = point {
                        let (padded, lit) = bounded.radius.view().split_at(Axis(0), 20);
                        assert!(padded.iter().all(|&r| r == 0.0) && lit.iter().any(|&r| r > 0.0), "{point}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_masked_element_is_free_only_between_its_branches() {
        let z = ndarray::array![[1.0, -1.0, 0.001, -0.001]];
        let dz = Array2::from_elem((1, 4), 0.01);
        let value = Array2::from_elem((1, 4), 5.0);
        let masked = ndarray::array![[5.0, 0.0, 5.0, 0.0]];
        let bounded = mask((&z, &dz), (&value, &Array2::from_elem((1, 4), 0.5)), &masked);
        assert_eq!((bounded.radius[[0, 0]], bounded.radius[[0, 1]]), (0.5, 0.0));
        assert!((5.0..5.01).contains(&bounded.radius[[0, 2]]), "zero is 5 away");
        assert!((5.5..5.51).contains(&bounded.radius[[0, 3]]), "5 + 0.5 is the farthest from zero");
        assert_eq!(bounded.ambiguous.iter().map(|a| a.elements[0]).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(bounded.ambiguous[0].branch_of(|_| 4.6), Some(1));
        assert_eq!(bounded.ambiguous[0].branch_of(|_| 2.5), None, "between the branches is neither");
    }

    /// Undecided as soon as the fixed-point value may be 0 or less where f64's is above it, or the other way round.
    #[test]
    fn a_mask_is_decided_beyond_the_radius_of_its_operand() {
        let one = |v: f64| Array2::from_elem((1, 1), v);
        let of = |z: f64, dz: f64| {
            let masked = if z > 0.0 { 3.0 } else { 0.0 };
            let found = mask((&one(z), &one(dz)), (&one(3.0), &one(0.25)), &one(masked));
            (found.radius[[0, 0]], found.ambiguous.len())
        };
        assert_eq!(of(1.0, 0.5), (0.25, 0));
        assert_eq!(of(0.5f64.next_up(), 0.5), (0.25, 0));
        let (radius, undecided) = of(0.5, 0.5);
        assert!(radius >= 3.0 && undecided == 1, "it may be 0, and is then masked");
        let (radius, undecided) = of(-0.4, 0.5);
        assert!(radius >= 3.25 && undecided == 1, "it may be above 0, and is then not masked");
        assert_eq!((of(-0.5, 0.5), of(-1.0, 0.5)), ((0.0, 0), (0.0, 0)));
    }

    /// One logit's box reaches the threshold of its comparison: the row's gradient is that of either outcome, and
    /// nothing between the two.
    #[test]
    fn an_undecided_logit_makes_its_row_ambiguous_and_no_other() {
        let spec = spec(Head::ReluProbCut, Rounding::Nearest, 1, 0);
        let (parameters, batch) = inputs(&spec, &mut ChaCha12Rng::seed_from_u64(6));
        let real = testing::real(&spec, &parameters, &batch);
        let off = (real[&ProbePoint::Logits][[2, 0]] - 0.1).abs();
        let ambiguous = |radius: f64| {
            let mut radii = Array2::zeros(real[&ProbePoint::Logits].dim());
            radii[[2, 0]] = radius;
            let mut bounds = Bounds::from([(ProbePoint::Logits, certain(radii))]);
            head((&spec, &Errors::new(spec.rounding, spec.fixed)), &batch.labels, &real, &mut bounds);
            bounds.remove(&ProbePoint::HeadGradient).unwrap().ambiguous
        };
        assert!(ambiguous(off / 2.0).is_empty());
        let found = ambiguous(off + 0.01);
        assert_eq!(found.len(), 1);
        let Ambiguity { elements, jumps, distance, branches } = &found[0];
        assert!(elements.iter().all(|e| e / 6 == 2) && (elements[0], jumps[0]) == (12, true), "{elements:?} {jumps:?}");
        assert!((distance - off).abs() < 1e-12 && branches.len() == 2 && branches[0] != branches[1]);
    }
}
