//! Everything that crosses between the client and the parties in the clear, by name, and what of it has crossed in this
//! process.
//!
//! The page `docs/threat-model.md` lists these names with who learns what, and when; a test compares that list with
//! what recorded runs disclose. Shares and keys that a party is dealt say nothing about what they share, so they count
//! as *shares* whatever they are shares of. A new kind of job or answer does not compile before it has its names here.

use super::worker::{Answer, Job};
use crate::cost::Spent;
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
    note(told(job).iter().copied(), []);
}

/// What a job tells a party.
fn told(job: &Job) -> &'static [Disclosed] {
    use Disclosed::{BatchRows, RunName, Shares, Sizes};
    match job {
        Job::Load(_) | Job::LoadShares(_) | Job::MoreData(_) | Job::Labels(_) => &[Shares, Sizes],
        Job::Step { .. } | Job::Predict(_) | Job::Count { .. } | Job::Head { .. } => &[Shares, Sizes],
        Job::NoData(_) => &[Sizes],
        Job::Train(_) => &[BatchRows],
        Job::Keep { .. } | Job::Kept(_) | Job::Resume { .. } => &[RunName],
        Job::Shares | Job::Times | Job::Spent => &[],
        #[cfg(test)]
        Job::Panic => &[],
    }
}

/// Notes what an answer tells the client.
pub(super) fn note_answer(answer: &Answer) {
    let (disclosed, steps) = answered(answer);
    note(disclosed, steps);
}

/// What an answer tells the client, and the protocols that sent messages.
fn answered(answer: &Answer) -> (Vec<Disclosed>, Vec<&'static str>) {
    let costs = |spent: &Spent| spent.by_step.keys().map(|step| step.name()).collect();
    match answer {
        Answer::Done => (vec![], vec![]),
        Answer::Shares(_) => (vec![Disclosed::Parameters], vec![]),
        Answer::Spent(spent) => (vec![Disclosed::Costs], costs(spent)),
        Answer::Step(spent, record) => {
            let (mut disclosed, mut steps) = recorded(record);
            disclosed.push(Disclosed::Costs);
            steps.extend(costs(spent));
            (disclosed, steps)
        }
        Answer::Classes(_) => (vec![Disclosed::Classes], vec![]),
        Answer::RightRows(_) => (vec![Disclosed::RightRows], vec![]),
        Answer::Head(_, record) => {
            let (mut disclosed, steps) = recorded(record);
            disclosed.push(Disclosed::HeadResults);
            (disclosed, steps)
        }
        Answer::Kept(_) => (vec![Disclosed::KeptStates], vec![]),
        Answer::Times(_) => (vec![Disclosed::Times], vec![]),
    }
}

fn recorded(record: &Record) -> (Vec<Disclosed>, Vec<&'static str>) {
    let Record { truncations, probes, sent, expected, reused: _ } = record;
    let parts = [
        (!probes.is_empty(), Disclosed::Probes),
        (!truncations.is_empty(), Disclosed::Truncations),
        (!sent.is_empty() || !expected.is_empty(), Disclosed::Layout),
    ];
    let disclosed = parts.into_iter().filter(|p| p.0).map(|p| p.1).collect();
    (disclosed, sent.iter().map(|s| s.step).collect())
}

#[cfg(test)]
mod tests {
    use super::super::worker::HeadShares;
    use super::*;
    use crate::cost::StepSpent;
    use crate::id::PartyId;
    use crate::net::recorded::{Expected, Sent};
    use crate::party::{Probed, TruncationView};
    use crate::share::Share;
    use crate::step::Step;
    use Disclosed::{Costs, HeadResults, Layout, Probes, Truncations};
    use spec::ProbePoint;

    /// A record of one part tells that part and no other.
    #[test]
    fn a_record_tells_what_it_holds() {
        let record = Record::default;
        let words = 0..1;
        let truncations = vec![TruncationView { name: "t".into(), shift: 1, part: [1][..].into() }];
        let probes = vec![(ProbePoint::Logits, Probed::Share(Share::zeros(1, 1)))];
        let sent = vec![Sent { exchange: 1, to: PartyId::P1, step: "select", words: words.clone() }];
        let expected = vec![Expected { exchange: 1, from: PartyId::P1, step: "and", words }];
        for (record, disclosed, steps) in [
            (record(), vec![], vec![]),
            (Record { truncations, ..record() }, vec![Truncations], vec![]),
            (Record { probes, ..record() }, vec![Probes], vec![]),
            (Record { sent, ..record() }, vec![Layout], vec!["select"]),
            (Record { expected, ..record() }, vec![Layout], vec![]),
        ] {
            assert_eq!(recorded(&record), (disclosed.clone(), steps.clone()));
            let mut spent = Spent::default();
            spent.by_step.insert(Step::Adder, StepSpent::default());
            let step = [&steps[..], &["adder"]].concat();
            let share = || Share::zeros(1, 1);
            let results = HeadShares { probabilities: share(), gradient: share(), loss: None };
            let of_head = Answer::Head(Box::new(results), Record { ..record });
            assert_eq!(answered(&of_head), ([&disclosed[..], &[HeadResults]].concat(), steps));
            let Answer::Head(_, record) = of_head else { unreachable!("made above") };
            assert_eq!(answered(&Answer::Step(spent, record)), ([&disclosed[..], &[Costs]].concat(), step));
        }
    }

    /// What is noted can be asked for; other tests of this process note other things.
    #[test]
    fn what_is_told_is_noted() {
        note_job(&Job::Train(vec![]));
        note_answer(&Answer::Times([].into()));
        let record = Record {
            sent: vec![Sent { exchange: 1, to: PartyId::P1, step: "only here", words: 0..1 }],
            ..Record::default()
        };
        note_answer(&Answer::Step(Spent::default(), record));
        assert!(disclosed().is_superset(&[Disclosed::BatchRows, Disclosed::Times, Costs, Layout].into()));
        assert!(message_steps().contains("only here"));
    }
}
