//! The refusals that a party gives a client that asks for what cannot be.

use super::*;
use crate::id::PartyId;
use crate::net::memory::network;
use crate::protocol::input::deal_keyed;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec};

/// A network of 3-2-2, batches of four rows.
fn spec() -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: vec![3, 2, 2] },
        head: Head::Softmax,
        epsilon: 0.1,
        rounding: Rounding::Probabilistic,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 4, ..SgdSpec::default() },
    }
}

/// Party `id`'s share of a matrix of zeros.
fn zeros(id: PartyId, rows: usize, cols: usize) -> Dealt {
    let [a, b, c] = deal_keyed(rows, cols, &vec![0; rows * cols], Some([rows as u8; 16])).unwrap();
    [Some(a), Some(b), Some(c)][id.index()].take().unwrap()
}

/// The parameters of [`spec`], with another shape for tensor `wrong` of the first layer.
fn layers(id: PartyId, wrong: Option<usize>) -> Vec<[Dealt; 4]> {
    let spec = spec();
    let shapes = |l| {
        let (rows, cols) = spec.network.shape(l);
        [(rows, cols), (1, cols), (rows, cols), (1, cols)]
    };
    let mut all = [shapes(1), shapes(2)];
    if let Some(k) = wrong {
        all[0][k].1 += 5;
    }
    all.map(|layer| layer.map(|(rows, cols)| zeros(id, rows, cols))).into()
}

fn layer_shares(id: PartyId, wrong: Option<usize>) -> Vec<LayerShare> {
    let layer = |[w, b, vw, vb]: [Dealt; 4]| {
        let [weights, bias, weight_velocity, bias_velocity] = [w, b, vw, vb].map(|d| d.share().unwrap());
        LayerShare { weights, bias, weight_velocity, bias_velocity }
    };
    layers(id, wrong).into_iter().map(layer).collect()
}

/// What a client can write in place of [`Dealt`]: as many words as it likes.
fn forged(rows: usize, cols: usize, own: usize, next: usize) -> Dealt {
    // A component of words is the second variant.
    let words = |n: usize| (1u8, crate::buffer::Words::zeros(n));
    let (own, next) = (words(own), words(next));
    postcard::from_bytes(&postcard::to_stdvec(&(rows, cols, own, next)).unwrap()).unwrap()
}

/// Gives three parties the same jobs; what each says to the last of them.
fn said(record: bool, jobs: impl Fn(PartyId) -> Vec<Job> + Sync) -> [Result<Answer>; 3] {
    let jobs = &jobs;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let parties = PartyId::ALL.into_iter().zip(network(Duration::from_secs(30))).map(|(id, end)| {
            scope.spawn(move || {
                let spec = spec();
                let party = Party::connect(id, spec.fixed, spec.rounding, Box::new(end), None).unwrap();
                let worker = Worker::new(party, spec);
                let worker = if record { worker } else { worker.without_records() };
                let (mut jobs, mut answers) = (jobs(id).into_iter(), Vec::new());
                let n = jobs.len();
                worker.work(|| jobs.next(), |answer| answers.push(answer));
                let last = answers.pop().expect("there is a job");
                assert_eq!(answers.len() + 1, n, "party {id}: a job before the last is refused: {:?}", last.err());
                last
            })
        });
        let parties: Vec<_> = parties.collect();
        parties.into_iter().map(|p| p.join().expect("no job makes a party panic")).collect()
    });
    answers.try_into().ok().unwrap()
}

/// Everything before a job: parameters, or a data set of three rows and its labels as well.
#[derive(Clone, Copy, PartialEq)]
enum After {
    Nothing,
    Parameters,
    Rows,
    Data,
}

impl After {
    fn jobs(self, id: PartyId) -> Vec<Job> {
        let mut jobs = vec![];
        if self != After::Nothing {
            jobs.push(Job::Load(layers(id, None)));
        }
        if matches!(self, After::Rows | After::Data) {
            jobs.extend([Job::NoData(5), Job::MoreData(zeros(id, 3, 3))]);
        }
        if self == After::Data {
            jobs.push(Job::Labels(zeros(id, 3, 2)));
        }
        jobs
    }
}

struct Refused {
    why: &'static str,
    after: After,
    job: fn(PartyId) -> Job,
    /// `{}` stands for the party's number.
    text: &'static str,
}

fn refused(why: &'static str, after: After, job: fn(PartyId) -> Job, text: &'static str) -> Refused {
    Refused { why, after, job, text }
}

/// Parameters that do not fit the network.
fn of_parameters() -> Vec<Refused> {
    use After::Nothing;
    vec![
        refused(
            "a layer is missing",
            Nothing,
            |id| Job::Load(layers(id, None).into_iter().take(1).collect()),
            "layers: shapes (1, 1) and (2, 1) differ",
        ),
        refused("W", Nothing, |id| Job::Load(layers(id, Some(0))), "weights: shapes (3, 7) and (3, 2) differ"),
        refused("b", Nothing, |id| Job::Load(layers(id, Some(1))), "bias: shapes (1, 7) and (1, 2) differ"),
        refused(
            "V_W",
            Nothing,
            |id| Job::Load(layers(id, Some(2))),
            "weight_velocity: shapes (3, 7) and (3, 2) differ",
        ),
        refused("V_b", Nothing, |id| Job::Load(layers(id, Some(3))), "bias_velocity: shapes (1, 7) and (1, 2) differ"),
        refused(
            "a layer too many, as shares",
            Nothing,
            |id| Job::LoadShares([layer_shares(id, None), layer_shares(id, None)].concat()),
            "layers: shapes (4, 1) and (2, 1) differ",
        ),
        refused(
            "W",
            Nothing,
            |id| Job::LoadShares(layer_shares(id, Some(0))),
            "weights: shapes (3, 7) and (3, 2) differ",
        ),
        refused("b", Nothing, |id| Job::LoadShares(layer_shares(id, Some(1))), "bias: shapes (1, 7) and (1, 2) differ"),
        refused(
            "V_W",
            Nothing,
            |id| Job::LoadShares(layer_shares(id, Some(2))),
            "weights: shapes (3, 7) and (3, 2) differ",
        ),
        refused(
            "V_b",
            Nothing,
            |id| Job::LoadShares(layer_shares(id, Some(3))),
            "bias: shapes (1, 7) and (1, 2) differ",
        ),
    ]
}

/// Data that do not fit the network or what was said of them before.
fn of_data() -> Vec<Refused> {
    use After::{Data, Nothing, Parameters, Rows};
    const MOST: usize = (1 << 32) / 3;
    vec![
        refused(
            "a row more than memory allows",
            Nothing,
            |_| Job::NoData(MOST + 1),
            "a data set of 1431655766 rows of 3; 4294967296 numbers are the most",
        ),
        refused(
            "rows whose numbers no word counts",
            Nothing,
            |_| Job::NoData(usize::MAX),
            "a data set of 18446744073709551615 rows of 3; 4294967296 numbers are the most",
        ),
        refused("no data set was announced", Parameters, |id| Job::MoreData(zeros(id, 1, 3)), "rows of no data set"),
        refused(
            "three of five rows are here",
            Rows,
            |id| Job::MoreData(zeros(id, 3, 3)),
            "3 more rows of a data set of 5, 3 are here",
        ),
        refused("rows too wide", Rows, |id| Job::MoreData(zeros(id, 2, 4)), "rows: shapes (2, 4) and (2, 3) differ"),
        refused("no data set was announced", Parameters, |id| Job::Labels(zeros(id, 1, 2)), "labels of no data set"),
        refused(
            "labels of all rows",
            Rows,
            |id| Job::Labels(zeros(id, 2, 2)),
            "labels: shapes (2, 2) and (3, 2) differ",
        ),
        refused("three classes", Rows, |id| Job::Labels(zeros(id, 3, 3)), "labels: shapes (3, 3) and (3, 2) differ"),
        refused("no data", Parameters, |_| Job::Train(vec![vec![0; 4]]), "no data shared; load_data first"),
        refused("no labels", Rows, |_| Job::Train(vec![vec![0; 4]]), "no data shared; load_data first"),
        refused("of three rows", Data, |_| Job::Train(vec![vec![0, 1, 2, 3]]), "row 3 of a data set of 3"),
        refused(
            "a second batch too short",
            Data,
            |_| Job::Train(vec![vec![0, 1, 2, 0], vec![0, 1, 2]]),
            "batches: shapes (3, 1) and (4, 1) differ",
        ),
    ]
}

/// Computations on what does not fit, or is not there.
fn of_computations() -> Vec<Refused> {
    use After::{Nothing, Parameters};
    vec![
        refused(
            "a batch has four rows",
            Parameters,
            |id| Job::Step { x: zeros(id, 3, 3), y: zeros(id, 4, 2), record: false },
            "batch: shapes (3, 3) and (4, 3) differ",
        ),
        refused(
            "a batch has four labels",
            Parameters,
            |id| Job::Step { x: zeros(id, 4, 3), y: zeros(id, 3, 2), record: false },
            "labels: shapes (3, 2) and (4, 2) differ",
        ),
        refused(
            "a step of no network",
            Nothing,
            |id| Job::Step { x: zeros(id, 4, 3), y: zeros(id, 4, 2), record: false },
            "a network has at least one layer",
        ),
        refused(
            "rows too narrow",
            Parameters,
            |id| Job::Predict(zeros(id, 5, 2)),
            "rows to predict: shapes (5, 2) and (5, 3) differ",
        ),
        refused(
            "a class of no network",
            Nothing,
            |id| Job::Predict(zeros(id, 5, 3)),
            "a network has at least one layer",
        ),
        refused(
            "rows too wide",
            Parameters,
            |id| Job::Count { x: zeros(id, 5, 4), y: zeros(id, 5, 2), last: true },
            "rows: shapes (5, 4) and (5, 3) differ",
        ),
        refused(
            "a label is missing",
            Parameters,
            |id| Job::Count { x: zeros(id, 5, 3), y: zeros(id, 4, 2), last: true },
            "labels: shapes (4, 2) and (5, 2) differ",
        ),
        refused(
            "logits of two rows, labels of three",
            Nothing,
            |id| Job::Head { logits: zeros(id, 2, 4), labels: zeros(id, 3, 4) },
            "logits and labels: shapes (2, 4) and (3, 4) differ",
        ),
    ]
}

/// Dealt matrices as nobody deals them.
fn of_forged() -> Vec<Refused> {
    use After::Parameters;
    vec![
        refused(
            "a component has a word less than the matrix",
            Parameters,
            |_| Job::Predict(forged(2, 3, 5, 6)),
            "a dealt matrix of 6 elements has components of 5 and 6 words",
        ),
        refused(
            "and the other a word more",
            Parameters,
            |_| Job::Predict(forged(2, 3, 6, 7)),
            "a dealt matrix of 6 elements has components of 6 and 7 words",
        ),
        refused(
            "more elements than a key may expand to",
            Parameters,
            |_| Job::Predict(forged((1 << 28) / 3 + 1, 3, 0, 0)),
            "a dealt matrix of 89478486 x 3",
        ),
        refused(
            "elements that no word counts",
            Parameters,
            |_| Job::Predict(forged(usize::MAX, 3, 0, 0)),
            "a dealt matrix of 18446744073709551615 x 3",
        ),
    ]
}

/// What a party without a folder does not keep.
fn of_states() -> Vec<Refused> {
    use After::Parameters;
    const TEXT: &str = "party {} has no folder for states; set states in its file";
    vec![
        refused("no folder", Parameters, |_| Job::Keep { run: "run".into(), step: 1, dealt: 1 }, TEXT),
        refused("no folder", Parameters, |_| Job::Kept("run".into()), TEXT),
        refused("no folder", Parameters, |_| Job::Resume { run: "run".into(), step: 1 }, TEXT),
    ]
}

#[test]
fn every_job_that_cannot_be_is_refused_by_every_party_in_these_words() {
    let all = [of_parameters(), of_data(), of_computations(), of_forged(), of_states()];
    for Refused { why, after, job, text } in all.into_iter().flatten() {
        let answers = said(true, |id| {
            let mut jobs = after.jobs(id);
            jobs.push(job(id));
            jobs
        });
        for (id, answer) in PartyId::ALL.into_iter().zip(answers) {
            let text = text.replace("{}", &id.to_string());
            assert_eq!(answer.err(), Some(Error::Misuse(text)), "{why}");
        }
    }
}

#[test]
fn a_party_that_does_not_record_refuses_what_would_be_recorded_and_nothing_else() {
    let step = |id, record| Job::Step { x: zeros(id, 4, 3), y: zeros(id, 4, 2), record };
    let head = |id| Job::Head { logits: zeros(id, 4, 2), labels: zeros(id, 4, 2) };
    let steps = said(false, |id| vec![Job::Load(layers(id, None)), step(id, true)]);
    let heads = said(false, |id| vec![head(id)]);
    for (id, answer) in PartyId::ALL.into_iter().zip(steps).chain(PartyId::ALL.into_iter().zip(heads)) {
        let text = format!("party {id} does not record; start it with record = true");
        assert_eq!(answer.err(), Some(Error::Misuse(text)));
    }
    for answer in said(false, |id| vec![Job::Load(layers(id, None)), step(id, false)]) {
        let Ok(Answer::Step(_, record)) = answer else { panic!("{:?}", answer.err()) };
        assert!(record.probes.is_empty() && record.truncations.is_empty());
    }
}

/// Sizes at their limits are taken.
#[test]
fn what_just_fits_is_taken() {
    let most = |_| vec![Job::NoData((1 << 32) / 3)];
    let then = |after: After, id, jobs: Vec<Job>| after.jobs(id).into_iter().chain(jobs).collect();
    let rest = |id| then(After::Rows, id, vec![Job::MoreData(zeros(id, 2, 3)), Job::Labels(zeros(id, 5, 2))]);
    let last = |id| then(After::Data, id, vec![Job::Train(vec![vec![2, 2, 2, 2]])]);
    for answers in [said(true, most), said(true, rest), said(true, last)] {
        assert!(answers.iter().all(Result::is_ok));
    }
}

/// Five rows are here and labels of the first three.
#[test]
fn rows_without_labels_are_not_trained_on() {
    let answers = said(true, |id| {
        let mut jobs = After::Data.jobs(id);
        jobs.extend([Job::MoreData(zeros(id, 2, 3)), Job::Train(vec![vec![0, 1, 2, 3]])]);
        jobs
    });
    for answer in answers {
        assert_eq!(answer.err(), Some(Error::misuse("row 3 of a data set of 3")));
    }
}

/// Party 0 of a network of 4-2-2, whose neighbours say nothing.
fn alone() -> Worker {
    let [a, _b, _c] = network(Duration::from_secs(30));
    let spec = TrainSpec { network: NetworkSpec { widths: vec![4, 2, 2] }, ..spec() };
    let party = Party::new(PartyId::P0, spec.fixed, spec.rounding, Box::new(a), [[1; 16], [2; 16]]);
    Worker::new(party, spec)
}

#[test]
fn a_number_of_rows_alone_makes_room_for_16_mib() {
    let mut worker = alone();
    worker.forget_data(MOST_DATA / 4).unwrap();
    let words = &worker.data.as_ref().unwrap().words;
    assert!(words.has_room(RESERVED) && !words.has_room(RESERVED + 1));
    assert!(worker.forget_data(MOST_DATA / 4 + 1).is_err());
}

#[test]
fn a_party_that_ends_erases_what_its_thread_has_kept() {
    drop(crate::buffer::Words::from(&[7; 100][..]));
    assert!(!crate::buffer::is_erased());
    let mut jobs = [Job::NoData(1), Job::MoreData(zeros(PartyId::P0, 1, 4))].into_iter();
    alone().work(|| jobs.next(), |answer| assert!(answer.is_ok()));
    assert!(crate::buffer::is_erased());
}

#[test]
fn after_a_job_that_fails_no_other_is_taken() {
    let (mut jobs, mut answers) = ([Job::Labels(zeros(PartyId::P0, 1, 2)), Job::Shares].into_iter(), vec![]);
    alone().work(|| jobs.next(), |answer| answers.push(answer.is_ok()));
    assert_eq!((answers, jobs.len()), (vec![false], 1));
}

#[test]
fn a_party_that_fails_tells_the_others_why() {
    let answers = said(true, |id| {
        let step = Job::Step { x: zeros(id, 4, 3), y: zeros(id, 4, 2), record: false };
        vec![Job::Load(layers(id, None)), if id == PartyId::P1 { Job::Labels(zeros(id, 1, 2)) } else { step }]
    });
    let [first, failed, third] = answers.map(|a| a.err().expect("an error").to_string());
    assert_eq!(failed, "labels of no data set");
    assert!(first.contains("party 1 stopped: labels of no data set"), "{first}");
    assert!(third.contains("stopped"), "{third}");
}
