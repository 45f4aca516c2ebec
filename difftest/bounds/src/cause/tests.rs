use super::*;
use crate::testing::{self, Integer, real};
use ndarray::array;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use reference::fixed::{Coins, LayerUnits, Parameters};
use reference::spec::{Head, NetworkSpec, Rounding, SgdSpec};

const BATCH: usize = 12;

fn spec(head: Head, rounding: Rounding, widths: &[usize]) -> TrainSpec {
    let general = testing::spec(head, rounding, 1, 0);
    let sgd = SgdSpec { batch: BATCH, ..general.sgd };
    TrainSpec { network: NetworkSpec { widths: widths.to_vec() }, sgd, ..general }
}

/// Live weights and velocities of either sign.
fn inputs(spec: &TrainSpec, seed: u64) -> (Parameters, Batch) {
    testing::inputs(spec, &mut ChaCha12Rng::seed_from_u64(seed))
}

/// One step of f64 and of the integer model with these coins, and the chain between them.
struct Ran {
    real: Tensors<f64>,
    integer: Tensors<i64>,
    monitor: Monitor,
    chain: Chain,
    budget: Budget,
}

fn run(spec: TrainSpec, (parameters, batch): &(Parameters, Batch), coins: Coins) -> Ran {
    let mut model = Integer::with_coins(spec.clone(), coins);
    model.load(parameters);
    let (real, integer) = (real(&spec, parameters, batch), model.step(batch));
    let start = parameters.decode(spec.fixed, &spec.sgd);
    let chain = Chain::walk(&spec, &start, batch, &real, &integer).unwrap();
    let monitor = model.violations;
    let sides = (&real, &integer, &integer);
    let budget = step(&spec, &start, batch, sides, &monitor, &|_| true).unwrap();
    Ran { real, integer, monitor, chain, budget }
}

#[test]
fn the_parts_of_every_element_add_up_to_its_difference() {
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            for widths in [&[9, 6][..], &[9, 7, 6], &[9, 7, 8, 5]] {
                let spec = spec(head, rounding, widths);
                let ran = run(spec.clone(), &inputs(&spec, 3), Coins::seeded(4));
                assert_eq!(ran.monitor.total(), 0);
                assert!(ran.budget.keys().eq(ran.real.keys()), "{head}: every tensor is booked");
                for (point, real) in &ran.real {
                    // A secure side that is off by one unit everywhere, for the protocol's part.
                    let (integer, scale) = (&ran.integer[point], point.scale(spec.fixed, 0));
                    let secure = integer.mapv(|v| v + 1);
                    let parts = ran.chain.parts(point, (real, integer, &secure), scale, false);
                    for ((parts, &f), &s) in parts.zip(real).zip(&secure) {
                        let total = decoded(s, scale) - f;
                        let scale_of = parts.iter().fold(f.abs() + 1.0, |m, p| m + p.abs());
                        let off = (parts.iter().sum::<f64>() - total).abs();
                        assert!(off <= 4.0 * f64::EPSILON * scale_of, "{head} {rounding} {point}: {parts:?} {total}");
                        assert_eq!(parts[Cause::Protocol as usize], decoded(1, scale));
                        assert_eq!(parts[Cause::Range as usize], 0.0);
                    }
                }
            }
        }
    }
}

#[test]
fn each_cause_is_found_where_it_is_and_nowhere_else() {
    // Logits of one layer differ by one truncation; exp and everything after it also by its algorithm.
    let softmax = spec(Head::Softmax, Rounding::Probabilistic, &[9, 6]);
    let ran = run(softmax.clone(), &inputs(&softmax, 5), Coins::seeded(6));
    let part = |ran: &Ran, point, cause| ran.budget[&point].part(cause).largest * 65536.0;
    let logits = |cause| part(&ran, ProbePoint::Logits, cause);
    assert!((0.5..1.0).contains(&logits(Cause::Rounding)), "{}", logits(Cause::Rounding));
    for cause in Cause::ALL.into_iter().filter(|c| *c != Cause::Rounding) {
        assert_eq!(logits(cause), 0.0, "{}", cause.name());
    }
    let gradient = |cause| part(&ran, ProbePoint::HeadGradient, cause);
    assert!((0.001..0.5).contains(&gradient(Cause::Approximation)), "{}", gradient(Cause::Approximation));
    assert!((0.5..3.0).contains(&gradient(Cause::Rounding)), "{}", gradient(Cause::Rounding));
    assert_eq!((gradient(Cause::Encoding), gradient(Cause::Branch)), (0.0, 0.0));
    // lr / batch = 0.05 / 12 is encoded with ten bits: the velocity's encoding error is a part of its change.
    assert!((0.01..100.0).contains(&part(&ran, ProbePoint::WeightVelocity(1), Cause::Encoding)));

    // Constants that are exact in fixed point leave no encoding error at all.
    let sgd = SgdSpec { batch: 8, learning_rate: 0.0625, momentum: 0.5, extra_velocity_bits: 0 };
    let exact = TrainSpec { sgd, ..softmax };
    let ran = run(exact.clone(), &inputs(&exact, 5), Coins::seeded(6));
    assert!(ran.budget.values().all(|b| b.part(Cause::Encoding).largest == 0.0));
}

/// Row 0: 0.5 times an odd number of units is half a unit below eps; rounded up it is above.
#[test]
fn a_threshold_that_rounding_crosses_is_a_branch() {
    let mut spec = spec(Head::ReluProb, Rounding::Probabilistic, &[1, 2]);
    spec.sgd.batch = 1;
    let layer = LayerUnits {
        weights: array![[2 * 6554 - 1, 65536]],
        bias: array![0, 0],
        weight_velocity: array![[0, 0]],
        bias_velocity: array![0, 0],
    };
    let batch = Batch { units: array![[32768]], reals: array![[0.5]], labels: vec![0] };
    let inputs = (Parameters { layers: vec![layer] }, batch);
    let ran = run(spec.clone(), &inputs, Coins::Extreme { up: true });
    let point = ProbePoint::HeadGradient;
    let (real, integer) = (&ran.real[&point], &ran.integer[&point]);
    assert_eq!(real[[0, 0]], -1.0);
    let parts = ran.chain.parts(&point, (real, integer, integer), 16, false).next().unwrap();
    let (x, other) = (6553.5 / 65536.0, 0.5);
    let jump = 1.0 / (x + other) - 1.0 / x - -1.0;
    assert!((parts[Cause::Branch as usize] - jump).abs() < 1e-9, "{parts:?} {jump}");
    assert!(parts[Cause::Rounding as usize].abs() < 100.0 / 65536.0, "half a unit of x moves 1/x by 50: {parts:?}");
    // Rounded down, every comparison goes as in real numbers.
    let ran = run(spec, &inputs, Coins::Extreme { up: false });
    assert_eq!(ran.budget[&point].part(Cause::Branch).largest, 0.0);
}

#[test]
fn what_follows_an_operand_out_of_range_is_booked_to_range() {
    let spec = spec(Head::ReluGrad, Rounding::Nearest, &[9, 7, 6]);
    let mut inputs = inputs(&spec, 8);
    inputs.0.layers[1].weights.fill(1 << 30);
    let ran = run(spec, &inputs, Coins::seeded(1));
    assert!(ran.monitor.counts().contains_key("logits"), "{:?}", ran.monitor.counts());
    for (point, b) in &ran.budget {
        let after = *point >= ProbePoint::Logits;
        assert_eq!(b.part(Cause::Range).largest > 0.0, after && b.total.largest > 0.0, "{point}");
        assert!(!after || b.part(Cause::Rounding).largest == 0.0, "{point}");
    }
}
