use super::*;
use crate::compare::real as decoded;
use crate::network;
use crate::testing::{self, Integer, inputs, spec};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use reference::fixed::Coins;

/// For each tensor the part of its elements beyond `factor` deviations, and the largest error / radius, over many coins
/// from one start.
fn beyond(spec: &TrainSpec, seed: u64, draws: u64, factor: f64) -> BTreeMap<ProbePoint, (f64, f64)> {
    let (parameters, batch) = inputs(spec, &mut ChaCha12Rng::seed_from_u64(seed));
    let real = testing::real(spec, &parameters, &batch);
    let start = parameters.decode(spec.fixed, &spec.sgd);
    let worst = network::step(spec, &start, &batch.reals, &batch.labels, &real).unwrap();
    let radii = step(spec, &start, &batch.reals, &batch.labels, &real, &worst, factor).unwrap().unwrap();
    let mut found: BTreeMap<ProbePoint, (f64, f64)> = BTreeMap::new();
    for draw in 0..draws {
        let mut integer = Integer::with_coins(spec.clone(), Coins::seeded(draw));
        integer.load(&parameters);
        let units = integer.step(&batch);
        assert_eq!(integer.violations.total(), 0);
        for (point, radius) in &radii {
            assert!(
                Zip::from(radius).and(&worst[point].radius).all(|r, w| r <= w),
                "{point}: never above the worst case"
            );
            let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
            let jumping: Vec<usize> = worst[point].ambiguous.iter().flat_map(|a| a.elements.clone()).collect();
            let entry = found.entry(*point).or_default();
            for (flat, ((&r, &f), &u)) in radius.iter().zip(&real[point]).zip(&units[point]).enumerate() {
                let error = (decoded(u, scale) - f).abs();
                if !jumping.contains(&flat) && error > 0.0 {
                    entry.0 += f64::from(u8::from(error > r)) / (radius.len() as f64 * draws as f64);
                    entry.1 = entry.1.max(error / r);
                }
            }
        }
    }
    found
}

#[test]
fn coins_exceed_few_deviations_as_rarely_as_promised() {
    for head in Head::ALL {
        for layers in 1..=3 {
            for (factor, seed) in [(1.8, 1), (3.0, 2)] {
                let spec = spec(head, Rounding::Probabilistic, layers, if seed == 2 { 5 } else { 0 });
                let allowed = 2.0 * f64::exp(-factor * factor / 2.0);
                for (point, (part, _)) in beyond(&spec, seed, 12, factor) {
                    assert!(
                        part <= allowed,
                        "{head} {layers} layers, {factor} deviations: {point} {part} of {allowed}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_element_leaves_the_bound_of_a_run_and_the_largest_come_near_it() {
    let k = factor(1 << 25);
    assert!((9.5..9.7).contains(&k), "{k}");
    for layers in 1..=3 {
        let spec = spec(Head::Softmax, Rounding::Probabilistic, layers, 0);
        for (point, (part, closest)) in beyond(&spec, 7, 12, k) {
            assert_eq!(part, 0.0, "{point}");
            let tight = matches!(point, ProbePoint::Logits | ProbePoint::HeadGradient | ProbePoint::WeightGradient(_));
            assert!(!tight || closest > 0.125, "{layers} layers, {point}: {closest}");
        }
    }
}

/// One reciprocal serves a whole row, so weights of one sign add its coin up: ten classes, ten times half a unit.
#[test]
fn a_coin_that_the_classes_of_a_row_share_is_not_taken_for_ten() {
    for head in [Head::ReluProb, Head::ReluProbCut, Head::ReluEps] {
        let spec = spec(head, Rounding::Probabilistic, 1, 0);
        let rules = HeadRules::fixed(&spec);
        let none = [0.0; 10];
        let logits = Logits { x: &[1.0; 10], fixed: &none, deviation: &none, radius: &none, label: 3 };
        let elements = logits.gradient(&spec, &rules).expect("nothing is undecided");
        let row = |of: fn(&Element) -> f64| Array2::from_shape_fn((1, 10), |(_, i)| of(&elements[i]));
        let g = Split { fixed: row(|e| e.fixed), fresh: row(|e| e.fresh), inherited: row(|e| e.inherited) };
        let through = g.product(Array2::ones((10, 1)).view(), 0.0);
        let coin = rules.errors.unit / 2.0;
        assert!(through.inherited[[0, 0]] >= 10.0 * coin, "{head}: {} of {coin}", through.inherited[[0, 0]]);
        assert!(g.squared()[[0, 3]].sqrt() >= 2f64.sqrt() * coin, "{head}: the label has a coin of its own");
    }
}

#[test]
fn the_failure_probability_is_the_stated_one() {
    for n in [1, 1000, 1 << 40] {
        let k = factor(n);
        let log2 = 1.0 + (n as f64).log2() - k * k / 2.0 / std::f64::consts::LN_2;
        assert!((log2 - f64::from(LOG2_FAILURE)).abs() < 1e-9, "{log2}");
    }
    let nearest = spec(Head::Softmax, Rounding::Nearest, 1, 0);
    let (parameters, batch) = inputs(&nearest, &mut ChaCha12Rng::seed_from_u64(1));
    let start = parameters.decode(nearest.fixed, &nearest.sgd);
    let none = step(&nearest, &start, &batch.reals, &batch.labels, &Tensors::new(), &Bounds::new(), 9.0);
    assert_eq!(none, Ok(None), "no coins, no statistics");
}

/// Whether a number is what its rule says, but for the rounding of f64.
fn near(number: f64, rule: f64) -> bool {
    (number - rule).abs() <= 1e-8 * rule.abs()
}

/// The table of the module, one element at a time: what is wider than its rule proves less than it should.
#[test]
fn sums_of_a_step_are_those_of_the_table() {
    let spec = spec(Head::Softmax, Rounding::Probabilistic, 2, 0);
    let (parameters, batch) = inputs(&spec, &mut ChaCha12Rng::seed_from_u64(3));
    let real = testing::real(&spec, &parameters, &batch);
    let start = parameters.decode(spec.fixed, &spec.sgd);
    let worst = network::step(&spec, &start, &batch.reals, &batch.labels, &real).unwrap();
    let mut walk = Walk::new(&spec, &start, &real, &worst, 9.0);
    let (inputs, logits) = walk.forward(&batch.reals);
    // Pixels and biases are exact, so the first layer errs by the worst case without its coin, and by f64.
    let first = walk.pre_activation(1, &inputs[0]).fixed;
    Zip::from(&first).and(&worst[&ProbePoint::PreActivation(1)].radius).for_each(|&fixed, &r| {
        assert!(near(fixed, (r - walk.errors.truncate).max(0.0) + 4.0 * f64::EPSILON * r) && fixed > 0.0);
    });
    let ((x, error), w) = (&inputs[1], start[1].weights.mapv(f64::abs));
    let (n, coin) = (x.ncols(), 0.5 / spec.fixed.one() as f64);
    for ((r, j), &fixed) in logits.fixed.indexed_iter() {
        let sum = |term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
        let own = gamma(n + 2) * (sum(&|k| x[[r, k]] * w[[k, j]]) + start[1].bias[j].abs());
        assert!(near(fixed, sum(&|k| error.fixed[[r, k]] * w[[k, j]]) + own));
        let fresh = sum(&|k| error.fresh[[r, k]] * w[[k, j]] * w[[k, j]]);
        let earlier = sum(&|k| error.inherited[[r, k]] * w[[k, j]]);
        assert!(near(logits.inherited[[r, j]], fresh.sqrt().hypot(earlier)) && logits.fresh[[r, j]] == coin * coin);
    }
    let g = head(&spec, &batch.labels, &real, &logits, &worst);
    let g_abs = real[&ProbePoint::HeadGradient].mapv(f64::abs);
    let ((dw, dw_squared), (db, db_squared)) = walk.gradients(2, &inputs[1], &g, (ProbePoint::HeadGradient, &g_abs));
    let (rows, own) = (x.nrows(), gamma(x.nrows() + 2));
    let (r_x, r_g) = (&worst[&ProbePoint::Activation(1)].radius, &worst[&ProbePoint::HeadGradient].radius);
    let (s_x, s_g) = (error.squared(), g.squared());
    for ((k, j), &fixed) in dw.indexed_iter() {
        let sum = |term: &dyn Fn(usize) -> f64| (0..rows).map(term).sum::<f64>();
        let through = sum(&|r| x[[r, k]] * (g.fixed[[r, j]] + own * g_abs[[r, j]]));
        let input = sum(&|r| error.fixed[[r, k]] * g_abs[[r, j]] + r_x[[r, k]] * r_g[[r, j]]);
        assert!(near(fixed, through + input));
        let deviation = sum(&|r| x[[r, k]] * x[[r, k]] * s_g[[r, j]]).sqrt()
            + sum(&|r| s_x[[r, k]] * g_abs[[r, j]] * g_abs[[r, j]]).sqrt();
        assert!(near(dw_squared[[k, j]], deviation * deviation));
        assert!(near(db[[0, j]], sum(&|r| g.fixed[[r, j]] + own * g_abs[[r, j]])));
        assert!(near(db_squared[[0, j]], sum(&|r| s_g[[r, j]])));
    }
}

#[test]
fn radii_of_an_update_are_those_of_the_table() {
    for extra in [0, 5] {
        let spec = spec(Head::Softmax, Rounding::Probabilistic, 1, extra);
        let points = ParameterPoints::weights(1);
        let one = |v: f64| Array2::from_elem((1, 1), v);
        let (v, w, d, after) = (-0.5f64, -2.0f64, -3.0f64, -0.25f64);
        let real = Tensors::from([(points.gradient, one(d)), (points.velocity, one(after))]);
        let none = || network::Bounded { radius: one(f64::INFINITY), ambiguous: Vec::new() };
        let worst = Bounds::from([(points.gradient, none()), (points.velocity, none()), (points.value, none())]);
        let mut radii = Radii::new();
        let (fixed, squared) = (1e-4f64, 4e-8f64);
        update(&spec, points, (&one(v), &one(w)), (one(fixed), one(squared)), (&real, &worst, 9.0), &mut radii)
            .unwrap();
        let units = spec.sgd.units(spec.fixed).unwrap();
        let (rate, exact) = (units.real_rate(), spec.sgd.learning_rate / spec.sgd.batch as f64);
        let off = v.abs() * (units.real_momentum() - spec.sgd.momentum).abs() + d.abs() * (rate - exact).abs();
        let coin = 0.5 / spec.fixed.one() as f64;
        let fresh = coin / 2f64.powi(extra as i32);
        let velocity = off + rate * fixed + gamma(8) * (exact * d.abs() + spec.sgd.momentum * v.abs());
        let deviation = (rate * rate * squared + fresh * fresh).sqrt();
        let value = velocity + gamma(8) * (w.abs() + after.abs());
        let again = if extra > 0 { deviation.hypot(coin) } else { deviation };
        assert!(near(radii[&points.gradient][[0, 0]], fixed + 9.0 * squared.sqrt()));
        assert!(near(radii[&points.velocity][[0, 0]], velocity + 9.0 * deviation), "{extra}");
        assert!(near(radii[&points.value][[0, 0]], value + 9.0 * again), "{extra}");
    }
}

#[test]
fn what_is_masked_is_zero_and_what_hangs_on_a_comparison_has_the_worst_case() {
    let full = |v: f64| Array2::from_elem((1, 5), v);
    let split = Split { fixed: full(1.0), fresh: full(2.0), inherited: full(3.0) };
    let z = Array2::from_shape_vec((1, 5), vec![1.0, 0.5, 0.0, -0.5, -1.0]).unwrap();
    let masked = split.masked(&z, &full(0.5), &full(7.0));
    let row = |t: &Array2<f64>| t.iter().copied().collect::<Vec<_>>();
    assert_eq!(row(&masked.fixed), [1.0, 7.0, 7.0, 0.0, 0.0]);
    assert_eq!(
        (row(&masked.fresh), row(&masked.inherited)),
        (vec![2.0, 0.0, 0.0, 0.0, 0.0], vec![3.0, 0.0, 0.0, 0.0, 0.0])
    );
    assert_eq!(row(&radius(&full(1.0), &full(4.0), &full(6.0), 3.0)), row(&full(6.0)), "the worst case is smaller");
}

/// Five logits: three that count, one that is far below, one whose ReLU passes 0 inside its box.
const RADIUS: [f64; 4] = [0.01, 0.02, 0.03, 0.015];
const FIXED: [f64; 5] = [1e-3, 2e-3, 3e-3, 4e-3, 1e-6];
const DEVIATION: [f64; 5] = [2e-4, 3e-4, 5e-4, 7e-4, 1e-7];
const LABEL: usize = 2;

/// D, fresh^2 and inherited of every class, by the module's text on heads, one element at a time.
fn by_hand(spec: &TrainSpec, rules: &HeadRules, x: &[f64; 5], radius: &[f64; 5]) -> Vec<(f64, f64, f64)> {
    let boxes: Vec<_> = x.iter().zip(radius).map(|(&x, &r)| Interval::around(x, r)).collect();
    let row = rules.enclose(&boxes, LABEL, &rules.decide(x, &boxes)).unwrap();
    let (q, sum) = (row.of(&ProbePoint::Head(HeadPoint::Quotient)), row.of(&ProbePoint::Head(HeadPoint::Sum))[0].lo);
    let (errors, h, spread, positive) = (&rules.errors, rules.errors.unit / 2.0, 0.03f64, [0, 2, 3]);
    let part = |k: usize| if positive.contains(&k) { 1.0 } else { 0.0 };
    let same = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
    let over = |v: &[f64; 5], a: &dyn Fn(usize) -> f64| (0..5).map(|j| a(j).abs() * v[j]).sum::<f64>();
    let of = |i: usize| match spec.head {
        Head::Softmax => {
            let e = x.map(f64::exp);
            let p = e.map(|v| v / e.iter().sum::<f64>());
            let j = |k: usize| p[i] * (same(i, k) - p[k]);
            let below = |k: usize| x[k] - 2.0 < -spec.fixed.exp_cut() as f64 * errors.unit;
            let eta = [0, 1, 2, 3, 4]
                .map(|k| errors.exp((x[k] - 2.0 + 2.0 * spread).min(0.0).exp(), -(x[k] - 2.0 - 2.0 * spread)));
            let delta = [0, 1, 2, 3, 4].map(|k| eta[k] - errors.exp_absolute + if below(k) { h } else { 0.0 });
            let m = |k: usize| (if i == k { 1.0 - q[i].lo } else { q[i].hi }) / sum;
            let squares = (0..5).map(|k| m(k) * m(k)).sum::<f64>();
            let fixed = over(&FIXED, &j)
                + 3.0 * q[i].hi * spread * spread
                + over(&delta, &m)
                + over(&eta, &m) * eta.iter().sum::<f64>() / sum
                + q[i].hi * errors.inverse;
            (fixed, h * h, over(&DEVIATION, &j).hypot(h * squares.sqrt()))
        }
        _ if part(i) == 0.0 => (0.0, 0.0, 0.0),
        Head::ReluGrad => {
            let j = |k: usize| part(k) * (same(i, k) - x[i] / 3.5) / 3.5;
            let rest = (3.0 + q[i].hi * 9.0) * spread * spread / (sum * sum);
            (over(&FIXED, &j) + rest + q[i].hi * errors.inverse, h * h, over(&DEVIATION, &j))
        }
        head => {
            let regulariser = if head == Head::ReluEps { errors.unit } else { 0.0 };
            // Where the ReLU of relu-prob passes 0 the term is anything in its box.
            let passes = if head == Head::ReluProb { 0.5 * errors.unit } else { 0.0 };
            let [fixed, deviation] =
                [(&FIXED, passes), (&DEVIATION, 0.0)].map(|(v, last)| [v[0], 0.0, v[2], v[3], last]);
            let (t, z) = (3.5 + 5.0 * regulariser, 2.0 + regulariser);
            let (r_t, z_low) = (0.055 + passes, 2.0 - 0.03 + regulariser);
            let rest = r_t * r_t / (t * t * sum);
            if i != LABEL {
                let j = |_| 1.0 / (t * t);
                return (over(&fixed, &j) + rest + errors.inverse / sum, 0.0, over(&deviation, &j).hypot(h));
            }
            let j = |k: usize| if k == LABEL { 1.0 / (z * z) - 1.0 / (t * t) } else { 1.0 / (t * t) };
            let rest = rest + 0.03 * 0.03 / (z * z * z_low) + errors.inverse * (1.0 / sum + 1.0 / z_low);
            (over(&fixed, &j) + rest, h * h, over(&deviation, &j).hypot(h))
        }
    };
    (0..5).map(of).collect()
}

#[test]
fn heads_are_those_of_the_table() {
    for head in Head::ALL {
        let spec = spec(head, Rounding::Probabilistic, 1, 0);
        let rules = HeadRules::fixed(&spec);
        let unit = rules.errors.unit;
        let x = [1.0, -40.0, 2.0, 0.5, -0.3 * unit];
        let radius = [RADIUS[0], RADIUS[1], RADIUS[2], RADIUS[3], 0.5 * unit];
        let logits = Logits { x: &x, fixed: &FIXED, deviation: &DEVIATION, radius: &radius, label: LABEL };
        let elements = logits.gradient(&spec, &rules).expect("every comparison is decided");
        for (i, (e, (fixed, fresh, inherited))) in elements.iter().zip(by_hand(&spec, &rules, &x, &radius)).enumerate()
        {
            assert!(near(e.fixed, fixed), "{head}, class {i}: {} for {fixed}", e.fixed);
            assert!(near(e.fresh, fresh), "{head}, class {i}: {} for {fresh}", e.fresh);
            assert!(near(e.inherited, inherited), "{head}, class {i}: {} for {inherited}", e.inherited);
        }
    }
}

/// Every tensor but the inside of the head has a radius of its own: a bound that is left out would be the worst case,
/// which a mistake may hide in.
#[test]
fn no_tensor_is_left_to_the_worst_case() {
    for layers in 1..=3 {
        let spec = spec(Head::Softmax, Rounding::Probabilistic, layers, 0);
        let (parameters, batch) = inputs(&spec, &mut ChaCha12Rng::seed_from_u64(4));
        let real = testing::real(&spec, &parameters, &batch);
        let start = parameters.decode(spec.fixed, &spec.sgd);
        let worst = network::step(&spec, &start, &batch.reals, &batch.labels, &real).unwrap();
        let radii = step(&spec, &start, &batch.reals, &batch.labels, &real, &worst, 9.0).unwrap().unwrap();
        let of_layers = worst.keys().filter(|point| !matches!(point, ProbePoint::Head(_)));
        assert!(radii.keys().eq(of_layers), "{:?}", radii.keys());
    }
}
