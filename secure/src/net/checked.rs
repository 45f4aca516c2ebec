//! One party's channel, whatever its messages pass: every message is compared with the one that the round declares, no
//! wait is longer than the deadline, and whoever is the cause is named. That is here and nowhere else.

use super::ends::{Ends, Item, LAST_WORDS, Message, Missing, Stopped, Unsent};
use super::{Channel, Mailboxes, Round};
use crate::buffer::Words;
use crate::error::{Error, Result};
use crate::id::{Neighbour, PartyId};
use std::time::Duration;

/// One party's channel to its two neighbours.
pub struct CheckedChannel<E> {
    id: PartyId,
    pub(super) ends: E,
    deadline: Duration,
}

impl<E: Ends> CheckedChannel<E> {
    /// The channel of party `id` over its ends of the links. Who waits longer than `deadline` for a message, or for
    /// room for its own, gives up with [`Error::PeerLate`].
    pub fn new(id: PartyId, ends: E, deadline: Duration) -> Self {
        CheckedChannel { id, ends, deadline }
    }

    /// Whose channel this is.
    pub fn id(&self) -> PartyId {
        self.id
    }

    fn gone(&self, n: Neighbour, step: &str, how: &str) -> Error {
        let what = format!("party {} {how}", self.id.neighbour(n));
        Error::PeerGone { party: self.id, step: step.to_owned(), what }
    }

    fn late(&self, n: Neighbour, step: &str, did: &str) -> Error {
        let (peer, seconds) = (self.id.neighbour(n), self.deadline.as_secs_f64());
        let what = format!("party {peer} {did} nothing for {seconds:.0} s");
        Error::PeerLate { party: self.id, step: step.to_owned(), what }
    }

    fn misbehaved(&self, step: &str, what: String) -> Error {
        Error::PeerMisbehaved { party: self.id, step: step.to_owned(), what }
    }

    fn send(&mut self, n: Neighbour, message: Message, step: &str) -> Result<()> {
        match self.ends.put(n, message, self.deadline) {
            Ok(()) => Ok(()),
            Err(Unsent::Late) => Err(self.late(n, step, "read")),
            // Its last words, if there are any, are on their way from it.
            Err(Unsent::Gone) => loop {
                match self.ends.next(n, LAST_WORDS) {
                    Ok(Item::Stopped(why)) => return Err(self.stopped(n, step, why)),
                    Ok(Item::Message(_)) => {}
                    Err(_) => return Err(self.gone(n, step, "closed its channel")),
                }
            },
        }
    }

    fn stopped(&self, n: Neighbour, step: &str, why: Stopped) -> Error {
        match why {
            Stopped::Reason(reason) => self.gone(n, step, &format!("stopped: {reason}")),
            Stopped::Lost(how) => self.gone(n, step, &how),
            Stopped::Misbehaved(what) => self.misbehaved(step, format!("party {} {what}", self.id.neighbour(n))),
        }
    }

    /// The message from a neighbour, if it is the one that this round declares.
    fn receive(&mut self, n: Neighbour, round: &Round) -> Result<Words> {
        let (i, step, peer) = (n as usize, round.step, self.id.neighbour(n));
        let message = match self.ends.next(n, self.deadline) {
            Ok(Item::Message(message)) => message,
            Ok(Item::Stopped(why)) => return Err(self.stopped(n, step, why)),
            Err(Missing::Gone) => return Err(self.gone(n, step, "closed its channel")),
            Err(Missing::Late) => return Err(self.late(n, step, "sent")),
        };
        let (want, got) = (round.expected[i], message.words.len());
        if message.round != round.number {
            let what = format!("expected round {} from party {peer}, got round {}", round.number, message.round);
            return Err(self.misbehaved(step, what));
        }
        if got != want {
            return Err(self.misbehaved(step, format!("expected {want} words from party {peer}, got {got}")));
        }
        if message.steps != round.receives[i].digest() {
            let what =
                format!("the {got} words from party {peer} were written by other steps than those that wait here");
            return Err(self.misbehaved(step, what));
        }
        Ok(message.words)
    }
}

impl<E: Ends> Channel for CheckedChannel<E> {
    fn exchange(&mut self, round: &Round, outgoing: &mut Mailboxes, incoming: &mut Mailboxes) -> Result<()> {
        for n in Neighbour::BOTH {
            if !outgoing[n].is_empty() {
                let words = std::mem::take(&mut outgoing[n]);
                let steps = round.sends[n as usize].digest();
                self.send(n, Message { round: round.number, steps, words }, round.step)?;
            }
        }
        for n in Neighbour::BOTH {
            let none = round.expected[n as usize] == 0;
            incoming[n] = if none { Words::default() } else { self.receive(n, round)? };
        }
        Ok(())
    }

    fn stop(&mut self, reason: &Error) {
        self.ends.end(&Stopped::Reason(reason.to_string()));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::memory::network;
    use super::*;

    fn lists(step: &'static str, words: [usize; 2]) -> [super::super::StepList; 2] {
        words.map(|w| {
            let mut list = super::super::StepList::default();
            list.add(step, w);
            list
        })
    }

    /// Sends `words` to the next party in round `number` and receives nothing.
    pub fn send_words(channel: &mut impl Channel, number: u64, words: &[u64]) -> Result<()> {
        let mut outgoing = Mailboxes::default();
        outgoing[Neighbour::Next] = words.into();
        let round = Round { number, step: "test", sends: lists("test", [0, words.len()]), ..Round::default() };
        channel.exchange(&round, &mut outgoing, &mut Mailboxes::default())
    }

    /// Receives `words` words of `step` from the previous party in round `number`.
    pub fn receive_words(channel: &mut impl Channel, number: u64, step: &'static str, words: usize) -> Result<Words> {
        let mut incoming = Mailboxes::default();
        let expected = [words, 0];
        let round = Round { number, step: "test", expected, receives: lists(step, expected), ..Round::default() };
        channel.exchange(&round, &mut Mailboxes::default(), &mut incoming)?;
        Ok(std::mem::take(&mut incoming[Neighbour::Previous]))
    }

    #[test]
    fn a_message_of_another_round_length_or_step_is_refused() {
        let refused = |number, step, words, what: &str| {
            let [mut sender, mut receiver, _third] = network(Duration::from_secs(30));
            send_words(&mut sender, 7, &[1, 2]).unwrap();
            match receive_words(&mut receiver, number, step, words) {
                Err(e @ Error::PeerMisbehaved { .. }) => assert!(e.to_string().contains(what), "{e}"),
                other => panic!("{:?}", other.map(|w| w.to_vec())),
            }
        };
        refused(8, "test", 2, "expected round 8 from party 0, got round 7");
        refused(7, "test", 3, "expected 3 words from party 0, got 2");
        refused(7, "tset", 2, "written by other steps");
    }

    #[test]
    fn steps_are_told_apart_by_name_order_and_length_but_not_by_calls() {
        let digest = |entries: &[(&'static str, usize)]| {
            let mut list = super::super::StepList::default();
            entries.iter().for_each(|&(step, words)| list.add(step, words));
            list.digest()
        };
        let pair = digest(&[("a", 2), ("b", 3)]);
        assert_eq!(pair, digest(&[("a", 1), ("x", 0), ("a", 1), ("b", 3)]));
        for other in [&[("a", 3), ("b", 2)][..], &[("b", 3), ("a", 2)], &[("a", 5)], &[("ab", 5)], &[]] {
            assert_ne!(pair, digest(other), "{other:?}");
        }
    }

    /// Party 0 sends a message and stops: party 1 receives the message, and then the reason.
    pub fn stops_with_a_reason(mut first: impl Channel, second: &mut impl Channel) {
        send_words(&mut first, 0, &[5]).unwrap();
        first.stop(&Error::misuse("no data here"));
        drop(first);
        assert_eq!(*receive_words(second, 0, "test", 1).unwrap(), [5]);
        let error = receive_words(second, 1, "test", 1).unwrap_err();
        assert_eq!(error.to_string(), "party 1 at test: peer gone: party 0 stopped: no data here");
    }

    #[test]
    fn who_stops_tells_its_reason_and_what_it_sent_before_still_arrives() {
        let [first, mut second, mut third] = network(Duration::from_secs(30));
        stops_with_a_reason(first, &mut second);
        let error = send_words(&mut third, 1, &[1]).unwrap_err();
        assert_eq!(error.to_string(), "party 2 at test: peer gone: party 0 stopped: no data here");
    }
}
