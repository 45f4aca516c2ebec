//! What travels between two parties: frames of a fixed header and whole words, who writes them to a connection, and the
//! threads that move them from connections to queues.
//!
//! header, 48 bytes, numbers lowest byte first: kind (u32: 1 a message, 2 the end), sender (u32), session (16 bytes),
//! round (u64), digest of the list of steps (u64), words (u64). A message is followed by its words, lowest byte first;
//! the end by its reason, in as many words as it takes. A frame that names another session or sender, an unknown kind
//! or an impossible length is refused and ends the connection; round, digest and length are compared with what the
//! receiver expects where it expects it ([`queue`](super::queue)).

use super::queue::{Item, Message, Outbox, Sender, Stopped, Unsent};
use crate::buffer::Words;
use crate::id::PartyId;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of one session, drawn by its client.
pub type SessionId = [u8; 16];

/// Bytes of a header.
pub const HEADER: usize = 48;

/// Words of the longest frame: 2 GiB.
const LONGEST: u64 = 1 << 28;

const MESSAGE: u32 = 1;
const END: u32 = 2;

/// What went over the connections of one party.
#[derive(Debug, Default)]
pub struct Wire {
    /// Messages.
    pub frames: AtomicU64,
    /// Bytes of frames, headers included.
    pub bytes: AtomicU64,
}

fn header(kind: u32, sender: PartyId, session: &SessionId, round: u64, steps: u64, words: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..4].copy_from_slice(&kind.to_le_bytes());
    out[4..8].copy_from_slice(&(sender.index() as u32).to_le_bytes());
    out[8..24].copy_from_slice(session);
    out[24..32].copy_from_slice(&round.to_le_bytes());
    out[32..40].copy_from_slice(&steps.to_le_bytes());
    out[40..].copy_from_slice(&words.to_le_bytes());
    out
}

/// Writes one item as a frame into `out`, which is emptied before.
pub fn encode(item: &Item, sender: PartyId, session: &SessionId, out: &mut Vec<u8>) {
    out.clear();
    match item {
        Item::Message(Message { round, steps, words }) => {
            out.extend_from_slice(&header(MESSAGE, sender, session, *round, *steps, words.len() as u64));
            out.resize(HEADER + 8 * words.len(), 0);
            let places = out[HEADER..].as_chunks_mut::<8>().0;
            places.iter_mut().zip(&**words).for_each(|(place, word)| *place = word.to_le_bytes());
        }
        Item::Stopped(why) => {
            let (Stopped::Reason(text) | Stopped::Lost(text) | Stopped::Misbehaved(text)) = why;
            let text = &text.as_bytes()[..text.len().min(MOST_REASON)];
            let words = text.len().div_ceil(8);
            out.extend_from_slice(&header(END, sender, session, 0, 0, words as u64));
            out.extend_from_slice(text);
            out.resize(HEADER + 8 * words, 0);
        }
    }
}

/// Bytes of the longest reason.
const MOST_REASON: usize = 2048;

/// Reads one frame from `sender` of `session`. Words arrive in pieces, so that a length that was made up takes no
/// memory.
///
/// # Errors
/// The connection's; [`io::ErrorKind::InvalidData`] for a frame that cannot be right.
pub fn decode(from: &mut impl Read, sender: PartyId, session: &SessionId, piece: &mut Vec<u8>) -> io::Result<Item> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut head = [0; HEADER];
    from.read_exact(&mut head)?;
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let (kind, words) = (u32_at(0), u64_at(40));
    if head[8..24] != session[..] {
        return Err(invalid("sent a frame of another session".into()));
    }
    if u32_at(4) != sender.index() as u32 {
        return Err(invalid(format!("sent a frame in the name of party {}", u32_at(4))));
    }
    let most = match kind {
        MESSAGE => LONGEST,
        END => (MOST_REASON / 8) as u64,
        _ => return Err(invalid(format!("sent a frame of kind {kind}"))),
    };
    if words > most {
        return Err(invalid(format!("sent a frame of {words} words; {most} are the most")));
    }
    const PIECE: usize = 1 << 13;
    let mut got = Words::with_capacity((words as usize).min(PIECE));
    while (got.len() as u64) < words {
        let n = (words as usize - got.len()).min(PIECE);
        piece.resize(8 * n, 0);
        from.read_exact(piece)?;
        got.extend(piece.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)));
    }
    if kind == MESSAGE {
        return Ok(Item::Message(Message { round: u64_at(24), steps: u64_at(32), words: got }));
    }
    let bytes: Vec<u8> = got.iter().flat_map(|w| w.to_le_bytes()).take_while(|&b| b != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    // What a peer sends is printed: on one line, whatever it holds.
    Ok(Item::Stopped(Stopped::Reason(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())))
}

/// How long the last words of a party may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection that a writer can be given time for.
pub trait Patient: Write + Send {
    /// How long a write waits from here on.
    ///
    /// # Errors
    /// The system's.
    fn patience(&mut self, time: Duration) -> io::Result<()>;
}

/// The writing end of a connection to a neighbour. A message is one frame and one flush. Clones write to the same
/// connection.
pub struct FrameWriter<W>(Arc<Mutex<Writing<W>>>);

struct Writing<W> {
    to: W,
    sender: PartyId,
    session: SessionId,
    wire: Arc<Wire>,
    /// The frame that is written.
    bytes: Vec<u8>,
    patience: Duration,
    /// After half a frame nothing that is written can be understood.
    broken: bool,
}

impl<W> Clone for FrameWriter<W> {
    fn clone(&self) -> Self {
        FrameWriter(Arc::clone(&self.0))
    }
}

impl<W: Patient> FrameWriter<W> {
    /// A writer for `sender`, which counts what it writes in `wire`.
    pub fn new(to: W, sender: PartyId, session: SessionId, wire: Arc<Wire>) -> Self {
        let (bytes, patience, broken) = (Vec::new(), Duration::ZERO, false);
        FrameWriter(Arc::new(Mutex::new(Writing { to, sender, session, wire, bytes, patience, broken })))
    }

    /// The connection itself.
    pub fn with<T>(&self, use_it: impl FnOnce(&mut W) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).to)
    }

    fn write(&self, item: &Item, patience: Duration) -> io::Result<()> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let w = &mut *guard;
        if w.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        w.broken = true;
        if w.patience != patience {
            w.to.patience(patience)?;
            w.patience = patience;
        }
        encode(item, w.sender, &w.session, &mut w.bytes);
        w.to.write_all(&w.bytes)?;
        w.to.flush()?;
        w.broken = false;
        if let Item::Message(_) = item {
            w.wire.frames.fetch_add(1, Ordering::Relaxed);
            w.wire.bytes.fetch_add(w.bytes.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl<W: Patient> Outbox for FrameWriter<W> {
    fn put(&mut self, message: Message, deadline: Duration) -> std::result::Result<(), Unsent> {
        self.write(&Item::Message(message), deadline).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Unsent::Late,
            _ => Unsent::Gone,
        })
    }

    fn end(&mut self, why: Stopped) {
        let _ = self.write(&Item::Stopped(why), LAST_WORDS);
    }
}

/// Moves items from a connection to a queue until either ends. The queue's last item says why.
pub fn pump_in(from: &mut impl Read, items: &Sender, sender: PartyId, session: &SessionId) {
    let mut piece = Vec::new();
    loop {
        let item = match decode(from, sender, session, &mut piece) {
            Ok(item) => item,
            Err(e) if e.kind() == io::ErrorKind::InvalidData => Item::Stopped(Stopped::Misbehaved(e.to_string())),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Item::Stopped(Stopped::Lost("ended its connection without a reason: its process may be gone".into()))
            }
            Err(e) => Item::Stopped(Stopped::Lost(format!("is not reachable any more: {e}"))),
        };
        let last = matches!(item, Item::Stopped(_));
        if items.send(item).is_err() || last {
            return;
        }
    }
}

/// Both counters, for a log line.
impl Wire {
    /// Frames and bytes so far.
    pub fn read(self: &Arc<Self>) -> (u64, u64) {
        (self.frames.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SESSION: SessionId = [9; 16];

    fn bytes(item: &Item) -> Vec<u8> {
        let mut out = Vec::new();
        encode(item, PartyId::P1, &SESSION, &mut out);
        out
    }

    fn read(mut bytes: &[u8]) -> io::Result<Item> {
        decode(&mut bytes, PartyId::P1, &SESSION, &mut Vec::new())
    }

    fn message(words: &[u64]) -> Item {
        Item::Message(Message { round: 77, steps: 5, words: words.into() })
    }

    #[test]
    fn a_frame_comes_back_as_it_was_and_has_the_stated_size() {
        for n in [0u64, 1, 5, (1 << 13) - 1, (1 << 13) + 1] {
            let words: Vec<u64> = (0..n).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let frame = bytes(&message(&words));
            assert_eq!(frame.len(), HEADER + 8 * words.len());
            let Item::Message(m) = read(&frame).unwrap() else { panic!("a message") };
            assert_eq!((m.round, m.steps, &*m.words), (77, 5, &words[..]));
        }
        let why = Item::Stopped(Stopped::Reason("no data\nhere".into()));
        let Item::Stopped(why) = read(&bytes(&why)).unwrap() else { panic!("the end") };
        assert_eq!(why, Stopped::Reason("no data here".into()));
    }

    #[test]
    fn a_frame_of_another_session_sender_kind_or_length_is_refused() {
        let refused = |at: usize, what: &str| {
            let mut frame = bytes(&message(&[1, 2]));
            frame[at] ^= 0x40;
            let error = read(&frame).err().expect("refused");
            assert!(error.to_string().contains(what), "{error}");
        };
        refused(0, "of kind 65");
        refused(4, "in the name of party 65");
        refused(8, "another session");
        refused(23, "another session");
        refused(46, "words; 268435456 are the most");
        let frame = bytes(&message(&[1, 2]));
        for cut in 0..frame.len() {
            assert_eq!(read(&frame[..cut]).err().expect("cut").kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    /// A connection that takes `room` bytes and then none in time.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room - self.taken.len());
            self.taken.extend_from_slice(&bytes[..n]);
            if n == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(n) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Patient for Narrow {
        fn patience(&mut self, _: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_that_finds_no_room_is_late_and_nothing_follows_half_a_frame() {
        let (wire, room) = (Arc::<Wire>::default(), 2 * HEADER + 8);
        let mut writer = FrameWriter::new(Narrow { taken: vec![], room }, PartyId::P1, SESSION, Arc::clone(&wire));
        let put = |writer: &mut FrameWriter<Narrow>| {
            writer.put(Message { round: 1, steps: 2, words: [3u64].as_slice().into() }, Duration::ZERO)
        };
        assert_eq!(put(&mut writer), Ok(()));
        assert_eq!(put(&mut writer), Err(Unsent::Late));
        assert_eq!(put(&mut writer), Err(Unsent::Gone));
        writer.end(Stopped::Reason("why".into()));
        assert_eq!(writer.with(|to| to.taken.len()), room);
        assert_eq!(wire.read(), (1, HEADER as u64 + 8));
    }

    proptest! {
        #[test]
        fn noise_is_never_more_than_an_error(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&noise);
        }
    }
}
