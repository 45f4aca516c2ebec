//! Everything that crosses between the client and the parties in the clear, by name, and what of it has crossed in this
//! process.
//!
//! The page `docs/threat-model.md` lists these names with who learns what, and when; a test compares that list with
//! what recorded runs disclose. Shares and keys that a party is dealt say nothing about what they share, so they count
//! as *shares* whatever they are shares of. A new kind of job or answer does not compile before it has its names here.

use super::worker::{Answer, Job};
use crate::party::Record;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// One kind of thing that is disclosed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disclosed {
    /// To the client: weights, biases and velocities.
    Parameters,
    /// To the client: every tensor of a recorded step.
    Probes,
    /// To the client: operand and coin of every truncation of a recorded computation.
    Truncations,
    /// To the client: which protocol wrote how many words of a recorded computation.
    Layout,
    /// To the client: the class of each row that it asked for.
    Classes,
    /// To the client: the number of test rows that are predicted as labelled.
    RightRows,
    /// To the client: probabilities, gradient and loss of a head on given logits.
    HeadResults,
    /// To the client: which steps of a run a party has kept, and digests of its components.
    KeptStates,
    /// To the client: rounds, messages and bytes.
    Costs,
    /// To the client: where a party's time went.
    Times,
    /// To each party: its shares of whatever the client deals.
    Shares,
    /// To each party: numbers of rows and columns of whatever the client deals.
    Sizes,
    /// To each party: the numbers of the rows of each batch.
    BatchRows,
    /// To each party: the name of a run and the number of its steps so far.
    RunName,
}

impl Disclosed {
    /// Every kind, as the page lists them.
    pub const ALL: [Disclosed; 14] = [
        Disclosed::Parameters,
        Disclosed::Probes,
        Disclosed::Truncations,
        Disclosed::Layout,
        Disclosed::Classes,
        Disclosed::RightRows,
        Disclosed::HeadResults,
        Disclosed::KeptStates,
        Disclosed::Costs,
        Disclosed::Times,
        Disclosed::Shares,
        Disclosed::Sizes,
        Disclosed::BatchRows,
        Disclosed::RunName,
    ];

    /// The name on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Disclosed::Parameters => "parameters",
            Disclosed::Probes => "tensors of a step",
            Disclosed::Truncations => "truncations",
            Disclosed::Layout => "layout of messages",
            Disclosed::Classes => "predicted classes",
            Disclosed::RightRows => "number of right rows",
            Disclosed::HeadResults => "results of a head",
            Disclosed::KeptStates => "kept states",
            Disclosed::Costs => "costs",
            Disclosed::Times => "times",
            Disclosed::Shares => "shares",
            Disclosed::Sizes => "sizes",
            Disclosed::BatchRows => "rows of a batch",
            Disclosed::RunName => "name of a run",
        }
    }
}

/// What was disclosed, and which protocols sent messages.
#[derive(Default)]
struct Seen {
    disclosed: BTreeSet<Disclosed>,
    steps: BTreeSet<&'static str>,
}

static SEEN: Mutex<Seen> = Mutex::new(Seen { disclosed: BTreeSet::new(), steps: BTreeSet::new() });

fn note(disclosed: impl IntoIterator<Item = Disclosed>, steps: impl IntoIterator<Item = &'static str>) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.disclosed.extend(disclosed);
    seen.steps.extend(steps);
}

/// The set of values that engines of this process have disclosed so far.
pub fn disclosed() -> BTreeSet<Disclosed> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).disclosed.clone()
}

/// The protocols that have sent messages between parties, as far as costs or records told the client.
pub fn message_steps() -> BTreeSet<&'static str> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).steps.clone()
}

/// Notes what a job tells a party.
pub(super) fn note_job(job: &Job) {
    use Disclosed::{BatchRows, RunName, Shares, Sizes};
    let told: &[Disclosed] = match job {
        Job::Load(_) | Job::LoadShares(_) | Job::MoreData(_) | Job::Labels(_) => &[Shares, Sizes],
        Job::Step { .. } | Job::Predict(_) | Job::Count { .. } | Job::Head { .. } => &[Shares, Sizes],
        Job::NoData(_) => &[Sizes],
        Job::Train(_) => &[BatchRows],
        Job::Keep { .. } | Job::Kept(_) | Job::Resume { .. } => &[RunName],
        Job::Shares | Job::Times | Job::Spent => &[],
        #[cfg(test)]
        Job::Panic => &[],
    };
    note(told.iter().copied(), []);
}

/// Notes what an answer tells the client.
pub(super) fn note_answer(answer: &Answer) {
    match answer {
        Answer::Done => {}
        Answer::Shares(_) => note([Disclosed::Parameters], []),
        Answer::Spent(spent) => note([Disclosed::Costs], spent.by_step.keys().map(|step| step.name())),
        Answer::Step(spent, record) => {
            note([Disclosed::Costs], spent.by_step.keys().map(|step| step.name()));
            note_record(record);
        }
        Answer::Classes(_) => note([Disclosed::Classes], []),
        Answer::RightRows(_) => note([Disclosed::RightRows], []),
        Answer::Head(_, record) => {
            note([Disclosed::HeadResults], []);
            note_record(record);
        }
        Answer::Kept(_) => note([Disclosed::KeptStates], []),
        Answer::Times(_) => note([Disclosed::Times], []),
    }
}

fn note_record(record: &Record) {
    let Record { truncations, probes, sent, expected, reused: _ } = record;
    let parts = [
        (!probes.is_empty(), Disclosed::Probes),
        (!truncations.is_empty(), Disclosed::Truncations),
        (!sent.is_empty() || !expected.is_empty(), Disclosed::Layout),
    ];
    let steps = sent.iter().map(|s| s.step);
    note(parts.into_iter().filter(|p| p.0).map(|p| p.1), steps);
}
