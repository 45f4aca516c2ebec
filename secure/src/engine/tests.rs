use super::state::{StateFolder, spec_digest};
use super::worker::HeadShares;
use super::*;
use crate::buffer::Words;
use crate::net::recorded::Sent;
use crate::party::Record;
use crate::testing::{self, Training};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    is(engine.head(&[1, 2, 3], 2, &[0]).unwrap_err(), "3 values for a 1 x 2 matrix");
    assert_eq!(engine.head(&[1, 2], 2, &[0]).unwrap().gradient.len(), 2, "two classes are enough");
    is(engine.predict(&[0; 300]).unwrap_err(), "load first");
    is(engine.count_correct(&[0; 300], &[0]).unwrap_err(), "load first");
    is(engine.count_correct(&[0; 300], &[0, 1]).unwrap_err(), "300 values for 2 rows of 300");
    is(engine.step(&[0; 70 * 300], &[0; 70]).unwrap_err(), "load first");
    is(engine.keep("run", 1).unwrap_err(), "load first");
    is(engine.load_data(&[0; 301], &[0]).unwrap_err(), "301 values for a 1 x 300 matrix");
    engine.load_data(&units(300, 100), &[0]).unwrap();
    is(engine.train(&[vec![0; 70]]).unwrap_err(), "load first");
    assert!(engine.shares().unwrap().iter().all(Vec::is_empty), "who was given none has none");
    let mut wrong = parameters(&spec);
    wrong.layers[1].bias.pop();
    is(engine.load(&wrong).unwrap_err(), "9 values for a 1 x 10 matrix");
    is(engine.load(&ParameterUnits { layers: vec![] }).unwrap_err(), "0 layers");
    engine.load(&parameters(&spec)).unwrap();
    is(engine.load_data(&[0; 600], &[0]).unwrap_err(), "600 values for a 1 x 300 matrix");
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
    // What is refused leaves no hits of its first piece behind.
    let bad: Vec<usize> = labels.iter().copied().take(1000).chain([2]).collect();
    assert_eq!(engine.count_correct(&x, &bad).unwrap_err(), Error::misuse("label 2 with 2 classes"));
    assert_eq!(engine.count_correct(&x, &labels).unwrap(), 801);
}

/// With a seed a run that is resumed goes on with the shares and coins that it would have had; without one the parties
/// draw new coins. What a party that was killed left half written is gone.
#[test]
fn a_run_that_was_kept_goes_on_where_it_was() {
    let folder = std::env::temp_dir().join(format!("difftest-kept-{}", std::process::id()));
    let spec = TrainSpec {
        network: NetworkSpec::dense(5, 4, 3, 2),
        sgd: SgdSpec { batch: 6, ..SgdSpec::default() },
        ..spec(Head::Softmax, Rounding::Probabilistic)
    };
    let start = |seed| {
        let config = EngineConfig { seed, states: Some(folder.clone()), ..EngineConfig::new(spec.clone()) };
        Training::start(config, 20)
    };
    let mut whole = start(Some(5));
    assert_eq!(whole.engine.kept("run").unwrap(), None);
    assert_eq!(whole.engine.resume("run").unwrap(), None);
    whole.steps(2);
    assert!(whole.engine.times().unwrap().contains_key(&Phase::MatrixProducts));
    let predicted = whole.engine.predict(&[1 << 14; 5]).unwrap();
    whole.engine.keep("run", 2).unwrap();
    let at_two = whole.engine.parameters().unwrap();
    whole.steps(2);
    let at_four = whole.engine.parameters().unwrap();
    assert_ne!(at_two, at_four);

    let left = folder.join("party1").join("run.party1.000000000003.part");
    std::fs::write(&left, "half").unwrap();
    let mut resumed = start(Some(5));
    assert_eq!(resumed.engine.kept("run").unwrap(), Some(2));
    assert_ne!(resumed.engine.parameters().unwrap(), at_two, "asking changes nothing");
    assert_eq!(resumed.engine.resume("run").unwrap(), Some(2));
    assert!(!left.exists());
    assert_eq!(resumed.engine.parameters().unwrap(), at_two);
    assert_eq!(resumed.engine.dealt, whole.engine.dealt);
    resumed.steps(2);
    assert_eq!(resumed.engine.parameters().unwrap(), at_four, "the same coins");

    let mut unseeded = start(None);
    let before = unseeded.engine.dealt;
    assert_eq!(unseeded.engine.resume("run").unwrap(), Some(2));
    assert_eq!((unseeded.engine.parameters().unwrap(), unseeded.engine.dealt), (at_two, before));
    assert_eq!(unseeded.engine.predict(&[1 << 14; 5]).unwrap(), predicted);
    unseeded.engine.keep("fresh", 2).unwrap();
    let calls = |name: &str| {
        let party = |id| StateFolder::new(folder.join(format!("party{id}")), id, spec_digest(&spec));
        PartyId::ALL.map(|id| party(id).list(name).unwrap()[0].at.calls)
    };
    assert!(calls("fresh") < calls("run"), "fresh keys begin at their beginning");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A party that answers what it was told to before, and how often it was given rows.
struct Scripted(std::vec::IntoIter<Answer>, Arc<AtomicUsize>);

impl Link for Scripted {
    fn ask(&mut self, job: Job) {
        self.1.fetch_add(usize::from(matches!(job, Job::MoreData(_))), Ordering::SeqCst);
    }

    fn answer(&mut self) -> Result<Answer> {
        Ok(self.0.next().expect("as many answers as jobs"))
    }
}

/// An engine whose parties answer that they are ready, and then this; how often they were given rows.
fn scripted(spec: TrainSpec, answers: impl Fn(PartyId) -> Vec<Answer>) -> (Result<Engine>, Arc<AtomicUsize>) {
    let given = Arc::<AtomicUsize>::default();
    let link = |id| {
        let all: Vec<_> = [Answer::Done].into_iter().chain(answers(id)).collect();
        Box::new(Scripted(all.into_iter(), Arc::clone(&given))) as Box<dyn Link>
    };
    (Engine::connect(spec, None, true, PartyId::ALL.map(link)), given)
}

fn answering(answers: impl Fn(PartyId) -> Vec<Answer>) -> Engine {
    scripted(spec(Head::Softmax, Rounding::Nearest), answers).0.unwrap()
}

#[test]
fn what_parties_cannot_answer_is_their_error() {
    let is = |e: Error, what: &str| assert!(e.to_string().contains(what), "{e}");
    let two = testing::share(1, 2, &[3, 4]);
    let mut engine = answering(|id| vec![Answer::Done, Answer::Classes(two[id.index()].clone())]);
    engine.load(&parameters(&engine.spec().clone())).unwrap();
    is(engine.predict(&[0; 300]).unwrap_err(), "the parties hand out 2 elements, not 1");

    let mut engine = answering(|_| vec![Answer::Done, Answer::Shares(vec![])]);
    engine.load(&parameters(&engine.spec().clone())).unwrap();
    is(engine.shares().unwrap_err(), "the shares of party 0 do not fit");

    let mut engine = answering(|_| vec![Answer::Done]);
    assert_eq!(engine.times().unwrap_err(), Error::PartyStopped { party: PartyId::P0 });

    let head = |id: PartyId| {
        let share = || two[id.index()].clone();
        let shares = HeadShares { probabilities: share(), gradient: share(), loss: None };
        let wrote = Sent { exchange: 1, to: PartyId::P1, step: "truncate", words: 0..3 };
        let sent = if id == PartyId::P0 { vec![wrote] } else { vec![] };
        Answer::Head(Box::new(shares), Record { sent, ..Record::default() })
    };
    let wrote = "party 0 wrote Some([(\"truncate\", 0..3)]) in exchange 1, which expects None";
    is(answering(|id| vec![head(id)]).head(&[1, 2], 2, &[0]).unwrap_err(), wrote);
    let mut engine = answering(|id| {
        let Answer::Head(_, record) = head(id) else { unreachable!("made above") };
        vec![Answer::Done, Answer::Step(Spent::default(), record)]
    });
    engine.load(&parameters(&engine.spec().clone())).unwrap();
    is(engine.step(&[0; 70 * 300], &[0; 70]).unwrap_err(), wrote);

    let bad = TrainSpec { epsilon: -1.0, ..spec(Head::Softmax, Rounding::Nearest) };
    assert!(matches!(Engine::start(EngineConfig::new(bad.clone())), Err(Error::Misuse(_))));
    assert!(matches!(scripted(bad, |_| vec![]).0, Err(Error::Misuse(_))));
}

/// 2^17 numbers at a time: 436 rows of 300, so that nobody holds the shares of all.
#[test]
fn a_data_set_is_dealt_in_parts() {
    let (engine, given) = scripted(spec(Head::Softmax, Rounding::Nearest), |_| (0..5).map(|_| Answer::Done).collect());
    engine.unwrap().load_data(&vec![0; 873 * 300], &[0; 873]).unwrap();
    assert_eq!(given.load(Ordering::SeqCst), 3 * 3);
}

#[test]
fn times_are_those_of_all_parties() {
    let second = |n| Answer::Times([(Phase::Head, Duration::from_secs(n))].into());
    let mut engine = answering(|id| vec![second(1 + id.index() as u64)]);
    assert_eq!(engine.times().unwrap(), [(Phase::Head, Duration::from_secs(6))].into());
}
