//! Edge cases by hand, and every head against its formula in real numbers at the very same logits: comparisons are
//! exact on integers, so no branch can differ and the distance is the error of exp, quotient and reciprocal alone.

use super::*;
use crate::fixed::testing::World;
use crate::fixed::{Coins, Tape, divide, exponential, logarithm, truncate};
use Rounding::{Nearest, Probabilistic};
use proptest::prelude::*;
use spec::{FixedSpec, Rounding};

/// ceil(0.1 2^16).
const E: i64 = 6554;
const ONE: i64 = 1 << 16;

fn answer(world: &mut World, head: Head, x: &[i64], label: usize) -> HeadUnits {
    let x = matrix(1, x.len(), x.to_vec());
    evaluate(&mut world.arithmetic(), head, E, Rows::new(&x, &[label]).unwrap(), &mut |_, _| ()).unwrap()
}

/// Gradient, probabilities, loss under nearest rounding; nothing may leave its range.
fn nearest(head: Head, x: &[i64], label: usize) -> (Vec<i64>, Vec<i64>, Option<Option<i64>>) {
    let mut world = World::new(Nearest);
    let HeadUnits { probabilities, loss, gradient } = answer(&mut world, head, x, label);
    assert_eq!(world.monitor.total(), 0, "{:?}", world.monitor.violations().first());
    let flat = |v: Array2<i64>| v.into_raw_vec_and_offset().0;
    (flat(gradient), flat(probabilities), loss.map(|l| l[0]))
}

#[test]
fn all_logits_at_or_below_zero() {
    let x = [-3 * ONE, 0, -1, -ONE];
    let quarter = ONE / 4;
    let pull = vec![0, -ONE, 0, 0];
    assert_eq!(nearest(Head::ReluGrad, &x, 1), (pull.clone(), vec![quarter; 4], None));
    assert_eq!(nearest(Head::ReluProb, &x, 1), (pull.clone(), vec![quarter; 4], Some(None)));
    assert_eq!(nearest(Head::ReluProbCut, &x, 1), (pull, vec![quarter; 4], Some(None)));
    let (gradient, probabilities, loss) = nearest(Head::ReluEps, &x, 1);
    assert_eq!((gradient, probabilities), (vec![0; 4], vec![quarter; 4]));
    let ln4 = 4f64.ln() * ONE as f64;
    assert!((loss.unwrap().unwrap() as f64 - ln4).abs() <= 2.0, "log 4 units - log 1 unit");
}

#[test]
fn the_uniform_probability_is_rounded() {
    for classes in [3, 7, 10, 12] {
        let uniform = (65536.0 / classes as f64).round() as i64;
        assert_eq!(nearest(Head::ReluGrad, &vec![-5; classes], 0).1, vec![uniform; classes]);
    }
}

/// The true logit alone above, at and below the threshold.
#[test]
fn the_threshold_is_closed_in_the_paper_and_open_in_its_code() {
    let inverse = |x: i64| (2f64.powi(32) / x as f64).round() as i64;
    for (x, paper, code) in [(E - 1, false, false), (E, true, false), (E + 1, true, true)] {
        let logits = [0, x, 2 * ONE];
        for (head, active) in [(Head::ReluProb, paper), (Head::ReluProbCut, code)] {
            let counted = active || head == Head::ReluProb;
            let over_sum = inverse(2 * ONE + if counted { x } else { 0 });
            let truth = if active { over_sum - inverse(x) } else { -ONE };
            assert_eq!(nearest(head, &logits, 1).0, [0, truth, over_sum], "{head} at E + {}", x - E);
            let loss = nearest(head, &logits, 1).2.unwrap();
            assert_eq!(loss.is_some(), counted, "{head}: infinite below the threshold of its S");
        }
    }
    // No margin is learnt: with the true logit alone above E, the code's gradient is exactly 0.
    assert_eq!(nearest(Head::ReluProbCut, &[E, E + 1, 3], 1).0, [0, 0, 0]);
    assert_eq!(nearest(Head::ReluProb, &[1, 2, 3], 2).0, [0, 0, -ONE], "S below E: nothing is active");
}

#[test]
fn softmax_of_ties_and_of_far_logits() {
    let (gradient, p, loss) = nearest(Head::Softmax, &[5 * ONE; 4], 2);
    assert_eq!((p, gradient), (vec![ONE / 4; 4], vec![ONE / 4, ONE / 4, ONE / 4 - ONE, ONE / 4]));
    assert!((loss.unwrap().unwrap() as f64 - 4f64.ln() * ONE as f64).abs() <= 1.0);
    let (_, p, loss) = nearest(Head::Softmax, &[0, 100 * ONE], 0);
    assert_eq!((p, loss.unwrap()), (vec![0, ONE], Some(100 * ONE)), "the loss stays finite where p is 0");
}

#[test]
fn relu_eps_with_one_positive_logit_nearly_cancels_and_is_large_near_zero() {
    // T = x + L, z = x + 1: units apart, so nearly equal reciprocals.
    let (gradient, ..) = nearest(Head::ReluEps, &[-1, 4 * ONE], 1);
    assert_eq!(gradient[0], 0);
    assert!(gradient[1].abs() <= 1);
    // One unit above zero: 1/z = 2^15, which is no ordinary value any more at K = 32.
    let mut world = World::new(Nearest);
    let g = answer(&mut world, Head::ReluEps, &[-1, 1], 1).gradient[[0, 1]];
    let (over_sum, over_z) = (2f64.powi(32) / 3.0, 2f64.powi(31));
    let bound = divide::reciprocal_error_units(Nearest, over_sum) + divide::reciprocal_error_units(Nearest, over_z);
    assert!((g as f64 - (over_sum - over_z)).abs() <= bound, "{g}");
}

#[test]
fn sums_and_differences_beyond_the_range_are_reported() {
    let big = (1i64 << 31) - 1;
    for head in Head::ALL {
        let mut world = World::new(Nearest);
        answer(&mut world, head, &[big, big, -big], 0);
        assert!(world.monitor.total() > 0, "{head}");
    }
}

#[test]
fn labels_and_shapes_are_checked() {
    let x = matrix(2, 3, vec![0; 6]);
    let text = |labels: &[usize]| Rows::new(&x, labels).unwrap_err().to_string();
    assert_eq!(text(&[0, 3]), "label 3 of row 1 names no class; labels are 0 to 2");
    assert_eq!(text(&[0]), "logits has shape [2, 3]; it must be [1, 3]");
}

#[test]
fn an_empty_batch_is_empty() {
    let x = matrix(0, 3, vec![]);
    for head in Head::ALL {
        let mut world = World::new(Probabilistic);
        let units = evaluate(&mut world.arithmetic(), head, E, Rows::new(&x, &[]).unwrap(), &mut |_, _| ()).unwrap();
        assert_eq!(units.gradient.dim(), (0, 3));
    }
}

#[test]
fn a_tape_is_asked_for_by_the_names_of_the_specification() {
    let mut world = World { coins: Coins::Tape(Tape::default()), ..World::new(Probabilistic) };
    let x = matrix(1, 2, vec![3, 4]);
    let rows = Rows::new(&x, &[0]).unwrap();
    for (head, name) in [(Head::Softmax, "head/exp/fraction"), (Head::ReluGrad, "head/divide/e2")] {
        let missing = gradient(&mut world.arithmetic(), head, E, rows, &mut |_, _| ());
        assert_eq!(missing, Err(ModelError::MissingCoins { name: name.into() }));
    }
}

/// What the formulas of section 9 give in real numbers at logits `x` (units) and thresholds in units, and how far the
/// integers may be from it, in units.
struct Real {
    gradient: Vec<(f64, f64)>,
    loss: Option<(f64, f64)>,
}

fn real(head: Head, fixed: FixedSpec, rounding: Rounding, epsilon: i64, x: &[i64], label: usize) -> Real {
    let one = fixed.one() as f64;
    let h = truncate::error_units(rounding);
    let quotient_error = divide::quotient_error_units(fixed, rounding);
    let log_error = logarithm::error_units(fixed, rounding);
    let y = |i| if i == label { one } else { 0.0 };
    let relu: Vec<f64> = x.iter().map(|&x| x.max(0) as f64).collect();
    // (R, its error) of a positive number of units.
    let over = |s: f64| (one * one / s.max(1.0), divide::reciprocal_error_units(rounding, one * one / s.max(1.0)));
    let ratio_loss = |s: f64, t: f64| (t > 0.0).then(|| ((s / t).ln() * one, 2.0 * log_error));
    match head {
        Head::Softmax => {
            let max = *x.iter().max().unwrap();
            let v: Vec<f64> = x.iter().map(|x| ((x - max) as f64 / one).exp() * one).collect();
            let s: f64 = v.iter().sum();
            let e = exponential::error_units(fixed, rounding);
            // The largest exponential is exact; S is at least one.
            let (s_error, least) = (e * (v.len() - 1) as f64, (s - e * (v.len() - 1) as f64).max(one));
            let element = |i: usize| (v[i] / s * one - y(i), (e + v[i] / s * s_error) / least * one + quotient_error);
            let loss = ((s / one).ln() * one - (x[label] - max) as f64, log_error + s_error / least * one);
            Real { gradient: (0..x.len()).map(element).collect(), loss: Some(loss) }
        }
        Head::ReluGrad => {
            let s: f64 = relu.iter().sum();
            let element = |i: usize| (if s > 0.0 { relu[i] / s * one } else { 0.0 } - y(i), quotient_error);
            Real { gradient: (0..x.len()).map(element).collect(), loss: None }
        }
        Head::ReluProb | Head::ReluProbCut => {
            let cut = head == Head::ReluProbCut;
            let active = |i: usize| if cut { x[i] > epsilon } else { x[i] >= epsilon };
            let counted = |i: usize| if cut && !active(i) { 0.0 } else { relu[i] };
            let s: f64 = (0..x.len()).map(counted).sum();
            let element = |i: usize| match (active(i), i == label) {
                (false, false) => (0.0, 0.0),
                (false, true) => (-one, 0.0),
                (true, false) => over(s),
                (true, true) => (over(s).0 - over(x[i] as f64).0, over(s).1 + over(x[i] as f64).1),
            };
            Real { gradient: (0..x.len()).map(element).collect(), loss: ratio_loss(s, counted(label)) }
        }
        Head::ReluEps => {
            // The formula of Kanai et al. with e = one unit, before it is simplified.
            let t: f64 = relu.iter().map(|r| r + 1.0).sum();
            let element = |i: usize| {
                let positive = if x[i] > 0 { 1.0 } else { 0.0 };
                let p = (relu[i] + 1.0) / t;
                let g = -positive * one / (x[i].max(0) as f64 + 1.0) * (y(i) - p * one);
                (g, positive * (over(t).1 + over(relu[i] + 1.0).1) + 1e-6 * h)
            };
            Real { gradient: (0..x.len()).map(element).collect(), loss: ratio_loss(t, relu[label] + 1.0) }
        }
    }
}

/// Logits from spread out to a few units, so that thresholds and zero sums occur.
fn logits() -> impl Strategy<Value = (Vec<i64>, usize)> {
    let logit = prop_oneof![-20 * ONE..20 * ONE, -ONE..ONE, -3i64..4, E - 2..E + 3, Just(0)];
    prop::collection::vec(logit, 2..13).prop_flat_map(|x| {
        let classes = x.len();
        (Just(x), 0..classes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_head_is_its_formula_within_the_bounds_of_its_functions(
        (x, label) in logits(),
        seed: u64,
        fraction_bits in 10u32..=17,
    ) {
        for (head, rounding) in Head::ALL.into_iter().flat_map(|h| Rounding::ALL.map(|r| (h, r))) {
            let mut world = World { coins: Coins::seeded(seed), ..World::with_fraction_bits(rounding, fraction_bits) };
            let units = answer(&mut world, head, &x, label);
            let real = real(head, world.fixed, rounding, E, &x, label);
            for (i, (exact, bound)) in real.gradient.into_iter().enumerate() {
                let error = (units.gradient[[0, i]] as f64 - exact).abs();
                let inside = error <= bound * (1.0 + 1e-9) + 1e-9;
                prop_assert!(inside, "{head} {rounding} [{i}]: error {error}, bound {bound}");
            }
            match (units.loss.map(|l| l[0]), real.loss) {
                (None, None) | (Some(None), None) => {}
                (Some(Some(found)), Some((exact, bound))) => {
                    let error = (found as f64 - exact).abs();
                    prop_assert!(error <= bound, "{head} {rounding}: loss error {error}, bound {bound}");
                }
                (found, exact) => prop_assert!(false, "{head}: loss {found:?} for {exact:?}"),
            }
            let total: i64 = units.probabilities.iter().sum();
            let slack = divide::quotient_error_units(world.fixed, rounding) * x.len() as f64;
            prop_assert!((total - world.fixed.one()).abs() as f64 <= slack, "{head}: probabilities sum to {total}");
        }
    }
}
