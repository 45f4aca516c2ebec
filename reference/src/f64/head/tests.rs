use super::*;
use approx::relative_eq;
use ndarray::array;
use proptest::prelude::*;

const EPS: f64 = 0.1;
const L: usize = 10;

/// Logits away from every branch point by construction: at most -0.05, or in (0, eps) by 0.02, or at least eps + 0.05.
fn clear_of_thresholds() -> impl Strategy<Value = f64> {
    prop_oneof![-5.0..-0.05f64, 0.02..0.08f64, 0.15..8.0f64]
}

/// The same without (0, eps): where `relu-prob` is the gradient of its loss.
fn clear_of_the_gap() -> impl Strategy<Value = f64> {
    prop_oneof![-5.0..-0.05f64, 0.15..8.0f64]
}

fn row(element: impl Strategy<Value = f64> + 'static) -> impl Strategy<Value = (Vec<f64>, usize)> {
    (2..=12usize).prop_flat_map({
        let element = element.boxed();
        move |n| (prop::collection::vec(element.clone(), n), 0..n)
    })
}

/// Any finite double: uniform bits, and the awkward ones.
fn any_finite() -> impl Strategy<Value = f64> {
    let table = prop::sample::select(vec![
        0.0,
        -0.0,
        EPS,
        EPS.next_up(),
        EPS.next_down(),
        5e-324,
        -5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        1e308,
        -1e308,
        1.0,
    ]);
    prop_oneof![any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()), table, -1.0..1.0f64]
}

/// The formulas of the papers, as printed.
fn printed(head: Head, x: &[f64], t: usize) -> Vec<f64> {
    let e = RealHead::paper(head).regulariser;
    let relu = |v: f64| if v > 0.0 { v } else { 0.0 };
    let s: f64 = x.iter().map(|&v| relu(v)).sum();
    let cut: f64 = x.iter().filter(|&&v| v > EPS).sum();
    let z: f64 = x.iter().map(|v| v.exp()).sum();
    let regular: f64 = x.iter().map(|&v| relu(v) + e).sum();
    let formula = |(i, &x): (usize, &f64)| {
        let y = f64::from(u8::from(i == t));
        match head {
            Head::Softmax => x.exp() / z - y,
            Head::ReluProb if x < EPS => -y,
            Head::ReluProb => 1.0 / s - y / x,
            Head::ReluProbCut if x <= EPS => -y,
            Head::ReluProbCut => 1.0 / cut - y / x,
            Head::ReluGrad if s == 0.0 => -y,
            Head::ReluGrad => relu(x) / s - y,
            Head::ReluEps if x <= 0.0 => 0.0,
            Head::ReluEps => -(y - (relu(x) + e) / regular) / (x + e),
        }
    };
    x.iter().enumerate().map(formula).collect()
}

/// J_ij = d g_i / d x_j where no comparison turns, by hand.
fn jacobian(head: Head, x: &[f64], t: usize) -> Vec<Vec<f64>> {
    let at = RealHead::paper(head);
    let e = at.regulariser;
    let bit = |b: bool| f64::from(u8::from(b));
    let (m, a) = (|i: usize| bit(at.is_positive(x[i])), |i: usize| bit(at.is_above(x[i])));
    let s: f64 = (0..x.len()).map(|i| m(i) * x[i]).sum();
    let cut: f64 = (0..x.len()).map(|i| a(i) * x[i]).sum();
    let regular = s + x.len() as f64 * e;
    let p = at.probabilities(x);
    let element = |i: usize, j: usize| {
        let (own, true_class) = (bit(i == j), bit(i == j && i == t));
        match head {
            Head::Softmax => p[i] * (own - p[j]),
            // No positive logit, and so no other term.
            Head::ReluProb | Head::ReluGrad if s == 0.0 => 0.0,
            Head::ReluProb => -a(i) * m(j) / (s * s) + true_class * a(i) / (x[i] * x[i]),
            Head::ReluProbCut if cut == 0.0 => 0.0,
            Head::ReluProbCut => -a(i) * a(j) / (cut * cut) + true_class * a(i) / (x[i] * x[i]),
            Head::ReluGrad => m(i) * m(j) * (own - x[i] / s) / s,
            Head::ReluEps => -m(i) * m(j) / (regular * regular) + true_class * m(i) / (x[i] + e).powi(2),
        }
    };
    (0..x.len()).map(|i| (0..x.len()).map(|j| element(i, j)).collect()).collect()
}

/// Central difference of `f` at `x` in direction j, fourth order.
fn difference(x: &[f64], j: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let at = |h: f64| {
        let mut x = x.to_vec();
        x[j] += h;
        f(&x)
    };
    let h = 1e-3;
    (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
}

fn jacobians_are_slopes(x: &[f64], t: usize) {
    for head in Head::ALL {
        let at = RealHead::paper(head);
        let by_hand = jacobian(head, x, t);
        for (i, row) in by_hand.iter().enumerate() {
            for (j, by_hand) in row.iter().enumerate() {
                let slope = difference(x, j, |x| at.gradient(x, t).unwrap()[i]);
                // relu-grad with a sum as small as 0.02 bends fastest: the fifth derivative times h^4 is below 1e-2 of
                // it.
                let scale = by_hand.abs().max(1.0);
                assert!((by_hand - slope).abs() <= 1e-2 * scale, "{head} [{i}, {j}]: {by_hand} {slope}");
            }
        }
    }
}

#[test]
fn jacobians_without_a_positive_logit() {
    jacobians_are_slopes(&[-0.05; L], 0);
    jacobians_are_slopes(&[-3.0, -0.1], 1);
}

proptest! {
    #[test]
    fn gradients_are_the_printed_formulas((x, t) in row(clear_of_thresholds())) {
        for head in Head::ALL {
            let g = RealHead::paper(head).gradient(&x, t).unwrap();
            for (i, (g, printed)) in g.iter().zip(printed(head, &x, t)).enumerate() {
                // The printed forms cancel: their own rounding is of the order of the terms, at most 1/0.02 here.
                prop_assert!((g - printed).abs() <= 64.0 * f64::EPSILON * 50.0, "{head} [{i}]: {g} {printed}");
            }
        }
    }

    #[test]
    fn gradients_are_derivatives_of_the_losses((x, t) in row(clear_of_the_gap()), own in 0.15..8.0f64) {
        // Branch points excluded: 0 and eps (by construction), and a true logit below them, where the loss is infinite.
        let mut x = x;
        x[t] = own;
        for head in Head::ALL.into_iter().filter(|h| h.has_loss()) {
            let at = RealHead::paper(head);
            let g = at.gradient(&x, t).unwrap();
            for j in 0..x.len() {
                let slope = difference(&x, j, |x| at.loss(x, t).unwrap().unwrap());
                prop_assert!((g[j] - slope).abs() <= 1e-6, "{head} [{j}]: {} {slope}", g[j]);
            }
        }
    }

    #[test]
    fn relu_eps_has_a_loss_and_gradient_for_a_dead_true_class(
        (x, t) in row(clear_of_the_gap()),
        own in -5.0..-0.05f64,
    ) {
        let mut x = x;
        x[t] = own;
        let at = RealHead::paper(Head::ReluEps);
        let g = at.gradient(&x, t).unwrap();
        for j in 0..x.len() {
            let slope = difference(&x, j, |x| at.loss(x, t).unwrap().unwrap());
            prop_assert!((g[j] - slope).abs() <= 1e-6, "[{j}]: {} {slope}", g[j]);
        }
    }

    #[test]
    fn jacobians_at_ten_classes(x in prop::collection::vec(clear_of_thresholds(), L), t in 0..L) {
        jacobians_are_slopes(&x, t);
    }

    /// A gradient field has a symmetric Jacobian (Schwarz). relu-grad's is (q_j m_i - q_i m_j) / S away from that, so
    /// no loss exists; it is symmetric only where all positive logits are equal.
    #[test]
    fn only_relu_grad_has_an_unsymmetric_jacobian(
        x in prop::collection::vec(clear_of_the_gap(), L),
        t in 0..L,
        two in (1.0..2.0f64, 3.0..8.0f64),
    ) {
        let mut x = x;
        (x[0], x[1]) = two;
        for head in Head::ALL {
            let at = RealHead::paper(head);
            let slope = |i: usize, j: usize| difference(&x, j, |x| at.gradient(x, t).unwrap()[i]);
            let pairs = (0..L).flat_map(|i| (0..i).map(move |j| (i, j)));
            let worst = pairs.map(|(i, j)| (slope(i, j) - slope(j, i)).abs());
            let worst = worst.fold(0.0, f64::max);
            if head.has_loss() {
                prop_assert!(worst <= 1e-6, "{head}: {worst}");
            } else {
                let s: f64 = x.iter().map(|v| v.max(0.0)).sum();
                let proven = (x[1] - x[0]) / (s * s);
                prop_assert!(worst >= 0.99 * proven && proven > 1e-4, "{head}: {worst}, {proven}");
            }
        }
    }

    #[test]
    fn any_finite_logits_have_finite_bounded_gradients((x, t) in row(any_finite())) {
        for head in Head::ALL {
            let at = RealHead::paper(head);
            let g = at.gradient(&x, t).unwrap();
            let limit = match head {
                Head::Softmax | Head::ReluGrad => 1.0,
                Head::ReluProb | Head::ReluProbCut => 1.0 / EPS,
                Head::ReluEps => 1.0 / at.regulariser,
            };
            for (i, g) in g.iter().enumerate() {
                prop_assert!(g.abs() <= limit, "{head} [{i}]: {g}");
                prop_assert!(if i == t { *g <= 0.0 } else { *g >= 0.0 }, "{head} [{i}]: sign of {g}");
                prop_assert!(*g != 0.0 || g.is_sign_positive(), "{head} [{i}]: -0");
            }
            let p = at.probabilities(&x);
            prop_assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{head}: {p:?}");
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() <= 16.0 * f64::EPSILON, "{head}: {p:?}");
            let loss = at.loss(&x, t).unwrap();
            prop_assert_eq!(loss.is_some(), head.has_loss());
            prop_assert!(loss.is_none_or(|l| l >= 0.0), "{}: {:?}", head, loss);
            let infinite = match head {
                Head::Softmax => (x[argmax(&x)] - x[t]).is_infinite(),
                Head::ReluProb => x[t] <= 0.0,
                Head::ReluProbCut => x[t] <= EPS,
                Head::ReluGrad | Head::ReluEps => false,
            };
            prop_assert_eq!(loss == Some(f64::INFINITY), infinite, "{}: {:?}", head, loss);
        }
    }

    #[test]
    fn the_limit_one_over_epsilon_is_exact_for_every_epsilon(
        (x, t) in row(-0.5..0.5f64),
        epsilon in 1e-6..0.999f64,
        ulps in 0..4u64,
    ) {
        let mut x = x;
        x[t] = f64::from_bits(epsilon.to_bits() + ulps);
        for head in [Head::ReluProb, Head::ReluProbCut] {
            let g = RealHead { epsilon, ..RealHead::paper(head) }.gradient(&x, t).unwrap();
            prop_assert!(g.iter().all(|g| g.abs() <= 1.0 / epsilon), "{head}: {g:?}");
        }
    }

    #[test]
    fn rows_of_ratio_gradients_sum_to_zero((x, t) in row(any_finite())) {
        for head in [Head::Softmax, Head::ReluGrad] {
            let g = RealHead::paper(head).gradient(&x, t).unwrap();
            let sum: f64 = g.iter().sum();
            let dead = head == Head::ReluGrad && x.iter().all(|&v| v <= 0.0);
            prop_assert!((sum - if dead { -1.0 } else { 0.0 }).abs() <= 16.0 * f64::EPSILON, "{head}: {sum}");
        }
    }

    #[test]
    fn softmax_stays_inside_the_open_interval((x, t) in row(-15.0..15.0f64)) {
        let g = RealHead::paper(Head::Softmax).gradient(&x, t).unwrap();
        prop_assert!(g.iter().all(|g| -1.0 < *g && *g < 1.0 && *g != 0.0), "{g:?}");
    }

    #[test]
    fn relu_grad_knows_only_ratios((x, t) in row(-8.0..8.0f64), k in -900..900i32) {
        let at = RealHead::paper(Head::ReluGrad);
        let scaled: Vec<f64> = x.iter().map(|v| v * 2f64.powi(k)).collect();
        prop_assume!(scaled.iter().all(|v| v.is_normal()));
        prop_assert_eq!(at.gradient(&x, t).unwrap(), at.gradient(&scaled, t).unwrap());
    }

    #[test]
    fn natural_masks_change_nothing((x, t) in row(any_finite())) {
        for head in Head::ALL {
            let at = RealHead::paper(head);
            let forced = at.gradient_with_masks(&x, t, &at.branches(&x).masks).unwrap();
            prop_assert_eq!(at.gradient(&x, t).unwrap(), forced);
        }
    }

    /// The gradient of the other branch is the limit from the other side of the threshold.
    #[test]
    fn a_turned_mask_is_the_other_side_of_the_threshold(
        (x, t) in row(clear_of_thresholds()),
        i in 0..12usize,
        side in any::<bool>(),
    ) {
        let i = i % x.len();
        for head in Head::ALL {
            let at = RealHead::paper(head);
            let threshold = if matches!(head, Head::ReluProb | Head::ReluProbCut) { EPS } else { 0.0 };
            let delta = 1e-14 * if side { 1.0 } else { -1.0 };
            let (mut here, mut there) = (x.clone(), x.clone());
            (here[i], there[i]) = (threshold + delta, threshold - delta);
            let masks = at.branches(&there).masks;
            prop_assert!(head == Head::Softmax || masks != at.branches(&here).masks);
            let (forced, other) = (at.gradient_with_masks(&here, t, &masks).unwrap(), at.gradient(&there, t).unwrap());
            for (j, (f, o)) in forced.iter().zip(&other).enumerate() {
                // relu-eps has slope 1/e^2 at 0: 1e-14 there is 100 of 1e8.
                prop_assert!(relative_eq!(*f, *o, max_relative = 1e-5, epsilon = 1e-10), "{head} [{j}]: {f} {o}");
            }
        }
    }

    #[test]
    fn a_batch_is_its_rows((x, t) in row(any_finite()), (u, v) in (any_finite(), any_finite())) {
        let other: Vec<f64> = x.iter().map(|_| u).chain([v]).take(x.len()).collect();
        let batch = Array2::from_shape_vec((2, x.len()), [x.clone(), other.clone()].concat()).unwrap();
        let mut turned = Array2::zeros((x.len(), 2));
        turned.assign(&batch.t());
        for head in Head::ALL {
            let at = RealHead::paper(head);
            let expected = [at.gradient(&x, t).unwrap(), at.gradient(&other, 0).unwrap()].concat();
            let g = at.batch_gradient(&batch, &[t, 0]).unwrap();
            prop_assert_eq!(g.as_slice().unwrap(), &expected[..]);
            prop_assert_eq!(&at.batch_gradient(&turned.clone().reversed_axes(), &[t, 0]).unwrap(), &g);
        }
    }
}

/// Name, logits, true class, and by head (in the order of `Head::ALL`) the gradient.
struct Extreme(&'static str, [f64; 3], usize, [[f64; 3]; 5]);

#[test]
fn extreme_logits() {
    const B: f64 = 1e308;
    let third = 1.0 / 3.0;
    let e = RealHead::paper(Head::ReluEps).regulariser;
    let tiny = 5e-324;
    let cases = [
        Extreme(
            "all zero",
            [0.0, -0.0, 0.0],
            1,
            [[third, -2.0 * third, third], [0.0, -1.0, 0.0], [0.0, -1.0, 0.0], [0.0, -1.0, 0.0], [0.0; 3]],
        ),
        Extreme(
            "all negative",
            [-B, -B, -B],
            0,
            [[-2.0 * third, third, third], [-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0; 3]],
        ),
        Extreme(
            "sum overflows",
            [B, B, B],
            0,
            [
                [-2.0 * third, third, third],
                [-2.0 * third / B, third / B, third / B],
                [-2.0 * third / B, third / B, third / B],
                [-2.0 * third, third, third],
                [-2.0 * third / B, third / B, third / B],
            ],
        ),
        Extreme(
            "difference overflows",
            [B, -B, -B],
            1,
            [[1.0, -1.0, 0.0], [1.0 / B, -1.0, 0.0], [1.0 / B, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0 / B, 0.0, 0.0]],
        ),
        Extreme(
            "single positive, true",
            [-1.0, 2.0, -3.0],
            1,
            [
                [0.04712341652466415, -0.053500877447106444, 0.006377460922442297],
                [0.0; 3],
                [0.0; 3],
                [0.0; 3],
                [0.0, 0.0 - 2.0 * e / (2.0 + 3.0 * e) / (2.0 + e), 0.0],
            ],
        ),
        Extreme(
            "single positive, not true",
            [4.0, -2.0, 0.0],
            2,
            [
                [0.9796292071670796, 0.0024282580295913376, -0.9820574651966708],
                [0.25, 0.0, -1.0],
                [0.25, 0.0, -1.0],
                [1.0, 0.0, -1.0],
                [1.0 / (4.0 + 3.0 * e), 0.0, 0.0],
            ],
        ),
        Extreme(
            "subnormal",
            [tiny, tiny, -tiny],
            0,
            [
                [-2.0 * third, third, third],
                [-1.0, 0.0, 0.0],
                [-1.0, 0.0, 0.0],
                [-0.5, 0.5, 0.0],
                [-2.0 * third / e, third / e, 0.0],
            ],
        ),
        Extreme(
            "at the threshold",
            [0.1, 0.1, -B],
            0,
            [
                [-0.5, 0.5, 0.0],
                [-5.0, 5.0, 0.0],
                [-1.0, 0.0, 0.0],
                [-0.5, 0.5, 0.0],
                [-(0.1 + 2.0 * e) / (0.2 + 3.0 * e) / (0.1 + e), 1.0 / (0.2 + 3.0 * e), 0.0],
            ],
        ),
    ];
    for Extreme(name, x, t, expected) in cases {
        for (head, expected) in Head::ALL.into_iter().zip(expected) {
            let g = RealHead::paper(head).gradient(&x, t).unwrap();
            for (i, (g, expected)) in g.iter().zip(expected).enumerate() {
                assert!(
                    relative_eq!(*g, expected, epsilon = 0.0, max_relative = 1e-14),
                    "{name}, {head} [{i}]: {g:e} {expected:e}"
                );
            }
        }
    }
}

#[test]
fn losses_by_hand() {
    let loss = |head, x: &[f64], t| RealHead::paper(head).loss(x, t).unwrap();
    let near = |found: Option<f64>, expected: f64| {
        assert!(relative_eq!(found.unwrap(), expected, max_relative = 1e-14), "{found:?} {expected}")
    };
    near(loss(Head::Softmax, &[1.0, 1.0, 1.0, 1.0], 2), 4f64.ln());
    near(loss(Head::Softmax, &[0.0, 40.0], 1), (-40f64).exp());
    near(loss(Head::Softmax, &[0.0, 1e308], 0), 1e308);
    assert_eq!(loss(Head::Softmax, &[1e308, -1e308], 1), Some(f64::INFINITY));
    near(loss(Head::ReluProb, &[3.0, 1.0, -5.0, 0.05], 1), 4.05f64.ln());
    near(loss(Head::ReluProb, &[3.0, 0.05], 1), 61f64.ln());
    assert_eq!(loss(Head::ReluProb, &[1.0, 0.0], 1), Some(f64::INFINITY));
    assert_eq!(loss(Head::ReluProb, &[7.0, -1.0], 0), Some(0.0));
    near(loss(Head::ReluProb, &[1e308, 1e308, 1e308], 0), 3f64.ln());
    near(loss(Head::ReluProb, &[1e308, 1e308, 5e-324], 2), 2f64.ln() + 1e308f64.ln() - 5e-324f64.ln());
    near(loss(Head::ReluProbCut, &[3.0, 1.0, -5.0, 0.05], 1), 4f64.ln());
    assert_eq!(loss(Head::ReluProbCut, &[3.0, 0.1], 1), Some(f64::INFINITY));
    assert_eq!(loss(Head::ReluGrad, &[3.0, 0.1], 1), None);
    near(loss(Head::ReluEps, &[-1.0, 1.0], 0), ((1.0 + 2e-8) / 1e-8f64).ln());
    near(loss(Head::ReluEps, &[f64::MAX, f64::MAX, -1.0], 2), 2f64.ln() + f64::MAX.ln() + 1e8f64.ln());
}

#[test]
fn probabilities_by_hand() {
    let p = |head, x: &[f64]| RealHead::paper(head).probabilities(x);
    for head in [Head::ReluProb, Head::ReluProbCut, Head::ReluGrad, Head::ReluEps] {
        assert_eq!(p(head, &[-1.0, 0.0, -0.0, -1e308]), [0.25; 4]);
    }
    assert_eq!(p(Head::ReluGrad, &[1.0, -2.0, 3.0]), [0.25, 0.0, 0.75]);
    assert_eq!(p(Head::ReluProb, &[0.0625, -2.0, 0.1875]), [0.25, 0.0, 0.75]);
    assert_eq!(p(Head::ReluProbCut, &[0.0625, -2.0, 0.1875]), [0.0, 0.0, 1.0]);
    assert_eq!(p(Head::ReluGrad, &[1e308, 1e308, 1e308, 1e308]), [0.25; 4]);
    let at = RealHead { regulariser: 0.25, ..RealHead::paper(Head::ReluEps) };
    assert_eq!(at.probabilities(&[-1.0, 0.5]), [0.25, 0.75]);
    assert_eq!(p(Head::Softmax, &[]), Vec::<f64>::new());
}

#[test]
fn what_is_not_finite_stays_visible() {
    for head in Head::ALL {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let at = RealHead::paper(head);
            assert!(at.gradient(&[1.0, bad], 0).unwrap().iter().all(|g| g.is_nan()), "{head} {bad}");
            assert!(at.probabilities(&[1.0, bad]).iter().all(|g| g.is_nan()), "{head} {bad}");
            assert!(at.loss(&[1.0, bad], 0).unwrap().is_none_or(f64::is_nan), "{head} {bad}");
        }
    }
}

#[test]
fn mean_losses_of_batches() {
    let logits = array![[3.0, 1.0], [1.0, 3.0], [-1.0, 2.0]];
    let mean = |head, labels: &[usize]| RealHead::paper(head).mean_loss(&logits, labels);
    let expected = (4f64.ln() + 4f64.ln()) / 3.0;
    assert!(relative_eq!(mean(Head::ReluProb, &[1, 0, 1]).unwrap().unwrap(), expected, max_relative = 1e-14));
    assert_eq!(mean(Head::ReluProb, &[0, 0, 0]).unwrap(), Some(f64::INFINITY));
    assert_eq!(mean(Head::ReluGrad, &[0, 0, 0]).unwrap(), None);
    assert_eq!(mean(Head::Softmax, &[0, 0]).unwrap_err(), Error::LabelCount { rows: 3, labels: 2 });
    let nothing = RealHead::paper(Head::Softmax).mean_loss(&Array2::zeros((0, 4)), &[]);
    assert_eq!(nothing.unwrap_err(), Error::Empty);
}

#[test]
fn bad_labels_and_masks_are_errors() {
    let at = RealHead::paper(Head::ReluProb);
    assert_eq!(at.gradient(&[1.0, 2.0], 2).unwrap_err(), Error::Label { row: 0, label: 2, classes: 2 });
    assert_eq!(at.loss(&[], 0).unwrap_err(), Error::Label { row: 0, label: 0, classes: 0 });
    let masks = Masks { positive: vec![true; 2], above: vec![true; 3] };
    let error = at.gradient_with_masks(&[1.0, 2.0], 0, &masks).unwrap_err().to_string();
    assert_eq!(error, "masks have 2 and 3 elements; the row has 2 logits, give as many of each");
}

/// The probed intermediates give the gradient by section 9 of the arithmetic.
#[test]
fn intermediates_compose_to_the_gradient() {
    let logits = array![[0.5, -1.0, 2.0, 0.05], [-1.0, -2.0, -0.5, -3.0], [0.05, 0.2, 0.0, 4.0]];
    let labels = [2, 1, 0];
    for head in Head::ALL {
        let at = RealHead { regulariser: 2f64.powi(-16), ..RealHead::paper(head) };
        let points = at.intermediates(&logits, &labels);
        let get = |point| &points.iter().find(|p| p.0 == point).unwrap_or_else(|| panic!("{head}: {point:?}")).1;
        let g = at.batch_gradient(&logits, &labels).unwrap();
        for ((b, i), &g) in g.indexed_iter() {
            let (x, y) = (logits[[b, i]], f64::from(u8::from(labels[b] == i)));
            let (positive, above) = (f64::from(u8::from(x > 0.0)), f64::from(u8::from(at.is_above(x))));
            let composed = match head {
                Head::Softmax => {
                    let v = (x - get(HeadPoint::Maximum)[[b, 0]]).exp();
                    assert_eq!(v, get(HeadPoint::Exp)[[b, i]]);
                    assert!(relative_eq!(v / get(HeadPoint::Sum)[[b, 0]], get(HeadPoint::Quotient)[[b, i]]));
                    get(HeadPoint::Quotient)[[b, i]] - y
                }
                Head::ReluGrad => {
                    let (r, s) = (get(HeadPoint::Positive)[[b, i]], get(HeadPoint::Sum)[[b, 0]]);
                    let q = if s > 0.0 { r / s } else { 0.0 };
                    assert!(relative_eq!(q, get(HeadPoint::Quotient)[[b, i]]));
                    q - y
                }
                _ => {
                    let r = get(HeadPoint::Reciprocal);
                    let a = if head == Head::ReluEps { positive } else { above };
                    let dead = if head == Head::ReluEps { 0.0 } else { y * (1.0 - a) };
                    a * r[[b, 0]] - y * a * r[[b + 3, 0]] - dead
                }
            };
            assert!(
                relative_eq!(g, composed, epsilon = 1e-14, max_relative = 1e-12),
                "{head} [{b}, {i}]: {g} {composed}"
            );
        }
        if let Some((_, positive)) = points.iter().find(|p| p.0 == HeadPoint::Positive) {
            let sums = get(HeadPoint::Sum);
            let regular = if head == Head::ReluEps { 4.0 * at.regulariser } else { 0.0 };
            for b in 0..3 {
                assert!(relative_eq!(positive.row(b).sum() + regular, sums[[b, 0]], epsilon = 1e-14), "{head} {b}");
            }
        }
    }
}

/// What the other sides open of the reciprocals, by hand: of S, where a sum of 0 counts as the regulariser, then of the
/// true class's denominator.
#[test]
fn reciprocals_by_hand() {
    let logits = array![[-1.0, -2.0], [0.05, 0.35], [0.05, 0.35], [4.0, 1.0]];
    let labels = [0, 0, 1, 0];
    let reciprocals = |head| {
        let head = RealHead { regulariser: 0.25, ..RealHead::paper(head) };
        let (point, values) = head.intermediates(&logits, &labels).pop().unwrap();
        assert_eq!((point, values.dim()), (HeadPoint::Reciprocal, (8, 1)));
        values.into_raw_vec_and_offset().0
    };
    let near = |found: Vec<f64>, expected: [f64; 8]| {
        assert!(found.iter().zip(expected).all(|(a, b)| relative_eq!(*a, b, max_relative = 1e-14)), "{found:?}");
    };
    // A true class at or below eps keeps its denominator of 1.
    near(reciprocals(Head::ReluProb), [4.0, 2.5, 2.5, 0.2, 1.0, 1.0, 1.0 / 0.35, 0.25]);
    near(reciprocals(Head::ReluProbCut), [4.0, 1.0 / 0.35, 1.0 / 0.35, 0.2, 1.0, 1.0, 1.0 / 0.35, 0.25]);
    near(reciprocals(Head::ReluEps), [2.0, 1.0 / 0.9, 1.0 / 0.9, 1.0 / 5.5, 4.0, 1.0 / 0.3, 1.0 / 0.6, 1.0 / 4.25]);
}

#[test]
fn a_run_regularises_by_one_unit_of_its_format() {
    use spec::{FixedSpec, NetworkSpec, Rounding, SgdSpec};
    for (fraction_bits, regulariser) in [(16, 1.0 / 65536.0), (8, 1.0 / 256.0)] {
        let head = RealHead::of(&TrainSpec {
            network: NetworkSpec { widths: vec![2, 2] },
            head: Head::ReluEps,
            epsilon: 0.25,
            rounding: Rounding::Nearest,
            fixed: FixedSpec { fraction_bits, value_bits: 24 },
            sgd: SgdSpec::default(),
        });
        assert_eq!((head.head, head.epsilon, head.regulariser), (Head::ReluEps, 0.25, regulariser));
    }
}
