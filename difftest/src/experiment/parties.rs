//! The parties of the side experiment: what they train, on which rows, and how they are started so that their messages
//! and coins are recorded.

use crate::config::Config;
use crate::error::Error;
use crate::side::secure::units;
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::Parameters;
use reference::spec::{NetworkSpec, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig};
use secure::net::recorded::Transcript;
use secure::prg::{Seed, fresh_seed};

/// The specification of the experiment: the run's own network and batch, so that every truncation has as many pieces,
/// and every product as many parts, as in the run. Widths are rounded up to multiples of 16 and the batch to multiples
/// of 64, so that packed messages have no padding, which would be no random bits.
pub fn spec(run: &TrainSpec) -> TrainSpec {
    let batch = run.sgd.batch.next_multiple_of(64);
    let widths = run.network.widths.iter().map(|w| w.next_multiple_of(16)).collect();
    // What one row adds stays what it is in the run.
    let learning_rate = run.sgd.learning_rate * batch as f64 / run.sgd.batch as f64;
    let sgd = SgdSpec { batch, learning_rate, ..run.sgd };
    TrainSpec { network: NetworkSpec { widths }, sgd, ..run.clone() }
}

/// One batch in units.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// (batch, inputs), scale f.
    pub units: Array2<i64>,
    /// The class of each row.
    pub labels: Vec<usize>,
}

/// A batch of random values in [-1, 1] and labels.
pub fn rows(spec: &TrainSpec, seed: u64) -> Rows {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let one = spec.fixed.one();
    let units = Array2::from_shape_fn((spec.sgd.batch, spec.network.inputs()), |_| rng.random_range(-one..=one));
    Rows { units, labels: (0..spec.sgd.batch).map(|_| rng.random_range(0..spec.network.classes())).collect() }
}

/// The randomness of one recorded run: how the client deals its shares, and the streams of components 0, 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Randomness {
    dealing: u64,
    streams: [Seed; 3],
}

impl Randomness {
    /// Fresh randomness from the operating system; with a seed given, number `n` of it.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn new(seed: Option<u64>, n: u64) -> Result<Self, Error> {
        let mut rng = match seed {
            // Far from the seeds of the run itself and of its second secure side.
            Some(s) => ChaCha12Rng::seed_from_u64(s.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n)),
            None => {
                let [a, b] = [fresh_seed()?, fresh_seed()?];
                ChaCha12Rng::from_seed([a, b].concat().try_into().expect("two seeds of 16 bytes"))
            }
        };
        Ok(Randomness { dealing: rng.random(), streams: rng.random() })
    }

    /// Takes the stream that party `receiver` does not hold from `other`, and leaves the rest.
    pub fn unknown_to(mut self, receiver: usize, other: &Self) -> Self {
        let lacked = (receiver + 2) % 3;
        self.streams[lacked] = other.streams[lacked];
        self
    }
}

/// Fresh parties that start from `parameters` and record.
///
/// # Errors
/// A party fails.
pub fn start(spec: &TrainSpec, parameters: &Parameters, randomness: Randomness) -> Result<(Engine, Transcript), Error> {
    let transcript = Transcript::default();
    let config = EngineConfig {
        seed: Some(randomness.dealing),
        streams: Some(randomness.streams),
        record: true,
        transcript: Some(transcript.clone()),
        ..EngineConfig::new(spec.clone())
    };
    let mut engine = Engine::start(config)?;
    engine.load(&units(parameters))?;
    Ok((engine, transcript))
}

/// The text of a failure, with the command that repeats it.
pub(super) fn failure(check: &str, config: &Config, what: &str) -> String {
    format!("FAIL {check}   {what}\n  again: {}", config.command("--steps 1"))
}
