//! The statistical bound: under probabilistic rounding, what the coins do but for a stated, tiny probability.
//!
//! The worst-case bound ([`crate::network`]) lets all coins conspire. Here the error of an element is split into D + N:
//! |D| <= `fixed` for every outcome of the coins, and N is *sub-Gaussian*, E exp(t N) <= exp(t^2 s^2 / 2) for every t,
//! with s the `deviation`. Then |error| <= `fixed` + k s but for probability 2 exp(-k^2 / 2) (Chernoff). [`factor`]
//! chooses k so that the sum over all elements of a run stays below 2^-40 (union bound, which needs no independence).
//! The smaller of both bounds is taken; where `fixed` alone reaches the worst case, that is used and s = 0.
//!
//! # Which independence is used
//! A truncation returns V / 2^s + xi units with xi = c - (V mod 2^s) / 2^s. Given V, and all that was computed before
//! V, the coin c is 1 with probability exactly (V mod 2^s) / 2^s, because it compares V with a fresh uniform mask; the
//! masks of different elements are independent. So
//! 1. given everything computed before it, xi has mean 0 and a range of width 1: sub-Gaussian with s = 1/2 (Hoeffding's
//!    lemma);
//! 2. given everything computed before a truncation, its elements' coins are independent;
//! 3. parameters are opened before a step, so forward, head and backward of one row use no coin of another row: rows
//!    are independent.
//!
//! Nothing is assumed of V mod 2^s, nor of the dependence between elements that share coins. Masks come from a cipher's
//! streams, for which uniform is the usual assumption.
//!
//! # Rules
//! With h = 1/2 unit, and T_a a bound on a coefficient a that holds for all earlier coins:
//!
//! | sum | deviation | why |
//! | --- | --- | --- |
//! | coins of one truncation, coefficients known before it | sqrt(sum T_a^2) h | martingale differences: Azuma and Hoeffding |
//! | what earlier coins did, plus new coins | sqrt(s_1^2 + s_2^2) | the same |
//! | parts of different rows | sqrt(sum s^2) | independent |
//! | anything else | sum \|a\| s | Hoelder: sub-Gaussian deviations obey the triangle inequality |
//!
//! Every tensor keeps two deviations, `fresh` (the coins of its own last truncation) and `inherited`. With g the f64
//! term of [`crate::network`]:
//!
//! | operation | fixed | deviation |
//! | --- | --- | --- |
//! | Z = trunc(X W + b) | D_X \|W\| + g | inherited^2 = fresh_X^2 W^2 + (inherited_X \|W\|)^2; fresh = h |
//! | X = ReLU(Z) | Z decided: times \[z > 0\]; undecided: the worst case | the same; undecided: 0 |
//! | G' = M trunc(G W^T) | D_G \|W\|^T + g, masked in the same way | as for Z |
//! | dW = X^T G | \|X\|^T D_G + D_X^T \|G\| + r_X^T r_G + g, r the worst case | sqrt(X^2^T s_G^2) + sqrt(s_X^2^T G^2) |
//! | db | column sums | square root of the sums of squares |
//! | V, W | encodings + c D_dW + g | sqrt((c s_dW)^2 + h^2 for each truncation) |
//!
//! *Heads.* The result is a smooth function F of the logits in the row's box (a row with an undecided comparison takes
//! the worst case). With e the logits' errors, F(x + e) - F(x) = J e + R: J at the f64 logits, so fixed \|J\| D_x,
//! inherited \|J\| s_x; R is deterministic:
//! * p = softmax(x): J_ij = p_i (d_ij - p_j); |R| <= 3 p_i max |e|^2, since p's second derivatives, p_i ((d_ij - p_j)
//!   (d_ik - p_k) - p_j (d_jk - p_k)), sum to at most p_i (4 (1 - p_i)^2 + 2 (1 - p_i^2)) <= 6 p_i in absolute value.
//!   exp(d_j) is off by eta_j = delta_j + coin, and v_i / S by (eta_i - p_i sum eta) / (S + sum eta): coefficients
//!   (d_ij - p_i) / S, known before these coins, and a remainder of at most (sum of coefficients times |eta|) (sum
//!   |eta|) / S.
//! * q = x_i / S: J_ij = (d_ij - q_i) / S over the A positive logits; |R| <= (A + q_i A^2) max |e|^2 / S^2.
//! * 1 / T: -1/T^2 for each term; |R| <= r_T^2 / (T^2 inf T), r_T the worst case of T; 1/T - 1/z likewise, with 1/z^2 -
//!   1/T^2 for the true logit. The coin of 1/T is one for all classes of a row, so it counts as inherited: weights of
//!   one sign add it up, and only Hoelder's rule allows for that.
//!
//! Everything inside exp and the inverse but the last truncation counts as fixed: it is relative, below 2^-19.
//!
//! Sources: Hoeffding (1963), *Probability inequalities for sums of bounded random variables*; Azuma (1967); Vershynin,
//! *High-Dimensional Probability*, section 2.5.

use crate::Tensors;
use crate::encoding;
use crate::head::{Decision, HeadRules};
use crate::interval::Interval;
use crate::network::Bounds;
use crate::rules::{Errors, gamma};
use ndarray::{Array2, ArrayView2, Axis, Zip};
use reference::fixed::LayerValues;
use reference::spec::{Head, HeadPoint, ParameterPoints, ProbePoint, Rounding, SpecError, TrainSpec};
use std::collections::BTreeMap;

/// log2 of the probability, over the coins of a whole run, that any element leaves its statistical bound by chance.
pub const LOG2_FAILURE: i32 = -40;

/// Radii of all tensors that have a statistical bound of their own.
pub type Radii = BTreeMap<ProbePoint, Array2<f64>>;

/// k: deviations that `comparisons` elements all keep but for probability 2^[`LOG2_FAILURE`].
pub fn factor(comparisons: u64) -> f64 {
    let ln_each = f64::from(LOG2_FAILURE) * std::f64::consts::LN_2 - (2.0 * comparisons.max(1) as f64).ln();
    (-2.0 * ln_each).sqrt()
}

/// D and the deviations of N for every element of a tensor, real.
#[derive(Debug, Clone, PartialEq)]
struct Split {
    fixed: Array2<f64>,
    /// Square of the deviation of the tensor's own last coins.
    fresh: Array2<f64>,
    /// Deviation of all earlier coins.
    inherited: Array2<f64>,
}

impl Split {
    fn zero(shape: (usize, usize)) -> Self {
        Split { fixed: Array2::zeros(shape), fresh: Array2::zeros(shape), inherited: Array2::zeros(shape) }
    }

    /// s^2.
    fn squared(&self) -> Array2<f64> {
        Zip::from(&self.fresh).and(&self.inherited).map_collect(|&f, &i| f + i * i)
    }

    /// Times a matrix of magnitudes, and truncated: `fixed` without the f64 term.
    fn product(&self, magnitude: ArrayView2<f64>, coin: f64) -> Self {
        if [&self.fixed, &self.fresh, &self.inherited].iter().all(|t| t.iter().all(|&v| v == 0.0)) {
            let mut none = Self::zero((self.fixed.nrows(), magnitude.ncols()));
            none.fresh.fill(coin * coin);
            return none;
        }
        let squares = self.fresh.dot(&magnitude.mapv(|w| w * w));
        let earlier = self.inherited.dot(&magnitude);
        let inherited = Zip::from(&squares).and(&earlier).map_collect(|&f, &i| (f + i * i).sqrt());
        let fresh = Array2::from_elem(inherited.dim(), coin * coin);
        Split { fixed: self.fixed.dot(&magnitude), fresh, inherited }
    }

    /// Through a mask decided where |z| > dz; elsewhere the worst case.
    fn masked(mut self, z: &Array2<f64>, dz: &Array2<f64>, worst: &Array2<f64>) -> Self {
        Zip::indexed(z).and(dz).and(worst).for_each(|at, &z, &dz, &worst| {
            if z <= dz {
                let undecided = z > -dz;
                (self.fixed[at], self.fresh[at], self.inherited[at]) = (if undecided { worst } else { 0.0 }, 0.0, 0.0);
            }
        });
        self
    }

    fn radius(&self, worst: &Array2<f64>, factor: f64) -> Array2<f64> {
        radius(&self.fixed, &self.squared(), worst, factor)
    }
}

/// min(worst case, fixed + k s).
fn radius(fixed: &Array2<f64>, squared: &Array2<f64>, worst: &Array2<f64>, factor: f64) -> Array2<f64> {
    Zip::from(fixed).and(squared).and(worst).map_collect(|&d, &s2, &worst| {
        // Sums of non-negative terms: a relative 1e-9 covers their rounding for every size that memory allows.
        let r = (d + factor * s2.sqrt()) * (1.0 + 1e-9);
        if r < worst { r } else { worst }
    })
}

/// Statistical radii of a step whose worst-case bounds are `worst`, each to be kept with `factor` deviations; `None`
/// under nearest rounding, which has no coins.
///
/// # Errors
/// The optimiser's constants cannot be encoded.
///
/// # Panics
/// If `real` or `worst` lacks a probe: the caller's mistake.
pub fn step(
    spec: &TrainSpec,
    start: &[LayerValues],
    x: &Array2<f64>,
    labels: &[usize],
    real: &Tensors<f64>,
    worst: &Bounds,
    factor: f64,
) -> Result<Option<Radii>, SpecError> {
    if spec.rounding != Rounding::Probabilistic {
        return Ok(None);
    }
    let mut walk = Walk::new(spec, start, real, worst, factor);
    let (inputs, logits) = walk.forward(x);
    let head = head(spec, labels, real, &logits, worst);
    let gradients = walk.backward(&inputs, head);
    let Walk { mut radii, .. } = walk;
    for (l, weights, biases) in gradients {
        let layer = &start[l - 1];
        let row = |v: &ndarray::Array1<f64>| v.clone().insert_axis(Axis(0));
        let (w, b) = (ParameterPoints::weights(l), ParameterPoints::bias(l));
        update(spec, w, (&layer.weight_velocity, &layer.weights), weights, (real, worst, factor), &mut radii)?;
        update(spec, b, (&row(&layer.bias_velocity), &row(&layer.bias)), biases, (real, worst, factor), &mut radii)?;
    }
    Ok(Some(radii))
}

/// Magnitudes of a layer's input, (batch, in), real, and its error.
type Input = (Array2<f64>, Split);

/// `fixed` and the square of the deviation of every element of a gradient.
type Sum = (Array2<f64>, Array2<f64>);

/// A walk through the layers of one step.
struct Walk<'a> {
    spec: &'a TrainSpec,
    start: &'a [LayerValues],
    real: &'a Tensors<f64>,
    worst: &'a Bounds,
    /// Deviations that each element keeps.
    factor: f64,
    errors: Errors,
    /// Deviation of one coin, real.
    coin: f64,
    /// Magnitudes of the weights of every layer.
    magnitude: Vec<Array2<f64>>,
    radii: Radii,
}

impl<'a> Walk<'a> {
    fn new(
        spec: &'a TrainSpec,
        start: &'a [LayerValues],
        real: &'a Tensors<f64>,
        worst: &'a Bounds,
        factor: f64,
    ) -> Self {
        let errors = Errors::new(spec.rounding, spec.fixed);
        let magnitude = start.iter().map(|l| l.weights.mapv(f64::abs)).collect();
        let coin = errors.unit / 2.0;
        Walk { spec, start, real, worst, factor, errors, coin, magnitude, radii: Radii::new() }
    }

    /// The worst case of a tensor.
    fn worst(&self, point: ProbePoint) -> &'a Array2<f64> {
        &self.worst[&point].radius
    }

    /// Keeps the radii of a tensor.
    fn keep(&mut self, point: ProbePoint, error: &Split) {
        let radius = error.radius(self.worst(point), self.factor);
        self.radii.insert(point, radius);
    }

    /// Whether the pixels are exact.
    fn exact_pixels(&self) -> bool {
        self.spec.fixed.fraction_bits >= 8
    }

    /// Forward: the input of every layer, and the logits.
    fn forward(&mut self, x: &Array2<f64>) -> (Vec<Input>, Split) {
        let layers = self.start.len();
        let mut data = Split::zero(x.dim());
        data.fixed.fill(if self.exact_pixels() { 0.0 } else { self.errors.encode });
        let mut inputs = vec![(x.mapv(f64::abs), data)];
        for l in 1..layers {
            let z = self.pre_activation(l, &inputs[l - 1]);
            let (pre, after) = (ProbePoint::PreActivation(l), ProbePoint::Activation(l));
            self.keep(pre, &z);
            let active = z.masked(&self.real[&pre], self.worst(pre), self.worst(after));
            self.keep(after, &active);
            inputs.push((self.real[&after].mapv(f64::abs), active));
        }
        let logits = self.pre_activation(layers, &inputs[layers - 1]);
        self.keep(ProbePoint::Logits, &logits);
        (inputs, logits)
    }

    /// The pre-activations of layer `l`, those of the last layer being the logits.
    fn pre_activation(&self, l: usize, (x_abs, input): &Input) -> Split {
        let magnitude = &self.magnitude[l - 1];
        let mut z = input.product(magnitude.view(), self.coin);
        if l == 1 && self.exact_pixels() {
            let point = if l == self.start.len() { ProbePoint::Logits } else { ProbePoint::PreActivation(l) };
            // All but one truncation of the worst case is f64's own.
            let own = |r: f64| (r - self.errors.truncate).max(0.0) + 4.0 * f64::EPSILON * r;
            z.fixed = self.worst(point).mapv(own);
        } else {
            let g = gamma(x_abs.ncols() + 2);
            let bias = self.start[l - 1].bias.mapv(|b| g * b.abs());
            z.fixed += &(x_abs.dot(magnitude) * g);
            z.fixed += &bias;
        }
        z
    }

    /// Backward, from the head's gradient `g`: the gradients of weights and biases of every layer, last layer first.
    fn backward(&mut self, inputs: &[Input], mut g: Split) -> Vec<(usize, Sum, Sum)> {
        let mut gradient = ProbePoint::HeadGradient;
        self.keep(gradient, &g);
        let mut sums = Vec::new();
        for l in (1..=self.start.len()).rev() {
            let g_abs = self.real[&gradient].mapv(f64::abs);
            let (weights, biases) = self.gradients(l, &inputs[l - 1], &g, (gradient, &g_abs));
            sums.push((l, weights, biases));
            if l > 1 {
                let (below, pre) = (ProbePoint::ActivationGradient(l - 1), ProbePoint::PreActivation(l - 1));
                let transposed = self.magnitude[l - 1].t();
                let mut next = g.product(transposed, self.coin);
                next.fixed += &(g_abs.dot(&transposed) * gamma(g_abs.ncols() + 2));
                g = next.masked(&self.real[&pre], self.worst(pre), self.worst(below));
                self.keep(below, &g);
                gradient = below;
            }
        }
        sums
    }

    /// The gradients of weights and biases of layer `l` from `g`, the gradient of its output.
    fn gradients(
        &self,
        l: usize,
        (x_abs, input): &Input,
        g: &Split,
        (gradient, g_abs): (ProbePoint, &Array2<f64>),
    ) -> (Sum, Sum) {
        let g_fixed = &g.fixed + &(g_abs * gamma(x_abs.nrows() + 2));
        let g_squared = g.squared();
        let mut dw_fixed = x_abs.t().dot(&g_fixed);
        let mut dw_deviation = x_abs.mapv(|v| v * v).t().dot(&g_squared).mapv(f64::sqrt);
        if l > 1 || !self.exact_pixels() {
            let r_x = if l == 1 { &input.fixed } else { self.worst(ProbePoint::Activation(l - 1)) };
            dw_fixed += &input.fixed.t().dot(g_abs);
            dw_fixed += &r_x.t().dot(self.worst(gradient));
            dw_deviation += &input.squared().t().dot(&g_abs.mapv(|v| v * v)).mapv(f64::sqrt);
        }
        let row = |t: &Array2<f64>| t.sum_axis(Axis(0)).insert_axis(Axis(0));
        ((dw_fixed, dw_deviation.mapv(|s| s * s)), (row(&g_fixed), row(&g_squared)))
    }
}

/// Gradient, velocity and value of one tensor.
fn update(
    spec: &TrainSpec,
    ParameterPoints { gradient, velocity, value }: ParameterPoints,
    (v, w): (&Array2<f64>, &Array2<f64>),
    (fixed, squared): (Array2<f64>, Array2<f64>),
    (real, worst, factor): (&Tensors<f64>, &Bounds, f64),
    radii: &mut Radii,
) -> Result<(), SpecError> {
    let (rate_encoding, momentum_encoding) = (encoding::rate(spec)?, encoding::momentum(spec)?);
    let (real_rate, rate) = (rate_encoding.real, rate_encoding.promised());
    let (rate_off, momentum_off) = (rate_encoding.slack(), momentum_encoding.slack());
    let extra_bits = spec.sgd.extra_velocity_bits;
    let g = gamma(8);
    let coin = 0.5 / spec.fixed.one() as f64;
    let own = coin * 2f64.powi(-(extra_bits as i32));
    let dv = Zip::from(v).and(&real[&gradient]).and(&fixed).map_collect(|&v, &d, &fixed| {
        let exact = real_rate * d.abs() + spec.sgd.momentum * v.abs();
        v.abs() * momentum_off + d.abs() * rate_off + rate * fixed + g * exact
    });
    let sv = squared.mapv(|s2| rate * rate * s2 + own * own);
    let dw = Zip::from(w).and(&dv).and(&real[&velocity]).map_collect(|&w, &d, &v| d + g * (w.abs() + v.abs()));
    let sw = if extra_bits > 0 { sv.mapv(|s2| s2 + coin * coin) } else { sv.clone() };
    for (point, fixed, squared) in [(gradient, fixed, squared), (velocity, dv, sv), (value, dw, sw)] {
        let r = radius(&fixed, &squared, &worst[&point].radius, factor);
        radii.insert(point, r);
    }
    Ok(())
}

/// The head's gradient.
fn head(spec: &TrainSpec, labels: &[usize], real: &Tensors<f64>, logits: &Split, worst: &Bounds) -> Split {
    let rules = HeadRules::fixed(spec);
    let (values, radii) = (&real[&ProbePoint::Logits], &worst[&ProbePoint::Logits].radius);
    let bounds = &worst[&ProbePoint::HeadGradient].radius;
    let deviation = logits.squared().mapv(f64::sqrt);
    let mut out = Split::zero(values.dim());
    // As in the worst case: the reference's own rounding.
    let own = gamma(values.ncols() + 2048);
    for (row, &label) in labels.iter().enumerate() {
        let logits = Logits {
            x: &values.row(row).to_vec(),
            fixed: &logits.fixed.row(row).to_vec(),
            deviation: &deviation.row(row).to_vec(),
            radius: &radii.row(row).to_vec(),
            label,
        };
        let elements = logits.gradient(spec, &rules);
        for i in 0..values.ncols() {
            let limit = bounds[[row, i]];
            let Element { fixed, fresh, inherited } = elements.as_ref().map_or(Element::NONE, |e| e[i]);
            let fixed = fixed + own * (1.0 + real[&ProbePoint::HeadGradient][[row, i]].abs());
            let usable = elements.is_some() && fixed < limit && inherited.is_finite();
            out.fixed[[row, i]] = if usable { fixed } else { limit };
            out.fresh[[row, i]] = if usable { fresh } else { 0.0 };
            out.inherited[[row, i]] = if usable { inherited } else { 0.0 };
        }
    }
    out
}

/// D, fresh^2 and inherited of one element.
#[derive(Debug, Clone, Copy)]
struct Element {
    fixed: f64,
    fresh: f64,
    inherited: f64,
}

impl Element {
    const NONE: Element = Element { fixed: 0.0, fresh: 0.0, inherited: 0.0 };
}

/// What is known of a row of logits.
struct Logits<'a> {
    x: &'a [f64],
    fixed: &'a [f64],
    deviation: &'a [f64],
    /// Worst case.
    radius: &'a [f64],
    label: usize,
}

impl Logits<'_> {
    /// `None` where a comparison is undecided.
    fn gradient(&self, spec: &TrainSpec, rules: &HeadRules) -> Option<Vec<Element>> {
        let boxes: Vec<_> = self.x.iter().zip(self.radius).map(|(&x, &r)| Interval::around(x, r)).collect();
        let decisions = rules.decide(self.x, &boxes);
        if spec.head != Head::Softmax && decisions.contains(&Decision::Either) {
            return None;
        }
        let row = rules.enclose(&boxes, self.label, &decisions)?;
        let of = |point| row.of(&ProbePoint::Head(point));
        let (quotient, sum) = (of(HeadPoint::Quotient), of(HeadPoint::Sum)[0]);
        let coin = rules.errors.unit / 2.0;
        Some(match spec.head {
            Head::Softmax => self.softmax(spec, rules, quotient, sum.lo, coin),
            Head::ReluGrad => self.relu_grad(rules, &decisions, quotient, sum.lo, coin),
            Head::ReluProb | Head::ReluProbCut | Head::ReluEps => {
                self.relu_ratio(spec, rules, &decisions, sum.lo, coin)
            }
        })
    }

    /// sum |a_j| v_j.
    fn weigh(&self, v: &[f64], coefficient: impl Fn(usize) -> f64) -> f64 {
        v.iter().enumerate().map(|(j, v)| coefficient(j).abs() * v).sum()
    }

    fn softmax(&self, spec: &TrainSpec, rules: &HeadRules, p: &[Interval], sum: f64, coin: f64) -> Vec<Element> {
        let errors = &rules.errors;
        let max = self.x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = self.radius.iter().copied().fold(0.0, f64::max);
        let exp: Vec<f64> = self.x.iter().map(|x| (x - max).exp()).collect();
        let total: f64 = exp.iter().sum();
        let cut = -spec.fixed.exp_cut() as f64 * errors.unit;
        // exp(d) <= exp(x - max + 2 spread); delta_j is what is left of its error without the last coin, eta_j all of
        // it.
        let (mut delta, mut eta) = (Vec::new(), Vec::new());
        for &x in self.x {
            let (d, high) = (x - max - 2.0 * spread, (x - max + 2.0 * spread).min(0.0).exp());
            let all = errors.exp(high, -d);
            delta.push(all - errors.exp_absolute + if d < cut { errors.unit / 2.0 } else { 0.0 });
            eta.push(all);
        }
        let eta_sum: f64 = eta.iter().sum();
        (0..self.x.len())
            .map(|i| {
                let own = exp[i] / total;
                let jacobian = |j: usize| own * (f64::from(u8::from(i == j)) - exp[j] / total);
                let moved = |j: usize| (if i == j { 1.0 - p[i].lo } else { p[i].hi }) / sum;
                let squares: f64 = (0..self.x.len()).map(|j| moved(j) * moved(j)).sum();
                let fixed = self.weigh(self.fixed, jacobian)
                    + 3.0 * p[i].hi * spread * spread
                    + self.weigh(&delta, moved)
                    + self.weigh(&eta, moved) * eta_sum / sum
                    + p[i].hi * errors.inverse;
                let logits = self.weigh(self.deviation, jacobian);
                Element { fixed, fresh: coin * coin, inherited: (logits * logits + squares * coin * coin).sqrt() }
            })
            .collect()
    }

    fn relu_grad(
        &self,
        rules: &HeadRules,
        decisions: &[Decision],
        q: &[Interval],
        sum: f64,
        coin: f64,
    ) -> Vec<Element> {
        let active = |j: usize| decisions[j] == Decision::Yes;
        let spread = self.radius.iter().copied().fold(0.0, f64::max);
        let count = (0..self.x.len()).filter(|&j| active(j)).count() as f64;
        let total: f64 = (0..self.x.len()).filter(|&j| active(j)).map(|j| self.x[j]).sum();
        (0..self.x.len())
            .map(|i| {
                if !active(i) {
                    return Element::NONE;
                }
                let own = self.x[i] / total;
                let jacobian = |j: usize| if active(j) { (f64::from(u8::from(i == j)) - own) / total } else { 0.0 };
                let second = (count + q[i].hi * count * count) * spread * spread / (sum * sum);
                let fixed = self.weigh(self.fixed, jacobian) + second + q[i].hi * rules.errors.inverse;
                Element { fixed, fresh: coin * coin, inherited: self.weigh(self.deviation, jacobian) }
            })
            .collect()
    }

    fn relu_ratio(
        &self,
        spec: &TrainSpec,
        rules: &HeadRules,
        decisions: &[Decision],
        sum: f64,
        coin: f64,
    ) -> Vec<Element> {
        let (x, t) = (self.x, self.label);
        let regular = spec.head == Head::ReluEps;
        let above = |j: usize| decisions[j] == Decision::Yes;
        let regulariser = if regular { rules.errors.unit } else { 0.0 };
        // Terms of T: 1 the logit, 0 nothing, and a ReLU of relu-prob that passes 0 inside its box its worst case.
        let (mut total, mut widest) = (regulariser * x.len() as f64, 0.0);
        let (mut fixed, mut deviation) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        for j in 0..x.len() {
            let undecided = spec.head == Head::ReluProb && x[j].abs() <= self.radius[j];
            let term = if spec.head == Head::ReluProb { x[j] > 0.0 } else { above(j) };
            if term {
                total += x[j];
            }
            if term || undecided {
                widest += self.radius[j];
            }
            (fixed[j], deviation[j]) = match (undecided, term) {
                (true, _) => (self.radius[j], 0.0),
                (false, true) => (self.fixed[j], self.deviation[j]),
                (false, false) => (0.0, 0.0),
            };
        }
        let (z, r) = (x[t] + regulariser, self.radius[t]);
        let z_low = (x[t] - r).max(rules.smallest_yes) + regulariser;
        let second = widest * widest / (total * total * sum);
        let slope = 1.0 / (total * total);
        let inverse = rules.errors.inverse;
        (0..x.len())
            .map(|i| match (above(i), i == t) {
                (false, _) => Element::NONE,
                // The coin of 1 / T is one for the whole row: earlier than any coin of an element's own.
                (true, false) => Element {
                    fixed: self.weigh(&fixed, |_| slope) + second + inverse / sum,
                    fresh: 0.0,
                    inherited: self.weigh(&deviation, |_| slope).hypot(coin),
                },
                (true, true) => {
                    let coefficient = |j: usize| if j == t { 1.0 / (z * z) - slope } else { slope };
                    let second = second + r * r / (z * z * z_low);
                    Element {
                        fixed: self.weigh(&fixed, coefficient) + second + inverse * (1.0 / sum + 1.0 / z_low),
                        fresh: coin * coin,
                        inherited: self.weigh(&deviation, coefficient).hypot(coin),
                    }
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
