//! What can go wrong, by cause.

use crate::party::PartyId;

/// What can go wrong in a secure computation. Each variant names one kind of cause, the party that saw it and the step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A message that cannot be right arrived: wrong length, two copies of a share that disagree.
    #[error("party {party} at {step}: peer misbehaved: {what}")]
    PeerMisbehaved {
        /// Who noticed.
        party: PartyId,
        /// The step that was running.
        step: String,
        /// Expected and found.
        what: String,
    },
    /// A neighbour closed its channel or did not answer before the deadline.
    #[error("party {party} at {step}: peer gone: {what}")]
    PeerGone {
        /// Who noticed.
        party: PartyId,
        /// The step that was running.
        step: String,
        /// Which neighbour, and how it went.
        what: String,
    },
    /// A party ended without an answer: a fault of this program.
    #[error("party {party} stopped without an answer: this is a fault of the program, not of its input")]
    PartyStopped {
        /// Which.
        party: PartyId,
    },
    /// The caller asked for something that has no meaning: shapes that do not fit, values outside the ring's range.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// A caller's mistake.
    pub fn misuse(what: impl Into<String>) -> Self {
        Error::Misuse(what.into())
    }
}

/// Shorthand for this crate.
pub type Result<T> = std::result::Result<T, Error>;
