//! Each cause, planted in a clean trace, is named; what has no cause is called unknown.

use crate::foreign::testing::{self, batch, spec};
use crate::foreign::{Report, judge};
use crate::trace::header::TraceRounding;
use crate::trace::{Tensor, TraceFile, Values};
use Rounding::{Nearest, Probabilistic};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

/// The units of a tensor.
fn units<'t>(trace: &'t TraceFile, name: &str) -> &'t [i64] {
    match &trace.tensors[name].values {
        Values::Units(v) => v,
        other => panic!("{name} is {other:?}"),
    }
}

fn put(trace: &mut TraceFile, name: &str, v: Vec<i64>) {
    let tensor = trace.tensors.get_mut(name).unwrap();
    assert_eq!(tensor.values.len(), v.len());
    tensor.values = Values::Units(v);
}

/// Changes every element of a tensor by its index and value.
fn change(trace: &mut TraceFile, name: &str, to: impl Fn(usize, i64) -> i64) {
    let v = units(trace, name).iter().enumerate().map(|(i, &v)| to(i, v)).collect();
    put(trace, name, v);
}

/// The first failing row is `tensor` and `cause` is the first one named there.
fn named(trace: &TraceFile, tensor: &str, cause: &str) -> Report {
    let report = judge(trace).unwrap();
    let first = report.first_fault().unwrap_or_else(|| panic!("{cause} is not found"));
    let causes: Vec<_> = first.causes.iter().map(|c| c.name).collect();
    assert_eq!((first.tensor.as_str(), causes.first()), (tensor, Some(&cause)), "{:?}", first);
    assert!(!first.causes[0].evidence.is_empty());
    assert!(!report.holds(true), "a named fault fails");
    report
}

/// X W + b before truncation, of one layer.
fn products(trace: &TraceFile, step: usize) -> Vec<i64> {
    let of = |name: &str| units(trace, &format!("step/{step}/{name}")).to_vec();
    let (x, w, b) = (of("input"), of("start/layer1/weights"), of("start/layer1/bias"));
    let outputs = b.len();
    let inputs = w.len() / outputs;
    let dot = |i: usize, j: usize| (0..inputs).map(|k| x[i * inputs + k] * w[k * outputs + j]).sum::<i64>();
    (0..x.len() / inputs * outputs).map(|n| dot(n / outputs, n % outputs) + (b[n % outputs] << 16)).collect()
}

/// A wide batch of one layer, so that thresholds have logits near them.
fn wide(head: Head, rounding: Rounding) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: vec![12, 5] },
        sgd: SgdSpec { batch: 64, learning_rate: 0.05, ..SgdSpec::default() },
        ..spec(head, rounding, 1)
    }
}

#[test]
fn wrap() {
    let mut trace = testing::trace(Head::Softmax, Nearest, 2, 2);
    change(&mut trace, "step/1/layer1/pre_activation", |i, v| if i % 20 == 3 { v - (1 << 48) } else { v });
    let report = named(&trace, "layer1/pre_activation", "wrap");
    let evidence = &report.first_fault().unwrap().causes[0].evidence;
    assert!(evidence.contains("2^48") && evidence.contains("local truncation would wrap"), "{evidence}");
    let first = report.first_fault().unwrap().first.as_ref().unwrap();
    assert!(first.at.contains("step 1, layer1/pre_activation[0, 3]"), "{}", first.at);
}

#[test]
fn local_truncation_may_wrap_as_often_as_it_must() {
    let mut trace = testing::trace(Head::Softmax, Probabilistic, 1, 1);
    trace.header.rounding = TraceRounding::Local;
    trace.header.ring_bits = 40;
    trace.header.claims = Default::default();
    let operands: f64 = products(&trace, 0).iter().map(|v| v.unsigned_abs() as f64).sum();
    assert!(operands / 2f64.powi(40) > 0.05, "so small a ring wraps now and then: {operands}");
    change(&mut trace, "step/0/logits", |i, v| if i == 7 { v + (1 << 24) } else { v });
    let forward = |t: &TraceFile| judge(t).unwrap().checks.into_iter().find(|c| c.name == "forward").unwrap();
    assert!(forward(&trace).passed, "{:?}", forward(&trace));
    change(&mut trace, "step/0/logits", |_, v| v + (1 << 24));
    assert!(!forward(&trace).passed, "not so many");
}

#[test]
fn rounding_down_once_twice_and_up() {
    for (rounding, cause) in [(Nearest, "half missing"), (Probabilistic, "floor")] {
        let mut trace = testing::record(&wide(Head::Softmax, rounding), 1, 3);
        let v = products(&trace, 0).iter().map(|v| v >> 16).collect();
        put(&mut trace, "step/0/logits", v);
        named(&trace, "logits", cause);
        let v = products(&trace, 0).iter().enumerate().map(|(i, v)| (v >> 16) - (i % 2) as i64).collect();
        put(&mut trace, "step/0/logits", v);
        named(&trace, "logits", "two floors");
    }
    let mut trace = testing::record(&wide(Head::Softmax, Nearest), 1, 3);
    let v = products(&trace, 0).iter().map(|v| (v + (1 << 16)) >> 16).collect();
    put(&mut trace, "step/0/logits", v);
    named(&trace, "logits", "half twice");
    let mut trace = testing::record(&wide(Head::Softmax, Nearest), 1, 3);
    change(&mut trace, "step/0/logits", |_, v| v + 1);
    named(&trace, "logits", "one unit off");
}

/// A block of truncations by 4 bits, with a coin for every operand.
fn truncations(coin: impl Fn(usize, i64) -> bool) -> TraceFile {
    let mut trace = testing::trace(Head::Softmax, Probabilistic, 1, 1);
    trace.tensors.clear();
    trace.header.scales.insert("x".into(), 20);
    let x: Vec<i64> = (0..6000).map(|i| if i % 2 == 0 { i * 16 } else { (i * 7919) % 4096 }).collect();
    let result = x.iter().enumerate().map(|(i, v)| (v >> 4) + i64::from(coin(i, *v))).collect();
    for (name, v) in [("x", x), ("result", result)] {
        let tensor = Tensor { shape: vec![v.len()], values: Values::Units(v) };
        trace.tensors.insert(format!("block/truncate/mine/{name}"), tensor);
    }
    trace
}

/// A number in 0 .. 16 that knows nothing of the operand.
fn draw(i: usize) -> i64 {
    (ChaCha12Rng::seed_from_u64(i as u64).random::<u32>() % 16) as i64
}

#[test]
fn coins() {
    let sound = truncations(|i, v| draw(i) < v % 16);
    assert!(judge(&sound).unwrap().holds(false), "{:?}", judge(&sound).unwrap().checks);
    let tensor = "block/truncate/mine/result";
    named(&truncations(|i, v| draw(i) < v % 16 + 1), tensor, "coin is (v + 1) / 2^s");
    named(&truncations(|i, v| if v % 16 == 0 { i % 3 == 0 } else { draw(i) < v % 16 }), tensor, "exact multiples move");
    named(&truncations(|i, v| v % 16 != 0 && draw(i) < 8), tensor, "coin probabilities");
    named(&truncations(|_, v| v % 16 >= 8), tensor, "coins repeat where the input repeats");
    named(&truncations(|_, _| false), tensor, "coins repeat where the input repeats");
    named(&truncations(|_, v| draw(v as usize + 7) < v % 16), tensor, "coins repeat where the input repeats");
}

#[test]
fn sign_and_factors() {
    let clean = testing::trace(Head::ReluGrad, Nearest, 2, 1);
    let plant = |name: &str, cause: &str, to: &dyn Fn(i64) -> i64| {
        let mut trace = clean.clone();
        change(&mut trace, &format!("step/0/{name}"), |_, v| to(v));
        named(&trace, name, cause);
    };
    plant("layer2/dW", "sign", &|v| -v);
    plant("layer2/dW", "factor 2", &|v| 2 * v);
    plant("layer2/dW", "factor batch", &|v| 8 * v);
    plant("layer1/db", "factor 1/2", &|v| v / 2);
    plant("layer2/dW", "factor 2^f", &|v| v << 16);
    plant("layer1/pre_activation", "factor 2^-8", &|v| v >> 8);
    let mut trace = clean.clone();
    let before = units(&clean, "step/0/start/layer1/weights").to_vec();
    put(&mut trace, "step/0/layer1/weights", before);
    named(&trace, "layer1/weights", "not updated");
}

#[test]
fn places() {
    let square = TrainSpec { network: NetworkSpec { widths: vec![12, 12, 5] }, ..spec(Head::Softmax, Nearest, 2) };
    let clean = testing::record(&square, 1, 2);
    let mut trace = clean.clone();
    let v = units(&clean, "step/0/layer1/dW").to_vec();
    put(&mut trace, "step/0/layer1/dW", (0..144).map(|i| v[i % 12 * 12 + i / 12]).collect());
    named(&trace, "layer1/dW", "transposed");

    let mut trace = clean.clone();
    let v = units(&clean, "step/0/layer2/dW").to_vec();
    put(&mut trace, "step/0/layer2/dW", (0..60).map(|i| v[i % 12 * 5 + i / 12]).collect());
    named(&trace, "layer2/dW", "transposed");

    let v = units(&clean, "step/0/logits").to_vec();
    for (cause, at) in [
        ("rows shifted", (|i| (i / 5 + 1) % 8 * 5 + i % 5) as fn(usize) -> usize),
        ("classes shifted", |i| i / 5 * 5 + (i % 5 + 4) % 5),
    ] {
        let mut trace = clean.clone();
        put(&mut trace, "step/0/logits", (0..40).map(|i| v[at(i)]).collect());
        named(&trace, "logits", cause);
    }
}

#[test]
fn a_batch_that_was_not_filled_again() {
    let spec = spec(Head::Softmax, Nearest, 2);
    let mut trace = testing::record_batches(&spec, 5, |_, rng| {
        *rng = ChaCha12Rng::seed_from_u64(11);
        batch(&spec, rng)
    });
    let other = batch(&spec, &mut ChaCha12Rng::seed_from_u64(12));
    trace.tensors.insert("step/1/input".into(), Tensor::units(&other.units));
    named(&trace, "layer1/pre_activation", "stale batch");
}

#[test]
fn what_was_not_computed() {
    let clean = testing::trace(Head::Softmax, Nearest, 2, 1);
    for (name, cause) in [("layer2/db", "bias gradient missing"), ("layer2/dW", "missing")] {
        let mut trace = clean.clone();
        change(&mut trace, &format!("step/0/{name}"), |_, _| 0);
        named(&trace, name, cause);
    }
    let mut trace = testing::trace(Head::Softmax, Nearest, 1, 1);
    let b = units(&trace, "step/0/start/layer1/bias").to_vec();
    let v = products(&trace, 0).iter().enumerate().map(|(i, v)| (v - (b[i % 5] << 16) + (1 << 15)) >> 16).collect();
    put(&mut trace, "step/0/logits", v);
    named(&trace, "logits", "bias missing");
}

#[test]
fn momentum() {
    let clean = testing::trace(Head::Softmax, Nearest, 1, 1);
    let (m, r) = (clean.header.coded_momentum.unwrap(), clean.header.coded_rate.unwrap());
    let (v, g) = (units(&clean, "step/0/start/layer1/weight_velocity"), units(&clean, "step/0/layer1/dW"));
    let velocity = |m: f64, r: f64| -> Vec<i64> {
        v.iter().zip(g).map(|(&v, &g)| (m * v as f64 - r * g as f64 / 65536.0 + 0.5).floor() as i64).collect()
    };
    for (cause, m, r) in [
        ("momentum twice", m * m, r),
        ("momentum missing", 1.0, r),
        ("velocity forgotten", 0.0, r),
        ("sign", m, -r),
        ("factor 2", m, 2.0 * r),
        ("gradient damped", m, r * (1.0 - m)),
    ] {
        let mut trace = clean.clone();
        put(&mut trace, "step/0/layer1/weight_velocity", velocity(m, r));
        named(&trace, "layer1/weight_velocity", cause);
    }
}

#[test]
fn comparisons_at_zero() {
    let spec = spec(Head::Softmax, Nearest, 2);
    let mut trace = testing::record_batches(&spec, 4, |start, rng| {
        start.layers[0].bias.fill(0);
        let mut batch = batch(&spec, rng);
        batch.units.row_mut(2).fill(0);
        batch.reals.row_mut(2).fill(0.0);
        batch
    });
    let w = units(&trace, "step/0/start/layer2/weights").to_vec();
    let g = units(&trace, "step/0/head_gradient").to_vec();
    let z = units(&trace, "step/0/layer1/pre_activation").to_vec();
    let back = |i: usize| ((0..5).map(|k| g[i / 7 * 5 + k] * w[i % 7 * 5 + k]).sum::<i64>() + (1 << 15)) >> 16;
    let mut all = trace.clone();
    change(&mut trace, "step/0/layer1/activation_gradient", |i, _| if z[i] >= 0 { back(i) } else { 0 });
    named(&trace, "layer1/activation_gradient", ">= for >");
    change(&mut all, "step/0/layer1/activation_gradient", |i, _| back(i));
    named(&all, "layer1/activation_gradient", "mask forgotten");
}

/// A trace of one head over 64 rows, with one of its tensors changed by the row's logits and sum.
fn of_head(head: Head, name: &str, cause: &str, value: impl Fn(&[i64], &[i64], usize, usize) -> i64) {
    let mut trace = testing::record(&wide(head, Nearest), 1, 9);
    let x = units(&trace, "step/0/logits").to_vec();
    let sums = units(&trace, "step/0/head/sum").to_vec();
    let columns = units(&trace, &format!("step/0/{name}")).len() / 64;
    change(&mut trace, &format!("step/0/{name}"), |i, _| value(&x, &sums, i / columns, i % columns));
    named(&trace, name, cause);
}

#[test]
fn heads() {
    let relu = |x: i64| x.max(0);
    let cut = |x: &[i64], i: usize| x[i * 5..][..5].iter().filter(|&&x| x > 6554).sum::<i64>();
    of_head(Head::ReluProb, "head/sum", "S of another head", |x, _, i, _| cut(x, i));
    of_head(Head::ReluGrad, "head/quotient", "reciprocal then multiply", |x, s, i, j| {
        (relu(x[i * 5 + j]) * ((1i64 << 32) / s[i].max(1)) + (1 << 15)) >> 16
    });
    of_head(Head::ReluGrad, "head/quotient", "denominator of another row", |x, s, i, j| {
        let s = s[(i + 1) % 64].max(1);
        ((relu(x[i * 5 + j]) << 17) + s) / (2 * s)
    });
    of_head(Head::ReluGrad, "head/quotient", "normalised by the first row", |x, s, i, j| {
        let binade = |s: i64| 64 - s.leading_zeros();
        let s0 = s[0];
        let s = s[i].max(1);
        let right = ((relu(x[i * 5 + j]) << 17) + s) / (2 * s);
        if binade(s) == binade(s0) { right } else { right / 3 + 77 + j as i64 }
    });
    of_head(Head::Softmax, "head/maximum", "maximum of the batch", |x, _, _, _| *x.iter().max().unwrap());
    of_head(Head::Softmax, "head/exp", "argument clamped", |x, _, i, j| {
        let max = x[i * 5..][..5].iter().max().unwrap();
        let d = (x[i * 5 + j] - max) as f64 / 65536.0;
        (d.max(-0.75).exp() * 65536.0).round() as i64
    });
}

#[test]
fn halves_that_go_down() {
    let mut trace = truncations(|_, _| false);
    trace.header.rounding = TraceRounding::Nearest;
    trace.header.ties_up = true;
    change(&mut trace, "block/truncate/mine/x", |i, _| 4 * i as i64);
    let x = units(&trace, "block/truncate/mine/x").to_vec();
    put(&mut trace, "block/truncate/mine/result", x.iter().map(|v| (v + 8) >> 4).collect());
    assert!(judge(&trace).unwrap().holds(false), "{:?}", judge(&trace).unwrap().checks);
    put(&mut trace, "block/truncate/mine/result", x.iter().map(|v| (v + 7) >> 4).collect());
    named(&trace, "block/truncate/mine/result", "ties down");
}

#[test]
fn comparisons() {
    let relu = |x: i64| x.max(0);
    // The bit below the top one of 18 bits: exactly what is 2^16 units or more in size is decided the other way.
    of_head(Head::ReluGrad, "head/positive", "sign from a lower bit", |x, _, i, j| {
        let v = x[i * 5 + j];
        if !(-(1 << 16)..1 << 16).contains(&v) { v - relu(v) } else { relu(v) }
    });
    of_head(Head::ReluGrad, "head/positive", "wrong comparison", |x, _, i, j| {
        let v = x[i * 5 + j];
        if (i * 7 + j) % 6 == 0 { v - relu(v) } else { relu(v) }
    });
    let spec = spec(Head::Softmax, Nearest, 2);
    let mut trace = testing::record(&spec, 1, 4);
    // An engine goes on with what it has: later tensors would be right by themselves.
    trace
        .tensors
        .retain(|name, _| ["/start/", "/input", "/layer1/pre", "/layer1/activation"].iter().any(|n| name.contains(n)));
    trace.tensors.remove("step/0/layer1/activation_gradient");
    let z = units(&trace, "step/0/layer1/pre_activation").to_vec();
    change(&mut trace, "step/0/layer1/activation", |i, v| if i % 4 == 1 { z[i] - v } else { v });
    named(&trace, "layer1/activation", "wrong comparison");
}

#[test]
fn thresholds_of_what_is_summed() {
    let keep =
        |from: i64| move |x: &[i64], _: &[i64], i: usize, j: usize| if x[i * 5 + j] >= from { x[i * 5 + j] } else { 0 };
    of_head(Head::ReluProb, "head/positive", "threshold of another head", keep(6554));
    // Logits of a few units in all classes but the first.
    let spec = wide(Head::ReluProbCut, Nearest);
    let mut trace = testing::record_batches(&spec, 9, |start, rng| {
        start.layers[0].weights.mapv_inplace(|w| w / 2048);
        start.layers[0].bias.mapv_inplace(|b| b / 2048);
        start.layers[0].bias[0] = 20_000;
        batch(&spec, rng)
    });
    let x = units(&trace, "step/0/logits").to_vec();
    assert!(x.iter().any(|x| (1..27).contains(x)) && x.iter().any(|x| (27..6554).contains(x)));
    change(&mut trace, "step/0/head/positive", |i, _| if x[i] >= 27 { x[i] } else { 0 });
    named(&trace, "head/positive", "threshold scale");
}

#[test]
fn exponentials() {
    let exp = |x: &[i64], i: usize, j: usize| {
        let max = *x[i * 5..][..5].iter().max().unwrap();
        ((x[i * 5 + j] - max) as f64 / 65536.0).exp()
    };
    of_head(Head::Softmax, "head/exp", "coefficient of exp", |x, _, i, j| {
        let y = exp(x, i, j).log2();
        let term = 0.002 * (y - y.floor()).powi(4) * y.floor().exp2();
        ((exp(x, i, j) + term) * 65536.0).round() as i64
    });
    of_head(Head::Softmax, "head/exp", "no maximum", |x, _, i, j| {
        let v = x[i * 5 + j];
        if v <= 0 { ((v as f64 / 65536.0).exp() * 65536.0).round() as i64 } else { 77 * v % 100_003 }
    });
    of_head(Head::Softmax, "head/maximum", "maximum of another set", |x, _, i, _| {
        *x[i * 5..][..4].iter().max().unwrap()
    });
}

#[test]
fn shares_that_do_not_add_up() {
    let mut trace = testing::record(&wide(Head::Softmax, Nearest), 1, 3);
    let mut rng = ChaCha12Rng::seed_from_u64(8);
    let random: Vec<i64> = (0..320).map(|_| rng.random::<i64>() >> 16).collect();
    let clean = trace.clone();
    change(&mut trace, "step/0/logits", |i, v| if i % 3 == 0 { random[i] } else { v });
    named(&trace, "logits", "random in the ring");
    // Spread over the number format is another matter.
    trace = clean;
    change(&mut trace, "step/0/logits", |i, _| random[i] >> 20);
    named(&trace, "logits", "unknown");
}

#[test]
fn carries_of_a_truncation() {
    let mut trace = testing::record(&wide(Head::Softmax, Nearest), 1, 3);
    change(&mut trace, "step/0/logits", |i, v| v + [1, 0, -1, 0][i % 4]);
    named(&trace, "logits", "wrong carry");
}

#[test]
fn powers_of_two_in_exponentials() {
    let exp = |x: &[i64], i: usize, j: usize| {
        let max = *x[i * 5..][..5].iter().max().unwrap();
        (((x[i * 5 + j] - max) as f64 / 65536.0).exp() * 65536.0).round() as i64
    };
    of_head(Head::Softmax, "head/exp", "wrong exponent", |x, _, i, j| {
        let right = exp(x, i, j);
        if right == 65536 { right } else { right >> [0, 4, 8][(i + j) % 3] }
    });
    of_head(Head::Softmax, "head/exp", "bit is not a bit", |x, _, i, j| {
        exp(x, i, j) * [1, -1, 3, -3, 0][(3 * i + j) % 5]
    });
    // The same for the same argument, as rows that are the same have.
    let spec = wide(Head::Softmax, Nearest);
    let mut trace = testing::record_batches(&spec, 4, |_, rng| {
        let mut batch = batch(&spec, rng);
        for row in 32..64 {
            let (units, reals) = (batch.units.row(row - 32).to_owned(), batch.reals.row(row - 32).to_owned());
            batch.units.row_mut(row).assign(&units);
            batch.reals.row_mut(row).assign(&reals);
        }
        batch
    });
    let x = units(&trace, "step/0/logits").to_vec();
    change(&mut trace, "step/0/head/exp", |i, _| {
        let max = x[i / 5 * 5..][..5].iter().max().unwrap();
        (x[i] - max).wrapping_mul(7919) % 400_003 - 119_750
    });
    named(&trace, "head/exp", "overflow inside the function");
    let mut rng = ChaCha12Rng::seed_from_u64(8);
    let random: Vec<i64> = (0..320).map(|_| rng.random_range(-(1 << 21)..1 << 21)).collect();
    change(&mut trace, "step/0/head/exp", |i, _| random[i]);
    named(&trace, "head/exp", "random in the ring");
}

#[test]
fn a_second_class_that_wins() {
    of_head(Head::Softmax, "head/maximum", "two classes win", |x, _, i, _| {
        let (row, before) = (&x[i * 5..][..5], *x[i * 5..][..4].iter().max().unwrap());
        if row[4] > before { row[4] + before } else { before }
    });
}

/// Without intermediates a head is judged as a whole.
#[test]
fn whole_heads() {
    for (head, other) in [(Head::ReluProb, Head::ReluProbCut), (Head::ReluGrad, Head::Softmax)] {
        let mut trace = testing::record(&wide(head, Nearest), 1, 9);
        let strange = testing::record(&wide(other, Nearest), 1, 9);
        trace.tensors.retain(|name, _| !name.contains("/head/"));
        let clean = judge(&trace).unwrap();
        assert!(clean.holds(false), "{:?}", clean.checks);
        assert_eq!(units(&trace, "step/0/logits"), units(&strange, "step/0/logits"));
        put(&mut trace, "step/0/head_gradient", units(&strange, "step/0/head_gradient").to_vec());
        named(&trace, "head_gradient", "another head");
        // Without a claim nothing is judged but such a mistake.
        trace.header.claims = Default::default();
        named(&trace, "head_gradient", "another head");
    }
}

#[test]
fn out_of_range() {
    let mut trace = testing::record(&wide(Head::Softmax, Nearest), 1, 3);
    trace.header.value_bits = 17;
    let wanted = products(&trace, 0);
    change(&mut trace, "step/0/logits", |i, v| if wanted[i].abs() >= 1 << 32 { 4321 + i as i64 * 17 } else { v });
    named(&trace, "logits", "out of range before the operation");
}

#[test]
fn what_nothing_explains_is_unknown() {
    let mut trace = testing::trace(Head::Softmax, Nearest, 2, 1);
    change(
        &mut trace,
        "step/0/layer1/pre_activation",
        |i, v| if i % 9 == 0 { v + 19 + (i * i % 57) as i64 } else { v },
    );
    named(&trace, "layer1/pre_activation", "unknown");
}

#[test]
fn another_number_format_has_no_false_alarm() {
    for (fraction_bits, value_bits, head) in [(8, 24, Head::ReluGrad), (12, 28, Head::Softmax), (17, 32, Head::ReluEps)]
    {
        for rounding in Rounding::ALL {
            let spec = TrainSpec { fixed: FixedSpec { fraction_bits, value_bits }, ..spec(head, rounding, 2) };
            let report = judge(&testing::record(&spec, 2, 21)).unwrap();
            let extra = TrainSpec { sgd: SgdSpec { extra_velocity_bits: 6, ..spec.sgd }, ..spec };
            assert!(report.holds(false), "f = {fraction_bits}: {:?}", report.checks);
            let report = judge(&testing::record(&extra, 2, 21)).unwrap();
            assert!(report.holds(false), "f = {fraction_bits}, extra velocity bits: {:?}", report.checks);
        }
    }
}
