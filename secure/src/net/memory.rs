//! Three parties as three threads of one process. A message is handed over by moving its buffer, which the reader
//! keeps as a result ([`take`](crate::party::Heard::take)) or gives to its pool.

use super::{Channel, Mailboxes, Neighbour};
use crate::crew::help;
use crate::error::{Error, Result};
use crate::party::PartyId;
use crate::words::Words;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// One party's end of the in-memory network.
pub struct MemoryChannel {
    id: PartyId,
    to: [SyncSender<Words>; 2],
    from: [Receiver<Words>; 2],
    deadline: Duration,
    looks: usize,
}

/// How many messages may be under way from one party to another. The queues have room for them from the start; a party that is further ahead waits.
/// The one behind the others never does, so they cannot wait in a circle.
const AHEAD: usize = 256;

/// Connects three parties. A party that waits longer than `deadline` for a message, or for a neighbour to read its own, gives up with
/// [`Error::PeerLate`].
pub fn network(deadline: Duration) -> [MemoryChannel; 3] {
    // Link i carries what party i says to its next neighbour, back[i] what that neighbour says to party i.
    let (forth_tx, forth_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| sync_channel(AHEAD)).unzip();
    let (back_tx, back_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| sync_channel(AHEAD)).unzip();
    let mut forth_rx: Vec<_> = forth_rx.into_iter().map(Some).collect();
    let mut back_rx: Vec<_> = back_rx.into_iter().map(Some).collect();
    PartyId::ALL.map(|id| {
        let (i, prev) = (id.index(), id.previous().index());
        MemoryChannel {
            id,
            to: [back_tx[prev].clone(), forth_tx[i].clone()],
            from: [forth_rx[prev].take().expect("taken once"), back_rx[i].take().expect("taken once")],
            deadline,
            looks: LOOKS,
        }
    })
}

impl MemoryChannel {
    /// Whose end this is.
    pub fn id(&self) -> PartyId {
        self.id
    }

    /// For a party that has a core to itself: it helps through most of its waits before it sleeps, some ten milliseconds.
    #[must_use]
    pub fn patient(self) -> Self {
        MemoryChannel { looks: 100 * LOOKS, ..self }
    }
}

/// How often a party looks for a message before it sleeps: being woken up takes longer than most rounds do.
const LOOKS: usize = 300;

/// Hands a message over, helping the others while the neighbour has too many to read.
fn send(
    to: &SyncSender<Words>,
    mut message: Words,
    deadline: Duration,
) -> std::result::Result<(), TrySendError<Words>> {
    let mut full_since = None;
    loop {
        message = match to.try_send(message) {
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

/// Receives a message, looking for it before going to sleep. Between two looks it helps the others or gives the core away.
fn receive(from: &Receiver<Words>, looks: usize, deadline: Duration) -> std::result::Result<Words, RecvTimeoutError> {
    for _ in 0..looks {
        match from.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) if help() => {}
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    from.recv_timeout(deadline)
}

impl Channel for MemoryChannel {
    fn exchange(
        &mut self,
        outgoing: &mut Mailboxes,
        incoming: &mut Mailboxes,
        expected: [usize; 2],
        step: &str,
    ) -> Result<()> {
        let gone = |n: Neighbour| Error::PeerGone {
            party: self.id,
            step: step.to_owned(),
            what: format!("party {} closed its channel", self.id.neighbour(n)),
        };
        let late = |n: Neighbour, did: &str| Error::PeerLate {
            party: self.id,
            step: step.to_owned(),
            what: format!("party {} {did} nothing for {:.0} s", self.id.neighbour(n), self.deadline.as_secs_f64()),
        };
        for n in Neighbour::BOTH {
            if !outgoing[n].is_empty() {
                let message = std::mem::take(&mut outgoing[n]);
                send(&self.to[n as usize], message, self.deadline).map_err(|e| match e {
                    TrySendError::Full(_) => late(n, "read"),
                    TrySendError::Disconnected(_) => gone(n),
                })?;
            }
        }
        for n in Neighbour::BOTH {
            let want = expected[n as usize];
            if want == 0 {
                incoming[n] = Words::default();
                continue;
            }
            let message = match receive(&self.from[n as usize], self.looks, self.deadline) {
                Ok(m) => m,
                Err(RecvTimeoutError::Disconnected) => return Err(gone(n)),
                Err(RecvTimeoutError::Timeout) => return Err(late(n, "sent")),
            };
            if message.len() != want {
                return Err(Error::PeerMisbehaved {
                    party: self.id,
                    step: step.to_owned(),
                    what: format!("expected {want} words from party {}, got {}", self.id.neighbour(n), message.len()),
                });
            }
            incoming[n] = message;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says `words` to the next party and hears nothing.
    fn say(channel: &mut MemoryChannel, words: &[u64]) -> Result<()> {
        let mut outgoing = Mailboxes::default();
        outgoing[Neighbour::Next] = words.into();
        channel.exchange(&mut outgoing, &mut Mailboxes::default(), [0, 0], "test")
    }

    #[test]
    fn a_party_far_ahead_waits_for_its_reader() {
        let [mut ahead, mut behind, _third] = network(Duration::from_secs(30));
        let messages = 3 * AHEAD as u64;
        std::thread::scope(|scope| {
            scope.spawn(move || (0..messages).for_each(|k| say(&mut ahead, &[k, k]).unwrap()));
            for k in 0..messages {
                let mut incoming = Mailboxes::default();
                behind.exchange(&mut Mailboxes::default(), &mut incoming, [2, 0], "test").unwrap();
                assert_eq!(*incoming[Neighbour::Previous], [k, k]);
            }
        });
    }

    #[test]
    fn a_neighbour_that_never_reads_is_named() {
        let [mut ahead, _behind, _third] = network(Duration::from_millis(10));
        (0..AHEAD).for_each(|_| say(&mut ahead, &[1]).unwrap());
        let error = say(&mut ahead, &[1]).unwrap_err().to_string();
        assert!(error.contains("party 1 read nothing"), "{error}");
    }
}
