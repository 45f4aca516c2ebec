//! The items that pass between two parties, and a party's ends of the links to its two neighbours.

use crate::buffer::Words;
use crate::id::Neighbour;
use std::time::Duration;

/// An item that passes a link.
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

/// How long the last words of a party may take to be written, and to arrive.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a message did not get under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// There was no room for it in time.
    Late,
    /// Nobody will read it.
    Gone,
}

/// Why nothing was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nothing came in time.
    Late,
    /// Nothing will come.
    Gone,
}

/// One party's ends of the links to and from its two neighbours.
///
/// Whatever it waits for, it goes on taking what its neighbours send: three parties that send to one another at once
/// must not wait in a circle.
pub trait Ends: Send {
    /// Gets a message to a neighbour under way, if there is room for it within `deadline`.
    ///
    /// # Errors
    /// It is not under way.
    fn put(&mut self, to: Neighbour, message: Message, deadline: Duration) -> Result<(), Unsent>;

    /// The next item from a neighbour, if it comes within `deadline`.
    ///
    /// # Errors
    /// There is none.
    fn next(&mut self, from: Neighbour, deadline: Duration) -> Result<Item, Missing>;

    /// Tells both neighbours why nothing will follow, as far as there is room for it.
    fn end(&mut self, why: &Stopped);
}
