//! Errors of the secure computation, by cause.

use crate::id::PartyId;
use serde::{Deserialize, Serialize};

/// An error of a secure computation. Each variant names one kind of cause, the party that saw it and the step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// A message that cannot be right arrived: wrong length, two copies of a share that disagree.
    #[error("party {party} at {step}: peer misbehaved: {what}")]
    PeerMisbehaved {
        /// The party that noticed.
        party: PartyId,
        /// The step that was running.
        step: String,
        /// The words or values expected and found.
        what: String,
    },
    /// A neighbour did not answer, or did not read, before the deadline.
    #[error("party {party} at {step}: peer late: {what}")]
    PeerLate {
        /// The party that noticed.
        party: PartyId,
        /// The step that was running.
        step: String,
        /// The neighbour, and how long this party waited.
        what: String,
    },
    /// A neighbour closed its channel.
    #[error("party {party} at {step}: peer gone: {what}")]
    PeerGone {
        /// The party that noticed.
        party: PartyId,
        /// The step that was running.
        step: String,
        /// The neighbour, and how it went.
        what: String,
    },
    /// A party ended without an answer: a fault of this program.
    #[error("party {party} stopped without an answer: this is a fault of the program, not of its input")]
    PartyStopped {
        /// The party that failed.
        party: PartyId,
    },
    /// The client's connection to a party failed, or the party refused it.
    #[error("party {party} {how}")]
    PartyLost {
        /// Which.
        party: PartyId,
        /// The event, in words that begin with a verb.
        how: String,
    },
    /// A party neither answered the client nor took a round for too long.
    #[error("party {party} gave no answer and took no round for {seconds} s")]
    PartyLate {
        /// The party that failed.
        party: PartyId,
        /// The time that the client waited.
        seconds: u64,
    },
    /// The caller asked for something that has no meaning: shapes that do not fit, values outside the ring's range.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// The cause among what the parties say: one that found another late or gone knows less than one that failed by
    /// itself, and who finds a neighbour gone may only see that it gave up on somebody else. Between equals the first
    /// party's counts.
    pub fn cause(all: impl IntoIterator<Item = Error>) -> Option<Error> {
        all.into_iter().min_by_key(|e| match e {
            Error::PeerGone { .. } => 2,
            Error::PeerLate { .. } | Error::PartyLate { .. } => 1,
            _ => 0,
        })
    }

    /// Makes the error for a caller's mistake.
    pub fn misuse(what: impl Into<String>) -> Self {
        Error::Misuse(what.into())
    }
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Party 0 stalls: party 1 waits for it until the deadline and leaves, party 2 finds party 1 gone, and so does
    /// party 0 when it comes back.
    #[test]
    fn the_one_that_waited_in_vain_knows_more_than_those_that_it_left() {
        let (step, party) = ("truncate".to_owned(), PartyId::P1);
        let late = Error::PeerLate { party, step: step.clone(), what: "party 0 sent nothing for 60 s".into() };
        let gone = |party| Error::PeerGone { party, step: step.clone(), what: "party 1 closed its channel".into() };
        let all = || [gone(PartyId::P0), late.clone(), gone(PartyId::P2)];
        assert_eq!(Error::cause(all()), Some(late.clone()));
        let own = Error::misuse("party 0's own");
        assert_eq!(Error::cause(all().into_iter().chain([own.clone()])), Some(own));
        assert_eq!(Error::cause([gone(PartyId::P0), gone(PartyId::P2)]), Some(gone(PartyId::P0)));
        assert_eq!(Error::cause([]), None);
    }
}
