//! Connections that know who is at the other end: TLS 1.3 with a certificate on both sides, each certificate issued by
//! one authority and pinned, by the SHA-256 of its bytes, to one party or to the client.
//!
//! A connection is set up within a given time or not at all, so that a stranger who connects and says nothing occupies
//! a thread for seconds and nobody waits for it. Errors never contain keys or certificates.

use crate::id::PartyId;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest, Sha256};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// SHA-256 of a certificate in DER.
pub type Fingerprint = [u8; 32];

/// Who can be at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A party.
    Party(PartyId),
    /// The client.
    Client,
}

impl Peer {
    /// The name in its certificate.
    pub fn name(self) -> String {
        match self {
            Peer::Party(id) => format!("party{id}.difftest"),
            Peer::Client => "client.difftest".to_owned(),
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Party(id) => write!(f, "party {id}"),
            Peer::Client => f.write_str("the client"),
        }
    }
}

/// Which certificate belongs to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// Of the parties, in order.
    pub parties: [Fingerprint; 3],
    /// Of the client.
    pub client: Fingerprint,
}

impl Pins {
    fn of(&self, certificate: &CertificateDer<'_>) -> Option<Peer> {
        let found = fingerprint(certificate);
        if found == self.client {
            return Some(Peer::Client);
        }
        PartyId::ALL.into_iter().find(|id| self.parties[id.index()] == found).map(Peer::Party)
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Sha256::digest(certificate).into()
}

/// The fingerprint of the first certificate in a PEM text.
///
/// # Errors
/// There is none.
pub fn fingerprint_of_pem(pem: &str) -> Result<Fingerprint, String> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| "holds no certificate".to_owned())?;
    Ok(fingerprint(&certificate))
}

/// The credentials with which one end connects and is connected to: its key and certificate, the authority, and the
/// pins.
#[derive(Clone)]
pub struct Credentials {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    pins: Pins,
}

impl Credentials {
    /// From PEM texts: the authority's certificate, one's own certificate and key.
    ///
    /// # Errors
    /// A text that does not hold what it should; a key that does not belong to the certificate.
    pub fn new(authority: &str, certificate: &str, key: &str, pins: Pins) -> Result<Self, String> {
        let authority = CertificateDer::from_pem_slice(authority.as_bytes())
            .map_err(|_| "the authority's file holds no certificate")?;
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|_| "the certificate's file holds no certificate")?;
        let key = || {
            PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| "the key's file holds no private key".to_owned())
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|_| "the authority's certificate cannot be used as one")?;
        let roots = Arc::new(roots);
        let mut provider = rustls::crypto::ring::default_provider();
        // Keys of 128 bits, as the parties' streams have, before longer ones: every byte is encrypted and decrypted.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider = Arc::new(provider);
        let only = &[&rustls::version::TLS13];
        let unfit = "the certificate and the key do not belong together";
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|_| "the authority's certificate cannot be used as one")?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(only)
            .map_err(|_| "TLS 1.3 is not available")?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.clone()], key()?)
            .map_err(|_| unfit)?;
        // Nothing but what is sent here may lie unread in a socket: closing it would tear down what is under way.
        server.send_tls13_tickets = 0;
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(only)
            .map_err(|_| "TLS 1.3 is not available")?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key()?)
            .map_err(|_| unfit)?;
        Ok(Credentials { server: Arc::new(server), client: Arc::new(client), pins })
    }

    /// Connects to `peer` at `address` ("host:port") within `time`.
    ///
    /// # Errors
    /// Nobody there, or somebody else.
    pub fn dial(&self, peer: Peer, address: &str, time: Duration) -> io::Result<TlsStream> {
        let until = Instant::now() + time;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(socket) => {
                    let name = ServerName::try_from(peer.name()).map_err(io::Error::other)?;
                    let session = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
                    let stream = self.shake_hands(Session::Client(session), socket, until)?;
                    if stream.peer != peer {
                        let met = stream.peer;
                        return Err(invalid(format!("expected {peer}, met the certificate of {met}")));
                    }
                    return Ok(stream);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Finds out within `time` who has connected.
    ///
    /// # Errors
    /// A stranger.
    pub fn accept(&self, socket: TcpStream, time: Duration) -> io::Result<TlsStream> {
        let session = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        self.shake_hands(Session::Server(session), socket, Instant::now() + time)
    }

    fn shake_hands(&self, mut session: Session, socket: TcpStream, until: Instant) -> io::Result<TlsStream> {
        socket.set_nodelay(true)?;
        let mut counted = Counted { socket: BufReader::with_capacity(READ_AHEAD, socket), written: Arc::default() };
        loop {
            let common: &mut dyn Handshake = match &mut session {
                Session::Client(s) => s,
                Session::Server(s) => s,
            };
            if common.writes() {
                counted.socket.get_ref().set_write_timeout(Some(left(until)?))?;
                common.write_to(&mut counted)?;
            } else if common.ongoing() {
                counted.socket.get_ref().set_read_timeout(Some(left(until)?))?;
                match common.read_from(&mut counted) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) => {}
                    Err(e) => {
                        // The alert that tells the other end why.
                        let _ = common.write_to(&mut counted);
                        return Err(e);
                    }
                }
            } else {
                break;
            }
        }
        let certificate = match &session {
            Session::Client(s) => s.peer_certificates(),
            Session::Server(s) => s.peer_certificates(),
        };
        let pinned = certificate.and_then(|chain| self.pins.of(chain.first()?));
        let peer = pinned.ok_or_else(|| invalid("its certificate is pinned to nobody".into()))?;
        let (socket, written) = (counted.socket.get_ref().try_clone()?, Arc::clone(&counted.written));
        let io: Box<dyn ReadWrite> = match session {
            Session::Client(mut s) => {
                s.set_buffer_limit(Some(WRITE_AHEAD));
                Box::new(StreamOwned::new(s, counted))
            }
            Session::Server(mut s) => {
                s.set_buffer_limit(Some(WRITE_AHEAD));
                Box::new(StreamOwned::new(s, counted))
            }
        };
        let stream = TlsStream { io, socket, peer, written };
        stream.wait(None, None)?;
        Ok(stream)
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

enum Session {
    Client(ClientConnection),
    Server(ServerConnection),
}

/// What a handshake needs of either end.
trait Handshake {
    fn ongoing(&self) -> bool;
    fn writes(&self) -> bool;
    fn write_to(&mut self, to: &mut dyn Write) -> io::Result<usize>;
    fn read_from(&mut self, from: &mut dyn Read) -> io::Result<usize>;
}

impl<S: rustls::SideData, C: std::ops::DerefMut<Target = rustls::ConnectionCommon<S>>> Handshake for C {
    fn ongoing(&self) -> bool {
        self.is_handshaking()
    }

    fn writes(&self) -> bool {
        self.wants_write()
    }

    fn write_to(&mut self, mut to: &mut dyn Write) -> io::Result<usize> {
        self.write_tls(&mut to)
    }

    fn read_from(&mut self, mut from: &mut dyn Read) -> io::Result<usize> {
        let read = self.read_tls(&mut from)?;
        self.process_new_packets().map_err(|e| invalid(e.to_string()))?;
        Ok(read)
    }
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// Bytes that are taken from a socket at a time, if there are so many: rustls itself asks for 4 KiB, a call of the
/// system each.
const READ_AHEAD: usize = 1 << 17;

/// Bytes that are encrypted before they are handed to the socket: rustls itself takes 64 KiB at a time.
const WRITE_AHEAD: usize = 1 << 18;

/// A socket that counts the bytes written to it, TLS included.
struct Counted {
    socket: BufReader<TcpStream>,
    written: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.socket.get_mut().write(bytes)?;
        self.written.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    /// All records of a message in one call of the system, where they fit.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let n = self.socket.get_mut().write_vectored(pieces)?;
        self.written.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.get_mut().flush()
    }
}

/// A connection whose other end is known.
pub struct TlsStream {
    io: Box<dyn ReadWrite>,
    socket: TcpStream,
    peer: Peer,
    written: Arc<AtomicU64>,
}

impl TlsStream {
    /// Who is at the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// How long a read and a write wait from here on; `None`: for ever.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(read)?;
        self.socket.set_write_timeout(write)
    }

    /// Bytes written to the socket, TLS and handshake included, as a counter that outlives the stream.
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Something with which another thread can end this connection.
    ///
    /// # Errors
    /// The system's.
    pub fn closer(&self) -> io::Result<Closer> {
        self.socket.try_clone().map(Closer)
    }

    /// Makes every read and write return at once, with [`io::ErrorKind::WouldBlock`] where they would wait, or makes
    /// them wait again.
    ///
    /// # Errors
    /// The system's.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// Ends the writing half in order: what was written arrives.
    pub fn finish(&mut self) {
        let _ = self.io.flush();
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl super::sockets::Connection for TlsStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.read(buffer)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.io.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.io.flush()
    }
}

/// Ends a connection from another thread.
pub struct Closer(TcpStream);

impl Closer {
    /// Ends the reading half: who waits for something to read returns.
    pub fn stop_reading(&self) {
        let _ = self.0.shutdown(Shutdown::Read);
    }

    /// Ends it: who reads or writes returns.
    pub fn close(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
