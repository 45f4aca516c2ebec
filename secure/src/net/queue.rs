//! Links between the threads of one process: a queue from each party to each neighbour.

use super::checked::CheckedChannel;
use super::ends::{Ends, Item, Message, Missing, Stopped, Unsent};
use crate::id::Neighbour;
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

/// The writing end of a queue.
pub type Sender = SyncSender<Item>;

/// One party's ends of the queues to and from its neighbours.
pub struct Queues {
    to: [Sender; 2],
    from: [Receiver<Item>; 2],
    spins: usize,
}

/// The channel of a party that is a thread of this process.
pub type QueueChannel = CheckedChannel<Queues>;

/// A queue with room for all that may be under way.
pub fn queue() -> (Sender, Receiver<Item>) {
    sync_channel(AHEAD)
}

impl Queues {
    /// The queues to the previous and the next party, and from them.
    pub fn new(to: [Sender; 2], from: [Receiver<Item>; 2]) -> Self {
        Queues { to, from, spins: SPINS }
    }
}

impl QueueChannel {
    /// For a party that has a core to itself: it helps through most of its waits before it sleeps.
    #[must_use]
    pub fn long_spin(mut self) -> Self {
        self.ends.spins = LONG_SPIN;
        self
    }
}

impl Ends for Queues {
    fn put(&mut self, to: Neighbour, message: Message, deadline: Duration) -> Result<(), Unsent> {
        send(&self.to[to as usize], Item::Message(message), deadline)
    }

    fn next(&mut self, from: Neighbour, deadline: Duration) -> Result<Item, Missing> {
        receive(&self.from[from as usize], self.spins, deadline)
    }

    fn end(&mut self, why: &Stopped) {
        for to in &self.to {
            // A neighbour whose queue is full will find it closed.
            let _ = to.try_send(Item::Stopped(why.clone()));
        }
    }
}

/// Hands something over, helping the others while the neighbour has too many to read.
fn send(to: &Sender, mut item: Item, deadline: Duration) -> Result<(), Unsent> {
    let mut full_since = None;
    loop {
        item = match to.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Unsent::Gone),
            Err(TrySendError::Full(unsent)) => {
                if full_since.get_or_insert_with(Instant::now).elapsed() >= deadline {
                    return Err(Unsent::Late);
                }
                unsent
            }
        };
        if !help() {
            std::thread::yield_now();
        }
    }
}

/// Receives, looking `spins` times before going to sleep. Between two looks it helps the others or gives the core away.
fn receive(from: &Receiver<Item>, spins: usize, deadline: Duration) -> Result<Item, Missing> {
    for _ in 0..spins {
        match from.try_recv() {
            Ok(item) => return Ok(item),
            Err(TryRecvError::Disconnected) => return Err(Missing::Gone),
            Err(TryRecvError::Empty) if help() => {}
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    from.recv_timeout(deadline).map_err(|e| match e {
        RecvTimeoutError::Timeout => Missing::Late,
        RecvTimeoutError::Disconnected => Missing::Gone,
    })
}

#[cfg(test)]
mod tests {
    use super::super::checked::tests::{receive_words, send_words};
    use super::super::memory::network;
    use super::*;

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
}
