//! Control messages, which client and parties send one another outside of the protocols: who they are, which session
//! they mean, jobs and answers.
//!
//! Every connection begins with a [`Preamble`], whose form never changes, so that another version is told apart from
//! noise. Frames are a length (u32, lowest byte first) and a value in postcard's encoding.

use crate::engine::worker::Answer;
use crate::error::Result;
use crate::id::PartyId;
use crate::net::frame::SessionId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spec::TrainSpec;
use std::io::{self, Read, Write};
use std::time::Duration;

/// The version of everything that is sent; peers of another version are refused.
pub const FORMAT: u32 = 1;

/// The program's version, which peers must share: protocols may change between any two.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

const MAGIC: [u8; 8] = *b"difftest";

/// Bytes of the longest frame before a session is agreed on, and within one.
pub const SHORT: usize = 1 << 16;
/// Bytes of the longest frame within a session.
pub const LONG: usize = 1 << 30;

/// The first frame of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preamble {
    magic: [u8; 8],
    format: u32,
    program: String,
}

impl Preamble {
    /// The preamble that this program sends.
    pub fn own() -> Self {
        Preamble { magic: MAGIC, format: FORMAT, program: PROGRAM.to_owned() }
    }

    /// Whether the other end runs the same version.
    ///
    /// # Errors
    /// Names both versions.
    pub fn check(&self) -> std::result::Result<(), String> {
        if self.magic != MAGIC {
            return Err("speaks another protocol".into());
        }
        if (self.format, self.program.as_str()) != (FORMAT, PROGRAM) {
            let theirs: String = self.program.chars().filter(|c| !c.is_control()).take(32).collect();
            return Err(format!(
                "runs version {theirs} (format {}), this is version {PROGRAM} (format {FORMAT}); install one version \
                 on all",
                self.format
            ));
        }
        Ok(())
    }
}

/// The purpose of a connection, which is its second frame.
#[derive(Serialize, Deserialize)]
pub enum Purpose {
    /// From the client: open a session.
    Open(Box<Open>),
    /// From a party: this connection will carry its messages of a session.
    Link(Hello),
    /// From anybody known: tell how you are.
    Health,
}

/// A session as its client wants it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Open {
    /// The number of the session, drawn by the client.
    pub session: SessionId,
    /// The specification that the session trains.
    pub spec: TrainSpec,
    /// A fixed seed for the parties' streams: repeatable and insecure.
    pub seed: Option<u64>,
    /// How long a party waits for a message.
    pub deadline: Duration,
    /// Where the parties are, for those that were not told otherwise.
    pub addresses: [String; 3],
}

impl Open {
    /// The digest of everything that the parties must agree on: versions, specification (sizes, head, rounding, number
    /// format, optimiser), whether there is a fixed seed, the deadline.
    pub fn digest(&self) -> [u8; 32] {
        let seeded = self.seed.is_some();
        let text = format!("{FORMAT} {PROGRAM} {:?} {seeded} {:?}", self.spec, self.deadline);
        Sha256::digest(text).into()
    }
}

/// A party's first words to its neighbour.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Hello {
    /// The session that the connection belongs to.
    pub session: SessionId,
    /// The party that connects.
    pub from: PartyId,
    /// The party that is to be reached.
    pub to: PartyId,
    /// The digest of the session as this party was told of it.
    pub digest: [u8; 32],
}

/// The answer of a party to the purpose of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The party accepts the purpose.
    Welcome,
    /// The party refuses, for this reason.
    Refused(String),
    /// The state of the party.
    Status(Status),
}

/// The state of a party, for whoever asks after its health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The party that tells its state.
    pub party: PartyId,
    /// Sessions that are open.
    pub sessions: usize,
    /// Sessions that ended.
    pub ended: u64,
    /// The sessions among `ended` that ended by a failure.
    pub failed: u64,
    /// Seconds since it was started.
    pub seconds: u64,
}

/// A message from a party to the client within a session.
#[derive(Serialize, Deserialize)]
pub enum FromParty {
    /// It works on; its rounds so far.
    Alive(u64),
    /// The answer to a job.
    Answer(Box<Result<Answer>>),
}

/// Sends a value as one frame.
///
/// # Errors
/// The connection's.
pub fn send(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut bytes = postcard::to_extend(value, vec![0; 4]).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

/// Receives a value of at most `most` bytes.
///
/// # Errors
/// The connection's; [`io::ErrorKind::InvalidData`] for what is no such value.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, most: usize) -> io::Result<T> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(invalid(format!("a frame of {length} bytes; {most} are the most")));
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (value, rest) = postcard::take_from_bytes(&bytes).map_err(|_| invalid("a frame that means nothing".into()))?;
    if rest.is_empty() { Ok(value) } else { Err(invalid("a frame with more than its value".into())) }
}
