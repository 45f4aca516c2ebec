//! Both ends of the connection between the client and its parties: a client whose parties answer what the input says,
//! and three parties whose client asks what the input says.

use secure::control::{FromParty, LONG, receive, send};
use secure::engine::link::Link;
use secure::engine::state::{Kept, Position, StateFolder};
use secure::engine::worker::{Answer, Job, Worker};
use secure::engine::{Engine, LayerUnits, ParameterUnits};
use secure::id::PartyId;
use secure::net::memory::network;
use secure::party::Party;
use secure::{Error, Result};
use serde::Serialize;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A network of two layers on six inputs, batches of four rows.
pub fn spec() -> TrainSpec {
    TrainSpec {
        network: NetworkSpec { widths: vec![6, 5, 4] },
        head: Head::Softmax,
        epsilon: 0.1,
        rounding: Rounding::Probabilistic,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 4, ..SgdSpec::default() },
    }
}

/// A value as it travels.
pub fn frame(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    send(&mut out, value).expect("a vector takes everything");
    out
}

/// Inputs, their labels, and parameters for [`spec`].
fn data() -> (Vec<i64>, Vec<usize>, ParameterUnits) {
    let (spec, x) = (spec(), (0..4 * 6).map(|k| k * 37 % 256 * 256).collect());
    let layer = |l| {
        let (rows, cols) = spec.network.shape(l);
        LayerUnits {
            weights: (0..(rows * cols) as i64).map(|k| (k * 7919) % 20_000 - 10_000).collect(),
            bias: vec![0; cols],
            weight_velocity: vec![0; rows * cols],
            bias_velocity: vec![0; cols],
        }
    };
    (x, vec![0, 1, 2, 3], ParameterUnits { layers: vec![layer(1), layer(2)] })
}

/// Answers of every party before what is asked of it counts: it is ready, took parameters, room, rows and labels.
const BEFORE: usize = 5;

/// Shares parameters and a data set.
fn prepare(engine: &mut Engine) -> Result<()> {
    let (x, labels, parameters) = data();
    engine.load(&parameters)?;
    engine.load_data(&x, &labels)
}

/// Everything that a client asks for and reads the answers of.
const CALLS: [fn(&mut Engine) -> Result<()>; 9] = [
    |e| e.parameters().map(drop),
    |e| e.step(&data().0, &data().1).map(drop),
    |e| e.predict(&data().0).map(drop),
    |e| e.count_correct(&data().0, &data().1).map(drop),
    |e| e.head(&[70_000, -5, 0, 9_000, 1, 2, 3, 4], 4, &[0, 3]).map(drop),
    |e| e.train(&[vec![3, 2, 1, 0]]).map(drop),
    |e| e.times().map(drop),
    |e| e.spent().map(drop),
    |e| e.resume("run").map(drop),
];

/// A party that answers what was written down, and then that all is done.
struct Script(PartyId, VecDeque<Option<Answer>>);

impl Link for Script {
    fn ask(&mut self, _: Job) {}

    fn answer(&mut self) -> Result<Answer> {
        let party = self.0;
        self.1.pop_front().unwrap_or(Some(Answer::Done)).ok_or(Error::PartyStopped { party })
    }
}

/// Reads a call's number and the answers of the three parties to it.
pub fn answers(mut bytes: &[u8]) -> std::result::Result<(), String> {
    let (&call, rest) = bytes.split_first().ok_or("no call")?;
    bytes = rest;
    let call = CALLS[usize::from(call) % CALLS.len()];
    let links = PartyId::ALL.map(|id| {
        let mut answers: VecDeque<_> = (0..BEFORE).map(|_| Some(Answer::Done)).collect();
        answers.push_back(match receive(&mut bytes, LONG) {
            Ok(FromParty::Answer(answer)) => answer.ok(),
            Ok(FromParty::Alive(_)) | Err(_) => None,
        });
        Box::new(Script(id, answers)) as Box<dyn Link>
    });
    let run = || {
        let mut engine = Engine::connect(spec(), None, true, links)?;
        prepare(&mut engine)?;
        call(&mut engine)
    };
    run().map_err(|e| e.to_string())
}

/// A party on a thread, whose answers and jobs are kept as they would travel.
struct Tapped {
    jobs: Sender<Job>,
    answers: Receiver<Result<Answer>>,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
    answered: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Link for Tapped {
    fn ask(&mut self, job: Job) {
        self.asked.lock().unwrap().push(frame(&job));
        self.jobs.send(job).unwrap();
    }

    fn answer(&mut self) -> Result<Answer> {
        let answer = FromParty::Answer(Box::new(self.answers.recv().unwrap()));
        self.answered.lock().unwrap().push(frame(&answer));
        let FromParty::Answer(answer) = answer else { unreachable!("it was made an answer") };
        *answer
    }
}

type Lists = [Arc<Mutex<Vec<Vec<u8>>>>; 3];

/// Three parties on threads of their own, which keep states in `folder` if there is one.
fn parties(asked: &Lists, answered: &Lists, folder: Option<&Path>) -> Engine {
    let links = PartyId::ALL.into_iter().zip(network(Duration::from_secs(30))).map(|(id, end)| {
        let ((jobs, next), (give, answers)) = (channel(), channel());
        let states = folder.map(|folder| StateFolder::new(folder.into(), id, [0; 32]));
        std::thread::spawn(move || {
            let spec = spec();
            let party = Party::connect(id, spec.fixed, spec.rounding, Box::new(end), None).unwrap();
            give.send(Ok(Answer::Done)).unwrap();
            let worker = Worker::new(party, spec).with_states(states);
            worker.work(|| next.recv().ok(), |answer| drop(give.send(answer)));
        });
        let (asked, answered) = (asked[id.index()].clone(), answered[id.index()].clone());
        Box::new(Tapped { jobs, answers, asked, answered }) as Box<dyn Link>
    });
    let links: Vec<_> = links.collect();
    Engine::connect(spec(), None, true, links.try_into().ok().unwrap()).unwrap()
}

/// Runs every call on real parties. Gives, for each, its number with the three answers, and every job of party 1.
pub fn recorded() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (asked, answered) = (Lists::default(), Lists::default());
    let mut engine = parties(&asked, &answered, None);
    prepare(&mut engine).unwrap();
    let mut inputs = Vec::new();
    // The last call needs a folder of states, which is not there: its answer is made up.
    for (k, call) in CALLS[..CALLS.len() - 1].iter().enumerate() {
        call(&mut engine).unwrap();
        let last = answered.each_ref().map(|list| list.lock().unwrap().last().unwrap().clone());
        inputs.push([vec![k as u8], last.concat()].concat());
    }
    let kept = || Kept { at: Position { step: 7, calls: 8, dealt: 9 }, own: [1; 32], next: [1; 32] };
    let resume = frame(&FromParty::Answer(Box::new(Ok(Answer::Kept(vec![kept()])))));
    inputs.push([vec![CALLS.len() as u8 - 1], resume.repeat(3)].concat());
    drop(engine);
    let jobs = asked[1].lock().unwrap().clone();
    (inputs, jobs)
}

/// Trains, keeps the state, and takes it up again with other parties.
pub fn restarted() {
    let folder = tempfile::tempdir().unwrap();
    let start = || parties(&Lists::default(), &Lists::default(), Some(folder.path()));
    let mut engine = start();
    prepare(&mut engine).unwrap();
    engine.train(&[vec![3, 2, 1, 0]]).unwrap();
    engine.keep("run", 1).unwrap();
    let before = engine.parameters().unwrap();
    drop(engine);
    let mut engine = start();
    assert_eq!(engine.resume("run").unwrap(), Some(1));
    assert_eq!(engine.parameters().unwrap(), before);
}

/// Elements of the largest matrix, of as many rows as its client wants, that a party is given here.
const MOST_ELEMENTS: usize = 1 << 12;

/// Gives all three parties one job, after parameters and data.
pub fn job(bytes: &[u8]) -> std::result::Result<(), String> {
    let mut jobs = Vec::new();
    for _ in PartyId::ALL {
        let job: Job = receive(&mut &bytes[..], LONG).map_err(|e| e.to_string())?;
        if let Job::Predict(x) | Job::Count { x, .. } | Job::Head { logits: x, .. } = &job {
            let (rows, cols) = x.shape();
            if rows.checked_mul(cols).is_none_or(|n| n > MOST_ELEMENTS) {
                return Err("more rows than this test has time for".into());
            }
        }
        jobs.push(match job {
            // Room for so many rows is made at once, up to a limit: memory is not what is tested here.
            Job::NoData(rows) => Job::NoData(rows.min(1000)),
            job => job,
        });
    }
    let (sent, mut said) = (three_lists(), Vec::new());
    let links = [0, 1, 2].map(|k: usize| Box::new(Noted(sent[k].clone())) as Box<dyn Link>);
    let mut engine = Engine::connect(spec(), None, true, links).map_err(|e| e.to_string())?;
    prepare(&mut engine).map_err(|e| e.to_string())?;
    let parties: Vec<_> = PartyId::ALL
        .into_iter()
        .zip(network(Duration::from_secs(30)))
        .zip(jobs)
        .map(|((id, end), job)| {
            let mut all: VecDeque<Job> = std::mem::take(&mut *sent[id.index()].lock().unwrap());
            all.push_back(job);
            std::thread::spawn(move || {
                let spec = spec();
                let party = Party::connect(id, spec.fixed, spec.rounding, Box::new(end), None).unwrap();
                let mut last = Ok(());
                Worker::new(party, spec).work(|| all.pop_front(), |answer| last = answer.map(drop));
                last
            })
        })
        .collect();
    for party in parties {
        said.push(party.join().expect("a party panics"));
    }
    said.into_iter().collect::<Result<()>>().map_err(|e| e.to_string())
}

type Jobs = Arc<Mutex<VecDeque<Job>>>;

fn three_lists() -> [Jobs; 3] {
    [(); 3].map(|()| Jobs::default())
}

/// A party that only notes what it is asked.
struct Noted(Jobs);

impl Link for Noted {
    fn ask(&mut self, job: Job) {
        self.0.lock().unwrap().push_back(job);
    }

    fn answer(&mut self) -> Result<Answer> {
        Ok(Answer::Done)
    }
}
