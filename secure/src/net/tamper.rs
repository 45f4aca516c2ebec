//! A relay that changes one message on its way, to show what a receiver notices.
//!
//! A message that is missing, comes twice, changes places, is short, or comes late is noticed by the receiver: each
//! message carries the number of its round and the digest of its steps, and its length is known before. Changed words
//! are not noticed: the semi-honest model trusts what a party sends. They show where two copies of a component are
//! compared, or in the comparison with the integer model.

use super::ends::{Item, Message};
use super::queue::{Sender, queue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A change that happens to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It does not arrive.
    Drop,
    /// It arrives twice.
    Repeat,
    /// It changes places with the next one.
    Reorder,
    /// Its last word is missing.
    Cut,
    /// One bit of its middle word is another.
    Flip(u32),
    /// It arrives later.
    Delay(Duration),
}

/// A queue whose messages arrive in `to`, the one with number `at` (from 0) changed. The relay ends when the queue is
/// closed.
pub fn tampered(to: Sender, change: Change, at: u64) -> Sender {
    let (sender, items) = queue();
    std::thread::spawn(move || {
        let mut held = None;
        for (k, item) in (0..).zip(items) {
            let changed = match item {
                Item::Message(message) if k == at => changed(message, change, &mut held),
                item => vec![item],
            };
            let after = if k > at { held.take() } else { None };
            if changed.into_iter().chain(after).any(|item| to.send(item).is_err()) {
                return;
            }
        }
        // A message that changes places with none arrives in the end.
        let _ = held.map(|item| to.send(item));
    });
    sender
}

/// What arrives in a message's place; what comes after the next one is held.
fn changed(mut message: Message, change: Change, held: &mut Option<Item>) -> Vec<Item> {
    match change {
        Change::Drop => return Vec::new(),
        Change::Repeat => {
            let twice = Message { words: message.words.clone(), ..message };
            return vec![Item::Message(message), Item::Message(twice)];
        }
        Change::Reorder => {
            *held = Some(Item::Message(message));
            return Vec::new();
        }
        Change::Cut => message.words.resize(message.words.len().saturating_sub(1)),
        Change::Flip(bit) => {
            let middle = message.words.len() / 2;
            message.words[middle] ^= 1 << (bit % 64);
        }
        Change::Delay(time) => std::thread::sleep(time),
    }
    vec![Item::Message(message)]
}

/// A queue that counts the messages on their way to `to`: the places at which one can be changed.
pub fn counted(to: Sender, count: Arc<AtomicU64>) -> Sender {
    let (sender, items) = queue();
    std::thread::spawn(move || {
        for item in items {
            count.fetch_add(u64::from(matches!(item, Item::Message(_))), Ordering::SeqCst);
            if to.send(item).is_err() {
                return;
            }
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineConfig};
    use crate::id::{Neighbour, PartyId};
    use crate::net::memory::network_over;
    use crate::net::queue::QueueChannel;
    use crate::opened::ParameterUnits;
    use crate::testing::parameters;
    use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

    fn config(deadline: Duration) -> EngineConfig {
        let spec = TrainSpec {
            network: NetworkSpec::dense(5, 4, 3, 2),
            head: Head::Softmax,
            epsilon: 0.1,
            rounding: Rounding::Probabilistic,
            fixed: FixedSpec::default(),
            sgd: SgdSpec { batch: 6, ..SgdSpec::default() },
        };
        EngineConfig { seed: Some(3), threads: 1, deadline, ..EngineConfig::new(spec) }
    }

    /// Parameters after a step in which message `at` from `party` to its neighbour was changed, or the error.
    fn trained(change: Option<(Change, PartyId, Neighbour, u64)>, deadline: Duration) -> crate::Result<ParameterUnits> {
        let config = config(deadline);
        let ends = network_over(deadline, |from, n, to| match change {
            Some((change, party, neighbour, at)) if (party, neighbour) == (from, n) => tampered(to, change, at),
            _ => to,
        });
        trained_over(&config, ends)
    }

    fn trained_over(config: &EngineConfig, ends: [QueueChannel; 3]) -> crate::Result<ParameterUnits> {
        let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
        let mut engine = Engine::start_over(config.clone(), ends)?;
        engine.load(&parameters(&config.spec.network, units))?;
        engine.step(&units(30), &[0, 1, 2, 0, 1, 2])?;
        engine.parameters()
    }

    /// Early, middle and late messages of every link, set-up included. The last one is none of them: nothing waits for
    /// what comes after it.
    fn places() -> Vec<(PartyId, Neighbour, u64)> {
        let counts: Vec<_> = PartyId::ALL
            .into_iter()
            .flat_map(|party| Neighbour::BOTH.map(|n| (party, n, Arc::new(AtomicU64::new(0)))))
            .collect();
        let config = config(Duration::from_secs(30));
        let ends = network_over(config.deadline, |from, n, to| {
            let (.., count) = counts.iter().find(|(party, link, _)| (*party, *link) == (from, n)).expect("every link");
            counted(to, Arc::clone(count))
        });
        trained_over(&config, ends).unwrap();
        let sent = |count: &AtomicU64| count.load(Ordering::SeqCst);
        // Party 1 says nothing to party 2 after the set-up.
        let used: Vec<_> = counts.iter().filter(|(.., count)| sent(count) > 2).collect();
        assert!(used.len() >= 5, "links that are used in a step: {counts:?}");
        let of = |count: u64| std::collections::BTreeSet::from([0, 1, count / 2, count - 2]);
        used.iter().flat_map(|(party, n, count)| of(sent(count)).into_iter().map(|at| (*party, *n, at))).collect()
    }

    #[test]
    fn a_message_that_is_missing_doubled_moved_or_short_ends_the_computation() {
        let noticed = |(party, n, at)| {
            for change in [Change::Drop, Change::Repeat, Change::Reorder, Change::Cut] {
                let done = trained(Some((change, party, n, at)), Duration::from_millis(500));
                let link = format!("message {at} from {party} to its {n:?}");
                let error = done.err().unwrap_or_else(|| panic!("{change:?} of {link} unnoticed"));
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        };
        // Most of the time they wait for a message that does not come.
        std::thread::scope(|scope| places().into_iter().for_each(|place| drop(scope.spawn(move || noticed(place)))));
    }

    #[test]
    fn a_message_that_comes_late_changes_nothing() {
        let right = trained(None, Duration::from_secs(30)).unwrap();
        for (party, n, at) in places() {
            let late = (Change::Delay(Duration::from_millis(30)), party, n, at);
            assert_eq!(trained(Some(late), Duration::from_secs(30)).unwrap(), right);
        }
    }

    #[test]
    fn a_changed_word_is_an_error_or_another_result_or_means_nothing() {
        let right = trained(None, Duration::from_secs(30)).unwrap();
        let (mut seen, mut meant_nothing) = (0, 0);
        for (party, n, at) in places() {
            match trained(Some((Change::Flip(at as u32 % 4), party, n, at)), Duration::from_secs(5)) {
                Ok(same) if same == right => meant_nothing += 1,
                _ => seen += 1,
            }
        }
        // Bits beyond the end of a short bit vector mean nothing, so a low bit is changed; the lowest bits of a number
        // that is truncated next mean little, and a coin that falls the other way is as good as another.
        assert!(seen > meant_nothing, "{seen} seen, {meant_nothing} without effect");
    }

    #[test]
    fn a_change_is_the_one_that_it_says() {
        let message = || Message { round: 3, steps: 4, words: [5, 6, 7, 8, 9][..].into() };
        let arrives = |change| {
            let all = changed(message(), change, &mut None).into_iter().map(|item| match item {
                Item::Message(m) => (m.round, m.steps, m.words.to_vec()),
                Item::Stopped(_) => panic!("a message"),
            });
            all.collect::<Vec<_>>()
        };
        let whole = (3, 4, vec![5, 6, 7, 8, 9]);
        assert_eq!(arrives(Change::Repeat), [whole.clone(), whole.clone()]);
        assert_eq!(arrives(Change::Cut), [(3, 4, vec![5, 6, 7, 8])]);
        assert_eq!(arrives(Change::Flip(66)), [(3, 4, vec![5, 6, 3, 8, 9])]);
        assert_eq!(arrives(Change::Delay(Duration::ZERO)), [whole]);
        assert!(arrives(Change::Drop).is_empty() && arrives(Change::Reorder).is_empty());
    }

    #[test]
    fn one_message_is_changed_and_the_others_arrive() {
        let arrive = |change| {
            let (to, arrived) = queue();
            let relay = tampered(to, change, 1);
            for round in 0..4 {
                let words = [round, round][..].into();
                relay.send(Item::Message(Message { round, steps: 0, words })).unwrap();
            }
            drop(relay);
            let all = arrived.into_iter().map(|item| match item {
                Item::Message(m) => (m.round, m.words.len()),
                Item::Stopped(_) => panic!("a message"),
            });
            all.collect::<Vec<_>>()
        };
        assert_eq!(arrive(Change::Cut), [(0, 2), (1, 1), (2, 2), (3, 2)]);
        assert_eq!(arrive(Change::Drop), [(0, 2), (2, 2), (3, 2)]);
        assert_eq!(arrive(Change::Repeat), [(0, 2), (1, 2), (1, 2), (2, 2), (3, 2)]);
        assert_eq!(arrive(Change::Reorder), [(0, 2), (2, 2), (1, 2), (3, 2)]);
    }
}
