//! The longest chain of messages: how many latencies a computation waits for, without a clock.
//!
//! A round is one exchange of all three parties, as the literature counts rounds. Latency is paid by chains of
//! messages: one message waits for another if its sender had to receive that one first. The depth of a message is 1
//! more than the largest depth that its sender received before it sent it (Lamport, Time, Clocks, and the Ordering of
//! Events, 1978). A party that expects nothing in a round does not wait in it, and its next messages are under way
//! while its neighbours still take turns; so a chain can have fewer links than there are rounds, and never more. Rounds
//! times latency is therefore an upper bound of what a network adds to a computation, the longest chain times latency
//! what it adds at least.

use crate::id::PartyId;
use std::collections::BTreeMap;

/// One message, without its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed {
    /// Exchanges of the sender before, by which the receiver knows the message.
    pub round: u64,
    /// Sender.
    pub from: PartyId,
    /// Receiver.
    pub to: PartyId,
}

/// The sums over the messages of a computation: how many there are, and how long they wait for one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chains {
    /// Rounds in which at least one message was sent.
    pub rounds: u64,
    /// Messages.
    pub messages: u64,
    /// Messages of the longest chain.
    pub longest: u64,
}

/// The longest chain of some messages, in any order. Within a round a party sends all of its messages before it
/// receives any.
pub fn chains(messages: impl IntoIterator<Item = Passed>) -> Chains {
    let mut by_round: BTreeMap<u64, Vec<Passed>> = BTreeMap::new();
    messages.into_iter().for_each(|m| by_round.entry(m.round).or_default().push(m));
    let mut received = [0; 3];
    for sent in by_round.values() {
        let before = received;
        for m in sent {
            let depth = before[m.from.index()] + 1;
            received[m.to.index()] = depth.max(received[m.to.index()]);
        }
    }
    Chains {
        rounds: by_round.len() as u64,
        messages: by_round.values().map(|sent| sent.len() as u64).sum(),
        longest: received.into_iter().max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Spent;
    use crate::engine::{Engine, EngineConfig};
    use crate::net::ends::Item;
    use crate::net::memory::network_over;
    use crate::net::queue::{Sender, queue};
    use crate::testing::parameters;
    use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
    use std::collections::BTreeSet;
    use std::sync::mpsc::{self, channel};
    use std::time::Duration;

    fn passed(round: u64, from: PartyId, to: PartyId) -> Passed {
        Passed { round, from, to }
    }

    #[test]
    fn a_chain_is_as_long_as_the_turns_that_parties_take() {
        use PartyId::{P0, P1, P2};
        let longest = |messages: &[Passed]| chains(messages.iter().copied()).longest;
        assert_eq!(longest(&[]), 0);
        // All send at once: nobody waits for anybody.
        assert_eq!(longest(&[passed(1, P0, P2), passed(1, P2, P1), passed(1, P1, P0)]), 1);
        // Two rounds in which nobody receives before he sends are one latency.
        assert_eq!(longest(&[passed(1, P0, P1), passed(2, P0, P1)]), 1);
        // Turns, in whatever order they are told.
        assert_eq!(longest(&[passed(3, P0, P1), passed(2, P1, P0), passed(1, P0, P1)]), 3);
        // What was received long ago is waited for once.
        assert_eq!(longest(&[passed(1, P0, P1), passed(7, P1, P2), passed(8, P1, P2), passed(9, P0, P2)]), 2);
    }

    /// A queue that notes the messages on their way to `to`, by what they claim to be.
    fn noted(from: PartyId, receiver: PartyId, to: Sender, notes: mpsc::Sender<Passed>) -> Sender {
        let (sender, items) = queue();
        std::thread::spawn(move || {
            for item in items {
                if let Item::Message(m) = &item {
                    let _ = notes.send(passed(m.round, from, receiver));
                }
                if to.send(item).is_err() {
                    return;
                }
            }
        });
        sender
    }

    /// Some steps in which every message passes a relay that notes it, and what the engine counted.
    fn relayed(head: Head, rounding: Rounding, layers: usize, steps: u32) -> (Vec<Passed>, Spent) {
        let spec = TrainSpec {
            network: NetworkSpec::dense(5, 4, 10, layers),
            head,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 6, ..SgdSpec::default() },
        };
        let (notes, taken) = channel();
        let config = EngineConfig { threads: 1, ..EngineConfig::new(spec) };
        let ends =
            network_over(Duration::from_secs(60), |from, n, to| noted(from, from.neighbour(n), to, notes.clone()));
        let mut engine = Engine::start_over(config.clone(), ends).unwrap();
        let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
        engine.load(&parameters(&config.spec.network, units)).unwrap();
        engine.load_data(&units(6 * 5), &[0, 1, 2, 0, 1, 2]).unwrap();
        let spent = engine.train(&vec![(0..6).collect::<Vec<u32>>(); steps as usize]).unwrap();
        drop((engine, notes));
        (taken.into_iter().collect(), spent)
    }

    /// The counter of rounds against the messages themselves: every round that is counted has messages, no round has
    /// two from one party to another, and no chain is longer than the rounds.
    #[test]
    fn a_counted_round_is_an_exchange_that_is_paid_once() {
        for (layers, head) in [1, 2, 3].into_iter().flat_map(|l| Head::ALL.map(|h| (l, h))) {
            for rounding in Rounding::ALL {
                let (messages, spent) = relayed(head, rounding, layers, 2);
                let what = format!("{head}, {rounding}, {layers} layers");
                let distinct: BTreeSet<_> = messages.iter().copied().collect();
                assert_eq!(distinct.len(), messages.len(), "{what}: one message a link and round");
                let found = chains(messages);
                // The set-up is round 0, three messages, and is not counted.
                assert_eq!((found.rounds, found.messages), (spent.rounds + 1, spent.messages + 3), "{what}");
                assert!(found.longest <= found.rounds, "{what}: {found:?}");
                println!("{what}: {found:?}");
                if head == Head::Softmax {
                    let a_step = match rounding {
                        Rounding::Probabilistic => [47, 60, 73][layers - 1],
                        Rounding::Nearest => [94, 112, 130][layers - 1],
                    };
                    // As docs/parties.md has it; the set-up may be one more.
                    assert!([2 * a_step, 2 * a_step + 1].contains(&found.longest), "{what}: {found:?}");
                }
            }
        }
    }
}
