//! A step in which one message is dropped, repeated, moved, cut, changed or delayed, once for every message of the step
//! and every such change: the step ends in an error, a check fails, or its results are the right ones. There is no
//! wrong PASS.

use difftest::check::comparison;
use difftest::check::judge::{self, Judge};
use difftest::config::Config;
use difftest::generate;
use difftest::run::lockstep::Lockstep;
use difftest::side::Opens;
use difftest::side::secure::Secure;
use fixtures::Split;
use reference::fixed::Parameters;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig};
use secure::id::{Neighbour, PartyId};
use secure::net::memory::network_over;
use secure::net::queue::Sender;
use secure::net::tamper::{Change, counted, tampered};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A link: who sends, and to which neighbour.
type Link = (PartyId, Neighbour);

/// What became of a step.
#[derive(Debug, Clone, PartialEq)]
enum Ended {
    /// A party refused a message or waited in vain.
    Error(String),
    /// A check failed.
    Failed(&'static str),
    /// Every check holds, and these are the parameters after the step.
    Holds(Parameters),
}

fn config(rounding: Rounding) -> Config {
    let spec = TrainSpec {
        network: NetworkSpec::dense(5, 4, 3, 2),
        head: Head::Softmax,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 6, ..SgdSpec::default() },
    };
    Config::new(spec, 1, 3)
}

/// One step, whose links are what `link` makes of them.
fn step(config: &Config, deadline: Duration, link: impl Fn(Link, Sender) -> Sender) -> Ended {
    let spec = &config.spec;
    let split = Split {
        images: (0..6 * 5).map(|i| (i * i * 37 % 251) as u8).collect(),
        labels: vec![0, 1, 2, 0, 1, 2],
        height: 1,
        width: 5,
    };
    let batch = generate::rows(&split, &[0, 1, 2, 3, 4, 5], spec.fixed);
    let ends = network_over(deadline, |from, n, to| link((from, n), to));
    let engine = EngineConfig { seed: Some(3), record: true, threads: 1, deadline, ..EngineConfig::new(spec.clone()) };
    let mut judge = Judge::new(config, judge::all(config, None).unwrap(), comparison::elements(spec));
    let done = || -> Result<_, difftest::error::Error> {
        let mut secure = Secure::over(Engine::start_over(engine, ends)?);
        let start = (0, generate::initial(spec, config.seed)?);
        let mut trace = {
            let mut run = Lockstep::new(spec, start, std::iter::once(batch), &mut secure)?;
            run.next().expect("one step")?
        };
        if let Some(error) = trace.stopped.take() {
            return Err(error);
        }
        judge.see(&trace)?;
        secure.parameters()
    };
    let done = done();
    let failed = judge.finish().into_iter().find(|outcome| outcome.failure.is_some());
    match (done, failed) {
        (Err(error), _) => Ended::Error(error.to_string()),
        (Ok(_), Some(outcome)) => Ended::Failed(outcome.name),
        (Ok(parameters), None) => Ended::Holds(parameters),
    }
}

/// Every message of a step, set-up included, by link and place, and what the step ends with.
fn messages(config: &Config) -> (Vec<(Link, u64)>, Parameters) {
    let counts: Mutex<BTreeMap<Link, Arc<AtomicU64>>> = Mutex::default();
    let ended = step(config, Duration::from_secs(60), |link, to| {
        counted(to, Arc::clone(counts.lock().unwrap().entry(link).or_default()))
    });
    let Ended::Holds(right) = ended else { panic!("an untouched step: {ended:?}") };
    let counts = counts.into_inner().unwrap();
    let all = counts.iter().flat_map(|(&link, n)| (0..n.load(Ordering::SeqCst)).map(move |at| (link, at)));
    (all.collect(), right)
}

/// What every change of every message ends in, by change: errors, failed checks, right results.
fn every_change(config: &Config, changes: &[Change]) -> BTreeMap<String, [usize; 3]> {
    let (messages, right) = messages(config);
    let cases: Vec<_> = changes.iter().flat_map(|&change| messages.iter().map(move |&m| (change, m))).collect();
    let (next, table) = (AtomicUsize::new(0), Mutex::<BTreeMap<String, [usize; 3]>>::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(&(change, (link, at))) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    // What does not arrive is waited for in vain.
                    let lost = matches!(change, Change::Drop | Change::Reorder);
                    let deadline = if lost { Duration::from_millis(300) } else { Duration::from_secs(60) };
                    let ended = step(config, deadline, |of, to| if of == link { tampered(to, change, at) } else { to });
                    let what = format!("{change:?} of message {at} from {} to its {:?}: {ended:?}", link.0, link.1);
                    let column = match &ended {
                        Ended::Error(error) => {
                            assert!(!error.contains('\n'), "{what}");
                            0
                        }
                        Ended::Failed(_) => 1,
                        Ended::Holds(parameters) => {
                            assert!(config.spec.rounding == Rounding::Probabilistic || *parameters == right, "{what}");
                            assert!(!matches!(change, Change::Drop | Change::Cut), "{what}");
                            2
                        }
                    };
                    let late = matches!(change, Change::Delay(_));
                    assert_eq!(late, matches!(&ended, Ended::Holds(p) if late && *p == right), "{what}");
                    let name = format!("{change:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
                    table.lock().unwrap().entry(name).or_default()[column] += 1;
                }
            });
        }
    });
    println!("{} messages, {}: {:?}", messages.len(), config.spec.rounding, table.lock().unwrap());
    table.into_inner().unwrap()
}

#[test]
fn no_change_of_any_message_of_a_step_ends_in_a_wrong_pass() {
    let late = Change::Delay(Duration::from_millis(10));
    let changes = [Change::Drop, Change::Repeat, Change::Reorder, Change::Cut, Change::Flip(1), late];
    let table = every_change(&config(Rounding::Probabilistic), &changes);
    // At most the last message of each of six links is never followed by another.
    for (name, unseen) in [("Drop", 0), ("Cut", 0), ("Repeat", 6), ("Reorder", 0)] {
        assert!(table[name][2] <= unseen, "{name}: {table:?}");
    }
}

/// Nearest rounding tosses no coins: there is one right result, and a step that holds has it.
#[test]
fn a_changed_word_that_no_check_finds_has_changed_no_result() {
    for bit in [0, 63] {
        every_change(&config(Rounding::Nearest), &[Change::Flip(bit)]);
    }
}
