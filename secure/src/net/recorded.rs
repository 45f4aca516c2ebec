//! A transport that keeps a copy of what it sends, for tests of the transcript. The set-up is not kept: its words are
//! the keys of the parties' streams, and whoever has them unmasks everything else.

use super::{Channel, Mailboxes, Round};
use crate::cost::StepName;
use crate::error::{Error, Result};
use crate::id::{Neighbour, PartyId};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// One message as it left a party. What was received is what the neighbour sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Exchanges of this party before. The set-up of [`Party::connect`](crate::party::Party::connect) is number 0 and
    /// is not recorded.
    pub exchange: u64,
    /// Sender.
    pub from: PartyId,
    /// Receiver.
    pub to: PartyId,
    /// A protocol that waited for this exchange.
    pub step: String,
    /// The words.
    pub words: Vec<u64>,
}

/// Which protocol wrote which words of a message: a party that records notes it ([`Record`](crate::party::Record)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// As in [`Message`].
    pub exchange: u64,
    /// Receiver.
    pub to: PartyId,
    /// The protocol.
    #[serde(deserialize_with = "crate::cost::known_step")]
    pub step: StepName,
    /// Its words within the message.
    pub words: Range<usize>,
}

/// Which protocol expects which words of a message: the receiver's side of [`Sent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// As in [`Message`].
    pub exchange: u64,
    /// Sender.
    pub from: PartyId,
    /// The protocol.
    #[serde(deserialize_with = "crate::cost::known_step")]
    pub step: StepName,
    /// Its words within the message.
    pub words: Range<usize>,
}

/// The messages of one party or of several, in the order in which each party sent them. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Transcript(Arc<Mutex<Vec<Message>>>);

impl Transcript {
    /// Takes everything recorded so far.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Message>> {
        // A party that panicked leaves whole messages only.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A transport that records.
pub struct Recorded<C> {
    inner: C,
    id: PartyId,
    transcript: Transcript,
}

impl<C: Channel> Recorded<C> {
    /// Records what party `id` sends over `inner`.
    pub fn new(inner: C, id: PartyId, transcript: Transcript) -> Self {
        Recorded { inner, id, transcript }
    }
}

impl<C: Channel> Channel for Recorded<C> {
    fn exchange(&mut self, round: &Round, outgoing: &mut Mailboxes, incoming: &mut Mailboxes) -> Result<()> {
        let from = self.id;
        for n in Neighbour::BOTH.into_iter().filter(|&n| round.number > 0 && !outgoing[n].is_empty()) {
            let (to, step, words) = (from.neighbour(n), round.step.to_owned(), outgoing[n].to_vec());
            self.transcript.lock().push(Message { exchange: round.number, from, to, step, words });
        }
        self.inner.exchange(round, outgoing, incoming)
    }

    fn stop(&mut self, reason: &Error) {
        self.inner.stop(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::checked::tests::stops_with_a_reason;
    use crate::net::memory::network;
    use crate::party::Party;
    use crate::protocol::{multiply::multiply, truncate::truncate};
    use crate::testing::share;
    use spec::{FixedSpec, Rounding};
    use std::time::Duration;

    #[test]
    fn every_word_sent_but_the_keys_is_kept_and_belongs_to_a_step() {
        let transcript = Transcript::default();
        let x = share(7, 3, &[5 << 16; 21]);
        let sent: Vec<_> = std::thread::scope(|scope| {
            let parties: Vec<_> = PartyId::ALL
                .into_iter()
                .zip(network(Duration::from_secs(30)))
                .map(|(id, link)| {
                    let (transcript, x) = (transcript.clone(), &x[id.index()]);
                    scope.spawn(move || {
                        let link = Box::new(Recorded::new(link, id, transcript));
                        let p = Party::connect(id, FixedSpec::default(), Rounding::Probabilistic, link, None).unwrap();
                        p.record(true);
                        let both = async { futures_util::try_join!(multiply(&p, x, x), truncate(&p, x, 16, "t")) };
                        p.run(both).unwrap();
                        (id, p.spent(), p.record(false).sent)
                    })
                })
                .collect();
            parties.into_iter().map(|p| p.join().unwrap()).collect()
        });
        let messages = transcript.take();
        for (id, spent, said) in sent {
            let mine: Vec<_> = messages.iter().filter(|m| m.from == id).collect();
            assert!(mine.iter().all(|m| m.exchange > 0), "the set-up is not kept");
            let words: usize = mine.iter().map(|m| m.words.len()).sum();
            assert_eq!(8 * words as u64, spent.bytes);
            assert_eq!(said.iter().map(|s| s.words.len()).sum::<usize>(), words);
            for s in &said {
                let in_message = |m: &&&Message| (m.exchange, m.to) == (s.exchange, s.to);
                let message = mine.iter().find(in_message).expect("what was written was sent");
                assert!(s.words.end <= message.words.len() && ["multiply", "truncate"].contains(&s.step));
            }
        }
        assert!(transcript.take().is_empty());
    }

    #[test]
    fn who_records_tells_why_it_stops() {
        let [first, mut second, _third] = network(Duration::from_secs(30));
        stops_with_a_reason(Recorded::new(first, PartyId::P0, Transcript::default()), &mut second);
    }
}
