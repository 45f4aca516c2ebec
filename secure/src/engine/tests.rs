use super::*;
use crate::buffer::Words;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};

fn spec(head: Head, rounding: Rounding) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: vec![300, 130, 10] },
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 70, ..SgdSpec::default() },
    }
}

/// Numbers in (-range, range) that look random enough.
fn units(n: usize, range: i64) -> Vec<i64> {
    (1..=n as i64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) % range).collect()
}

fn parameters(spec: &TrainSpec) -> ParameterUnits {
    let layer = |l| {
        let (rows, cols) = spec.network.shape(l);
        let zero = |n| vec![0; n];
        LayerUnits {
            weights: units(rows * cols, 9000),
            bias: zero(cols),
            weight_velocity: zero(rows * cols),
            bias_velocity: zero(cols),
        }
    };
    ParameterUnits { layers: (1..=spec.network.layers()).map(layer).collect() }
}

fn trained(spec: &TrainSpec, seed: Option<u64>, threads: usize) -> ParameterUnits {
    let mut engine = Engine::start(EngineConfig { seed, threads, ..EngineConfig::new(spec.clone()) }).unwrap();
    engine.load(&parameters(spec)).unwrap();
    let labels: Vec<usize> = (0..200).map(|i| i * 7 % 10).collect();
    engine.load_data(&units(200 * 300, 60_000), &labels).unwrap();
    let batch = |k: u32| (0..70).map(|i| (i * 3 + k) % 200).collect();
    engine.train(&[batch(0), batch(1), batch(2)]).unwrap();
    engine.parameters().unwrap()
}

#[test]
fn a_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let spec = spec(Head::Softmax, Rounding::Probabilistic);
    let once = trained(&spec, Some(5), 1);
    for threads in [1, 2, 8] {
        assert_eq!(trained(&spec, Some(5), threads), once, "{threads} threads");
    }
    assert_ne!(trained(&spec, Some(6), 1), once, "other coins");
}

#[test]
fn nearest_rounding_does_not_depend_on_the_randomness() {
    let spec = spec(Head::ReluProb, Rounding::Nearest);
    assert_eq!(trained(&spec, None, 1), trained(&spec, None, 1));
}

/// The cost of a step depends on shapes alone: other weights, other data, the same counters.
#[test]
fn the_cost_does_not_depend_on_the_data() {
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            let spec = spec(head, rounding);
            let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
            engine.load(&parameters(&spec)).unwrap();
            let labels = vec![3; 70];
            let a = engine.step(&units(70 * 300, 60_000), &labels).unwrap().spent;
            let b = engine.step(&vec![0; 70 * 300], &labels).unwrap().spent;
            assert_eq!(a, b, "{head} {rounding}");
        }
    }
}

/// Of every head and depth, the tensors that the specification names: each once, under its own name, in its own
/// shape.
#[test]
fn a_recorded_step_hands_out_every_tensor_once() {
    use HeadPoint::*;
    use ProbePoint::{Head as OfHead, *};
    use spec::{Head, HeadPoint, ProbePoint};
    for (layers, head) in [1, 2, 3].into_iter().flat_map(|l| Head::ALL.map(|h| (l, h))) {
        let network = NetworkSpec::dense(9, 5, 4, layers);
        let of_head = match head {
            Head::Softmax => vec![(Maximum, 1, 1), (Exp, 1, 4), (Sum, 1, 1), (Quotient, 1, 4)],
            Head::ReluGrad => vec![(Positive, 1, 4), (Sum, 1, 1), (Quotient, 1, 4)],
            Head::ReluProb | Head::ReluProbCut | Head::ReluEps => {
                vec![(Positive, 1, 4), (Sum, 1, 1), (Reciprocal, 2, 1)]
            }
        };
        let mut expected = vec![(Logits, 70, 4), (HeadGradient, 70, 4)];
        expected.extend(of_head.into_iter().map(|(point, batches, cols)| (OfHead(point), 70 * batches, cols)));
        for l in 1..=layers {
            let (rows, cols) = network.shape(l);
            expected.extend([WeightGradient(l), WeightVelocity(l), Weights(l)].map(|point| (point, rows, cols)));
            expected.extend([BiasGradient(l), BiasVelocity(l), Bias(l)].map(|point| (point, 1, cols)));
            if l < layers {
                expected.extend([PreActivation(l), Activation(l), ActivationGradient(l)].map(|point| (point, 70, 5)));
            }
        }
        expected.sort();
        let spec = TrainSpec { network, ..spec(head, Rounding::Probabilistic) };
        let mut engine = Engine::start(EngineConfig { record: true, ..EngineConfig::new(spec.clone()) }).unwrap();
        engine.load(&parameters(&spec)).unwrap();
        let probes = engine.step(&units(70 * 9, 60_000), &[1; 70]).unwrap().probes;
        let mut found: Vec<_> = probes.iter().map(|p| (p.point, p.rows, p.cols)).collect();
        found.sort();
        assert_eq!(found, expected, "{head}, {layers} layers");
    }
}

/// The promise for a step at batch 128: at most 120 rounds, and the bars of the benchmarks.
#[test]
fn a_softmax_step_takes_few_rounds() {
    use Rounding::{Nearest, Probabilistic};
    for (layers, rounding, bar) in
        [(1, Probabilistic, 56), (2, Probabilistic, 70), (3, Probabilistic, 84), (2, Nearest, 119)]
    {
        let spec = TrainSpec {
            network: NetworkSpec::dense(20, 8, 10, layers),
            sgd: SgdSpec::default(),
            ..spec(Head::Softmax, rounding)
        };
        let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
        engine.load(&parameters(&spec)).unwrap();
        let rounds = engine.step(&units(128 * 20, 60_000), &[1; 128]).unwrap().spent.rounds;
        assert!(rounds <= bar, "{layers} layers, {rounding}: {rounds} rounds");
    }
}

#[test]
fn shares_that_are_handed_out_are_taken_in_again_and_only_if_they_belong_together() {
    let spec = spec(Head::Softmax, Rounding::Nearest);
    let start = || Engine::start(EngineConfig::new(spec.clone())).unwrap();
    let mut engine = start();
    engine.load(&parameters(&spec)).unwrap();
    let shares = engine.shares().unwrap();
    let mut other = start();
    other.load_shares(shares.clone()).unwrap();
    assert_eq!(other.parameters().unwrap(), parameters(&spec));

    let refused = |e: &mut Engine, s: [Vec<LayerShare>; 3], what: &str| {
        let error = e.load_shares(s).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    let mut altered = shares.clone();
    altered[1][0].bias.own[3] ^= 1;
    refused(&mut other, altered, "layer1/bias: the two copies of component 1 differ at index 3");
    let mut short = shares.clone();
    short[2].pop();
    refused(&mut other, short, "party 2");
    let mut hollow = shares.clone();
    hollow.iter_mut().for_each(|s| s[0].bias.next = Words::default());
    refused(&mut other, hollow, "party 0");
    let [a, b, c] = shares;
    refused(&mut other, [b, a, c], "two copies");
    assert_eq!(other.parameters().unwrap(), parameters(&spec), "what is refused changes nothing");
}

#[test]
fn misuse_is_an_error_that_names_it() {
    let spec = spec(Head::Softmax, Rounding::Nearest);
    let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
    let is = |e: Error, what: &str| assert!(e.to_string().contains(what), "{e}");
    is(engine.train(&[vec![0; 70]]).unwrap_err(), "load_data");
    is(engine.train(&[vec![0; 70], vec![0]]).unwrap_err(), "a batch of 1 rows; it must have 70");
    is(engine.step(&[0; 300], &[0]).unwrap_err(), "a batch of 1 rows; it must have 70");
    is(engine.step(&[0; 5], &[0; 70]).unwrap_err(), "70 x 300");
    is(engine.step(&[0; 70 * 300], &[10; 70]).unwrap_err(), "label 10");
    is(engine.head(&[], 0, &[]).unwrap_err(), "0 classes");
    is(engine.head(&[1], 1, &[0]).unwrap_err(), "1 classes");
    is(engine.load(&ParameterUnits { layers: vec![] }).unwrap_err(), "0 layers");
    engine.load(&parameters(&spec)).unwrap();
    engine.load_data(&units(300, 100), &[0]).unwrap();
    is(engine.train(&[vec![0; 70], vec![1; 70]]).unwrap_err(), "row 1");
    assert_eq!(
        engine.parameters().unwrap(),
        parameters(&spec),
        "nothing is trained before all rows are known to be there"
    );
}

#[test]
fn a_party_that_panics_is_no_misuse_and_stops_the_engine() {
    let mut engine = Engine::start(EngineConfig::new(spec(Head::Softmax, Rounding::Nearest))).unwrap();
    let stopped = engine.all_do([(); 3].map(|()| Job::Panic));
    assert_eq!(stopped.unwrap_err(), Error::PartyStopped { party: PartyId::P1 });
    assert!(engine.parameters().unwrap_err().to_string().contains("start a new one"));
}

#[test]
fn hits_are_counted_over_all_pieces_of_a_long_data_set() {
    let spec = TrainSpec { network: NetworkSpec { widths: vec![2, 2] }, ..spec(Head::Softmax, Rounding::Nearest) };
    let mut engine = Engine::start(EngineConfig::new(spec.clone())).unwrap();
    let layer = LayerUnits {
        weights: vec![1 << 16, 0, 0, 1 << 16],
        bias: vec![0; 2],
        weight_velocity: vec![0; 4],
        bias_velocity: vec![0; 2],
    };
    engine.load(&ParameterUnits { layers: vec![layer] }).unwrap();
    // Rows (1, 0) are class 0. 1,001 rows, of which 800 in the first piece and the one in the second are labelled
    // so.
    let x: Vec<i64> = (0..1001).flat_map(|_| [1 << 16, 0]).collect();
    let labels: Vec<usize> = (0..1001).map(|i| usize::from((100..300).contains(&i))).collect();
    assert_eq!(engine.count_correct(&x, &labels).unwrap(), 801);
}
