//! The settings of three parties and their client.

use crate::net::recorded::Transcript;
use crate::prg::Seed;
use spec::TrainSpec;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of an [`Engine`](super::Engine).
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The specification that the engine trains.
    pub spec: TrainSpec,
    /// `None`: randomness from the operating system. A fixed seed makes runs repeatable and the sharing worthless: say
    /// so.
    pub seed: Option<u64>,
    /// Seeds of the streams of components 0, 1 and 2, in place of those that the parties draw: for tests that run a
    /// step again with one stream changed.
    pub streams: Option<[Seed; 3]>,
    /// Hand out probes and the views of truncations with every step.
    pub record: bool,
    /// How long a party waits for a message.
    pub deadline: Duration,
    /// Threads that share the work of the matrix products, parties that wait for a message among them. The results do
    /// not depend on it.
    pub threads: usize,
    /// Where there are two cores, keep parties 0 and 1 on the first and party 2 on the second: for long runs that have
    /// the machine for themselves.
    pub pin_to_cores: bool,
    /// Keep a copy of every message here.
    pub transcript: Option<Transcript>,
    /// Where parties in this process keep states of runs: party i in `party<i>` of this folder. Those elsewhere have
    /// folders of their own.
    pub states: Option<PathBuf>,
}

impl EngineConfig {
    /// Operating-system randomness, no recording, a deadline of a minute, all of the machine's cores.
    pub fn new(spec: TrainSpec) -> Self {
        EngineConfig {
            spec,
            seed: None,
            streams: None,
            record: false,
            deadline: Duration::from_secs(60),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            pin_to_cores: false,
            transcript: None,
            states: None,
        }
    }
}
