//! One row of a head in real numbers, with every comparison decided beforehand: section 9 of the arithmetic without its
//! truncations.

use crate::row::HeadRow;
use reference::spec::constants::{DIV_A2, EXP_C1, EXP_C2, EXP_C3, EXP_C4};
use reference::spec::{FixedSpec, Head, HeadPoint, TrainSpec};

/// How the comparisons of a row turn out.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// m.
    positive: Vec<bool>,
    /// a; the same as m for heads without a threshold.
    above: Vec<bool>,
    /// The largest logit; softmax only, otherwise 0.
    winner: usize,
    /// The exponentials that are not cut off: part of the algorithm, not a branch of the exact function.
    kept: Vec<bool>,
    /// Whether denominators below one unit count as one unit (section 7), as they do where integers decide.
    units: bool,
}

impl Decisions {
    /// The real numbers' own, with this threshold.
    pub fn real(spec: &TrainSpec, epsilon: f64, x: &[f64]) -> Self {
        let cut = -spec.fixed.exp_cut() as f64 / spec.fixed.one() as f64;
        Self::new(spec, x, epsilon, |d| d >= cut, 0.0, |a, b| a - b, false)
    }

    /// The integer model's, from its logits.
    pub fn integer(spec: &TrainSpec, x: &[i64]) -> Self {
        let cut = -spec.fixed.exp_cut();
        Self::new(spec, x, spec.epsilon_units(), |d| d >= cut, 0, i64::wrapping_sub, true)
    }

    fn new<T: PartialOrd + Copy>(
        spec: &TrainSpec,
        x: &[T],
        epsilon: T,
        kept: impl Fn(T) -> bool,
        zero: T,
        minus: impl Fn(T, T) -> T,
        units: bool,
    ) -> Self {
        let positive: Vec<bool> = x.iter().map(|&x| x > zero).collect();
        let above = match spec.head {
            Head::ReluProb => x.iter().map(|&x| x >= epsilon).collect(),
            Head::ReluProbCut => x.iter().map(|&x| x > epsilon).collect(),
            Head::Softmax | Head::ReluGrad | Head::ReluEps => positive.clone(),
        };
        let largest = (1..x.len()).fold(0, |best, i| if x[i] > x[best] { i } else { best });
        let softmax = spec.head == Head::Softmax;
        Decisions {
            kept: x.iter().map(|&v| softmax && kept(minus(v, x[largest]))).collect(),
            winner: if softmax { largest } else { 0 },
            positive: if softmax { vec![false; x.len()] } else { positive },
            above: if softmax { vec![false; x.len()] } else { above },
            units,
        }
    }

    /// Whether the exact function takes the same branches.
    pub fn same_branches(&self, o: &Decisions) -> bool {
        (&self.positive, &self.above, self.winner) == (&o.positive, &o.above, o.winner)
    }

    /// A denominator that is safe to divide by.
    fn denominator(&self, s: f64, unit: f64) -> f64 {
        match self.units {
            true => s.max(unit),
            false if s > 0.0 => s,
            false => unit,
        }
    }
}

/// The tensors of a row; `algorithms`: exp and 1/s as the fixed-point side approximates them, without truncations.
pub fn values(spec: &TrainSpec, x: &[f64], label: usize, decisions: &Decisions, algorithms: bool) -> HeadRow<f64> {
    let unit = 1.0 / spec.fixed.one() as f64;
    let over = |s: f64| {
        let s = decisions.denominator(s, unit);
        if algorithms { inverse(s) } else { 1.0 / s }
    };
    let minus_label =
        |p: &[f64]| p.iter().enumerate().map(|(i, p)| p - f64::from(u8::from(i == label))).collect::<Vec<_>>();
    match spec.head {
        Head::Softmax => {
            let max = x[decisions.winner];
            let term = |(&x, &kept): (&f64, &bool)| match algorithms {
                true if kept => exponential(spec.fixed, x - max),
                true => 0.0,
                false => (x - max).exp(),
            };
            let exp: Vec<f64> = x.iter().zip(&decisions.kept).map(term).collect();
            let sum: f64 = exp.iter().sum();
            let over_sum = over(sum);
            let quotient: Vec<f64> = exp.iter().map(|v| v * over_sum).collect();
            let gradient = minus_label(&quotient);
            let parts = [
                (HeadPoint::Maximum, vec![max]),
                (HeadPoint::Sum, vec![sum]),
                (HeadPoint::Exp, exp),
                (HeadPoint::Quotient, quotient),
            ];
            HeadRow::new(gradient, parts)
        }
        Head::ReluGrad => {
            let positive = kept(x, &decisions.positive);
            let sum: f64 = positive.iter().sum();
            let over_sum = over(sum);
            let quotient: Vec<f64> = positive.iter().map(|r| r * over_sum).collect();
            let gradient = minus_label(&quotient);
            let parts = [(HeadPoint::Sum, vec![sum]), (HeadPoint::Positive, positive), (HeadPoint::Quotient, quotient)];
            HeadRow::new(gradient, parts)
        }
        Head::ReluProb | Head::ReluProbCut | Head::ReluEps => ratio(spec, x, label, decisions, over),
    }
}

/// relu-prob, relu-prob-cut and relu-eps, with `over` for 1/s.
fn ratio(spec: &TrainSpec, x: &[f64], label: usize, decisions: &Decisions, over: impl Fn(f64) -> f64) -> HeadRow<f64> {
    let unit = 1.0 / spec.fixed.one() as f64;
    let above = &decisions.above;
    let positive = kept(x, if spec.head == Head::ReluProb { &decisions.positive } else { above });
    let mut sum: f64 = positive.iter().sum();
    let z = match (spec.head, above[label]) {
        (Head::ReluEps, _) => {
            sum += x.len() as f64 * unit;
            positive[label] + unit
        }
        (_, true) => x[label],
        (_, false) => 1.0,
    };
    let (over_sum, over_z) = (over(sum), over(z));
    let below = if spec.head == Head::ReluEps { 0.0 } else { -1.0 };
    let gradient = (0..x.len())
        .map(|i| match (above[i], i == label) {
            (true, true) => over_sum - over_z,
            (true, false) => over_sum,
            (false, true) => below,
            (false, false) => 0.0,
        })
        .collect();
    let reciprocal = vec![over_sum, over_z];
    let parts = [(HeadPoint::Sum, vec![sum]), (HeadPoint::Positive, positive), (HeadPoint::Reciprocal, reciprocal)];
    HeadRow::new(gradient, parts)
}

/// The logits where the mask is set, 0 elsewhere.
fn kept(x: &[f64], mask: &[bool]) -> Vec<f64> {
    x.iter().zip(mask).map(|(&x, &m)| if m { x } else { 0.0 }).collect()
}

/// Section 6 without its truncations and its cut: 2^(d log2 e) with the encoded log2 e and the polynomial.
fn exponential(fixed: FixedSpec, d: f64) -> f64 {
    let y = d * fixed.exp_log2e() as f64 / 2f64.powi(31 - fixed.fraction_bits as i32);
    let (n, r) = (y.floor(), y - y.floor());
    let scaled = |c: i64, scale: i32| c as f64 / 2f64.powi(scale);
    let t = scaled(EXP_C2, 40) + r * (scaled(EXP_C3, 20) + r * scaled(EXP_C4, 20));
    2f64.powf(n) * (1.0 + r * (scaled(EXP_C1, 29) + r * t))
}

/// Section 8 without its truncations: with the start's residual e, the three iterations give (1 - e^8) / s exactly.
fn inverse(s: f64) -> f64 {
    let u = s / 2f64.powf(s.log2().floor());
    let e = 1.0 - u * (DIV_A2 as f64 / 2f64.powi(31) - u / 2.0);
    (1.0 - e.powi(8)) / s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_algorithms_are_near_the_functions_and_not_equal_to_them() {
        let fixed = FixedSpec::default();
        let (mut exp_off, mut inverse_off) = (0f64, 0f64);
        for i in 0..4000 {
            let d = -f64::from(i) / 400.0;
            exp_off = exp_off.max((exponential(fixed, d) / d.exp() - 1.0).abs());
            let s = 2f64.powf(f64::from(i) / 300.0 - 4.0);
            inverse_off = inverse_off.max((inverse(s) * s - 1.0).abs());
        }
        // The polynomial's 4.2e-6 and the encoded log2 e, 4.9e-6 for each unit of |d|; 0.0858^8.
        assert!((4e-6..6e-5).contains(&exp_off), "{exp_off:e}");
        assert!((1e-9..3e-9).contains(&inverse_off), "{inverse_off:e}");
        assert_eq!(exponential(fixed, 0.0), 1.0);
    }

    /// The real head of the reference, which shares no line with this one.
    #[test]
    fn without_algorithms_a_row_is_the_real_head() {
        for head in Head::ALL {
            let spec = crate::testing::spec(head, reference::spec::Rounding::Nearest, 2, 0);
            for x in [[1.5, -0.25, 2.5, 0.05], [0.3, 0.2, -1.0, 0.0], [-2.0, -1.0, -0.5, -3.0]] {
                for label in 0..x.len() {
                    let own = values(&spec, &x, label, &Decisions::real(&spec, spec.epsilon, &x), false);
                    let real = reference::f64::RealHead::of(&spec).gradient(&x, label).unwrap();
                    for (own, real) in own.gradient.iter().zip(&real) {
                        assert!((own - real).abs() <= 1e-12 * (1.0 + real.abs()), "{head} {x:?} {label}: {own} {real}");
                    }
                }
            }
        }
        let spec = crate::testing::spec(Head::Softmax, reference::spec::Rounding::Nearest, 2, 0);
        let x = [1.5, -0.25, 2.5];
        let decisions = Decisions::real(&spec, spec.epsilon, &x);
        let of = |algorithms, point| {
            let row = values(&spec, &x, 0, &decisions, algorithms);
            row.of(&reference::spec::ProbePoint::Head(point)).to_vec()
        };
        let exp = x.map(|x| (x - 2.5).exp());
        for algorithms in [false, true] {
            assert_eq!(of(algorithms, HeadPoint::Maximum), [2.5]);
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4 * b);
            assert!(near(&of(algorithms, HeadPoint::Exp), &exp), "{:?}", of(algorithms, HeadPoint::Exp));
            assert!(near(&of(algorithms, HeadPoint::Sum), &[exp.iter().sum()]));
        }
    }

    #[test]
    fn comparisons_are_decided_as_each_head_makes_them() {
        let of = |head| crate::testing::spec(head, reference::spec::Rounding::Nearest, 2, 0);
        let mask = |head, x: &[f64]| Decisions::real(&of(head), 0.1, x).above;
        let x = [0.05, 0.1, 0.2, 0.0];
        assert_eq!(mask(Head::ReluProb, &x), [false, true, true, false], "x >= eps");
        assert_eq!(mask(Head::ReluProbCut, &x), [false, false, true, false], "x > eps");
        assert_eq!(mask(Head::ReluGrad, &x), [true, true, true, false], "x > 0");
        let softmax = of(Head::Softmax);
        let cut = softmax.fixed.exp_cut();
        let far = Decisions::integer(&softmax, &[7, 7 - cut, 6 - cut, 7]);
        assert_eq!((far.winner, &far.kept[..]), (0, &[true, true, false, true][..]), "the first of equal maxima");
        let moved = Decisions::integer(&softmax, &[7, 8, 7, 7]);
        assert!(!far.same_branches(&moved) && far.same_branches(&far.clone()));
        // Below one unit an integer denominator is a unit; a real one is itself.
        let unit = 1.0 / 65536.0;
        let real = Decisions::real(&softmax, 0.1, &x);
        assert_eq!([far.denominator(0.25 * unit, unit), real.denominator(0.25 * unit, unit)], [unit, 0.25 * unit]);
        assert_eq!([far.denominator(3.0, unit), real.denominator(0.0, unit)], [3.0, unit]);
    }
}
