//! A relay that changes one message on its way, to show what a receiver notices.
//!
//! A message that is missing, comes twice, changes places, is short, or comes late is noticed by the receiver: each message carries the number
//! of its round and the digest of its steps, and its length is known before. Changed words are not noticed: the semi-honest model trusts
//! what a party sends. They show where two copies of a component are compared, or in the comparison with the integer model.

use super::queue::{Item, Message, Sender, queue};
use std::time::Duration;

/// What happens to a message.
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

/// A queue whose messages arrive in `to`, the one with number `at` (from 0) changed. The relay ends when the queue is closed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineConfig};
    use crate::id::{Neighbour, PartyId};
    use crate::net::memory::network_over;
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
        let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
        let mut engine = Engine::start_over(config.clone(), ends)?;
        engine.load(&parameters(&config.spec.network, units))?;
        engine.step(&units(30), &[0, 1, 2, 0, 1, 2])?;
        engine.parameters()
    }

    /// All links take turns over the messages of a step.
    fn link(at: u64) -> (PartyId, Neighbour) {
        (PartyId::ALL[at as usize % 3], Neighbour::BOTH[at as usize / 3 % 2])
    }

    /// Fewer messages than any link of this step has.
    const MESSAGES: u64 = 15;

    #[test]
    fn a_message_that_is_missing_doubled_moved_or_short_ends_the_computation() {
        for at in 0..MESSAGES {
            let (party, n) = link(at);
            for change in [Change::Drop, Change::Repeat, Change::Reorder, Change::Cut] {
                let done = trained(Some((change, party, n, at)), Duration::from_millis(500));
                let error = done.err().unwrap_or_else(|| panic!("{change:?} of message {at} from {party} unnoticed"));
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn a_message_that_comes_late_changes_nothing() {
        let right = trained(None, Duration::from_secs(30)).unwrap();
        for at in [0, 4, 9] {
            let (party, n) = link(at);
            let late = (Change::Delay(Duration::from_millis(30)), party, n, at);
            assert_eq!(trained(Some(late), Duration::from_secs(30)).unwrap(), right);
        }
    }

    #[test]
    fn a_changed_word_is_an_error_or_another_result_or_means_nothing() {
        let right = trained(None, Duration::from_secs(30)).unwrap();
        let (mut seen, mut meant_nothing) = (0, 0);
        for at in 1..MESSAGES {
            let (party, n) = link(at);
            match trained(Some((Change::Flip(40 + at as u32), party, n, at)), Duration::from_secs(5)) {
                Ok(same) if same == right => meant_nothing += 1,
                _ => seen += 1,
            }
        }
        // Bits beyond the end of a bit vector mean nothing, and a coin that falls the other way is as good as another.
        assert!(seen > meant_nothing, "{seen} seen, {meant_nothing} without effect");
    }
}
