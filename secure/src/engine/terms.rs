//! A party from its first message to its last job, wherever it runs, and the seeds of insecure runs.

use super::state::StateFolder;
use super::worker::{Answer, Job, Worker};
use crate::error::Result;
use crate::id::PartyId;
use crate::kernel::CtrKey;
use crate::net::Channel;
use crate::party::Party;
use crate::prg::{Seed, seed_of};
use spec::TrainSpec;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The terms on which a party starts.
pub(crate) struct Terms {
    pub id: PartyId,
    pub spec: TrainSpec,
    /// Into how many pieces a product is cut.
    pub pieces: usize,
    pub seed: Option<Seed>,
    /// Where others see its rounds.
    pub progress: Arc<AtomicU64>,
    /// Whether it hands out probes and views of coins where the client asks.
    pub record: bool,
    /// Where it keeps states.
    pub states: Option<StateFolder>,
}

/// A party from its first message to its last job. Its first answer is that it is ready.
pub(crate) fn run_party(
    terms: Terms,
    channel: Box<dyn Channel>,
    next: impl FnMut() -> Option<Job>,
    mut answer: impl FnMut(Result<Answer>),
) {
    match Party::connect(terms.id, terms.spec.fixed, terms.spec.rounding, channel, terms.seed) {
        Err(e) => answer(Err(e)),
        Ok(mut party) => {
            (party.pieces, party.progress) = (terms.pieces, terms.progress);
            let worker = Worker::new(party, terms.spec).with_states(terms.states).seeded(terms.seed.is_some());
            answer(Ok(Answer::Done));
            if terms.record { worker } else { worker.without_records() }.work(next, answer);
        }
    }
}

/// A seed for party `id`, or for the n-th dealt secret, from one that was asked for: as different from its neighbours
/// as random ones are, for the parties send it.
pub(super) fn mix(seed: u64, n: u64) -> Seed {
    let mut words = [0; 2];
    CtrKey::new(seed_of([seed, 0])).fill(n.into(), &mut words);
    seed_of(words)
}

pub(crate) fn party_seed(seed: u64, id: PartyId) -> Seed {
    mix(seed, id.index() as u64)
}
