//! Three parties in one test, one by one or as an engine.

use crate::client::reconstruct;
use crate::cost::Spent;
use crate::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits, party_seed};
use crate::error::Result;
use crate::id::PartyId;
use crate::net::Channel;
use crate::net::memory::network;
use crate::net::queue::QueueChannel;
use crate::party::{Party, Record};
use crate::prg::{Seed, fresh_seed};
use crate::protocol::input::deal;
use crate::share::Share;
use spec::{FixedSpec, NetworkSpec, Rounding};
use std::cell::Cell;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The environment variable that repeats a test with the randomness of an earlier run.
const SEED: &str = "SECURE_TEST_SEED";

/// The number from which the randomness of this process's tests is made: from the environment, or the operating
/// system's.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| match std::env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED} is {text:?}; it is a number of 64 bits")),
        Err(_) => {
            let seed = fresh_seed().expect("randomness");
            u64::from_le_bytes(seed[..8].try_into().expect("a seed has 16 bytes"))
        }
    })
}

/// The n-th seed that this thread asks for, for one of the parties. Every test has a thread of its own, so it draws the
/// same seeds whichever other tests run. What a test prints is shown when it fails.
fn seed(party: PartyId) -> Seed {
    thread_local!(static ASKED: Cell<u64> = const { Cell::new(0) });
    let n = ASKED.replace(ASKED.get() + 1);
    if n == 0 {
        println!("the randomness of this test is repeated by {SEED}={}", base());
    }
    party_seed(base().wrapping_add(n), party)
}

/// Runs `program` as three parties on three threads, with randomness whose seed is printed. Returns every party's
/// answer, the cost, and what was recorded.
pub fn world<T: Send>(
    fixed: FixedSpec,
    rounding: Rounding,
    program: impl Fn(&Party) -> Result<T> + Sync,
) -> ([T; 3], Spent, [Record; 3]) {
    world_over(fixed, rounding, |id, link| (Box::new(link), Some(seed(id))), program)
}

/// Runs `program` like [`world`], over what `link` makes of each party's transport and with the seed that it gives the
/// party, if any.
pub fn world_over<T: Send>(
    fixed: FixedSpec,
    rounding: Rounding,
    link: impl Fn(PartyId, QueueChannel) -> (Box<dyn Channel>, Option<Seed>),
    program: impl Fn(&Party) -> Result<T> + Sync,
) -> ([T; 3], Spent, [Record; 3]) {
    let answers: [Mutex<Option<T>>; 3] = Default::default();
    let program = |party: &Party| {
        let answer = program(party)?;
        *answers[party.id.index()].lock().expect("no other holds it") = Some(answer);
        Ok(())
    };
    let (spent, records) = three_parties(fixed, rounding, &link, &program);
    let answer = |slot: Mutex<Option<T>>| slot.into_inner().expect("party").expect("its answer");
    // Written out, an array's three elements take a fraction of what `map` takes to compile, a hundred times.
    let [zero, one, two] = answers;
    ([answer(zero), answer(one), answer(two)], spent, records)
}

/// [`Channel`]s and seeds for the parties, made of their ends of a network in memory.
type Link<'a> = &'a dyn Fn(PartyId, QueueChannel) -> (Box<dyn Channel>, Option<Seed>);

/// What all worlds do, compiled once and not for each program: tests have hundreds of them.
fn three_parties(
    fixed: FixedSpec,
    rounding: Rounding,
    link: Link,
    program: &(dyn Fn(&Party) -> Result<()> + Sync),
) -> (Spent, [Record; 3]) {
    let ended: Vec<(Spent, Record)> = std::thread::scope(|scope| {
        let handles: Vec<_> = PartyId::ALL
            .into_iter()
            .zip(network(Duration::from_secs(30)))
            .map(|(id, end)| {
                let (link, seed) = link(id, end);
                scope.spawn(move || {
                    let p = Party::connect(id, fixed, rounding, link, seed).expect("set-up");
                    p.record(true);
                    program(&p).expect("protocol");
                    (p.spent(), p.record(false))
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().expect("party")).collect()
    });
    let mut total = Spent::default();
    let mut records = Vec::new();
    for (spent, record) in ended {
        total.join(&spent);
        records.push(record);
    }
    (total, three(records))
}

fn three<T>(v: Vec<T>) -> [T; 3] {
    v.try_into().unwrap_or_else(|_| unreachable!("three parties"))
}

/// Shares of a matrix for each party.
pub fn share(rows: usize, cols: usize, units: &[i64]) -> [Share; 3] {
    deal(rows, cols, units, Some(seed(PartyId::P0))).expect("randomness")
}

/// Operands from the whole ring, by seed.
#[cfg(test)]
pub(crate) fn random(n: usize, seed: u64) -> Vec<i64> {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(seed);
    (0..n).map(|_| rng.random()).collect()
}

/// The value behind three shares, with the check that both copies of every component agree.
pub fn open(shares: &[Share; 3]) -> Vec<i64> {
    reconstruct(shares).expect("copies agree")
}

/// Parameters of a network: `units(n)` gives the n values of one tensor after another.
pub fn parameters(network: &NetworkSpec, mut units: impl FnMut(usize) -> Vec<i64>) -> ParameterUnits {
    let layer = |l| {
        let (rows, cols) = network.shape(l);
        LayerUnits {
            weights: units(rows * cols),
            bias: units(cols),
            weight_velocity: units(rows * cols),
            bias_velocity: units(cols),
        }
    };
    ParameterUnits { layers: (1..=network.layers()).map(layer).collect() }
}

/// A training of parameters and data that are small numbers, hardly one of them 0.
pub struct Training {
    /// Loaded with both.
    pub engine: Engine,
    rows: usize,
}

impl Training {
    /// Starts the parties.
    pub fn start(config: EngineConfig, rows: usize) -> Self {
        let network = config.spec.network.clone();
        let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
        let mut engine = Engine::start(config).expect("parties");
        engine.load(&parameters(&network, units)).expect("parameters");
        let labels: Vec<usize> = (0..rows).map(|i| i * 7 % network.classes()).collect();
        engine.load_data(&units(rows * network.inputs()), &labels).expect("data");
        Training { engine, rows }
    }

    /// Takes some steps, on other rows each time. Returns what they cost.
    pub fn steps(&mut self, steps: u32) -> Spent {
        let (rows, batch) = (self.rows as u32, self.engine.spec().sgd.batch as u32);
        let batches: Vec<Vec<u32>> = (0..steps).map(|k| (0..batch).map(|i| (i * 3 + k) % rows).collect()).collect();
        self.engine.train(&batches).expect("steps")
    }
}
