//! Three parties as long-lived threads of this process: each with its own [`Party`](crate::party::Party) and its own
//! shares, behind an in-memory transport.
//!
//! They share no state: messages go through the transport, threads take pieces of one another's products
//! (`pool.rs`) and memory that was emptied before ([`crate::buffer`]).

use super::link::{Link, ThreadLink};
use super::state::{StateFolder, spec_digest};
use super::terms::{Terms, party_seed, run_party};
use super::worker::Job;
use super::{Engine, EngineConfig};
use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::kernel::Kernel;
use crate::net::Channel;
use crate::net::memory::network;
use crate::net::queue::QueueChannel;
use crate::net::recorded::Recorded;
use crate::pool::{Body, Pool};
use core_affinity::CoreId;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;

impl Engine {
    /// Starts three parties in this process.
    ///
    /// # Errors
    /// A specification that cannot be carried out, a kernel that was asked for and is not there, no randomness.
    pub fn start(config: EngineConfig) -> Result<Self> {
        let ends = network(config.deadline);
        Self::start_over(config, ends)
    }

    /// Starts three parties in this process over given ends of a network, which tests change on the way.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_over(config: EngineConfig, ends: [QueueChannel; 3]) -> Result<Self> {
        config.spec.validate().map_err(|e| Error::misuse(e.to_string()))?;
        Kernel::select().map_err(|e| Error::misuse(e.to_string()))?;
        keep_freed_memory();
        let cores = if config.pin_to_cores { two_cores() } else { None };
        let mut links = Vec::new();
        let mut bodies = Vec::new();
        for channel in ends {
            let (link, body) = thread_party(&config, channel, cores);
            links.push(Box::new(link) as Box<dyn Link>);
            bodies.push(body);
        }
        let pool = Pool::start(config.threads, bodies).map_err(|e| {
            let reason = std::error::Error::source(&e).map_or(e.to_string(), ToString::to_string);
            Error::misuse(format!(
                "the system gives no three threads for the parties ({reason}); raise the limit of threads or memory \
                 (ulimit -u, ulimit -v, or that of the container)"
            ))
        })?;
        let links = links.try_into().map_err(|_| Error::misuse("three parties start"))?;
        Self::over(config.spec, config.seed, config.record, links, Some(pool))
    }
}

/// Lets the allocator keep what a step frees for the next one. The C library gives memory back to the system from a
/// threshold on that follows the largest block freed so far, and page faults would cost a tenth of a step; one large
/// block, never touched, raises it.
pub(crate) fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

/// The party that has a core to itself where there are two. It waits for nobody in a truncation and runs ahead, while
/// parties 0 and 1 take turns; left alone, three threads on two cores move about and meet cold caches.
const ALONE: PartyId = PartyId::P2;

/// The two cores of a machine that has two and lets itself be asked.
fn two_cores() -> Option<[CoreId; 2]> {
    core_affinity::get_core_ids()?.try_into().ok()
}

/// A party on a thread of this process: the client's link to it, and what the thread runs.
fn thread_party(config: &EngineConfig, channel: QueueChannel, cores: Option<[CoreId; 2]>) -> (ThreadLink, Body) {
    let party = channel.id();
    // A party draws the seed of the stream that it shares with the next one.
    let stream = config.streams.map(|streams| streams[party.next().index()]);
    // Twice as many as threads, so that nobody waits long for what another has taken.
    let pieces = if config.threads > 1 { 2 * config.threads } else { 1 };
    let end = if cores.is_some() && party == ALONE { channel.long_spin() } else { channel };
    let end: Box<dyn Channel> = match &config.transcript {
        Some(transcript) => Box::new(Recorded::new(end, party, transcript.clone())),
        None => Box::new(end),
    };
    let (jobs, next_job) = mpsc::channel::<Job>();
    let (give_answer, answers) = mpsc::channel();
    let progress = Arc::<AtomicU64>::default();
    let terms = Terms {
        id: party,
        spec: config.spec.clone(),
        pieces,
        seed: stream.or(config.seed.map(|s| party_seed(s, party))),
        progress: Arc::clone(&progress),
        record: true,
        states: config
            .states
            .as_ref()
            .map(|folder| StateFolder::new(folder.join(format!("party{party}")), party, spec_digest(&config.spec))),
    };
    let body = move || {
        if let Some(cores) = cores {
            core_affinity::set_for_current(cores[usize::from(party == ALONE)]);
        }
        run_party(
            terms,
            end,
            || next_job.recv().ok(),
            |answer| {
                let _ = give_answer.send(answer);
            },
        );
    };
    let link = ThreadLink { party, jobs, answers, progress, patience: 2 * config.deadline };
    (link, (format!("party {party}"), Box::new(body)))
}
