//! The parties of the side experiment: what they train, on which rows, and how they are started so that their messages and coins are recorded.

use crate::config::Config;
use crate::error::Error;
use crate::side::secure::{failed, units};
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::Parameters;
use reference::spec::{NetworkSpec, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig};
use secure::net::recorded::Transcript;

/// What is trained: every layer kind that the run has. Widths and batch are multiples of 16, so that packed messages have no padding, which
/// would be no random bits.
pub fn spec(run: &TrainSpec) -> TrainSpec {
    let (layers, batch) = (run.network.layers().min(2), 64);
    // What one row adds stays what it is in the run.
    let learning_rate = run.sgd.learning_rate * batch as f64 / run.sgd.batch as f64;
    let sgd = SgdSpec { batch, learning_rate, ..run.sgd };
    TrainSpec { network: NetworkSpec::dense(16, 16, 16, layers), sgd, ..run.clone() }
}

/// One batch in units.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// (batch, inputs), scale f.
    pub units: Array2<i64>,
    /// Classes.
    pub labels: Vec<usize>,
}

/// A batch of random values in [-1, 1] and labels.
pub fn rows(spec: &TrainSpec, seed: u64) -> Rows {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let one = spec.fixed.one();
    let units = Array2::from_shape_fn((spec.sgd.batch, spec.network.inputs()), |_| rng.random_range(-one..=one));
    Rows { units, labels: (0..spec.sgd.batch).map(|_| rng.random_range(0..spec.network.classes())).collect() }
}

/// Fresh parties that start from `parameters` and record. With a seed given their randomness is number `n` of it.
///
/// # Errors
/// A party fails.
pub fn start(
    spec: &TrainSpec,
    parameters: &Parameters,
    seed: Option<u64>,
    n: u64,
) -> Result<(Engine, Transcript), Error> {
    let transcript = Transcript::default();
    // Far from the seeds of the run itself and of its second secure side.
    let seed = seed.map(|s| s.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n));
    let config =
        EngineConfig { seed, record: true, transcript: Some(transcript.clone()), ..EngineConfig::new(spec.clone()) };
    let mut engine = crate::parties::start(config).map_err(failed)?;
    engine.load(&units(parameters)).map_err(failed)?;
    Ok((engine, transcript))
}

/// The text of a failure, with the command that repeats it.
pub(super) fn failure(check: &str, config: &Config, what: &str) -> String {
    format!("FAIL {check}   {what}\n  again: {}", config.command("--steps 1"))
}
