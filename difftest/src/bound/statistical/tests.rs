use super::super::network;
use super::super::network::tests::{inputs, spec};
use super::*;
use crate::compare::real as decoded;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::{Opens, Side};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use reference::fixed::{Coins, Tape};

/// For each tensor the part of its elements beyond `factor` deviations, and the largest error / radius, over many coins
/// from one start.
fn beyond(spec: &TrainSpec, seed: u64, draws: u64, factor: f64) -> BTreeMap<ProbePoint, (f64, f64)> {
    let (parameters, batch) = inputs(spec, &mut ChaCha12Rng::seed_from_u64(seed));
    let mut f64_side = Real::new(spec.clone(), &parameters).unwrap();
    let real = f64_side.step(&batch, Tape::default()).unwrap().tensors;
    let start = parameters.decode(spec.fixed, &spec.sgd);
    let worst = network::step(spec, &start, &batch.reals, &batch.labels, &real).unwrap();
    let radii = step(spec, &start, &batch.reals, &batch.labels, &real, &worst, factor).unwrap().unwrap();
    let mut found: BTreeMap<ProbePoint, (f64, f64)> = BTreeMap::new();
    for draw in 0..draws {
        let mut integer = Integer::with_coins(spec.clone(), Coins::seeded(draw)).unwrap();
        integer.load(&parameters).unwrap();
        let units = integer.step(&batch, Tape::default()).unwrap().tensors;
        assert!(integer.parameters().is_ok() && integer.violations.total() == 0);
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
