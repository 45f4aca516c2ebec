//! Enclosures of one row of a head (section 9 of the arithmetic).
//!
//! Given an interval for every logit and a decision for every comparison with the head's threshold,
//! [`HeadRules::enclose`] returns intervals that hold whatever the fixed-point arithmetic can answer, for every outcome
//! of the coins. A comparison is decided if the whole interval lies on one side. Each undecided one makes two
//! *branches*; [`HeadRules::branches`] lists their enclosures.
//!
//! Every rule evaluates a function that is monotone in each logit at the corners of the box, so nothing is lost but
//! what the rounding itself may do:
//!
//! * softmax: p_i rises in x_i and falls in the others. If exp(d_j) is off by eta_j, then v_i / S - p_i = (eta_i - p_i
//!   sum eta) / S with S >= 1, so |v_i / S - p_i| <= ((1 - p_i) |eta_i| + p_i sum_{j != i} |eta_j|) / S.
//! * x / S with S = x + o: rises in x, falls in o.
//! * 1 / S - 1 / x with S = x + o: rises in x (its derivative is 1/x^2 - 1/S^2 >= 0), falls in o.
//! * a quotient q is off by q `inverse` + one truncation, a reciprocal likewise; q = 0 is exact, as is the constant -1.

use crate::encoding;
use crate::interval::{Interval, down, sums_of_others, up};
use crate::row::HeadRow;
use crate::rules::{self, Errors};
use reference::spec::{Head, HeadPoint, TrainSpec};

/// The knowledge about the outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// False on both sides.
    No,
    /// True on both sides.
    Yes,
    /// The threshold is within the bound.
    Either,
}

/// Enclosures of one row's tensors.
pub type RowEnclosure = HeadRow<Interval>;

/// At most this many undecided comparisons of a row are split into branches; further ones are enclosed by their hull.
pub const SPLIT: usize = 6;

/// The rules of one head.
#[derive(Debug, Clone, Copy)]
pub struct HeadRules {
    head: Head,
    pub(super) errors: Errors,
    /// The threshold of the real side.
    real_threshold: f64,
    /// The smallest value for which the comparison is true.
    pub(super) smallest_yes: f64,
    /// The largest value for which it is false.
    largest_no: f64,
    /// The regulariser e of `relu-eps`, 0 otherwise.
    regulariser: f64,
}

impl HeadRules {
    /// The rules of fixed point under `spec`: values are multiples of a unit, eps is rounded up.
    pub fn fixed(spec: &TrainSpec) -> Self {
        Self::with(spec, Errors::new(spec.rounding, spec.fixed))
    }

    /// The rules of a fixed-point arithmetic whose functions have these errors; of `spec` only the head, eps and the
    /// format count.
    pub fn with(spec: &TrainSpec, errors: Errors) -> Self {
        let smallest_yes = match spec.head {
            Head::ReluProb => encoding::epsilon(spec).promised(),
            Head::ReluProbCut => encoding::epsilon(spec).promised() + errors.unit,
            Head::Softmax | Head::ReluGrad | Head::ReluEps => errors.unit,
        };
        HeadRules { smallest_yes, largest_no: smallest_yes - errors.unit, errors, ..Self::real(spec) }
    }

    /// The rules of real numbers: no error, and the threshold where it is.
    pub fn real(spec: &TrainSpec) -> Self {
        let errors = Errors::none(spec.fixed);
        let threshold = match spec.head {
            Head::ReluProb | Head::ReluProbCut => spec.epsilon,
            Head::Softmax | Head::ReluGrad | Head::ReluEps => 0.0,
        };
        let regulariser = if spec.head == Head::ReluEps { errors.unit } else { 0.0 };
        HeadRules {
            head: spec.head,
            errors,
            real_threshold: threshold,
            smallest_yes: threshold,
            largest_no: threshold,
            regulariser,
        }
    }

    /// Whether the comparison with the threshold is true for the real `x`.
    fn real_decision(&self, x: f64) -> bool {
        if self.head == Head::ReluProb { x >= self.real_threshold } else { x > self.real_threshold }
    }

    /// The real head at `x`.
    pub fn at_point(&self, x: &[f64], label: usize) -> RowEnclosure {
        let points: Vec<_> = x.iter().map(|&x| Interval::point(x)).collect();
        let decisions: Vec<_> =
            x.iter().map(|&x| if self.real_decision(x) { Decision::Yes } else { Decision::No }).collect();
        self.enclose(&points, label, &decisions).expect("a point satisfies its own decisions")
    }

    /// The threshold that logits are compared with, real side.
    pub fn threshold(&self) -> f64 {
        self.real_threshold
    }

    /// The real head with every undecided logit put *on* the threshold, for either outcome of its comparison: what
    /// differs between these jumps there, what does not is continuous. (`relu-grad` has its jump where S leaves 0, from
    /// 0 to anything: there one unit is used.)
    pub fn at_threshold(&self, x: &[f64], label: usize, decisions: &[Decision]) -> Vec<RowEnclosure> {
        if self.undecided(decisions).is_empty() {
            return Vec::new();
        }
        let places = match self.head {
            Head::ReluGrad => vec![0.0, self.errors.unit],
            _ => vec![self.real_threshold],
        };
        let at = |place: f64| -> Vec<Interval> {
            x.iter()
                .zip(decisions)
                .map(|(&x, d)| Interval::point(if *d == Decision::Either { place } else { x }))
                .collect()
        };
        places.into_iter().flat_map(|place| self.branches(&at(place), label, decisions)).collect()
    }

    /// Decides every comparison of a row, for the real side at `x` and for the fixed-point side anywhere in `boxes`.
    pub fn decide(&self, x: &[f64], boxes: &[Interval]) -> Vec<Decision> {
        x.iter()
            .zip(boxes)
            .map(|(&x, b)| match self.real_decision(x) {
                true if b.lo > self.largest_no => Decision::Yes,
                false if b.hi < self.smallest_yes => Decision::No,
                _ => Decision::Either,
            })
            .collect()
    }

    /// The undecided comparisons that the row's result depends on discontinuously.
    fn undecided(&self, decisions: &[Decision]) -> Vec<usize> {
        let either = || (0..decisions.len()).filter(|&i| decisions[i] == Decision::Either).collect();
        match self.head {
            Head::Softmax => Vec::new(),
            // q is continuous but where S passes zero.
            Head::ReluGrad if decisions.contains(&Decision::Yes) => Vec::new(),
            Head::ReluGrad | Head::ReluProb | Head::ReluProbCut | Head::ReluEps => either(),
        }
    }

    /// The enclosures for every outcome of the undecided comparisons: one if all are decided; at most 2^[`SPLIT`].
    pub fn branches(&self, boxes: &[Interval], label: usize, decisions: &[Decision]) -> Vec<RowEnclosure> {
        let undecided = self.undecided(decisions);
        let split = &undecided[..undecided.len().min(SPLIT)];
        let mut branches = Vec::with_capacity(1 << split.len());
        for outcome in 0..1usize << split.len() {
            let mut decisions = decisions.to_vec();
            for (bit, &i) in split.iter().enumerate() {
                decisions[i] = if outcome >> bit & 1 == 1 { Decision::Yes } else { Decision::No };
            }
            branches.extend(self.enclose(boxes, label, &decisions));
        }
        branches
    }

    /// The enclosure of a row under the given decisions; `None` if no fixed-point logits in the boxes decide so.
    pub fn enclose(&self, boxes: &[Interval], label: usize, decisions: &[Decision]) -> Option<RowEnclosure> {
        let mut x = boxes.to_vec();
        if self.head != Head::Softmax {
            for (b, decision) in x.iter_mut().zip(decisions) {
                match decision {
                    Decision::Yes => b.lo = b.lo.max(self.smallest_yes),
                    Decision::No => b.hi = b.hi.min(self.largest_no),
                    Decision::Either => {}
                }
                if b.lo > b.hi {
                    return None;
                }
            }
        }
        Some(match self.head {
            Head::Softmax => self.softmax(&x, label),
            Head::ReluGrad => self.relu_grad(&x, label),
            Head::ReluProb | Head::ReluProbCut | Head::ReluEps => self.relu_ratio(&x, label, decisions),
        })
    }

    /// One division result: exact zero stays, everything else moves by `inverse` and one truncation, and is not
    /// negative.
    fn divided(&self, q: Interval) -> Interval {
        if q == Interval::ZERO {
            return q;
        }
        let wide = q.widen(up(q.hi * self.errors.inverse) + self.errors.truncate);
        Interval { lo: wide.lo.max(0.0), hi: wide.hi }
    }

    fn softmax(&self, x: &[Interval], label: usize) -> RowEnclosure {
        let classes = x.len();
        let maximum = Interval { lo: largest(x.iter().map(|b| b.lo)), hi: largest(x.iter().map(|b| b.hi)) };
        let (lo_without, hi_without) = (largest_of_others(x, |b| b.lo), largest_of_others(x, |b| b.hi));
        let mut exp = Vec::with_capacity(classes);
        let mut eta = Vec::with_capacity(classes);
        for i in 0..classes {
            let d = Interval {
                lo: difference(x[i].lo, x[i].lo.max(hi_without[i]), down),
                hi: difference(x[i].hi, x[i].hi.max(lo_without[i]), up),
            };
            let real = d.exp();
            let error = if d == Interval::ZERO { 0.0 } else { self.errors.exp(real.hi, -d.lo) };
            exp.push(Interval { lo: real.widen(error).lo.max(0.0), hi: real.widen(error).hi });
            eta.push(error);
        }
        let mut sum = exp.iter().fold(Interval::ZERO, |s, &v| s + v);
        sum.lo = sum.lo.max(1.0);

        let shifted = |end: f64, round: fn(f64) -> f64| Interval::point(difference(end, maximum.hi, round)).exp();
        let low: Vec<_> = x.iter().map(|b| Interval::point(shifted(b.lo, down).lo)).collect();
        let high: Vec<_> = x.iter().map(|b| Interval::point(shifted(b.hi, up).hi)).collect();
        let (low_others, high_others) = (sums_of_others(&low), sums_of_others(&high));
        let total_eta = up(eta.iter().sum::<f64>() * (1.0 + rules::gamma(2 * classes + 2)));
        let quotient: Vec<_> = (0..classes)
            .map(|i| {
                let p = Interval { lo: low[i].share_of(high_others[i]).lo, hi: high[i].share_of(low_others[i]).hi };
                let error = ((1.0 - p.lo) * eta[i] + p.hi * (total_eta - eta[i]).max(0.0)) / sum.lo;
                let ratio = p.widen(up(error * (1.0 + rules::gamma(8))));
                self.divided(Interval { lo: ratio.lo.max(0.0), hi: ratio.hi })
            })
            .collect();
        let gradient = minus_one_hot(&quotient, label);
        let parts = [
            (HeadPoint::Maximum, vec![maximum]),
            (HeadPoint::Sum, vec![sum]),
            (HeadPoint::Exp, exp),
            (HeadPoint::Quotient, quotient),
        ];
        HeadRow::new(gradient, parts)
    }

    fn relu_grad(&self, x: &[Interval], label: usize) -> RowEnclosure {
        let positive: Vec<_> = x.iter().map(|b| b.relu()).collect();
        let others = sums_of_others(&positive);
        let quotient: Vec<_> = positive.iter().zip(&others).map(|(r, &o)| self.divided(r.share_of(o))).collect();
        let sum = positive.iter().fold(Interval::ZERO, |s, &v| s + v);
        let gradient = minus_one_hot(&quotient, label);
        let parts = [(HeadPoint::Sum, vec![sum]), (HeadPoint::Positive, positive), (HeadPoint::Quotient, quotient)];
        HeadRow::new(gradient, parts)
    }

    /// relu-prob, relu-prob-cut, relu-eps: a / S - h / z, and -1 where the true logit is below the threshold (relu-eps:
    /// 0).
    fn relu_ratio(&self, x: &[Interval], label: usize, decisions: &[Decision]) -> RowEnclosure {
        let cut = self.head == Head::ReluProbCut;
        let regulariser = Interval::point(self.regulariser);
        let all_regularisers = Interval::point(self.regulariser * x.len() as f64);
        let positive: Vec<_> = x
            .iter()
            .zip(decisions)
            .map(|(b, decision)| match decision {
                Decision::No if cut => Interval::ZERO,
                Decision::Either if cut => b.hull(Interval::ZERO).relu(),
                _ => b.relu(),
            })
            .collect();
        let others = sums_of_others(&positive);
        let sum = positive.iter().fold(all_regularisers, |s, &v| s + v);
        let inverse_sum = self.divided(self.at_least_a_unit(sum).reciprocal());

        let below = Interval::point(if self.head == Head::ReluEps { 0.0 } else { -1.0 });
        let one = Interval::point(if self.head == Head::ReluEps { self.regulariser } else { 1.0 });
        let mut z = one;
        let gradient = (0..x.len())
            .map(|i| {
                // The value of x_i if its comparison is true.
                let x_yes = Interval { lo: x[i].lo.max(self.smallest_yes), hi: x[i].hi.max(self.smallest_yes) };
                let true_logit = i == label;
                let yes = if true_logit {
                    self.true_class(x_yes, others[i], x.len())
                } else {
                    self.divided((x_yes + others[i] + all_regularisers).reciprocal())
                };
                let no = if true_logit { below } else { Interval::ZERO };
                if true_logit {
                    z = choose(decisions[i], one, x_yes + regulariser);
                }
                choose(decisions[i], no, yes)
            })
            .collect();
        if self.head == Head::ReluEps {
            // y r + e whatever the mask.
            z = x[label].relu() + regulariser;
        }
        let reciprocal = vec![inverse_sum, self.divided(self.at_least_a_unit(z).reciprocal())];
        let parts = [(HeadPoint::Sum, vec![sum]), (HeadPoint::Reciprocal, reciprocal), (HeadPoint::Positive, positive)];
        HeadRow::new(gradient, parts)
    }

    /// 1/T - 1/z for the true logit: z = x + e, T = z + o + (L - 1) e, at the corners, then two reciprocals' errors.
    fn true_class(&self, x: Interval, others: Interval, classes: usize) -> Interval {
        let z = x + Interval::point(self.regulariser);
        let others = others + Interval::point(self.regulariser * (classes - 1) as f64);
        let corner =
            |z: f64, o: f64| (Interval::point(z) + Interval::point(o)).reciprocal() - Interval::point(z).reciprocal();
        let error = 2.0 * (Interval::point(z.lo).reciprocal().hi * self.errors.inverse + self.errors.truncate);
        let error = if error == 0.0 { 0.0 } else { up(up(error)) };
        Interval { lo: corner(z.lo, others.hi).lo, hi: corner(z.hi, others.lo).hi }.widen(error)
    }

    /// The operand of a reciprocal. Both sides let one unit stand for 0; in fixed point nothing else is below a unit.
    fn at_least_a_unit(&self, s: Interval) -> Interval {
        let unit = self.errors.unit;
        match self.errors.truncate > 0.0 || s.hi <= 0.0 {
            true => Interval { lo: s.lo.max(unit), hi: s.hi.max(unit) },
            false => s,
        }
    }
}

fn choose(decision: Decision, no: Interval, yes: Interval) -> Interval {
    match decision {
        Decision::No => no,
        Decision::Yes => yes,
        Decision::Either => no.hull(yes),
    }
}

fn minus_one_hot(p: &[Interval], label: usize) -> Vec<Interval> {
    p.iter().enumerate().map(|(i, &p)| if i == label { p - Interval::point(1.0) } else { p }).collect()
}

fn largest(v: impl Iterator<Item = f64>) -> f64 {
    v.fold(f64::NEG_INFINITY, f64::max)
}

/// For each index the largest of the other ends.
fn largest_of_others(x: &[Interval], end: fn(&Interval) -> f64) -> Vec<f64> {
    let top = (0..x.len()).max_by(|&a, &b| end(&x[a]).total_cmp(&end(&x[b]))).unwrap_or(0);
    let second = largest(x.iter().enumerate().filter(|(i, _)| *i != top).map(|(_, b)| end(b)));
    (0..x.len()).map(|i| if i == top { second } else { end(&x[top]) }).collect()
}

/// a - b in the given direction; zero stays exact.
fn difference(a: f64, b: f64, round: fn(f64) -> f64) -> f64 {
    if a == b { 0.0 } else { round(a - b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reference::f64::RealHead;
    use reference::fixed::{Coins, Model};
    use reference::spec::{FixedSpec, NetworkSpec, ProbePoint, Rounding, SgdSpec};

    fn spec(head: Head, rounding: Rounding, classes: usize) -> TrainSpec {
        TrainSpec {
            network: NetworkSpec { widths: vec![1, classes] },
            head,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 1, ..SgdSpec::default() },
        }
    }

    /// A logit: anywhere, small, or within a few units of a threshold or of another typical value.
    fn logit() -> impl Strategy<Value = f64> {
        let near = prop::sample::select(vec![0.0, 0.1, 1.0, -3.0, 0.100006103515625]);
        prop_oneof![-12.0..12.0f64, -0.3..0.5f64, (near, -9.0..9.0f64).prop_map(|(t, units)| t + units / 65536.0)]
    }

    /// A radius of one unit and more.
    fn radius() -> impl Strategy<Value = f64> {
        (0.0..7.0f64).prop_map(|e| 2f64.powf(e) / 65536.0)
    }

    /// Where in its box an integer logit lies: lower corner, upper corner, nearest the centre.
    fn place() -> impl Strategy<Value = u8> {
        0..3u8
    }

    fn coins() -> impl Strategy<Value = Coins> {
        prop_oneof![
            Just(Coins::Extreme { up: false }),
            Just(Coins::Extreme { up: true }),
            any::<u64>().prop_map(Coins::seeded)
        ]
    }

    fn integer_logit(x: f64, radius: f64, place: u8) -> i64 {
        match place {
            0 => ((x - radius) * 65536.0).ceil() as i64,
            1 => ((x + radius) * 65536.0).floor() as i64,
            _ => (x * 65536.0).round() as i64,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_integer_head_is_inside_one_branch_for_every_corner_and_coin(
            head in prop::sample::select(Head::ALL.to_vec()),
            rounding in prop::sample::select(Rounding::ALL.to_vec()),
            row in prop::collection::vec((logit(), radius(), place()), 2..12),
            label in any::<prop::sample::Index>(),
            mut coins in coins(),
        ) {
            let (classes, label) = (row.len(), label.index(row.len()));
            let spec = spec(head, rounding, classes);
            let rules = HeadRules::fixed(&spec);
            let x: Vec<f64> = row.iter().map(|r| r.0).collect();
            let boxes: Vec<_> = row.iter().map(|r| Interval::around(r.0, r.1)).collect();
            let units: Vec<i64> = row.iter().map(|r| integer_logit(r.0, r.1, r.2)).collect();
            let decisions = rules.decide(&x, &boxes);
            let branches = rules.branches(&boxes, label, &decisions);
            prop_assert!(!branches.is_empty());

            let mut model = Model::new(spec).unwrap();
            let logits = ndarray::Array2::from_shape_vec((1, classes), units.clone()).unwrap();
            let answer = model.head(&logits, &[label], &mut coins).unwrap();
            let gradient: Vec<f64> = answer.gradient.iter().map(|&g| g as f64 / 65536.0).collect();
            let inside = |b: &RowEnclosure| b.gradient.iter().zip(&gradient).all(|(i, &g)| i.contains(g));
            prop_assert!(
                branches.iter().any(inside),
                "x {x:?} units {units:?} label {label}\n{gradient:?}\n{branches:#?}"
            );
        }

        #[test]
        fn the_real_head_is_where_the_real_rules_put_it(
            head in prop::sample::select(Head::ALL.to_vec()),
            x in prop::collection::vec(logit(), 2..12),
            label in any::<prop::sample::Index>(),
        ) {
            let label = label.index(x.len());
            let spec = spec(head, Rounding::Nearest, x.len());
            let own = HeadRules::real(&spec).at_point(&x, label);
            let gradient = RealHead::of(&spec).gradient(&x, label).unwrap();
            for (i, g) in own.gradient.iter().zip(&gradient) {
                let reciprocals = 65536.0 * f64::from(u8::from(head == Head::ReluEps));
                prop_assert!(i.hi - i.lo <= 1e-11 * (1.0 + g.abs() + reciprocals));
                prop_assert!(i.widen(1e-12 * (1.0 + g.abs())).contains(*g), "{i:?} {g}");
            }
        }
    }

    #[test]
    fn a_decided_row_has_one_branch_and_an_undecided_logit_two() {
        let rules = HeadRules::fixed(&spec(Head::ReluProb, Rounding::Probabilistic, 3));
        let boxes = |x: &[f64]| x.iter().map(|&x| Interval::around(x, 2.0 / 65536.0)).collect::<Vec<_>>();
        let branches = |x: &[f64]| rules.branches(&boxes(x), 0, &rules.decide(x, &boxes(x))).len();
        assert_eq!(branches(&[1.0, 0.2, -3.0]), 1);
        assert_eq!(branches(&[1.0, 0.1, -3.0]), 2);
        assert_eq!(branches(&[0.1, 0.1, 0.0]), 4, "zero is no threshold of relu-prob");
    }

    #[test]
    fn bounds_are_a_few_units_where_logits_are_known_exactly() {
        for head in Head::ALL {
            let spec = spec(head, Rounding::Probabilistic, 3);
            let x = [1.5, 0.5, 2.5];
            let boxes: Vec<_> = x.iter().map(|&x| Interval::point(x)).collect();
            let rules = HeadRules::fixed(&spec);
            let [branch] = &rules.branches(&boxes, 1, &rules.decide(&x, &boxes))[..] else {
                panic!("{head} is decided")
            };
            let own = HeadRules::real(&spec).at_point(&x, 1);
            for (fixed, real) in branch.gradient.iter().zip(&own.gradient) {
                let units = fixed.distance(*real) * 65536.0;
                assert!((0.5..6.0).contains(&units), "{head}: {units} units");
            }
        }
    }

    /// q = x / S is continuous but where S leaves zero: only there both outcomes are listed.
    #[test]
    fn relu_grad_hangs_on_a_comparison_only_where_no_logit_is_surely_positive() {
        let rules = HeadRules::fixed(&spec(Head::ReluGrad, Rounding::Probabilistic, 3));
        let boxes = |x: &[f64]| x.iter().map(|&x| Interval::around(x, 2.0 / 65536.0)).collect::<Vec<_>>();
        let of = |x: &[f64]| {
            let decisions = rules.decide(x, &boxes(x));
            (rules.branches(&boxes(x), 0, &decisions).len(), rules.at_threshold(x, 0, &decisions).len())
        };
        assert_eq!(of(&[0.0, -1.0, -2.0]), (2, 2), "S is zero or at least a unit");
        assert_eq!(of(&[0.0, 1.0, -2.0]), (1, 0), "S is about 1 either way");
        assert_eq!(of(&[-3.0, -1.0, -2.0]), (1, 0));
    }

    #[test]
    fn a_reciprocal_of_less_than_a_unit_is_that_of_a_unit_in_fixed_point_and_of_nothing_on_both_sides() {
        let spec = spec(Head::ReluProb, Rounding::Nearest, 3);
        let (fixed, real) = (HeadRules::fixed(&spec), HeadRules::real(&spec));
        let unit = fixed.errors.unit;
        let (less, none) = (Interval { lo: unit / 4.0, hi: unit / 2.0 }, Interval { lo: -1.0, hi: 0.0 });
        assert_eq!((fixed.at_least_a_unit(less), real.at_least_a_unit(less)), (Interval::point(unit), less));
        assert_eq!([&fixed, &real].map(|rules| rules.at_least_a_unit(none)), [Interval::point(unit); 2]);
    }

    /// Two logits, the second 2 below: its exponential moves by twice the radius and the function's error, the largest
    /// is exactly 1.
    #[test]
    fn exponentials_are_as_near_as_their_logits() {
        let spec = spec(Head::Softmax, Rounding::Nearest, 2);
        let rules = HeadRules::fixed(&spec);
        let (x, r) = ([0.5, -1.5], 1.0 / 1024.0);
        let boxes = x.map(|x| Interval::around(x, r));
        let row = rules.enclose(&boxes, 0, &rules.decide(&x, &boxes)).unwrap();
        let exp = row.of(&ProbePoint::Head(HeadPoint::Exp));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let (low, high) = ((-2.0 - 2.0 * r).exp(), (-2.0 + 2.0 * r).exp());
        let error = rules.errors.exp(high, 2.0 + 2.0 * r);
        assert_eq!(exp[0], Interval::point(1.0));
        assert!(near(exp[1].lo, low - error) && near(exp[1].hi, high + error), "{exp:?}");
        // p = e / (1 + e), off by its own exponential's error alone: the other's is 1 without one.
        let p = |e: f64| e / (1.0 + e);
        let off = (1.0 - p(low)) * error / (1.0 + low - error);
        let divided = |q: f64| (q + off) * rules.errors.inverse + rules.errors.truncate;
        let quotient = row.of(&ProbePoint::Head(HeadPoint::Quotient))[1];
        assert!(near(quotient.hi, p(high) + off + divided(p(high))), "{quotient:?}");
        assert!(near(quotient.lo, p(low) - off - divided(p(high))), "{quotient:?}");
        let cut = self::spec(Head::ReluProbCut, Rounding::Nearest, 2);
        assert_eq!((HeadRules::fixed(&cut).threshold(), rules.threshold()), (0.1, 0.0));
    }

    /// Both ends of a box decide, and the last number that decides is next to the threshold.
    #[test]
    fn a_comparison_is_open_where_the_box_reaches_its_threshold() {
        let rules = HeadRules::fixed(&spec(Head::ReluProbCut, Rounding::Nearest, 2));
        let decided = |x: f64, lo: f64, hi: f64| rules.decide(&[x], &[Interval { lo, hi }])[0];
        let (yes, no) = (rules.smallest_yes, rules.largest_no);
        assert_eq!(decided(0.5, no.next_up(), 0.9), Decision::Yes);
        assert_eq!(decided(0.5, no, 0.9), Decision::Either);
        assert_eq!(decided(0.05, 0.0, yes.next_down()), Decision::No);
        assert_eq!(decided(0.05, 0.0, yes), Decision::Either);
    }
}
