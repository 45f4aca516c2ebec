//! Links between processes. The party's own thread writes to two connections and reads from two others, and no other
//! thread stands between: being woken up twice for a message takes longer than most rounds do.
//!
//! No connection blocks. A party that finds no room for what it writes takes what its neighbours have sent meanwhile,
//! so three parties that write to one another at once never wait in a circle.

use super::ends::{Ends, Item, LAST_WORDS, Message, Missing, Stopped, Unsent};
use super::frame::{FrameReader, SessionId, Wire, encode};
use crate::id::{Neighbour, PartyId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a party looks for a message before it sleeps. Between two looks it gives its core away.
const SPINS: usize = 100;

/// How many messages are kept for a party that waits for room; a neighbour that is further ahead waits as well.
const AHEAD: usize = super::queue::AHEAD;

/// A connection that never blocks: what it cannot do at once is [`io::ErrorKind::WouldBlock`].
pub trait Connection: Read + Write + Send {
    /// The socket, to wait for.
    fn socket(&self) -> BorrowedFd<'_>;
}

/// One party's connections to and from its neighbours.
pub struct Sockets<C> {
    to: [Outgoing<C>; 2],
    from: [Incoming<C>; 2],
    sender: PartyId,
    session: SessionId,
    wire: Arc<Wire>,
}

struct Outgoing<C> {
    connection: C,
    /// After half a frame nothing that is written can be understood.
    broken: bool,
    /// The frame that is written.
    bytes: Vec<u8>,
}

struct Incoming<C> {
    connection: C,
    reader: FrameReader,
    /// What came while the party waited for something else.
    early: VecDeque<Item>,
    /// Nothing can follow.
    ended: bool,
}

impl<C: Connection> Sockets<C> {
    /// Party `id`'s connections of a session to and from the previous and the next party. `wire` counts what is sent.
    pub fn new(id: PartyId, session: SessionId, to: [C; 2], from: [C; 2], wire: Arc<Wire>) -> Self {
        let [previous, next] = from;
        let incoming = |connection, n| {
            let reader = FrameReader::new(id.neighbour(n), session);
            Incoming { connection, reader, early: VecDeque::new(), ended: false }
        };
        Sockets {
            to: to.map(|connection| Outgoing { connection, broken: false, bytes: Vec::new() }),
            from: [incoming(previous, Neighbour::Previous), incoming(next, Neighbour::Next)],
            sender: id,
            session,
            wire,
        }
    }

    /// Each connection to a neighbour, for what happens to it at its end.
    pub fn outgoing(&mut self) -> impl Iterator<Item = &mut C> {
        self.to.iter_mut().map(|to| &mut to.connection)
    }

    fn write(&mut self, to: Neighbour, item: &Item, deadline: Duration) -> Result<(), Unsent> {
        let until = Instant::now() + deadline;
        let out = &mut self.to[to as usize];
        if std::mem::replace(&mut out.broken, true) {
            return Err(Unsent::Gone);
        }
        encode(item, self.sender, &self.session, &mut out.bytes);
        let mut written = 0;
        while !self.to[to as usize].write_on(&mut written)? {
            self.from.iter_mut().for_each(Incoming::take_early);
            // Who sends no more reads no more.
            if self.from[to as usize].ended {
                return Err(Unsent::Gone);
            }
            if !self.wait_for_room(to, until) {
                return Err(Unsent::Late);
            }
        }
        self.to[to as usize].broken = false;
        Ok(())
    }

    /// Waits until there is room on the way to a neighbour, or something to take. False after `until`.
    fn wait_for_room(&self, to: Neighbour, until: Instant) -> bool {
        let mut wanted = vec![PollFd::from_borrowed_fd(self.to[to as usize].connection.socket(), PollFlags::OUT)];
        for from in self.from.iter().filter(|from| from.has_room()) {
            wanted.push(PollFd::from_borrowed_fd(from.connection.socket(), PollFlags::IN));
        }
        wait(&mut wanted, until)
    }
}

impl<C: Connection> Outgoing<C> {
    /// Writes on with the frame, of which `written` bytes are on their way. True if there is no more of it.
    fn write_on(&mut self, written: &mut usize) -> Result<bool, Unsent> {
        loop {
            let rest = &self.bytes[*written..];
            let done = if rest.is_empty() { self.connection.flush().map(|()| 0) } else { self.connection.write(rest) };
            match done {
                Ok(0) if rest.is_empty() => return Ok(true),
                Ok(0) => return Err(Unsent::Gone),
                Ok(n) => *written += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Unsent::Gone),
            }
        }
    }
}

impl<C: Connection> Incoming<C> {
    fn has_room(&self) -> bool {
        !self.ended && self.early.len() < AHEAD
    }

    /// Takes what has come, for later.
    fn take_early(&mut self) {
        while self.has_room()
            && let Some(item) = self.read()
        {
            self.early.push_back(item);
        }
    }

    /// The next item, if all of it has come. The last one says why there will be no other.
    fn read(&mut self) -> Option<Item> {
        let item = match self.reader.read(&mut self.connection) {
            Ok(item) => item,
            Err(e) => Item::Stopped(match e.kind() {
                io::ErrorKind::WouldBlock => return None,
                io::ErrorKind::InvalidData => Stopped::Misbehaved(e.to_string()),
                io::ErrorKind::UnexpectedEof => {
                    Stopped::Lost("ended its connection without a reason: its process may be gone".into())
                }
                _ => Stopped::Lost(format!("is not reachable any more: {e}")),
            }),
        };
        self.ended = matches!(item, Item::Stopped(_));
        Some(item)
    }
}

/// Waits for one of these. False after `until`.
fn wait(wanted: &mut [PollFd<'_>], until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let time = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    // A signal may end it early, and an error shows when the connection is used.
    !left.is_zero() && !matches!(poll(wanted, Some(&time)), Ok(0))
}

impl<C: Connection> Ends for Sockets<C> {
    fn put(&mut self, to: Neighbour, message: Message, deadline: Duration) -> Result<(), Unsent> {
        self.write(to, &Item::Message(message), deadline)?;
        self.wire.frames.fetch_add(1, Ordering::Relaxed);
        self.wire.bytes.fetch_add(self.to[to as usize].bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn next(&mut self, from: Neighbour, deadline: Duration) -> Result<Item, Missing> {
        let (until, incoming) = (Instant::now() + deadline, &mut self.from[from as usize]);
        let mut looks = 0;
        loop {
            if let Some(item) = incoming.early.pop_front() {
                return Ok(item);
            }
            if incoming.ended {
                return Err(Missing::Gone);
            }
            if let Some(item) = incoming.read() {
                return Ok(item);
            }
            looks += 1;
            if looks < SPINS {
                std::thread::yield_now();
            } else if !wait(&mut [PollFd::from_borrowed_fd(incoming.connection.socket(), PollFlags::IN)], until) {
                return Err(Missing::Late);
            }
        }
    }

    fn end(&mut self, why: &Stopped) {
        for to in Neighbour::BOTH {
            let _ = self.write(to, &Item::Stopped(why.clone()), LAST_WORDS);
        }
    }
}

/// Connections that outlive their party's channel, so that what runs the party can end them in order.
impl<C: Connection> Ends for Arc<Mutex<Sockets<C>>> {
    fn put(&mut self, to: Neighbour, message: Message, deadline: Duration) -> Result<(), Unsent> {
        self.lock().unwrap_or_else(PoisonError::into_inner).put(to, message, deadline)
    }

    fn next(&mut self, from: Neighbour, deadline: Duration) -> Result<Item, Missing> {
        self.lock().unwrap_or_else(PoisonError::into_inner).next(from, deadline)
    }

    fn end(&mut self, why: &Stopped) {
        self.lock().unwrap_or_else(PoisonError::into_inner).end(why);
    }
}

#[cfg(test)]
mod tests {
    use super::super::checked::CheckedChannel;
    use super::super::checked::tests::{send_words, stops_with_a_reason};
    use super::super::{Channel, Mailboxes, Round, StepList};
    use super::*;
    use crate::buffer::Words;
    use crate::error::Error;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    impl Connection for UnixStream {
        fn socket(&self) -> BorrowedFd<'_> {
            self.as_fd()
        }
    }

    const SESSION: SessionId = [3; 16];

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().unwrap();
        [&a, &b].iter().for_each(|end| end.set_nonblocking(true).unwrap());
        (a, b)
    }

    /// Three parties' channels, and what each has sent.
    fn network(deadline: Duration) -> [(CheckedChannel<Sockets<UnixStream>>, Arc<Wire>); 3] {
        let mut links: Vec<_> = (0..6).map(|_| pair()).map(|(a, b)| (Some(a), Some(b))).collect();
        // Link 2 i leads from party i to the next one, link 2 i + 1 to the previous one.
        PartyId::ALL.map(|id| {
            let (i, next, previous) = (id.index(), id.next().index(), id.previous().index());
            let to = [2 * i + 1, 2 * i].map(|k| links[k].0.take().unwrap());
            let from = [2 * previous, 2 * next + 1].map(|k| links[k].1.take().unwrap());
            let wire = Arc::<Wire>::default();
            let ends = Sockets::new(id, SESSION, to, from, Arc::clone(&wire));
            (CheckedChannel::new(id, ends, deadline), wire)
        })
    }

    #[test]
    fn three_parties_that_send_more_than_fits_at_once_do_not_wait_in_a_circle() {
        const WORDS: usize = 1 << 20;
        let lists = || {
            let mut list = StepList::default();
            list.add("test", WORDS);
            [list; 2]
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let party = |(mut channel, wire): (CheckedChannel<_>, Arc<Wire>)| {
                scope.spawn(move || {
                    let words = |v: usize| (0..WORDS).map(|k| (k + v) as u64).collect::<Words>();
                    let (me, mut incoming) = (channel.id(), Mailboxes::default());
                    for number in 0..3 {
                        let round =
                            Round { number, step: "test", expected: [WORDS; 2], sends: lists(), receives: lists() };
                        let mut outgoing = Mailboxes([words(me.index()), words(me.index())]);
                        channel.exchange(&round, &mut outgoing, &mut incoming).unwrap();
                        for n in Neighbour::BOTH {
                            assert!(incoming[n] == words(me.neighbour(n).index()));
                        }
                    }
                    wire.read()
                })
            };
            let handles = network(Duration::from_secs(60)).map(party);
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert_eq!(all, [(6, 6 * (48 + 8 * WORDS as u64)); 3]);
    }

    #[test]
    fn a_message_that_finds_no_room_is_late_and_nothing_follows_half_a_frame() {
        let [(mut first, wire), (_second, _), _third] = network(Duration::from_millis(20));
        let large = vec![7; 1 << 20];
        let error = send_words(&mut first, 0, &large).unwrap_err();
        assert!(matches!(error, Error::PeerLate { .. }), "{error}");
        assert!(error.to_string().contains("party 1 read nothing"), "{error}");
        let error = send_words(&mut first, 1, &[1]).unwrap_err();
        assert!(matches!(error, Error::PeerGone { .. }), "{error}");
        assert_eq!(wire.read(), (0, 0));
    }

    #[test]
    fn who_stops_tells_its_reason_and_who_vanishes_is_named() {
        let [(first, _), (mut second, _), (third, _)] = network(Duration::from_secs(30));
        stops_with_a_reason(first, &mut second);
        drop(third);
        let large = vec![7; 1 << 20];
        let error = send_words(&mut second, 0, &large).unwrap_err().to_string();
        assert!(error.starts_with("party 1 at test: peer gone: party 2 ended its connection"), "{error}");
    }

    #[test]
    fn noise_and_silence_are_told_apart() {
        let (mut peer, end) = pair();
        let (to, (other, _kept)) = ([pair().0, pair().0], pair());
        let mut sockets = Sockets::new(PartyId::P1, SESSION, to, [end, other], Arc::default());
        let short = Duration::from_millis(5);
        assert_eq!(sockets.next(Neighbour::Previous, short).err(), Some(Missing::Late));
        peer.write_all(&[0xa5; 60]).unwrap();
        let Ok(Item::Stopped(Stopped::Misbehaved(what))) = sockets.next(Neighbour::Previous, short) else {
            panic!("noise")
        };
        assert_eq!(what, "sent a frame of another session");
        assert_eq!(sockets.next(Neighbour::Previous, short).err(), Some(Missing::Gone));
    }

    #[test]
    fn connections_that_outlive_their_channel_carry_the_same() {
        let shared = |(channel, wire): (CheckedChannel<Sockets<UnixStream>>, Arc<Wire>)| {
            let (id, ends) = (channel.id(), Arc::new(Mutex::new(channel.ends)));
            (CheckedChannel::new(id, Arc::clone(&ends), Duration::from_secs(30)), ends, wire)
        };
        let [(first, kept, wire), (mut second, ..), _third] = network(Duration::from_secs(30)).map(shared);
        stops_with_a_reason(first, &mut second);
        assert_eq!(wire.read(), (1, 48 + 8), "the end is no message");
        assert_eq!(kept.lock().unwrap().outgoing().count(), 2);
    }

    /// Party 1's ends, and the other ends: where party 2 reads and where it writes.
    fn between() -> (Sockets<UnixStream>, UnixStream, UnixStream) {
        let [(to, reads), (from, writes), (unused, _)] = [pair(), pair(), pair()];
        [&reads, &writes].iter().for_each(|end| end.set_nonblocking(false).unwrap());
        let sockets = Sockets::new(PartyId::P1, SESSION, [pair().0, to], [unused, from], Arc::default());
        (sockets, reads, writes)
    }

    fn large() -> Message {
        Message { round: 1, steps: 2, words: Words::zeros(1 << 20) }
    }

    /// The neighbour reads only after it has got rid of a message that is larger than a socket.
    #[test]
    fn who_waits_for_room_takes_what_comes() {
        let (mut sockets, mut reads, mut writes) = between();
        let patience = Duration::from_secs(60);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Until then the other end has looked at everything and waits.
                std::thread::sleep(Duration::from_millis(50));
                let mut frame = Vec::new();
                encode(&Item::Message(large()), PartyId::P2, &SESSION, &mut frame);
                writes.write_all(&frame).unwrap();
                reads.read_exact(&mut frame).unwrap();
            });
            sockets.put(Neighbour::Next, large(), patience).unwrap();
        });
        assert!(matches!(sockets.next(Neighbour::Next, patience), Ok(Item::Message(m)) if m.words.len() == 1 << 20));
    }

    #[test]
    fn who_sends_no_more_is_not_waited_for_to_read() {
        let (mut sockets, _reads, writes) = between();
        drop(writes);
        assert_eq!(sockets.put(Neighbour::Next, large(), Duration::from_secs(60)), Err(Unsent::Gone));
        assert_eq!(sockets.from[1].early.len(), 1, "that it ended, once");
    }

    /// A connection on which a signal interrupts every other call, the first reads find nothing, and writing is what a
    /// test makes of it.
    struct Odd {
        stream: UnixStream,
        interrupted: bool,
        empty_reads: usize,
        write: Writing,
    }

    type Writing = fn(&mut UnixStream, &[u8]) -> io::Result<usize>;

    fn odd(stream: UnixStream) -> Odd {
        Odd { stream, interrupted: false, empty_reads: 0, write: |stream, bytes| stream.write(bytes) }
    }

    impl Odd {
        fn signal(&mut self) -> io::Result<()> {
            self.interrupted = !self.interrupted;
            if self.interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        }
    }

    impl Read for Odd {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.signal()?;
            if self.empty_reads > 0 {
                self.empty_reads -= 1;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.stream.read(buffer)
        }
    }

    impl Write for Odd {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.signal()?;
            (self.write)(&mut self.stream, bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.signal()
        }
    }

    impl Connection for Odd {
        fn socket(&self) -> BorrowedFd<'_> {
            self.stream.as_fd()
        }
    }

    fn small() -> Message {
        Message { round: 1, steps: 2, words: [3, 4][..].into() }
    }

    /// A signal interrupts nothing, and who finds nothing for many looks waits until there is something.
    #[test]
    fn what_comes_after_a_while_is_waited_for() {
        let [(a, b), (c, d)] = [pair(), pair()];
        let other = || odd(pair().0);
        let ends = |id, to, from| Sockets::new(id, SESSION, to, from, Arc::default());
        let mut first = ends(PartyId::P0, [other(), odd(a)], [other(), odd(c)]);
        let late = Odd { empty_reads: 3 * SPINS, ..odd(b) };
        let mut second = ends(PartyId::P1, [odd(d), other()], [late, other()]);
        let patience = Duration::from_secs(60);
        first.put(Neighbour::Next, small(), patience).unwrap();
        assert!(matches!(second.next(Neighbour::Previous, patience), Ok(Item::Message(m)) if *m.words == [3, 4]));
    }

    #[test]
    fn a_connection_that_takes_nothing_more_is_gone() {
        let writes: [Writing; 2] = [|_, _| Ok(0), |_, _| Err(io::ErrorKind::BrokenPipe.into())];
        for write in writes {
            let [(a, _a), (b, _b), (c, _c), (d, _d)] = [pair(), pair(), pair(), pair()];
            let to = [odd(a), Odd { write, ..odd(b) }];
            let mut ends = Sockets::new(PartyId::P1, SESSION, to, [odd(c), odd(d)], Arc::default());
            assert_eq!(ends.put(Neighbour::Next, small(), Duration::from_secs(60)), Err(Unsent::Gone));
        }
    }

    #[test]
    fn no_more_is_taken_early_than_there_is_room_for() {
        let (mut sockets, _reads, mut writes) = between();
        let mut frame = Vec::new();
        encode(&Item::Message(small()), PartyId::P2, &SESSION, &mut frame);
        (0..AHEAD + 10).for_each(|_| writes.write_all(&frame).unwrap());
        assert_eq!(sockets.put(Neighbour::Next, large(), Duration::from_millis(1)), Err(Unsent::Late));
        assert_eq!(sockets.from[1].early.len(), AHEAD);
    }
}
