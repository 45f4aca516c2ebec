//! Frames, each a fixed header and whole words: they are the form in which messages travel between two parties.
//!
//! header, 48 bytes, numbers lowest byte first: kind (u32: 1 a message, 2 the end), sender (u32), session (16 bytes),
//! round (u64), digest of the list of steps (u64), words (u64). A message is followed by its words, lowest byte first;
//! the end by its reason, in as many words as it takes. A frame that names another session or sender, an unknown kind
//! or an impossible length is refused and ends the connection; round, digest and length are compared with what the
//! receiver expects where it expects it ([`checked`](super::checked)).

use super::ends::{Item, Message, Stopped};
use crate::buffer::Words;
use crate::id::PartyId;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of one session, drawn by its client.
pub type SessionId = [u8; 16];

/// Bytes of a header.
pub const HEADER: usize = 48;

/// Words of the longest frame: 2 GiB.
const LONGEST: u64 = 1 << 28;

const MESSAGE: u32 = 1;
const END: u32 = 2;

/// The counters of what went over the connections of one party.
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
            out.reserve(8 * words.len());
            // In pieces that stay in the cache, because a vector that grows by eight bytes at a time is slow.
            let mut piece = [0; 8 * 512];
            for words in words.chunks(512) {
                let places = piece.as_chunks_mut::<8>().0.iter_mut();
                places.zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
                out.extend_from_slice(&piece[..8 * words.len()]);
            }
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

/// Reads one frame from `sender` of `session`.
///
/// # Errors
/// The connection's; [`io::ErrorKind::InvalidData`] for a frame that cannot be right.
pub fn decode(from: &mut impl Read, sender: PartyId, session: &SessionId) -> io::Result<Item> {
    FrameReader::new(sender, *session).read(from)
}

/// A reader takes one frame after another from a connection that gives as much as has come. Words arrive in pieces, so
/// that a length that was made up takes no memory.
pub struct FrameReader {
    sender: PartyId,
    session: SessionId,
    /// The header or the piece of words that is read, and how much of it is here.
    piece: Vec<u8>,
    here: usize,
    /// The frame whose words are read.
    frame: Option<Frame>,
}

/// A frame whose header is known.
struct Frame {
    kind: u32,
    round: u64,
    steps: u64,
    length: usize,
    words: Words,
}

/// Bytes of a piece: what stays in the cache between reading and turning into words.
const PIECE: usize = 1 << 16;

impl FrameReader {
    /// A reader of `sender`'s frames of `session`.
    pub fn new(sender: PartyId, session: SessionId) -> Self {
        FrameReader { sender, session, piece: vec![0; HEADER], here: 0, frame: None }
    }

    /// The next frame. After [`io::ErrorKind::WouldBlock`] reading goes on where it was; after any other error nothing
    /// that follows can be understood.
    ///
    /// # Errors
    /// The connection's; [`io::ErrorKind::InvalidData`] for a frame that cannot be right.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<Item> {
        loop {
            while self.here < self.piece.len() {
                match from.read(&mut self.piece[self.here..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(n) => self.here += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            let mut frame = match self.frame.take() {
                None => self.header()?,
                Some(mut frame) => {
                    frame.words.extend(self.piece.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)));
                    frame
                }
            };
            self.here = 0;
            if frame.words.len() == frame.length {
                self.piece.resize(HEADER, 0);
                return Ok(frame.item());
            }
            self.piece.resize((8 * (frame.length - frame.words.len())).min(PIECE), 0);
            if frame.words.is_empty() {
                frame.words = Words::with_capacity(self.piece.len() / 8);
            }
            self.frame = Some(frame);
        }
    }

    /// What the header that is here announces.
    fn header(&self) -> io::Result<Frame> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let head = &self.piece;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (kind, words) = (u32_at(0), u64_at(40));
        if head[8..24] != self.session[..] {
            return Err(invalid("sent a frame of another session".into()));
        }
        if u32_at(4) != self.sender.index() as u32 {
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
        let (round, steps, length) = (u64_at(24), u64_at(32), words as usize);
        Ok(Frame { kind, round, steps, length, words: Words::default() })
    }
}

impl Frame {
    fn item(self) -> Item {
        let Frame { kind, round, steps, words, .. } = self;
        if kind == MESSAGE {
            return Item::Message(Message { round, steps, words });
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take_while(|&b| b != 0).collect();
        let text = String::from_utf8_lossy(&bytes);
        // What a peer sends is printed: on one line, whatever it holds.
        Item::Stopped(Stopped::Reason(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()))
    }
}

/// Both counters, for a log line.
impl Wire {
    /// Frames and bytes so far.
    pub fn read(&self) -> (u64, u64) {
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
        decode(&mut bytes, PartyId::P1, &SESSION)
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

    /// Gives a byte at a time, and nothing every other time.
    struct Trickle<'a>(&'a [u8], bool);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let n = self.0.len().min(buffer.len()).min(1);
            self.0.read(&mut buffer[..n])
        }
    }

    #[test]
    fn frames_that_come_byte_by_byte_are_put_together() {
        let mut sent = bytes(&message(&[1, u64::MAX, 3]));
        sent.extend(bytes(&message(&[])));
        sent.extend(bytes(&Item::Stopped(Stopped::Reason("done".into()))));
        let (mut from, mut reader) = (Trickle(&sent, false), FrameReader::new(PartyId::P1, SESSION));
        let mut next = || loop {
            match reader.read(&mut from) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        };
        for words in [&[1, u64::MAX, 3][..], &[]] {
            let Item::Message(m) = next().unwrap() else { panic!("a message") };
            assert_eq!((m.round, m.steps, &*m.words), (77, 5, words));
        }
        let Item::Stopped(why) = next().unwrap() else { panic!("the end") };
        assert_eq!(why, Stopped::Reason("done".into()));
        assert_eq!(next().err().expect("the connection's end").kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn noise_is_never_more_than_an_error(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&noise);
        }
    }

    #[test]
    fn the_longest_reason_and_the_longest_message_are_taken_and_no_word_more() {
        let why = |n: usize| Item::Stopped(Stopped::Reason("x".repeat(n)));
        for n in [MOST_REASON - 1, MOST_REASON, MOST_REASON + 1] {
            assert_eq!(bytes(&why(n)).len(), HEADER + n.min(MOST_REASON).next_multiple_of(8));
            let Item::Stopped(got) = read(&bytes(&why(n))).unwrap() else { panic!("the end") };
            assert_eq!(got, Stopped::Reason("x".repeat(n.min(MOST_REASON))));
        }
        for (kind, most) in [(MESSAGE, LONGEST), (END, MOST_REASON as u64 / 8)] {
            let error = |words| read(&header(kind, PartyId::P1, &SESSION, 0, 0, words)).err().expect("no words follow");
            assert_eq!(error(most).kind(), io::ErrorKind::UnexpectedEof);
            let longer = format!("sent a frame of {} words; {most} are the most", most + 1);
            assert_eq!(error(most + 1).to_string(), longer);
        }
    }
}
