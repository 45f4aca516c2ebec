//! Every protocol against the integer model, bit for bit: under nearest rounding as it is, under probabilistic rounding
//! with the coins that the parties drew. Operands are boundary values first, then random ones, inside and outside of
//! the ranges.

use crate::client::roundings;
use crate::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits, RoundingRecord};
use crate::error::Result;
use crate::nn::{dense, heads};
use crate::party::Party;
use crate::protocol::argmax::maximum;
use crate::protocol::divide::{quotient, reciprocal};
use crate::protocol::exponential::exponential;
use crate::protocol::logarithm::logarithm;
use crate::protocol::matmul::Left;
use crate::protocol::multiply::multiply;
use crate::protocol::truncate::truncate;
use crate::share::Share;
use crate::testing::{open, parameters, share, world};
use ndarray::{Array1, Array2};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::{self, Arithmetic, Coins, Monitor, tape::Rounded, tape::Tape, truncate::Unreduced};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

const FORMATS: [FixedSpec; 4] = [
    FixedSpec { fraction_bits: 16, value_bits: 32 },
    FixedSpec { fraction_bits: 8, value_bits: 32 },
    FixedSpec { fraction_bits: 13, value_bits: 27 },
    // 17 exponentials of 1 do not fit: their sum has no range of its own.
    FixedSpec { fraction_bits: 16, value_bits: 21 },
];

/// Runs `secure` as three parties and `model` on the coins they drew, and compares.
fn conform<const N: usize>(
    what: &str,
    inputs: &[[Share; 3]],
    secure: impl AsyncFn(&Party, &[Share]) -> Result<[Share; N]> + Sync,
    model: impl Fn(&mut Arithmetic) -> [Vec<i64>; N],
) {
    for fixed in FORMATS {
        conform_in(fixed, what, inputs, &secure, &model);
    }
}

fn conform_in<const N: usize>(
    fixed: FixedSpec,
    what: &str,
    inputs: &[[Share; 3]],
    secure: &(impl AsyncFn(&Party, &[Share]) -> Result<[Share; N]> + Sync),
    model: &impl Fn(&mut Arithmetic) -> [Vec<i64>; N],
) {
    for rounding in Rounding::ALL {
        let ([a, b, c], _, [r0, r1, _]) = world(fixed, rounding, |p| {
            let mine: Vec<Share> = inputs.iter().map(|i| i[p.id.index()].clone()).collect();
            p.run(secure(p, &mine))
        });
        let (mut coins, mut monitor) = (tape(roundings(r0.truncations, r1.truncations, rounding)), Monitor::new(1));
        let want = model(&mut Arithmetic { fixed, rounding, coins: &mut coins, monitor: &mut monitor });
        coins.finish().expect("the model uses every coin");
        for (k, ((a, (b, c)), want)) in a.into_iter().zip(b.into_iter().zip(c)).zip(want).enumerate() {
            let got = open(&[a, b, c]);
            let at = got.iter().zip(&want).position(|(g, w)| g != w);
            assert_eq!(got.len(), want.len(), "{what}: result {k}");
            assert!(
                at.is_none(),
                "{what}, {rounding}, {fixed:?}: result {k}, index {at:?}: secure {}, model {}",
                got[at.unwrap()],
                want[at.unwrap()]
            );
        }
    }
}

/// What the model needs to round as the parties did: nearest rounding needs only the wraps.
fn tape(rounding: Vec<RoundingRecord>) -> Coins {
    let mut tape = Tape::default();
    for r in rounding {
        if !(r.coins.is_empty() && r.wraps.is_empty()) {
            tape.push(r.name, Rounded { coins: r.coins, wraps: r.wraps });
        }
    }
    Coins::Tape(tape)
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(2020)
}

/// Ring elements of every size, the edges first.
fn anything(n: usize) -> Vec<i64> {
    let mut rng = rng();
    let edges = [
        0,
        1,
        -1,
        1 << 31,
        -(1 << 31),
        1 << 46,
        -(1 << 46),
        1 << 61,
        -(1 << 61),
        (1 << 62) - 1,
        1 << 62,
        -(1 << 62),
        -(1 << 62) - 1,
        i64::MIN,
        i64::MAX,
    ];
    (0..n).map(|i| edges.get(i).copied().unwrap_or_else(|| rng.random::<i64>() >> (i % 64))).collect()
}

#[test]
fn truncation_in_range_and_out_of_it() {
    let v = anything(400);
    for shift in [1, 7, 16, 31, 39, 44, 61] {
        let x = share(v.len(), 1, &v);
        conform(
            "truncate",
            &[x],
            async |p: &Party, x: &[Share]| Ok([truncate(p, &x[0], shift, "t").await?]),
            |a| [fixed::truncate::trunc(a, "t", &Unreduced::new(v.iter().map(|v| i128::from(*v))), shift).unwrap()],
        );
    }
}

#[test]
fn exponential_on_its_domain_and_anywhere() {
    let mut d: Vec<i64> = vec![0, -1, -2, -65536, -772000, -772243, -772244, -786432, -(1 << 31) + 1, 1, 1 << 20];
    let mut rng = rng();
    d.extend((0..600).map(|i| -(rng.random_range(0..1i64 << (1 + i % 22)))));
    d.extend(anything(300));
    // Integer part 0 modulo 32: the carry into n' = 31.
    d.extend((0..200).map(|_| rng.random_range(45426..90852)));
    let x = share(d.len(), 1, &d);
    conform(
        "exp",
        &[x],
        async |p: &Party, x: &[Share]| Ok([exponential(p, &x[0]).await?]),
        |a| [fixed::exponential::exp(a, &d).unwrap()],
    );
}

/// Positive numbers of every size below 2^26, powers of two and their neighbours, and zero.
fn positive() -> Vec<i64> {
    let mut v = vec![0];
    for k in 0..26 {
        v.extend([(1i64 << k) - 1, 1 << k, (1 << k) + 1]);
    }
    let mut rng = rng();
    v.extend((0..400).map(|i| rng.random_range(0..1i64 << (1 + i % 25))));
    v
}

#[test]
fn reciprocal_quotient_and_logarithm() {
    let s = positive();
    let n = s.len();
    let mut rng = rng();
    let x: Vec<i64> = s.iter().flat_map(|&s| [0, s, rng.random_range(0..=s)]).collect();
    let (shares, xs) = (share(n, 1, &s), share(n, 3, &x));
    conform(
        "divide",
        &[shares, xs],
        async |p: &Party, v: &[Share]| {
            let range = p.fixed.full_range();
            let r = reciprocal(p, &v[0], range, "r").await?;
            let q = quotient(p, &v[1], &v[0], range, "q").await?.quotient;
            let log = logarithm(p, &v[0], range).await?;
            Ok([r, q, log])
        },
        |a| {
            let range = a.fixed.full_range();
            let r = fixed::divide::reciprocal(a, "r", &s, range).unwrap();
            let q = fixed::divide::quotient(a, "q", &x, &s, range).unwrap().0;
            [r, q, fixed::logarithm::log(a, &s, range).unwrap()]
        },
    );
}

#[test]
fn maximum_in_range_and_out_of_it() {
    let v = anything(7 * 100);
    let x = share(100, 7, &v);
    conform(
        "maximum",
        &[x],
        async |p: &Party, x: &[Share]| Ok([maximum(p, &x[0]).await?]),
        |a| {
            let e = fixed::compare::argmax(a, "m", &v, 7);
            [fixed::compare::maximum(&v, &e, 7)]
        },
    );
}

#[test]
fn dense_layers_and_relu() {
    let (rows, inner, cols) = (5, 9, 4);
    let mut rng = rng();
    let mut random =
        |n: usize, bits: u32| -> Vec<i64> { (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect() };
    for bits in [18, 33, 62] {
        let (x, w, b) = (random(rows * inner, bits), random(inner * cols, bits), random(cols, bits));
        let array = |v: &[i64], r: usize, c: usize| Array2::from_shape_vec((r, c), v.to_vec()).unwrap();
        let bits: Vec<i64> = x.iter().map(|x| x & 1).collect();
        let inputs = [share(rows, inner, &x), share(inner, cols, &w), share(1, cols, &b), share(rows, inner, &bits)];
        conform(
            "dense",
            &inputs,
            async |p: &Party, v: &[Share]| {
                let zero = Share::zeros(1, 1);
                let layer = dense::LayerShare {
                    weights: v[1].clone(),
                    bias: v[2].clone(),
                    weight_velocity: zero.clone(),
                    bias_velocity: zero,
                };
                let z = dense::forward(p, Left::from(&v[0]), &layer, "layer1/forward").await?;
                let (mask, value) = dense::relu(p, &z).await?;
                let back = dense::backward(p, &z, &layer, &v[3], "layer1/backward").await?;
                Ok([z, mask, value, back])
            },
            |a| {
                let (x, w, b) = (array(&x, rows, inner), array(&w, inner, cols), Array1::from(b.clone()));
                let z = fixed::dense::forward(a, 1, &x, &w, &b).unwrap();
                let (mask, value) = fixed::dense::relu(a, 1, &z);
                let back = fixed::dense::backward(a, 1, &z, &w, &array(&bits, rows, inner)).unwrap();
                [z, mask, value, back].map(|m| m.into_raw_vec_and_offset().0)
            },
        );
    }
}

/// Rows of logits at the thresholds, with ties, all negative, of every size, and beyond the range.
fn logits(rows: usize, classes: usize, epsilon: i64) -> Vec<i64> {
    let mut rng = rng();
    let table = [0, 1, -1, epsilon - 1, epsilon, epsilon + 1, 2 * epsilon, 65536, -65536, 65536];
    (0..rows * classes)
        .map(|i| match (i / classes) % 6 {
            0 => table[rng.random_range(0..table.len())],
            1 => -rng.random_range(0..1i64 << 20),
            2 => rng.random_range(-(1i64 << 17)..1 << 17),
            3 => rng.random_range(0..=1),
            4 => rng.random_range(-(1i64 << 24)..1 << 24),
            _ => rng.random::<i64>() >> rng.random_range(0..63),
        })
        .collect()
}

#[test]
fn every_head_for_several_class_counts() {
    for head in Head::ALL {
        for (rows, classes) in [(48, 10), (30, 2), (13, 3), (6, 17)] {
            for fixed in FORMATS {
                let epsilon = fixed.encode_up(0.1);
                let x = logits(rows, classes, epsilon);
                let labels: Vec<usize> = (0..rows).map(|r| (r * 7) % classes).collect();
                let mut y = vec![0; rows * classes];
                labels.iter().enumerate().for_each(|(r, &l)| y[r * classes + l] = 1);
                let inputs = [share(rows, classes, &x), share(rows, classes, &y)];
                let what = format!("{head}, {classes} classes");
                conform_in(
                    fixed,
                    &what,
                    &inputs,
                    &async |p: &Party, v: &[Share]| {
                        let out = heads::gradient(p, head, epsilon, &v[0], &v[1]).await?;
                        let probabilities = heads::probabilities(p, &out).await?;
                        let loss = heads::loss(p, head, epsilon, &out, &v[0], &v[1]).await?;
                        let none = || Share::zeros(0, 1);
                        let (loss, finite) = loss.unwrap_or_else(|| (none(), none()));
                        // An infinite loss has no value: both sides say 0 there.
                        let loss = multiply(p, &loss, &finite).await?;
                        Ok([out.gradient, probabilities, loss, finite])
                    },
                    &|a| {
                        let x = Array2::from_shape_vec((rows, classes), x.clone()).unwrap();
                        let rows = fixed::heads::Rows::new(&x, &labels).unwrap();
                        let out = fixed::heads::evaluate(a, head, epsilon, rows, &mut |_, _| {}).unwrap();
                        let finite = out.loss.iter().flatten().map(|l| i64::from(l.is_some())).collect();
                        let loss = out.loss.iter().flatten().map(|l| l.unwrap_or(0)).collect();
                        [
                            out.gradient.into_raw_vec_and_offset().0,
                            out.probabilities.into_raw_vec_and_offset().0,
                            loss,
                            finite,
                        ]
                    },
                );
            }
        }
    }
}

/// Two steps from velocities that are not zero, then the network's answers: weights, biases, velocities, classes, hits.
#[test]
fn training_steps_of_every_depth_and_the_answers_after_them() {
    const BATCH: usize = 12;
    // 33: more updates side by side than the joins of the library poll.
    for (layers, extra_velocity_bits) in [(1, 0), (2, 4), (3, 0), (33, 0)] {
        for rounding in Rounding::ALL {
            let spec = TrainSpec {
                network: NetworkSpec::dense(9, 6, 4, layers),
                head: Head::Softmax,
                epsilon: 0.1,
                rounding,
                fixed: FixedSpec::default(),
                sgd: SgdSpec { learning_rate: 0.5, momentum: 0.75, batch: BATCH, extra_velocity_bits },
            };
            let mut rng = rng();
            let mut random = |n: usize| -> Vec<i64> { (0..n).map(|_| rng.random_range(-60_000..60_000)).collect() };
            let start = parameters(&spec.network, &mut random);
            let x = random(BATCH * 9);
            let labels: Vec<usize> = (0..BATCH).map(|i| i * 7 % 4).collect();

            let mut engine = Engine::start(EngineConfig { record: true, ..EngineConfig::new(spec.clone()) }).unwrap();
            engine.load(&start).unwrap();
            let mut model = fixed::Model::new(spec.clone()).unwrap();
            model.load(of_model(&start, &spec.network)).unwrap();
            let data = Array2::from_shape_vec((BATCH, 9), x.clone()).unwrap();
            for _ in 0..2 {
                let mut coins = tape(engine.step(&x, &labels).unwrap().rounding);
                model.step(&data, &labels, &mut coins, &mut |_, _| {}).unwrap();
                let secure = of_model(&engine.parameters().unwrap(), &spec.network);
                assert_eq!(&secure, model.parameters(), "{layers} layers, {rounding}");
            }
            if rounding == Rounding::Nearest {
                let classes = model.predict(&data, &mut Coins::Tape(Tape::default())).unwrap();
                let different = (0..4).filter(|c| classes.contains(c)).count();
                assert!(different > 1 || layers > 3, "too much alike to tell: {classes:?}");
                let hits = classes.iter().zip(&labels).filter(|(c, l)| c == l).count();
                assert_eq!(engine.predict(&x).unwrap(), classes);
                assert_eq!(engine.count_correct(&x, &labels).unwrap(), hits);
            }
        }
    }
}

fn of_model(parameters: &ParameterUnits, network: &NetworkSpec) -> fixed::Parameters {
    let layer = |(l, v): (usize, &LayerUnits)| {
        let matrix = |v: &[i64]| Array2::from_shape_vec(network.shape(l), v.to_vec()).unwrap();
        fixed::LayerUnits {
            weights: matrix(&v.weights),
            bias: v.bias.clone().into(),
            weight_velocity: matrix(&v.weight_velocity),
            bias_velocity: v.bias_velocity.clone().into(),
        }
    };
    fixed::Parameters { layers: (1..).zip(&parameters.layers).map(layer).collect() }
}
