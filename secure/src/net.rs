//! Words between neighbours. Nothing here knows of shares, rings or protocols.
//!
//! Party i has two neighbours: the next one, i + 1 mod 3, and the previous one, i - 1 mod 3. One [`Channel::exchange`]
//! is one round: a party sends before it waits for what it receives, and takes what its neighbours send while it waits
//! for room, so that three parties with a megabyte each cannot block one another. Shapes are public, so every length is
//! known before.
//!
//! * [`checked`]: the one channel of this crate, with deadlines and the checks of every message; [`ends`]: what it
//!   needs of the links to its neighbours.
//! * [`queue`]: links between threads; [`memory`]: three channels wired to one another in one process.
//! * [`sockets`]: links between processes; [`tls`]: connections whose ends know one another; [`frame`]: messages on
//!   them.
//! * [`chain`]: how many messages wait for one another.
//! * [`tamper`]: a relay that changes a message, for tests.
//! * [`recorded`]: a wrapper that keeps a copy of what is sent.

pub mod chain;
pub mod checked;
pub mod ends;
pub mod frame;
pub mod memory;
pub mod queue;
pub mod recorded;
pub mod sockets;
pub mod tamper;
pub mod tls;

use crate::buffer::Words;
use crate::error::{Error, Result};
use crate::id::Neighbour;

/// The step of round 0, in which the parties send each other the keys of their streams.
pub const SET_UP: &str = "set-up";

/// The two mailboxes of one direction, indexed by [`Neighbour`] as usize.
#[derive(Default)]
pub struct Mailboxes(pub [Words; 2]);

impl std::ops::Index<Neighbour> for Mailboxes {
    type Output = Words;
    fn index(&self, n: Neighbour) -> &Words {
        &self.0[n as usize]
    }
}

impl std::ops::IndexMut<Neighbour> for Mailboxes {
    fn index_mut(&mut self, n: Neighbour) -> &mut Words {
        &mut self.0[n as usize]
    }
}

/// Which steps write a message, in order and with their numbers of words, as a running digest. The sender keeps one of
/// what its protocols send, the receiver one of what its protocols expect; they must be equal, or the two run different
/// programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepList {
    hash: u64,
    step: &'static str,
    words: u64,
}

impl Default for StepList {
    fn default() -> Self {
        // The offset of FNV-1a.
        StepList { hash: 0xcbf2_9ce4_8422_2325, step: "", words: 0 }
    }
}

impl StepList {
    /// Appends `words` words of `step`. Neighbouring entries of one step are one entry; no words are no entry.
    pub fn add(&mut self, step: &'static str, words: usize) {
        if words == 0 {
            return;
        }
        if step != self.step {
            *self = StepList { hash: self.digest(), step, words: 0 };
        }
        self.words += words as u64;
    }

    /// The digest so far: FNV-1a of the names and numbers. It finds mistakes; it is no protection against intent.
    pub fn digest(&self) -> u64 {
        let bytes = self.step.bytes().chain([0]).chain(self.words.to_le_bytes());
        bytes.fold(self.hash, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

/// The declaration that a party makes of a round before it exchanges: what it sends comes along in the mailboxes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    /// Exchanges over this channel before.
    pub number: u64,
    /// A step that waits for the end of the round; it only serves error messages.
    pub step: &'static str,
    /// Words expected from the previous and from the next party; a length of 0 is not waited for.
    pub expected: [usize; 2],
    /// The steps that wrote the messages to the previous and to the next party.
    pub sends: [StepList; 2],
    /// The steps that expect the messages from the previous and from the next party.
    pub receives: [StepList; 2],
}

/// A transport between three parties.
pub trait Channel: Send {
    /// One round. Sends each non-empty outgoing box whole, then waits until each incoming box holds the expected words.
    /// On return the outgoing boxes are empty and may be reused.
    ///
    /// # Errors
    /// A neighbour that is gone, late or has stopped with a reason of its own; a message of another round, length or
    /// list of steps than the expected one.
    fn exchange(&mut self, round: &Round, outgoing: &mut Mailboxes, incoming: &mut Mailboxes) -> Result<()>;

    /// Tells both neighbours why this party stops. Nothing is sent afterwards.
    fn stop(&mut self, reason: &Error);
}
