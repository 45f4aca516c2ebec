//! Three parties as three threads of one process. A message is handed over by moving its buffer; the buffer that was read last
//! becomes the next outgoing one, unless the protocol that heard it kept it as a result ([`take`](crate::party::Heard::take)).

use super::{Channel, Mailboxes, Neighbour};
use crate::crew::help;
use crate::error::{Error, Result};
use crate::party::PartyId;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// One party's end of the in-memory network.
pub struct MemoryChannel {
    id: PartyId,
    to: [Sender<Vec<u64>>; 2],
    from: [Receiver<Vec<u64>>; 2],
    deadline: Duration,
    looks: usize,
}

/// Connects three parties. A party that waits longer than `deadline` for a message gives up with [`Error::PeerGone`].
pub fn network(deadline: Duration) -> [MemoryChannel; 3] {
    // Link i carries what party i says to its next neighbour, back[i] what that neighbour says to party i.
    let (forth_tx, forth_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| channel()).unzip();
    let (back_tx, back_rx): (Vec<_>, Vec<_>) = (0..3).map(|_| channel()).unzip();
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

/// Receives a message, looking for it before going to sleep. Between two looks it helps the others or gives the core away.
fn receive(
    from: &Receiver<Vec<u64>>,
    looks: usize,
    deadline: Duration,
) -> std::result::Result<Vec<u64>, RecvTimeoutError> {
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
        let gone = |n: Neighbour, how: &str| Error::PeerGone {
            party: self.id,
            step: step.to_owned(),
            what: format!("party {} {how}", self.id.neighbour(n)),
        };
        for n in Neighbour::BOTH {
            if !outgoing[n].is_empty() {
                // The old incoming buffer is free by now and serves as the next outgoing one.
                let mut reuse = std::mem::take(&mut incoming[n]);
                reuse.clear();
                let message = std::mem::replace(&mut outgoing[n], reuse);
                self.to[n as usize].send(message).map_err(|_| gone(n, "closed its channel"))?;
            }
        }
        for n in Neighbour::BOTH {
            let want = expected[n as usize];
            if want == 0 {
                incoming[n].clear();
                continue;
            }
            let message = match receive(&self.from[n as usize], self.looks, self.deadline) {
                Ok(m) => m,
                Err(RecvTimeoutError::Disconnected) => return Err(gone(n, "closed its channel")),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(gone(n, &format!("sent nothing for {:.0} s", self.deadline.as_secs_f64())));
                }
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
