//! The client's connections to three parties in processes of their own.

use super::link::Link;
use super::worker::{Answer, Job};
use super::{Engine, EngineConfig};
use crate::control::{FromParty, LONG, Open, Preamble, Purpose, Reply, SHORT, Status, receive, send};
use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::net::tls::{Credentials, Peer, TlsStream};
use std::io;
use std::time::{Duration, Instant};

/// Where three parties are, and how the client shows them who it is.
#[derive(Clone)]
pub struct Hosts {
    /// "host:port" of each.
    pub addresses: [String; 3],
    /// The client's key and certificate, and whose certificates are whose.
    pub credentials: Credentials,
    /// How long a connection may take.
    pub patience: Duration,
}

impl Hosts {
    /// Opens a session at all three parties.
    ///
    /// # Errors
    /// A specification that cannot be carried out; a party that cannot be reached, is another than expected, or
    /// refuses.
    pub fn start(&self, config: &EngineConfig) -> Result<Engine> {
        config.spec.validate().map_err(|e| Error::misuse(e.to_string()))?;
        let mut session = [0; 16];
        getrandom::fill(&mut session)
            .map_err(|e| Error::misuse(format!("the operating system gives no randomness: {e}")))?;
        let open = Open {
            session,
            spec: config.spec.clone(),
            seed: config.seed,
            deadline: config.deadline,
            addresses: self.addresses.clone(),
        };
        let mut links = Vec::new();
        for party in PartyId::ALL {
            // Before anything runs, a party that is not there or refuses is the caller's to put right.
            let reached = self.reach(party, Purpose::Open(Box::new(open.clone())));
            let stream = reached.map_err(|e| Error::misuse(e.to_string()))?;
            let (deadline, waits) = (config.deadline, self.patience);
            links.push(Box::new(RemoteLink { party, stream, deadline, waits, lost: None }) as Box<dyn Link>);
        }
        let links = links.try_into().map_err(|_| Error::misuse("three parties answer"))?;
        Engine::connect(config.spec.clone(), config.seed, config.record, links)
    }

    fn reach(&self, party: PartyId, purpose: Purpose) -> Result<TlsStream> {
        let address = &self.addresses[party.index()];
        let lost = |e: io::Error| lost(party, &format!("cannot be reached at {address}: {}", told(&e)));
        let mut stream = self.credentials.dial(Peer::Party(party), address, self.patience).map_err(lost)?;
        stream.wait(Some(self.patience), Some(self.patience)).map_err(lost)?;
        match ask(&mut stream, &purpose).map_err(lost)? {
            Reply::Welcome => Ok(stream),
            Reply::Refused(why) => {
                Err(Error::PartyLost { party, how: format!("refuses the session: {}", printable(&why)) })
            }
            Reply::Status(_) => Err(Error::PartyLost { party, how: "answers something else".into() }),
        }
    }
}

/// Asks a party how it is.
///
/// # Errors
/// It cannot be reached, or is somebody else.
pub fn health(credentials: &Credentials, party: PartyId, address: &str, patience: Duration) -> Result<Status> {
    let lost = |e: io::Error| lost(party, &format!("cannot be reached at {address}: {}", told(&e)));
    let mut stream = credentials.dial(Peer::Party(party), address, patience).map_err(lost)?;
    stream.wait(Some(patience), Some(patience)).map_err(lost)?;
    match ask(&mut stream, &Purpose::Health).map_err(lost)? {
        Reply::Status(status) => Ok(status),
        Reply::Welcome | Reply::Refused(_) => Err(Error::PartyLost { party, how: "does not tell how it is".into() }),
    }
}

/// Says what a connection is for and waits for the reply.
pub(crate) fn ask(stream: &mut TlsStream, purpose: &Purpose) -> io::Result<Reply> {
    send(stream, &Preamble::own())?;
    send(stream, purpose)?;
    receive(stream, SHORT)
}

fn lost(party: PartyId, how: &str) -> Error {
    Error::PartyLost { party, how: how.to_owned() }
}

/// What an error of a connection means.
pub(crate) fn told(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => "it ended the connection".into(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".into(),
        io::ErrorKind::ConnectionRefused => "nothing listens there".into(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "it broke the connection off".into(),
        _ => printable(&e.to_string()),
    }
}

/// What a peer sent, fit for one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

/// The connection to one party.
struct RemoteLink {
    party: PartyId,
    stream: TlsStream,
    deadline: Duration,
    /// How long the stream waits for a sign of life: at first for the parties to connect to one another.
    waits: Duration,
    /// Why nothing can be asked any more.
    lost: Option<Error>,
}

impl Link for RemoteLink {
    fn ask(&mut self, job: Job) {
        if self.lost.is_none() {
            // A party that reads nothing for so long is as good as gone.
            self.waits = 2 * self.deadline;
            let sent = self.stream.wait(Some(self.waits), Some(self.waits));
            let sent = sent.and_then(|()| send(&mut self.stream, &job));
            self.lost = sent.err().map(|e| lost(self.party, &format!("took no job: {}", told(&e))));
        }
    }

    fn answer(&mut self) -> Result<Answer> {
        // What it said before it was lost tells more.
        let (party, patience) = (self.party, 2 * self.deadline);
        let mut last = (0, Instant::now());
        loop {
            match receive(&mut self.stream, LONG) {
                Ok(FromParty::Answer(answer)) => {
                    return match self.lost.take() {
                        Some(e) if answer.is_ok() => Err(e),
                        _ => *answer,
                    };
                }
                Ok(FromParty::Alive(rounds)) if rounds != last.0 => last = (rounds, Instant::now()),
                Ok(FromParty::Alive(_)) if last.1.elapsed() < patience => {}
                Ok(FromParty::Alive(_)) => return Err(Error::PartyLate { party, seconds: patience.as_secs() }),
                Err(e) => {
                    let how = match e.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                            format!("gave no sign of life for {:.0} s", self.waits.as_secs_f64())
                        }
                        _ => format!("left without an answer: {}", told(&e)),
                    };
                    return Err(self.lost.take().unwrap_or_else(|| lost(party, &how)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_means_is_told_in_one_line() {
        use io::ErrorKind::{
            BrokenPipe, ConnectionRefused, ConnectionReset, InvalidData, TimedOut, UnexpectedEof, WouldBlock,
        };
        let of = |kinds: &[io::ErrorKind]| kinds.iter().map(|&k| told(&k.into())).collect::<Vec<_>>();
        assert_eq!(of(&[UnexpectedEof]), ["it ended the connection"]);
        assert_eq!(of(&[WouldBlock, TimedOut]), ["it does not answer"; 2]);
        assert_eq!(of(&[ConnectionRefused]), ["nothing listens there"]);
        assert_eq!(of(&[ConnectionReset, BrokenPipe]), ["it broke the connection off"; 2]);
        let long = format!("a\nb{}", "c".repeat(1000));
        let other = told(&io::Error::new(InvalidData, long));
        assert_eq!(other, format!("a b{}", "c".repeat(497)));
    }
}
