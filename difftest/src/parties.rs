//! Where the three parties of this process's runs are: threads of this process, unless it was told of others.

use crate::error::Error;
use secure::engine::remote::Hosts;
use secure::engine::{Engine, EngineConfig};
use std::sync::OnceLock;

static ELSEWHERE: OnceLock<Hosts> = OnceLock::new();

/// From here on, parties are these. Set it once, before anything runs.
///
/// # Errors
/// It was set before.
pub fn run_on(hosts: Hosts) -> Result<(), Error> {
    ELSEWHERE.set(hosts).map_err(|_| Error::PartiesChosen)
}

/// Three parties, wherever they are. A run that keeps a copy of every message has them in this process, where messages
/// can be copied.
///
/// # Errors
/// Those of the engine; of parties elsewhere: one that cannot be reached or refuses.
pub fn start(config: EngineConfig) -> secure::Result<Engine> {
    match ELSEWHERE.get() {
        Some(hosts) if config.transcript.is_none() && config.streams.is_none() => hosts.start(&config),
        _ => Engine::start(config),
    }
}
