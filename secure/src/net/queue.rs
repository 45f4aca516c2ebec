//! One party's end of the network: a queue to and from each neighbour, whatever stands at their other ends.
//!
//! In one process they are the neighbours' own queues ([`memory`](super::memory)). Between machines a party writes to
//! sockets itself, and threads that read from sockets fill its queues all the time: so parties that write to one
//! another at once never wait in a circle. Deadlines, and the check that a message is the expected one, are here and
//! nowhere else.

use super::{Channel, Mailboxes, Round};
use crate::buffer::Words;
use crate::error::{Error, Result};
use crate::id::{Neighbour, PartyId};
use crate::pool::help;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// How many messages may be under way from one party to another. The queues have room for them from the start; a party
/// that is further ahead waits. The one behind the others never does, so they cannot wait in a circle.
pub(crate) const AHEAD: usize = 256;

/// How often a party that has a core to itself looks for a message before it sleeps, some ten milliseconds, and how
/// often one that shares its core does: being woken up takes longer than most rounds do.
const LONG_SPIN: usize = 30_000;
const SPINS: usize = 300;

/// How long the last words of a neighbour that reads no more may be under way.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What passes a queue.
pub enum Item {
    /// The words that one party sends another in one round.
    Message(Message),
    /// The end: why there will be no further message.
    Stopped(Stopped),
}

/// The words that one party sends another in one round, and what they claim to be.
pub struct Message {
    /// Exchanges of the sender before.
    pub round: u64,
    /// The digest of the steps that wrote it ([`StepList`](super::StepList)).
    pub steps: u64,
    /// The words.
    pub words: Words,
}

/// Why a neighbour sends no further message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// It stopped, and this is its reason.
    Reason(String),
    /// Its connection ended without a reason; how.
    Lost(String),
    /// It sent what cannot be right.
    Misbehaved(String),
}

/// The writing end of a queue.
pub type Sender = SyncSender<Item>;

/// Why an item did not get under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// There was no room for it in time.
    Late,
    /// Nobody will read it.
    Gone,
}

/// Where a party's items for a neighbour go.
pub trait Outbox: Send {
    /// Gets a message under way, if there is room for it within `deadline`.
    ///
    /// # Errors
    /// It is not under way.
    fn put(&mut self, message: Message, deadline: Duration) -> std::result::Result<(), Unsent>;

    /// Says why nothing will follow, as far as there is room for it.
    fn end(&mut self, why: Stopped);
}

impl Outbox for Sender {
    fn put(&mut self, message: Message, deadline: Duration) -> std::result::Result<(), Unsent> {
        match send(self, Item::Message(message), deadline) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Unsent::Late),
            Err(TrySendError::Disconnected(_)) => Err(Unsent::Gone),
        }
    }

    fn end(&mut self, why: Stopped) {
        // A neighbour whose queue is full will find it closed.
        let _ = self.try_send(Item::Stopped(why));
    }
}

/// One party's end of the network.
pub struct QueueChannel {
    id: PartyId,
    to: [Box<dyn Outbox>; 2],
    from: [Receiver<Item>; 2],
    deadline: Duration,
    spins: usize,
}

/// A queue with room for all that may be under way.
pub fn queue() -> (Sender, Receiver<Item>) {
    sync_channel(AHEAD)
}

impl QueueChannel {
    /// The end of party `id`: outboxes to the previous and the next party, and queues from them. Who waits longer than
    /// `deadline` for a message, or for room for its own, gives up with [`Error::PeerLate`].
    pub fn new(id: PartyId, to: [Box<dyn Outbox>; 2], from: [Receiver<Item>; 2], deadline: Duration) -> Self {
        QueueChannel { id, to, from, deadline, spins: SPINS }
    }

    /// Whose end this is.
    pub fn id(&self) -> PartyId {
        self.id
    }

    /// For a party that has a core to itself: it helps through most of its waits before it sleeps.
    #[must_use]
    pub fn long_spin(self) -> Self {
        QueueChannel { spins: LONG_SPIN, ..self }
    }

    /// Does not look before it sleeps: for a party whose messages come through a thread that needs the core.
    #[must_use]
    pub fn no_spin(self) -> Self {
        QueueChannel { spins: 1, ..self }
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
        match self.to[n as usize].put(message, self.deadline) {
            Ok(()) => Ok(()),
            Err(Unsent::Late) => Err(self.late(n, step, "read")),
            // Its last words, if there are any, lie in the other queue.
            Err(Unsent::Gone) => loop {
                match self.from[n as usize].recv_timeout(LAST_WORDS) {
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
    fn receive(&self, n: Neighbour, round: &Round) -> Result<Words> {
        let (i, step, peer) = (n as usize, round.step, self.id.neighbour(n));
        let message = match receive(&self.from[i], self.spins, self.deadline) {
            Ok(Item::Message(message)) => message,
            Ok(Item::Stopped(why)) => return Err(self.stopped(n, step, why)),
            Err(RecvTimeoutError::Disconnected) => return Err(self.gone(n, step, "closed its channel")),
            Err(RecvTimeoutError::Timeout) => return Err(self.late(n, step, "sent")),
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

/// Hands something over, helping the others while the neighbour has too many to read.
fn send(to: &Sender, mut item: Item, deadline: Duration) -> std::result::Result<(), TrySendError<Item>> {
    let mut full_since = None;
    loop {
        item = match to.try_send(item) {
            Err(TrySendError::Full(unsent)) => {
                if full_since.get_or_insert_with(Instant::now).elapsed() >= deadline {
                    return Err(TrySendError::Full(unsent));
                }
                unsent
            }
            done => return done,
        };
        if !help() {
            std::thread::yield_now();
        }
    }
}

/// Receives, looking `spins` times before going to sleep. Between two looks it helps the others or gives the core away.
fn receive(from: &Receiver<Item>, spins: usize, deadline: Duration) -> std::result::Result<Item, RecvTimeoutError> {
    for _ in 0..spins {
        match from.try_recv() {
            Ok(item) => return Ok(item),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) if help() => {}
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    from.recv_timeout(deadline)
}

impl Channel for QueueChannel {
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
        for to in &mut self.to {
            to.end(Stopped::Reason(reason.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn send_words(channel: &mut QueueChannel, number: u64, words: &[u64]) -> Result<()> {
        let mut outgoing = Mailboxes::default();
        outgoing[Neighbour::Next] = words.into();
        let round = Round { number, step: "test", sends: lists("test", [0, words.len()]), ..Round::default() };
        channel.exchange(&round, &mut outgoing, &mut Mailboxes::default())
    }

    /// Receives `words` words of `step` from the previous party in round `number`.
    fn receive_words(channel: &mut QueueChannel, number: u64, step: &'static str, words: usize) -> Result<Words> {
        let mut incoming = Mailboxes::default();
        let expected = [words, 0];
        let round = Round { number, step: "test", expected, receives: lists(step, expected), ..Round::default() };
        channel.exchange(&round, &mut Mailboxes::default(), &mut incoming)?;
        Ok(std::mem::take(&mut incoming[Neighbour::Previous]))
    }

    #[test]
    fn a_party_far_ahead_waits_for_its_reader() {
        let [mut ahead, mut behind, _third] = network(Duration::from_secs(30));
        let messages = 3 * AHEAD as u64;
        std::thread::scope(|scope| {
            scope.spawn(move || (0..messages).for_each(|k| send_words(&mut ahead, k, &[k, k]).unwrap()));
            for k in 0..messages {
                assert_eq!(*receive_words(&mut behind, k, "test", 2).unwrap(), [k, k]);
            }
        });
    }

    #[test]
    fn a_neighbour_that_never_reads_is_named() {
        let [mut ahead, _behind, _third] = network(Duration::from_millis(10));
        (0..AHEAD as u64).for_each(|k| send_words(&mut ahead, k, &[1]).unwrap());
        let error = send_words(&mut ahead, 0, &[1]).unwrap_err().to_string();
        assert!(error.contains("party 1 read nothing"), "{error}");
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

    #[test]
    fn who_stops_tells_its_reason_and_what_it_sent_before_still_arrives() {
        let [mut first, mut second, mut third] = network(Duration::from_secs(30));
        send_words(&mut first, 0, &[5]).unwrap();
        first.stop(&Error::misuse("no data here"));
        drop(first);
        assert_eq!(*receive_words(&mut second, 0, "test", 1).unwrap(), [5]);
        let error = receive_words(&mut second, 1, "test", 1).unwrap_err();
        assert_eq!(error.to_string(), "party 1 at test: peer gone: party 0 stopped: no data here");
        let error = send_words(&mut third, 1, &[1]).unwrap_err();
        assert_eq!(error.to_string(), "party 2 at test: peer gone: party 0 stopped: no data here");
    }
}
