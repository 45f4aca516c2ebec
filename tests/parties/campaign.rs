//! Faults at random points of a training, by real kills, stops, cut links and full disks: the session ends in bounded
//! time with one line that names who is the cause, the run goes on from its last state to the same bits, and nothing is
//! left behind.
//!
//! `cargo test` has a point of each kind; more with DIFFTEST_FAULT_POINTS: their number, or a range such as 50..60.

use super::switch::{Mode, Switch};
use super::{PATIENCE, Parties, batches, spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::spec::{Head, Rounding};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use secure::engine::remote::{Hosts, health};
use secure::engine::{Engine, EngineConfig, ParameterUnits};
use secure::id::PartyId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a party waits for a message.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long a link is slow.
const DELAYED: Duration = Duration::from_millis(700);
/// Steps of a run, and between two states.
const STEPS: u64 = 24;
const EVERY: u64 = 4;

/// What is done to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Killed,
    Stopped,
    Cut,
    Reset,
    Delayed,
    DiskFull,
}

const FAULTS: [Fault; 6] = [Fault::Killed, Fault::Stopped, Fault::Cut, Fault::Reset, Fault::Delayed, Fault::DiskFull];

/// Parties whose links can be switched: from each to each other, and from the client to each.
struct World {
    parties: Parties,
    between: [[Switch; 3]; 3],
    client: [Switch; 3],
}

impl World {
    fn start() -> Self {
        let between: [[Switch; 3]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| Switch::new()));
        let client = std::array::from_fn(|_| Switch::new());
        let parties = Parties::prepared(|k, text| {
            let others: String =
                (0..3).filter(|&j| j != k).map(|j| format!("party{j} = {:?}\n", between[k][j].address)).collect();
            format!("states = \"states{k}\"\n{text}[addresses]\n{others}")
        });
        let world = World { parties, between, client };
        (0..3).for_each(|k| world.lead(k));
        world
    }

    /// Every link to party k leads to where it listens now.
    fn lead(&self, k: usize) {
        let address = &self.parties.addresses[k];
        self.between.iter().map(|from| &from[k]).chain([&self.client[k]]).for_each(|link| link.lead_to(address));
    }

    fn links(&self) -> impl Iterator<Item = &Switch> {
        self.between.iter().flatten().chain(&self.client)
    }

    fn engine(&self, config: &EngineConfig) -> Engine {
        let hosts =
            Hosts { addresses: self.client.each_ref().map(|link| link.address.clone()), ..self.parties.hosts() };
        super::loaded(hosts.start(config).unwrap())
    }

    /// Lets files of party k grow to so many bytes.
    fn limit_files(&self, k: usize, bytes: Option<u64>) {
        let pid = Pid::from_raw(self.parties.processes[k].child.id().try_into().unwrap()).unwrap();
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    }

    fn strike(&mut self, fault: Fault, k: usize, link: &Switch) {
        match fault {
            Fault::Killed => self.parties.signal(k, "-KILL"),
            Fault::Stopped => self.parties.signal(k, "-STOP"),
            Fault::Cut => link.set(Mode::Cut),
            Fault::Reset => link.reset(),
            Fault::Delayed => {
                link.set(Mode::Slow);
                std::thread::sleep(DELAYED);
                link.set(Mode::Whole);
            }
            Fault::DiskFull => self.limit_files(k, Some(1000)),
        }
    }

    /// Puts everything right again.
    fn mend(&mut self, fault: Fault, k: usize) {
        match fault {
            Fault::Killed => {
                self.parties.restart(k);
                self.lead(k);
            }
            Fault::Stopped => self.parties.signal(k, "-CONT"),
            Fault::DiskFull => self.limit_files(k, None),
            Fault::Cut | Fault::Reset | Fault::Delayed => {}
        }
        self.links().for_each(Switch::mend);
        // Whoever is left closes the session.
        for id in PartyId::ALL {
            let until = Instant::now() + PATIENCE;
            loop {
                let (client, address) = (self.parties.credentials("client"), &self.parties.addresses[id.index()]);
                let status = health(&client, id, address, PATIENCE).unwrap();
                if status.sessions == 0 {
                    break;
                }
                assert!(Instant::now() < until, "{fault:?} {k}: party {id} keeps {status:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Of the sessions no thread and no connection is left, and of the states no part.
    fn nothing_is_left(&self) {
        for (k, process) in self.parties.processes.iter().enumerate() {
            let entries =
                |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", process.child.id())).unwrap().count();
            let until = Instant::now() + PATIENCE;
            while entries("task") > 4 || entries("fd") > 10 {
                assert!(Instant::now() < until, "{} threads, {} files", entries("task"), entries("fd"));
                std::thread::sleep(Duration::from_millis(50));
            }
            let states = std::fs::read_dir(self.parties.folder.path().join(format!("states{k}"))).unwrap();
            let names: Vec<_> = states.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            assert!(names.iter().all(|name| name.ends_with(".state")), "{names:?}");
        }
    }
}

/// Where a run is: its steps, and the last step whose state is kept.
#[derive(Default)]
struct Watched {
    steps: AtomicU64,
    kept: AtomicU64,
}

/// Trains from step `from` to the end, and keeps states.
fn train(engine: &mut Engine, run: &str, from: u64, watched: &Watched) -> secure::Result<ParameterUnits> {
    for (step, batch) in (1..).zip(&batches(STEPS as u32)).skip(from as usize) {
        engine.train(std::slice::from_ref(batch))?;
        watched.steps.store(step, Ordering::SeqCst);
        if step % EVERY == 0 && step < STEPS {
            engine.keep(run, step)?;
            watched.kept.store(step, Ordering::SeqCst);
        }
    }
    engine.parameters()
}

/// Whom a line accuses: the last party that it names.
fn accused(error: &str) -> Option<usize> {
    let (_, after) = error.rsplit_once("party ")?;
    after.chars().next()?.to_digit(10).map(|d| d as usize)
}

/// What a point came to.
struct Outcome {
    seconds: f64,
    error: Option<String>,
    resumed: Option<u64>,
}

/// One fault at one point of one run: `whole` is what an undisturbed run ends with.
fn point(world: &mut World, number: u64, whole: &ParameterUnits) -> (Fault, Outcome) {
    let mut rng = ChaCha12Rng::seed_from_u64(number);
    let fault = FAULTS[number as usize % FAULTS.len()];
    let (k, to) = (rng.random_range(0..3), rng.random_range(0..3));
    // The link of the fault leads from party k to another one, or from the client to party k.
    let link = if to == k { world.client[k].clone() } else { world.between[k][to].clone() };
    let (after, pause) = (rng.random_range(0..STEPS - 2 * EVERY), rng.random_range(0..30));
    let config = EngineConfig { deadline: DEADLINE, ..EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 2)) };
    let run = format!("run-{number}");

    let (mut engine, watched) = (world.engine(&config), Arc::<Watched>::default());
    let training = std::thread::spawn({
        let (run, watched) = (run.clone(), Arc::clone(&watched));
        move || train(&mut engine, &run, 0, &watched).map_err(|e| e.to_string())
    });
    while watched.steps.load(Ordering::SeqCst) < after && !training.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(pause));
    let struck = Instant::now();
    world.strike(fault, k, &link);
    let ended = training.join().unwrap();
    let took = struck.elapsed();
    let error = ended.as_ref().err();
    let what = format!("point {number}: {fault:?}, party {k}, link to {to}, after step {after}: {error:?}");
    assert!(took < 30 * DEADLINE, "{what} took {took:?}");
    let kept = watched.kept.load(Ordering::SeqCst);
    world.mend(fault, k);

    let mut outcome = Outcome { seconds: took.as_secs_f64(), error: None, resumed: None };
    match ended {
        // Late messages are messages; and a link that is only cut or broken off when all has been sent over it does no
        // harm.
        Ok(parameters) => {
            assert!(parameters == *whole, "{what}");
            assert!(fault == Fault::Delayed || watched.steps.load(Ordering::SeqCst) == STEPS, "{what}");
        }
        Err(error) => {
            assert!(fault != Fault::Delayed, "{what}");
            assert!(!error.contains('\n'), "{what}");
            let causes = match fault {
                // Either end of a link may be the first to notice, and accuses the other.
                Fault::Cut | Fault::Reset => vec![k, to],
                _ => vec![k],
            };
            assert!(accused(&error).is_some_and(|party| causes.contains(&party)), "{what}");
            assert!(fault != Fault::DiskFull || error.contains("run-"), "{what}: names the file");
            let mut engine = world.engine(&config);
            outcome.resumed = engine.resume(&run).unwrap();
            // The parties may have kept one more than the client has heard of.
            let from = outcome.resumed.unwrap_or(0);
            assert!(from == kept || from == kept + EVERY, "{what}: kept {kept}, resumed {from}");
            assert!(train(&mut engine, &run, from, &Watched::default()).unwrap() == *whole, "{what}");
            outcome.error = Some(error);
        }
    }
    (fault, outcome)
}

#[test]
fn whatever_happens_to_a_run_ends_it_in_bounded_time_and_it_goes_on_from_its_last_state() {
    let asked = std::env::var("DIFFTEST_FAULT_POINTS").unwrap_or_else(|_| FAULTS.len().to_string());
    let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
    let points: std::ops::Range<u64> = from.parse().unwrap()..to.parse().unwrap();
    let config = EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 2));
    let mut undisturbed = super::loaded(Engine::start(config).unwrap());
    undisturbed.train(&batches(STEPS as u32)).unwrap();
    let whole = undisturbed.parameters().unwrap();

    // In two worlds at the same time: most of it is waiting.
    let table: Mutex<BTreeMap<Fault, Vec<Outcome>>> = Mutex::default();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (own, whole, table) = (points.clone().skip(first).step_by(2), &whole, &table);
            scope.spawn(move || visit(own, whole, table));
        }
    });
    for (fault, outcomes) in table.into_inner().unwrap() {
        let most = outcomes.iter().map(|o| o.seconds).fold(0.0, f64::max);
        let ended = outcomes.iter().filter(|o| o.error.is_some()).count();
        println!("| {fault:?} | {} | {ended} | {} | {most:.1} |", outcomes.len(), outcomes.len() - ended);
    }
}

/// These points one after the other, in a world of their own, of which nothing is left.
fn visit(points: impl Iterator<Item = u64>, whole: &ParameterUnits, table: &Mutex<BTreeMap<Fault, Vec<Outcome>>>) {
    let mut world = World::start();
    for number in points {
        let (fault, outcome) = point(&mut world, number, whole);
        let Outcome { seconds, error, resumed } = &outcome;
        let resumed = resumed.map_or("from the start".into(), |step| format!("after step {step}"));
        let line = error.as_ref().map_or("went on".into(), |error| format!("{error}; resumed {resumed}"));
        println!("point {number}: {fault:?}: {seconds:.1} s: {line}");
        table.lock().unwrap().entry(fault).or_default().push(outcome);
    }
    world.nothing_is_left();
    let ids: Vec<_> = world.parties.processes.iter().map(|p| p.child.id()).collect();
    drop(world);
    assert!(ids.iter().all(|id| !std::path::Path::new(&format!("/proc/{id}")).exists()), "a process is left");
}
