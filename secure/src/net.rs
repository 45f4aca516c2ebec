//! Words between neighbours. Nothing here knows of shares, rings or steps.
//!
//! Party i has two neighbours: the next one, i + 1 mod 3, and the previous one, i - 1 mod 3. One [`Channel::exchange`] is one
//! round: all that this party says in it goes out before it waits for what it hears, so that three parties with a megabyte
//! each cannot block one another. Shapes are public, so every length is known before.

pub mod memory;
pub mod recorded;

use crate::error::Result;
use crate::words::Words;

/// One of the two other parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Neighbour {
    /// Party i - 1 mod 3.
    Previous,
    /// Party i + 1 mod 3.
    Next,
}

impl Neighbour {
    /// Both, in the order of the arrays below.
    pub const BOTH: [Neighbour; 2] = [Neighbour::Previous, Neighbour::Next];
}

/// The two mailboxes of one direction, indexed by [`Neighbour`] as usize.
#[derive(Debug, Default)]
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

/// A transport between three parties.
pub trait Channel: Send {
    /// One round. Sends each non-empty outgoing box whole, then waits until each incoming box holds `expected` words (a length of
    /// 0 is not waited for). On return the outgoing boxes are empty and may be reused; `step` only serves error messages.
    ///
    /// # Errors
    /// A neighbour that is gone or late, or a message whose length is not the expected one.
    fn exchange(
        &mut self,
        outgoing: &mut Mailboxes,
        incoming: &mut Mailboxes,
        expected: [usize; 2],
        step: &str,
    ) -> Result<()>;
}
