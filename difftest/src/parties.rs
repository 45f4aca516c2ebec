//! Where the three parties of this process's runs are: threads of this process, unless it was told of others.

use crate::error::Error;
use secure::engine::remote::Hosts;
use secure::engine::{Engine, EngineConfig};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

static ELSEWHERE: OnceLock<Elsewhere> = OnceLock::new();

static STATES: OnceLock<PathBuf> = OnceLock::new();

/// From here on, parties in this process keep states of runs in this folder. Set it once, before anything runs.
///
/// # Errors
/// It was set before.
pub fn keep_in(folder: PathBuf) -> Result<(), Error> {
    STATES.set(folder).map_err(|_| Error::PartiesChosen)
}

static DEADLINE: OnceLock<Duration> = OnceLock::new();

/// Parties in processes of their own.
struct Elsewhere {
    hosts: Hosts,
    /// Their process ids, where they run on this machine.
    processes: Option<[u32; 3]>,
}

/// From here on, parties are these; `processes` are their process ids, if they were started on this machine. Set it
/// once, before anything runs.
///
/// # Errors
/// It was set before.
pub fn run_on(hosts: Hosts, processes: Option<[u32; 3]>) -> Result<(), Error> {
    let elsewhere = Elsewhere { hosts, processes };
    ELSEWHERE.set(elsewhere).map_err(|_| Error::PartiesChosen)
}

/// From here on, a party waits so long for a message. Set it once, before anything runs.
///
/// # Errors
/// It was set before.
pub fn wait_for(deadline: Duration) -> Result<(), Error> {
    DEADLINE.set(deadline).map_err(|_| Error::PartiesChosen)
}

/// Where the parties' processes are, seen from this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// They are threads of this process.
    Own,
    /// They are these processes of this machine.
    Here([u32; 3]),
    /// The parties are elsewhere, and their processes are not known.
    Unknown,
}

/// Where the parties' processes are.
pub fn processes() -> Processes {
    match ELSEWHERE.get().map(|elsewhere| elsewhere.processes) {
        None => Processes::Own,
        Some(Some(ids)) => Processes::Here(ids),
        Some(None) => Processes::Unknown,
    }
}

/// Three parties, wherever they are. A run that keeps a copy of every message has them in this process, where messages
/// can be copied.
///
/// # Errors
/// Those of the engine; of parties elsewhere: one that cannot be reached or refuses.
pub fn start(mut config: EngineConfig) -> secure::Result<Engine> {
    config.deadline = DEADLINE.get().copied().unwrap_or(config.deadline);
    match ELSEWHERE.get() {
        Some(elsewhere) if config.transcript.is_none() && config.streams.is_none() => elsewhere.hosts.start(&config),
        _ => {
            config.states = config.states.or_else(|| STATES.get().cloned());
            Engine::start(config)
        }
    }
}
