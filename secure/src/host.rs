//! A party as a process: it listens, lets in whom it knows, and runs its share of each session.
//!
//! One thread accepts. Every connection has a thread of its own that finds out within seconds who is there; strangers
//! end with one line in the log. The client's connection opens a session and carries its jobs; two connections come
//! from the neighbours and two go to them, each used in one direction by the party's own thread
//! ([`crate::net::sockets`]).

use crate::control::{FromParty, Hello, LONG, Open, Preamble, Purpose, Reply, SHORT, Status, receive, send};
use crate::engine::remote::{ask, printable, told};
use crate::engine::state::{StateFolder, spec_digest};
use crate::engine::worker::{Answer, Job};
use crate::engine::{Terms, keep_freed_memory, party_seed, run_party};
use crate::error::{Error, Result};
use crate::id::{Neighbour, PartyId};
use crate::net::checked::CheckedChannel;
use crate::net::ends::{Ends, Stopped};
use crate::net::frame::{SessionId, Wire};
use crate::net::sockets::Sockets;
use crate::net::tls::{Closer, Credentials, Peer, TlsStream};
use crate::pool::Pool;
use std::collections::HashMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a party is run.
pub struct HostConfig {
    /// Which party.
    pub id: PartyId,
    /// Its key and certificate, and whose certificates are whose.
    pub credentials: Credentials,
    /// Where the other parties are, in order; an entry that is missing is taken from the client.
    pub addresses: [Option<String>; 3],
    /// Threads that share the work of the matrix products of one session.
    pub threads: usize,
    /// Sessions that may be open at a time.
    pub sessions: usize,
    /// Hand out probes and views of coins where the client asks.
    pub record: bool,
    /// Let the client fix the seed of this party's stream.
    pub insecure_seeds: bool,
    /// The folder in which it keeps states of runs.
    pub states: Option<PathBuf>,
    /// How long a connection may take to say what it is for, and a neighbour to join a session.
    pub patience: Duration,
    /// How long a session without a job stays open.
    pub idle: Duration,
    /// Receives one structured line at a time.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Connections that have not yet said who they are, at a time: more are turned away.
const STRANGERS: usize = 64;

/// How often a party that works tells its client that it lives.
const ALIVE: Duration = Duration::from_millis(500);

/// A running party.
pub struct Host {
    config: HostConfig,
    sessions: Mutex<HashMap<SessionId, Entry>>,
    changed: Condvar,
    strangers: AtomicUsize,
    ended: AtomicU64,
    failed: AtomicU64,
    started: Instant,
}

/// A session that waits for its neighbours, or has them.
struct Entry {
    digest: [u8; 32],
    incoming: [Incoming; 2],
}

#[derive(Default)]
enum Incoming {
    #[default]
    Awaited,
    Here(TlsStream),
    Taken,
}

impl Host {
    /// A party that does not listen yet.
    pub fn new(config: HostConfig) -> Arc<Self> {
        keep_freed_memory();
        Arc::new(Host {
            config,
            sessions: Mutex::default(),
            changed: Condvar::new(),
            strangers: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// Accepts connections until `stop` is set and one more connection has come, or the listener fails.
    ///
    /// # Errors
    /// The listener's.
    pub fn serve(self: &Arc<Self>, listener: &TcpListener, stop: &AtomicBool) -> io::Result<()> {
        loop {
            let (socket, from) = match listener.accept() {
                Ok(accepted) => accepted,
                // A connection that was gone before it was accepted, or too many open files for the moment.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted || e.raw_os_error() == Some(24) => {
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                }
                Err(e) => return Err(e),
            };
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            if self.strangers.fetch_add(1, Ordering::SeqCst) >= STRANGERS {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
                self.log(&format!("event=refused from={from} why=\"too many connections at once\""));
                continue;
            }
            let host = Arc::clone(self);
            let spawned = std::thread::Builder::new().name("connection".into()).spawn(move || {
                let known = host.config.credentials.accept(socket, host.config.patience);
                let admitted = known.and_then(|stream| host.admit(stream));
                host.strangers.fetch_sub(1, Ordering::SeqCst);
                match admitted {
                    Ok(Some((open, stream))) => host.session(&open, stream),
                    Ok(None) => {}
                    Err(e) => host.log(&format!("event=refused from={from} why={:?}", told(&e))),
                }
            });
            if spawned.is_err() {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    fn log(&self, line: &str) {
        (self.config.log)(&format!("party={} {line}", self.config.id));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what a known peer wants, and does it but for a session, which it hands back.
    fn admit(&self, mut stream: TlsStream) -> io::Result<Option<(Box<Open>, TlsStream)>> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        stream.wait(Some(self.config.patience), Some(self.config.patience))?;
        let peer = stream.peer();
        let preamble: Preamble = receive(&mut stream, SHORT)?;
        if let Err(why) = preamble.check() {
            let why = format!("{peer} {why}");
            let _ = send(&mut stream, &Reply::Refused(why.clone()));
            return Err(invalid(why));
        }
        let why = match (receive(&mut stream, SHORT)?, peer) {
            (Purpose::Health, _) => {
                send(&mut stream, &Reply::Status(self.status()))?;
                return Ok(None);
            }
            (Purpose::Open(open), Peer::Client) => match self.register(&open) {
                Ok(()) => return Ok(Some((open, stream))),
                Err(why) => why,
            },
            (Purpose::Link(hello), Peer::Party(from)) => match self.join(hello, from, &mut stream)? {
                Ok(n) => {
                    self.put(hello.session, n, stream);
                    return Ok(None);
                }
                Err(why) => why,
            },
            (Purpose::Open(_), _) => "only the client opens sessions".into(),
            (Purpose::Link(_), _) => "only parties take part in a session".into(),
        };
        let _ = send(&mut stream, &Reply::Refused(why.clone()));
        Err(invalid(format!("{peer}: {why}")))
    }

    /// How this party is.
    fn status(&self) -> Status {
        Status {
            party: self.config.id,
            sessions: self.lock().len(),
            ended: self.ended.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            seconds: self.started.elapsed().as_secs(),
        }
    }

    fn register(&self, open: &Open) -> std::result::Result<(), String> {
        open.spec.validate().map_err(|e| e.to_string())?;
        if open.seed.is_some() && !self.config.insecure_seeds {
            return Err("this party takes no seed from the client; set insecure_seeds = true for tests".into());
        }
        let mut sessions = self.lock();
        if sessions.contains_key(&open.session) {
            return Err("this session is open already".into());
        }
        if sessions.len() >= self.config.sessions {
            return Err(format!("{} sessions are open, as many as it takes", sessions.len()));
        }
        sessions.insert(open.session, Entry { digest: open.digest(), incoming: Default::default() });
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the session that a neighbour wants to join, and says whether it may.
    fn join(
        &self,
        hello: Hello,
        from: PartyId,
        stream: &mut TlsStream,
    ) -> io::Result<std::result::Result<Neighbour, String>> {
        let me = self.config.id;
        if hello.from != from {
            return Ok(Err(format!("party {from} calls itself party {}", hello.from)));
        }
        let Some(n) = Neighbour::BOTH.into_iter().find(|&n| me.neighbour(n) == from && hello.to == me) else {
            return Ok(Err(format!("party {from} means party {}, this is party {me}", hello.to)));
        };
        let until = Instant::now() + self.config.patience;
        let mut sessions = self.lock();
        let entry = loop {
            if sessions.contains_key(&hello.session) {
                break sessions.get_mut(&hello.session);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break None;
            }
            sessions = self.changed.wait_timeout(sessions, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        let Some(entry) = entry else { return Ok(Err("no client has opened this session here".into())) };
        if entry.digest != hello.digest {
            return Ok(Err("the parties were given different specifications, seeds or deadlines".into()));
        }
        if !matches!(entry.incoming[n as usize], Incoming::Awaited) {
            return Ok(Err(format!("party {from} takes part in this session already")));
        }
        entry.incoming[n as usize] = Incoming::Taken;
        drop(sessions);
        send(stream, &Reply::Welcome)?;
        Ok(Ok(n))
    }

    fn put(&self, session: SessionId, n: Neighbour, stream: TlsStream) {
        if let Some(entry) = self.lock().get_mut(&session) {
            entry.incoming[n as usize] = Incoming::Here(stream);
        }
        self.changed.notify_all();
    }

    /// Waits for the connection from a neighbour.
    fn incoming(&self, session: SessionId, n: Neighbour, until: Instant) -> Result<TlsStream> {
        let mut sessions = self.lock();
        loop {
            let slot = sessions.get_mut(&session).map(|entry| &mut entry.incoming[n as usize]);
            if let Some(slot) = slot
                && matches!(slot, Incoming::Here(_))
                && let Incoming::Here(stream) = std::mem::replace(slot, Incoming::Taken)
            {
                return Ok(stream);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("party {} has not joined the session", self.config.id.neighbour(n));
                return Err(Error::PeerLate { party: self.config.id, step: "set-up".into(), what });
            }
            sessions = self.changed.wait_timeout(sessions, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Connects to a neighbour for a session, which may not listen yet.
    fn outgoing(&self, open: &Open, n: Neighbour, until: Instant) -> Result<TlsStream> {
        let (me, to) = (self.config.id, self.config.id.neighbour(n));
        let address = self.config.addresses[to.index()].as_ref().unwrap_or(&open.addresses[to.index()]);
        let failed = |how: String| Error::PeerGone {
            party: me,
            step: "set-up".into(),
            what: format!("party {to} at {address}: {how}"),
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let hello = Hello { session: open.session, from: me, to, digest: open.digest() };
            let reached = self.config.credentials.dial(Peer::Party(to), address, left).and_then(|mut stream| {
                stream.wait(Some(left), Some(left))?;
                Ok((ask(&mut stream, &Purpose::Link(hello))?, stream))
            });
            match reached {
                Ok((Reply::Welcome, stream)) => return Ok(stream),
                Ok((Reply::Refused(why), _)) => return Err(failed(format!("refuses: {}", printable(&why)))),
                Ok((Reply::Status(_), _)) => return Err(failed("answers something else".into())),
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(e) => return Err(failed(told(&e))),
            }
        }
    }

    /// A session from its first connection to its last thread.
    fn session(self: &Arc<Self>, open: &Open, mut client: TlsStream) {
        let name = format!("session={}", hex(&open.session[..6]));
        let spec = &open.spec;
        self.log(&format!(
            "{name} event=open head={} rounding={} layers={} batch={} seeded={}",
            spec.head,
            spec.rounding,
            spec.network.layers(),
            spec.sgd.batch,
            open.seed.is_some()
        ));
        let start = Instant::now();
        let ended = send(&mut client, &Reply::Welcome)
            .map_err(|e| Error::misuse(format!("the client left: {}", told(&e))))
            .and_then(|()| self.links(open))
            .map(|links| self.work(open, &mut client, links));
        self.lock().remove(&open.session);
        self.ended.fetch_add(1, Ordering::Relaxed);
        let tail = match ended {
            Ok(done) => {
                self.failed.fetch_add(u64::from(done.failed.is_some()), Ordering::Relaxed);
                let how = done.failed.map_or_else(|| "ok".to_owned(), |why| format!("{why:?}"));
                format!(
                    "jobs={} rounds={} messages={} bytes={} socket_bytes={} waited={:.3} end={how}",
                    done.jobs,
                    done.rounds,
                    done.frames,
                    done.bytes,
                    done.socket_bytes,
                    done.waited.as_secs_f64()
                )
            }
            Err(e) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                let text = e.to_string();
                let _ = send(&mut client, &FromParty::Answer(Box::new(Err(e))));
                format!("end={text:?}")
            }
        };
        client.finish();
        self.log(&format!("{name} event=close seconds={:.3} {tail}", start.elapsed().as_secs_f64()));
    }

    /// The connections of a session: to both neighbours and from both.
    fn links(&self, open: &Open) -> Result<Links> {
        let until = Instant::now() + self.config.patience;
        let to = std::thread::scope(|scope| {
            let dial = |n| move || self.outgoing(open, n, until);
            let [previous, next] = Neighbour::BOTH.map(|n| scope.spawn(dial(n)));
            let ended = |t: std::thread::ScopedJoinHandle<'_, Result<TlsStream>>| {
                t.join().unwrap_or_else(|_| Err(Error::PartyStopped { party: self.config.id }))
            };
            Ok([ended(previous)?, ended(next)?])
        })?;
        let [previous, next] = Neighbour::BOTH.map(|n| self.incoming(open.session, n, until));
        Ok(Links { to, from: [previous?, next?] })
    }

    /// Runs the client's jobs.
    fn work(self: &Arc<Self>, open: &Open, client: &mut TlsStream, links: Links) -> Done {
        let id = self.config.id;
        let wires = match Wires::new(id, open.session, links) {
            Ok(wires) => wires,
            Err(e) => return Done { failed: Some(format!("cannot use its connections: {e}")), ..Done::default() },
        };
        let (jobs, next_job) = channel::<Job>();
        let (give_answer, answers) = channel();
        let progress = Arc::<AtomicU64>::default();
        let terms = Terms {
            id,
            spec: open.spec.clone(),
            pieces: if self.config.threads > 1 { 2 * self.config.threads } else { 1 },
            seed: open.seed.map(|s| party_seed(s, id)),
            progress: Arc::clone(&progress),
            record: self.config.record,
            states: self.config.states.clone().map(|folder| StateFolder::new(folder, id, spec_digest(&open.spec))),
        };
        let channel = CheckedChannel::new(id, Arc::clone(&wires.sockets), open.deadline);
        let body: Box<dyn FnOnce() + Send> = Box::new(move || {
            run_party(
                terms,
                Box::new(channel),
                || next_job.recv().ok(),
                |answer| {
                    let _ = give_answer.send(answer);
                },
            );
        });
        let mut done = Done::default();
        match Pool::start(self.config.threads, vec![(format!("party {id}"), body)]) {
            Err(e) => done.failed = Some(format!("cannot start its threads: {e}")),
            Ok(pool) => {
                done.failed = self.jobs(client, &jobs, &answers, &progress, &mut done);
                drop(jobs);
                if done.failed.is_some() {
                    // Whatever the party waits for will not matter any more.
                    wires.stop_reading();
                    // Nor will what it writes to a neighbour that does not read.
                    if !ends(&answers) {
                        wires.close();
                    }
                }
                drop(pool);
            }
        }
        done.rounds = progress.load(Ordering::Relaxed);
        (done.frames, done.bytes, done.socket_bytes) = wires.end(done.failed.as_deref());
        done
    }

    /// Takes jobs from the client and hands back answers, until the client ends the session or something fails: what.
    fn jobs(
        &self,
        client: &mut TlsStream,
        jobs: &std::sync::mpsc::Sender<Job>,
        answers: &Receiver<Result<Answer>>,
        progress: &AtomicU64,
        done: &mut Done,
    ) -> Option<String> {
        loop {
            // The first answer needs no job: the party is ready.
            let answer = loop {
                match answers.recv_timeout(ALIVE) {
                    Ok(answer) => break answer,
                    Err(RecvTimeoutError::Timeout) => {
                        let alive = FromParty::Alive(progress.load(Ordering::Relaxed));
                        if let Err(e) = send(client, &alive) {
                            return Some(format!("the client left: {}", told(&e)));
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        let stopped = Error::PartyStopped { party: self.config.id };
                        let _ = send(client, &FromParty::Answer(Box::new(Err(stopped.clone()))));
                        return Some(stopped.to_string());
                    }
                }
            };
            let failed = answer.as_ref().err().map(ToString::to_string);
            if let Err(e) = send(client, &FromParty::Answer(Box::new(answer))) {
                return failed.or_else(|| Some(format!("the client left: {}", told(&e))));
            }
            if failed.is_some() {
                return failed;
            }
            let waits = client.wait(Some(self.config.idle), Some(self.config.idle));
            let idle = Instant::now();
            match waits.and_then(|()| receive(client, LONG)) {
                Ok(job) => {
                    done.waited += idle.elapsed();
                    done.jobs += 1;
                    // A party that is gone has closed its answers.
                    let _ = jobs.send(job);
                }
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return None,
                Err(e) => return Some(format!("the client left: {}", told(&e))),
            }
        }
    }
}

/// What a session came to.
#[derive(Default)]
struct Done {
    jobs: u64,
    rounds: u64,
    frames: u64,
    bytes: u64,
    socket_bytes: u64,
    /// Time without a job.
    waited: Duration,
    failed: Option<String>,
}

/// A session's connections to the previous and the next party, and from them.
struct Links {
    to: [TlsStream; 2],
    from: [TlsStream; 2],
}

/// Whether a party is done with its answers within a second.
fn ends(answers: &Receiver<Result<Answer>>) -> bool {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        match answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(_) => {}
            Err(e) => return e == RecvTimeoutError::Disconnected,
        }
    }
}

/// A session's connections between parties. They outlive the party's thread, so that its neighbours are told in order
/// why it leaves.
struct Wires {
    sockets: Arc<Mutex<Sockets<TlsStream>>>,
    to: [Closer; 2],
    from: [Closer; 2],
    wire: Arc<Wire>,
    written: [Arc<AtomicU64>; 2],
}

impl Wires {
    fn new(id: PartyId, session: SessionId, links: Links) -> io::Result<Self> {
        let Links { to, from } = links;
        for stream in to.iter().chain(&from) {
            stream.set_nonblocking(true)?;
        }
        let closers = |[a, b]: [&TlsStream; 2]| io::Result::Ok([a.closer()?, b.closer()?]);
        let (to_closers, from_closers) = (closers(to.each_ref())?, closers(from.each_ref())?);
        let (wire, written) = (Arc::<Wire>::default(), to.each_ref().map(TlsStream::written));
        let sockets = Arc::new(Mutex::new(Sockets::new(id, session, to, from, Arc::clone(&wire))));
        Ok(Wires { sockets, to: to_closers, from: from_closers, wire, written })
    }

    /// Ends the party's waiting: nothing can come any more. What it has to say can still go.
    fn stop_reading(&self) {
        self.from.iter().for_each(Closer::stop_reading);
    }

    /// Ends the connections: who reads or writes returns.
    fn close(&self) {
        self.to.iter().chain(&self.from).for_each(Closer::close);
    }

    /// Tells the neighbours that this party leaves, and why, and ends the connections. What was counted.
    fn end(self, failed: Option<&str>) -> (u64, u64, u64) {
        let why = failed.map_or_else(|| "its client ended the session".to_owned(), ToOwned::to_owned);
        {
            let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            sockets.end(&Stopped::Reason(why));
            sockets.outgoing().for_each(TlsStream::finish);
        }
        self.close();
        let (frames, bytes) = self.wire.read();
        (frames, bytes, self.written.iter().map(|w| w.load(Ordering::Relaxed)).sum())
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Wakes a listener whose `stop` was set.
pub fn wake(listener: &TcpListener) {
    if let Ok(address) = listener.local_addr() {
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}
