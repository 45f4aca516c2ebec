//! Whole steps: every probed tensor against direct formulas in real numbers from the tensors before it.

use super::*;
use crate::fixed::{LayerUnits, Rounded, Tape, truncate};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};
use std::collections::HashMap;

fn spec(widths: &[usize], head: Head, rounding: Rounding, batch: usize, extra_velocity_bits: u32) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: widths.to_vec() },
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch, extra_velocity_bits, learning_rate: 0.1, ..SgdSpec::default() },
    }
}

/// A loaded model, data and labels: weights within 1, velocities within 1/16.
fn random(spec: TrainSpec, seed: u64) -> (Model, Array2<i64>, Vec<usize>) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let (batch, classes, inputs) = (spec.sgd.batch, spec.network.classes(), spec.network.inputs());
    let mut model = Model::new(spec).unwrap();
    let mut parameters = model.parameters().clone();
    for LayerUnits { weights, bias, weight_velocity, bias_velocity } in &mut parameters.layers {
        weights.iter_mut().chain(bias).for_each(|v| *v = rng.random_range(-65536..=65536));
        weight_velocity.iter_mut().chain(bias_velocity).for_each(|v| *v = rng.random_range(-4096..=4096));
    }
    model.load(parameters).unwrap();
    let x = Array2::from_shape_simple_fn((batch, inputs), || rng.random_range(0..65536));
    let labels = (0..batch).map(|_| rng.random_range(0..classes)).collect();
    (model, x, labels)
}

fn near(found: &Array2<i64>, exact: &Array2<f64>, bound: f64, what: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.dim(), exact.dim(), "{}", what);
    for ((index, &found), &exact) in found.indexed_iter().zip(exact) {
        prop_assert!((found as f64 - exact).abs() <= bound + 1e-4, "{what}{index:?}: {found}, exactly {exact}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_tensor_is_its_formula_within_its_truncation(
        seed: u64,
        depth in 1usize..=3,
        which in (0usize..5, 0usize..2),
        extra in prop_oneof![Just(0u32), Just(6)],
        batch in 1usize..6,
    ) {
        let widths: Vec<usize> = [7, 5, 4].into_iter().take(depth).chain([3]).collect();
        let spec = spec(&widths, Head::ALL[which.0], Rounding::ALL[which.1], batch, extra);
        let (mut model, x, labels) = random(spec.clone(), seed);
        let before = model.parameters().clone();
        let mut seen = HashMap::new();
        let mut see = |at, v: &Array2<i64>| assert!(seen.insert(at, v.clone()).is_none());
        model.step(&x, &labels, &mut Coins::seeded(seed), &mut see).unwrap();
        let (h, unit) = (truncate::error_units(spec.rounding), 1.0 / 65536.0);
        let real = |v: &Array2<i64>| v.mapv(|v| v as f64);
        let sgd = spec.sgd.units(spec.fixed).unwrap();
        let (rate, momentum) = (sgd.real_rate(), sgd.real_momentum());
        let lift = 2f64.powi(extra as i32);
        let mut input = x;
        for (l, old) in (1..).zip(&before.layers) {
            let last = l == depth;
            let z = real(&input).dot(&real(&old.weights)) * unit + old.bias.mapv(|b| b as f64);
            let (at, g) = match last {
                true => (ProbePoint::Logits, &seen[&ProbePoint::HeadGradient]),
                false => (ProbePoint::PreActivation(l), &seen[&ProbePoint::ActivationGradient(l)]),
            };
            near(&seen[&at], &z, h, "Z")?;
            if !last {
                prop_assert_eq!(&seen[&ProbePoint::Activation(l)], &seen[&at].mapv(|z| z.max(0)));
                let above = match l + 1 == depth {
                    true => ProbePoint::HeadGradient,
                    false => ProbePoint::ActivationGradient(l + 1),
                };
                let back = real(&seen[&above]).dot(&real(&before.layers[l].weights).t()) * unit;
                let back = back * seen[&at].mapv(|z| if z > 0 { 1.0 } else { 0.0 });
                near(g, &back, h, "G")?;
            }
            let (dw, db) = (real(&input).t().dot(&real(g)), real(g).sum_axis(Axis(0)).insert_axis(Axis(0)));
            near(&seen[&ProbePoint::WeightGradient(l)], &dw, 0.0, "dW")?;
            near(&seen[&ProbePoint::BiasGradient(l)], &db, 0.0, "db")?;
            let v_w = real(&old.weight_velocity) * momentum - dw * (rate * unit * lift);
            let v_b = real(&row(&old.bias_velocity)) * momentum - db * (rate * lift);
            near(&seen[&ProbePoint::WeightVelocity(l)], &v_w, h, "V_W")?;
            near(&seen[&ProbePoint::BiasVelocity(l)], &v_b, h, "V_b")?;
            let moved = if extra == 0 { 0.0 } else { h };
            let w = real(&old.weights) + real(&seen[&ProbePoint::WeightVelocity(l)]) / lift;
            let b = real(&row(&old.bias)) + real(&seen[&ProbePoint::BiasVelocity(l)]) / lift;
            near(&seen[&ProbePoint::Weights(l)], &w, moved, "W")?;
            near(&seen[&ProbePoint::Bias(l)], &b, moved, "b")?;
            let new = &model.parameters().layers[l - 1];
            let (weights, bias) = (&seen[&ProbePoint::Weights(l)], &seen[&ProbePoint::Bias(l)]);
            prop_assert_eq!((&new.weights, &row(&new.bias)), (weights, bias));
            if !last {
                input = seen[&ProbePoint::Activation(l)].clone();
            }
        }
        prop_assert_eq!(model.monitor().total(), 0, "{:?}", model.monitor().violations().first());
    }
}

/// The names and sizes of section 2's truncations in one step of two layers, two rows, three classes.
fn names(head: Head) -> Vec<(&'static str, usize)> {
    let mut names = vec![("layer1/forward", 8), ("layer2/forward", 6), ("layer2/backward", 8)];
    names.extend([
        ("layer1/update/weights", 20),
        ("layer1/update/bias", 4),
        ("layer2/update/weights", 12),
        ("layer2/update/bias", 3),
    ]);
    let both = matches!(head, Head::ReluProb | Head::ReluProbCut | Head::ReluEps);
    let column = if both { 4 } else { 2 };
    names.extend(["e2", "w4", "e4", "w8", "e8", "w16"].map(|part| match part {
        "e2" => ("head/divide/e2", column),
        "w4" => ("head/divide/w4", column),
        "e4" => ("head/divide/e4", column),
        "w8" => ("head/divide/w8", column),
        "e8" => ("head/divide/e8", column),
        _ => ("head/divide/w16", column),
    }));
    names.push(if both { ("head/divide/reciprocal", 4) } else { ("head/divide/quotient", 6) });
    if head == Head::Softmax {
        names.extend(
            ["head/exp/fraction", "head/exp/square", "head/exp/polynomial", "head/exp/scale"].map(|name| (name, 6)),
        );
    }
    names
}

fn tape(names: &[(&str, usize)]) -> Tape {
    let mut tape = Tape::default();
    for &(name, elements) in names {
        tape.push(name, Rounded { coins: vec![false; elements], wraps: vec![] });
    }
    tape
}

#[test]
fn a_step_uses_up_exactly_the_tape_of_the_specification() {
    for head in Head::ALL {
        let (model, x, labels) = random(spec(&[5, 4, 3], head, Rounding::Probabilistic, 2, 0), 11);
        let run = |tape: Tape| {
            let mut model = model.clone();
            let result = model.step(&x, &labels, &mut Coins::Tape(tape), &mut |_, _| ());
            assert_eq!(result.is_err(), model.parameters() == self::random(model.spec().clone(), 11).0.parameters());
            result.map(|()| model.parameters().clone())
        };
        let names = names(head);
        let mut floors = model.clone();
        floors.step(&x, &labels, &mut Coins::Extreme { up: false }, &mut |_, _| ()).unwrap();
        assert_eq!(run(tape(&names)).as_ref(), Ok(floors.parameters()), "{head}");
        for (i, &(name, elements)) in names.iter().enumerate() {
            let missing: Vec<_> = names.iter().copied().filter(|&(other, _)| other != name).collect();
            assert_eq!(run(tape(&missing)), Err(ModelError::MissingCoins { name: name.into() }));
            let mut longer = names.clone();
            longer[i].1 += 1;
            let count = ModelError::CoinCount { name: name.into(), found: elements + 1, expected: elements };
            assert_eq!(run(tape(&longer)), Err(count));
        }
        let extra: Vec<_> = names.iter().copied().chain([("loss/log/v1", 2)]).collect();
        assert_eq!(run(tape(&extra)), Err(ModelError::ExtraCoins { name: "loss/log/v1".into(), left: 1 }));
    }
}

#[test]
fn a_call_that_cannot_be_right_is_refused() {
    let (mut model, x, labels) = random(spec(&[5, 4, 3], Head::Softmax, Rounding::Nearest, 2, 0), 3);
    let mut step = |x: &Array2<i64>, labels: &[usize]| {
        model.step(x, labels, &mut Coins::seeded(0), &mut |_, _| ()).map_err(|e| e.to_string())
    };
    assert_eq!(step(&Array2::zeros((3, 5)), &labels), Err("data has shape [3, 5]; it must be [2, 5]".into()));
    assert_eq!(step(&Array2::zeros((2, 4)), &labels), Err("data has shape [2, 4]; it must be [2, 5]".into()));
    assert_eq!(step(&x, &[0]), Err("logits has shape [2, 3]; it must be [1, 3]".into()));
    assert_eq!(step(&x, &[0, 7]), Err("label 7 of row 1 names no class; labels are 0 to 2".into()));
    assert_eq!(step(&x, &labels), Ok(()));
    assert!(model.head(&Array2::zeros((2, 4)), &labels, &mut Coins::seeded(0)).is_err());
    assert!(model.load(Parameters { layers: vec![] }).is_err());
    assert!(Model::new(TrainSpec { epsilon: 2.0, ..model.spec().clone() }).is_err());
}

#[test]
fn prediction_takes_the_lowest_index_of_the_largest_logit() {
    let mut model = Model::new(spec(&[1, 3], Head::Softmax, Rounding::Nearest, 2, 0)).unwrap();
    let mut parameters = model.parameters().clone();
    parameters.layers[0].weights = Array2::from_shape_vec((1, 3), vec![0, 65536, 65536]).unwrap();
    model.load(parameters).unwrap();
    let x = Array2::from_shape_vec((3, 1), vec![65536, 0, -65536]).unwrap();
    assert_eq!(model.predict(&x, &mut Coins::seeded(0)), Ok(vec![1, 0, 0]));
}

/// Nothing panics and the first violation has a name, however far out of range a run is.
#[test]
fn a_run_goes_on_wrapping_after_it_left_its_range() {
    for (head, rounding) in Head::ALL.into_iter().flat_map(|h| Rounding::ALL.map(|r| (h, r))) {
        let (mut model, x, labels) = random(spec(&[5, 4, 3], head, rounding, 2, 0), 5);
        let mut parameters = model.parameters().clone();
        parameters.layers[0].weights.mapv_inplace(|w| w << 40);
        parameters.layers[1].weights.mapv_inplace(|w| w << 45);
        parameters.layers[1].weight_velocity.fill(i64::MIN);
        model.load(parameters).unwrap();
        let mut coins = Coins::seeded(1);
        for _ in 0..5 {
            model.step(&x, &labels, &mut coins, &mut |_, _| ()).unwrap();
        }
        let first = &model.monitor().violations()[0];
        assert_eq!(first.operation, "layer1/forward", "{head}: {first}");
        assert_eq!(model.head(&Array2::from_elem((1, 3), i64::MIN), &[0], &mut coins).map(|_| ()), Ok(()));
    }
}
