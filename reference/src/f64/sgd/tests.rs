use super::*;
use crate::f64::dense::at_rest;
use crate::f64::scratch::Scratch;
use approx::relative_eq;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use spec::{FixedSpec, Head, HeadPoint, NetworkSpec, Rounding, SgdSpec};
use std::collections::BTreeMap;

fn spec(head: Head, widths: &[usize], sgd: SgdSpec) -> TrainSpec {
    let network = NetworkSpec { widths: widths.to_vec() };
    TrainSpec { network, head, epsilon: 0.1, rounding: Rounding::Nearest, fixed: FixedSpec::default(), sgd }
}

fn sgd(batch: usize) -> SgdSpec {
    SgdSpec { batch, ..SgdSpec::default() }
}

/// A network and data whose branch points are excluded by construction: inputs are in \[1/2, 1\] and every unit's
/// incoming weights share one sign, with magnitudes in \[1/2, 1\]. So every pre-activation is at least 1/4 away from 0
/// (and logits from eps), and the first unit of a layer is alive. Labels name classes with a positive logit, so that
/// every loss is finite.
fn clear_of_branches(seed: u64, widths: &[usize], batch: usize) -> (Network, Array2<f64>, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut alive = Vec::new();
    let mut layers = Vec::new();
    for shape in widths.windows(2) {
        alive = (0..shape[1]).map(|j| j == 0 || rng.random()).collect();
        let weights = Array2::from_shape_fn((shape[0], shape[1]), |(_, j)| {
            let magnitude = rng.random_range(0.5..1.0);
            if alive[j] { magnitude } else { -magnitude }
        });
        layers.push(at_rest(weights, Array1::zeros(shape[1])));
    }
    let x = Array2::from_shape_simple_fn((batch, widths[0]), || rng.random_range(0.5..1.0));
    let classes: Vec<usize> = (0..alive.len()).filter(|&j| alive[j]).collect();
    let labels = (0..batch).map(|_| classes[rng.random_range(0..classes.len())]).collect();
    (Network::new(layers).unwrap(), x, labels)
}

fn probed(
    network: &mut Network,
    spec: &TrainSpec,
    x: &Array2<f64>,
    labels: &[usize],
) -> BTreeMap<ProbePoint, Array2<f64>> {
    let mut points = BTreeMap::new();
    let mut probe = |point, value: &Array2<f64>| {
        assert!(points.insert(point, value.clone()).is_none(), "{point} twice");
    };
    network.step(spec, x, labels, &mut probe).unwrap();
    points
}

/// Every weight and bias with what `step` says is its gradient, against the central difference of `objective`.
fn check_gradients(
    network: &Network,
    dw: &[Array2<f64>],
    db: &[Array1<f64>],
    objective: impl Fn(&Network) -> f64,
) -> Result<(), TestCaseError> {
    let h = 1e-5;
    let slope = |change: &dyn Fn(&mut Network, f64)| {
        let at = |h| {
            let mut network = network.clone();
            change(&mut network, h);
            objective(&network)
        };
        (at(h) - at(-h)) / (2.0 * h)
    };
    for l in 0..network.layers.len() {
        for (index, &d) in dw[l].indexed_iter() {
            let slope = slope(&|n, h| n.layers[l].weights[index] += h);
            prop_assert!(
                relative_eq!(d, slope, epsilon = 1e-6, max_relative = 1e-6),
                "dW{} {index:?}: {d} {slope}",
                l + 1
            );
        }
        for (j, &d) in db[l].indexed_iter() {
            let slope = slope(&|n, h| n.layers[l].bias[j] += h);
            prop_assert!(relative_eq!(d, slope, epsilon = 1e-6, max_relative = 1e-6), "db{} {j}: {d} {slope}", l + 1);
        }
    }
    Ok(())
}

fn widths() -> impl Strategy<Value = Vec<usize>> {
    (prop::collection::vec(2..6usize, 1..4), 2..6usize).prop_map(|(mut widths, classes)| {
        widths.push(classes);
        widths
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_whole_network_follows_its_loss(seed: u64, widths in widths(), batch in 1..4usize) {
        for head in Head::ALL.into_iter().filter(|h| h.has_loss()) {
            let (mut network, x, labels) = clear_of_branches(seed, &widths, batch);
            let spec = spec(head, &widths, sgd(batch));
            let start = network.clone();
            network.train_step(&spec, &x, &labels).unwrap();
            let at = RealHead::of(&spec);
            let loss = |n: &Network| batch as f64 * n.mean_loss(&at, &x, &labels).unwrap().unwrap();
            check_gradients(&start, &network.scratch.dw, &network.scratch.db, loss)?;
        }
    }

    /// Back-propagation apart from the heads: for fixed g, dW is the gradient of g . logits(W). Covers relu-grad, which
    /// has no loss.
    #[test]
    fn back_propagation_is_the_transposed_derivative(seed: u64, widths in widths(), batch in 1..4usize) {
        let (network, x, _) = clear_of_branches(seed, &widths, batch);
        let mut rng = ChaCha8Rng::seed_from_u64(!seed);
        let g = Array2::from_shape_simple_fn((batch, widths[widths.len() - 1]), || rng.random_range(-1.0..1.0));
        let mut scratch = Scratch::default();
        scratch.fit(&network.layers, batch);
        let mut z = x.clone();
        for (l, layer) in network.layers.iter().enumerate() {
            dense::forward(layer, z.view(), &mut scratch.outputs[l]);
            dense::relu(&mut scratch.outputs[l]);
            z = scratch.outputs[l].clone();
        }
        scratch.gradients.last_mut().unwrap().assign(&g);
        scratch.descend(&mut network.layers.clone(), &x, 0.0, 0.0);
        check_gradients(&network, &scratch.dw, &scratch.db, |n| (&n.forward(&x).unwrap() * &g).sum())?;
    }

    #[test]
    fn a_batch_is_the_sum_of_its_rows(seed: u64, widths in widths(), batch in 2..6usize) {
        for head in Head::ALL {
            let (network, x, labels) = clear_of_branches(seed, &widths, batch);
            let whole = probed(&mut network.clone(), &spec(head, &widths, sgd(batch)), &x, &labels);
            let one = spec(head, &widths, sgd(1));
            let rows: Vec<_> = (0..batch).map(|b| {
                let row = x.row(b).to_owned().insert_axis(Axis(0));
                probed(&mut network.clone(), &one, &row, &labels[b..=b])
            }).collect();
            for (point, value) in &whole {
                if let ProbePoint::WeightGradient(_) | ProbePoint::BiasGradient(_) = point {
                    let sum = rows.iter().fold(Array2::zeros(value.dim()), |s, row| s + &row[point]);
                    let (sum, value) = (sum.as_slice().unwrap(), value.as_slice().unwrap());
                    let close = relative_eq!(sum, value, epsilon = 1e-12, max_relative = 1e-12);
                    prop_assert!(close, "{head} {point}");
                }
            }
        }
    }
}

#[test]
fn momentum_is_its_recurrence() {
    let widths = [6, 5, 4];
    let sgd = SgdSpec { learning_rate: 0.3, momentum: 0.7, batch: 3, ..SgdSpec::default() };
    for head in Head::ALL {
        let (mut network, x, labels) = clear_of_branches(11, &widths, 3);
        let spec = spec(head, &widths, sgd);
        for step in 0..4 {
            let before = network.clone();
            let points = probed(&mut network, &spec, &x, &labels);
            for (l, (before, after)) in before.layers.iter().zip(&network.layers).enumerate() {
                let expected =
                    before.weight_velocity.clone() * 0.7 - &points[&ProbePoint::WeightGradient(l + 1)] * (0.3 / 3.0);
                assert_eq!(after.weight_velocity, expected, "{head} step {step} layer {}", l + 1);
                assert_eq!(after.weights, &before.weights + &expected);
                let db = points[&ProbePoint::BiasGradient(l + 1)].row(0).to_owned();
                let expected = before.bias_velocity.clone() * 0.7 - db * (0.3 / 3.0);
                assert_eq!(after.bias_velocity, expected);
                assert_eq!(after.bias, &before.bias + &expected);
            }
        }
    }
}

#[test]
fn every_point_is_probed_once_with_its_shape() {
    use ProbePoint::{
        Activation, ActivationGradient, Bias, BiasGradient, BiasVelocity, HeadGradient, Logits, PreActivation,
        WeightGradient, WeightVelocity, Weights,
    };
    let (batch, widths) = (4, [7, 6, 5, 3]);
    for head in Head::ALL {
        let (mut network, x, labels) = clear_of_branches(5, &widths, batch);
        let points = probed(&mut network, &spec(head, &widths, sgd(batch)), &x, &labels);
        let mut expected = vec![(Logits, (batch, 3)), (HeadGradient, (batch, 3))];
        for l in 1..=3 {
            let (inputs, outputs) = (widths[l - 1], widths[l]);
            expected.extend([WeightGradient(l), WeightVelocity(l), Weights(l)].map(|p| (p, (inputs, outputs))));
            expected.extend([BiasGradient(l), BiasVelocity(l), Bias(l)].map(|p| (p, (1, outputs))));
            if l < 3 {
                expected
                    .extend([PreActivation(l), Activation(l), ActivationGradient(l)].map(|p| (p, (batch, outputs))));
            }
        }
        let head_points: &[_] = match head {
            Head::Softmax => &[
                (HeadPoint::Maximum, (batch, 1)),
                (HeadPoint::Exp, (batch, 3)),
                (HeadPoint::Sum, (batch, 1)),
                (HeadPoint::Quotient, (batch, 3)),
            ],
            Head::ReluGrad => {
                &[(HeadPoint::Positive, (batch, 3)), (HeadPoint::Sum, (batch, 1)), (HeadPoint::Quotient, (batch, 3))]
            }
            _ => &[
                (HeadPoint::Positive, (batch, 3)),
                (HeadPoint::Sum, (batch, 1)),
                (HeadPoint::Reciprocal, (2 * batch, 1)),
            ],
        };
        expected.extend(head_points.iter().map(|&(p, shape)| (ProbePoint::Head(p), shape)));
        let found: BTreeMap<_, _> = points.iter().map(|(&p, v)| (p, v.dim())).collect();
        assert_eq!(found, expected.into_iter().collect(), "{head}");
        let relu = points[&PreActivation(1)].mapv(|z| z.max(0.0));
        assert_eq!(points[&Activation(1)], relu);
        assert_eq!(points[&Weights(2)], network.layers[1].weights);
    }
}

#[test]
fn probes_and_threads_change_no_bit() {
    let (batch, widths) = (96, [300, 120, 70, 10]);
    let (network, x, labels) = clear_of_branches(3, &widths, batch);
    let spec = spec(Head::Softmax, &widths, sgd(batch));
    let after = |threads: usize, probes: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut network = network.clone();
            for _ in 0..3 {
                if probes {
                    network.step(&spec, &x, &labels, &mut |_, _| ()).unwrap();
                } else {
                    network.train_step(&spec, &x, &labels).unwrap();
                }
            }
            network.layers
        })
    };
    let expected = after(1, true);
    assert_ne!(expected, network.layers);
    for threads in [1, 2, 3, 8] {
        assert_eq!(after(threads, false), expected, "{threads} threads");
    }
}

/// Four noisy corners of a square in ten dimensions: every head must separate them. Two precautions are for relu-eps:
/// every logit starts alive, since a dead true class has no gradient to revive it; and e = 2^-4, since a true logit
/// just above 0 has gradient 1/e, and with e = 2^-16 one such row throws the weights too far to come back.
#[test]
fn every_head_learns() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let labels: Vec<usize> = (0..64).map(|i| i % 4).collect();
    let x = Array2::from_shape_fn((64, 10), |(b, i)| {
        let corner = [labels[b] & 1, labels[b] >> 1][i % 2] as f64;
        corner + rng.random_range(-0.2..0.2)
    });
    for head in Head::ALL {
        for widths in [vec![10, 4], vec![10, 16, 4]] {
            let sgd = SgdSpec { learning_rate: 0.05, batch: 64, ..SgdSpec::default() };
            let fixed = FixedSpec { fraction_bits: 4, ..FixedSpec::default() };
            let spec = TrainSpec { fixed, ..spec(head, &widths, sgd) };
            let mut network = Network::glorot(&spec.network, 1).unwrap();
            network.layers.last_mut().unwrap().bias.fill(2.0);
            for _ in 0..400 {
                network.train_step(&spec, &x, &labels).unwrap();
            }
            let accuracy = network.accuracy(&x, &labels).unwrap();
            assert!(accuracy > 0.95, "{head} {widths:?}: {accuracy}");
        }
    }
}

#[test]
fn a_step_that_does_not_fit_changes_nothing() {
    let widths = [3, 4, 2];
    let (mut network, x, labels) = clear_of_branches(1, &widths, 2);
    let start = network.layers.clone();
    let good = spec(Head::ReluGrad, &widths, sgd(2));
    let mut error = |spec: &TrainSpec, x: &Array2<f64>, labels: &[usize]| {
        network.train_step(spec, x, labels).map(|_| ()).unwrap_err().to_string()
    };
    let three = spec(Head::ReluGrad, &widths, sgd(3));
    assert_eq!(error(&three, &x, &labels), "the batch is 2x3; it must be 3x3");
    assert_eq!(error(&good, &x, &[0]), "2 rows but 1 labels; give one label for each row");
    assert_eq!(error(&good, &x, &[0, 2]), "label 2 of row 1 names no class; with 2 classes a label is below 2");
    let other = spec(Head::ReluGrad, &[3, 5, 2], sgd(2));
    assert_eq!(error(&other, &x, &labels), "the network has widths [3, 4, 2]; the specification asks for [3, 5, 2]");
    assert_eq!(error(&good, &Array2::zeros((2, 9)), &labels), "the batch is 2x9; it must be 2x3");
    let epsilon = TrainSpec { epsilon: 1.5, ..good };
    assert_eq!(error(&epsilon, &x, &labels), "epsilon is 1.5; it must be inside (0, 1)");
    assert_eq!(network.layers, start);
}
