//! One party's view of a computation: its id, its two neighbours, the streams it shares with them, and the round it is in.
//!
//! A protocol is an `async fn` that every party runs (SPMD). Where it must hear from a neighbour it awaits the end of the round;
//! protocols that are joined (`try_join!`) therefore share rounds by construction: [`Party::run`] polls all of them as far as they
//! get, then makes one exchange for all. Which protocols wait never depends on data, so all parties take the same rounds.

use crate::clock::{Clock, Phase};
use crate::cost::Spent;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::net::recorded::Said;
use crate::net::{Channel, Mailboxes, Neighbour};
use crate::prg::{Seed, Stream, Ticket, fresh_seed, seed_of, words_of};
use crate::share::{Parts, Share};
use crate::words::Words;
use spec::{FixedSpec, ProbePoint, Rounding};
use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Party 0, 1 or 2. Party i holds share components i and i + 1 mod 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartyId {
    /// Party 0: components 0 and 1.
    P0,
    /// Party 1: components 1 and 2.
    P1,
    /// Party 2: components 2 and 0.
    P2,
}

impl PartyId {
    /// All three, in order.
    pub const ALL: [PartyId; 3] = [PartyId::P0, PartyId::P1, PartyId::P2];

    /// 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// i + 1 mod 3.
    pub const fn next(self) -> PartyId {
        PartyId::ALL[(self as usize + 1) % 3]
    }

    /// i - 1 mod 3.
    pub const fn previous(self) -> PartyId {
        PartyId::ALL[(self as usize + 2) % 3]
    }

    /// The neighbour's id.
    pub const fn neighbour(self, n: Neighbour) -> PartyId {
        match n {
            Neighbour::Previous => self.previous(),
            Neighbour::Next => self.next(),
        }
    }
}

impl std::fmt::Display for PartyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.index())
    }
}

/// What party 0 or party 1 knows of a truncation's coins: its additive part of the masked value. The coins follow from the two
/// views together, which only a test harness ever brings together.
#[derive(Debug, Clone)]
pub struct TruncationView {
    /// Name of the truncation, as in the arithmetic specification.
    pub name: String,
    /// Bits that are cut off.
    pub shift: u32,
    /// Party 0: x_0; party 1: m, where the shifted value is x_0 - m.
    pub part: Words,
}

/// One party.
pub struct Party {
    /// Which party.
    pub id: PartyId,
    /// The number format.
    pub fixed: FixedSpec,
    /// How truncations round.
    pub rounding: Rounding,
    /// Into how many pieces a matrix product is cut for whoever has nothing else to do; results do not depend on it.
    pub pieces: usize,
    channel: RefCell<Box<dyn Channel>>,
    outgoing: RefCell<Mailboxes>,
    incoming: RefCell<Mailboxes>,
    expected: Cell<[usize; 2]>,
    round: Cell<u64>,
    waiting: Cell<&'static str>,
    /// Whether some protocol waits for the end of this round.
    heard: Cell<bool>,
    tickets: Cell<u64>,
    /// Streams of this party's own component i (shared with the previous party) and of component i + 1 (with the next).
    streams: [Stream; 2],
    spent: RefCell<Spent>,
    clock: Clock,
    /// Set by a harness that compares: this party's shares of the probed tensors and its views of the truncations.
    record: RefCell<Option<Record>>,
}

/// What one party hands to a test harness, out of band: no message carries it, and a party without a harness keeps none.
#[derive(Debug, Default)]
pub struct Record {
    /// Views of truncations, in the order of execution.
    pub truncations: Vec<TruncationView>,
    /// Shares of probed tensors.
    pub probes: Vec<(ProbePoint, Probed)>,
    /// Who wrote which words of the messages, for a transport that records them.
    pub said: Vec<Said>,
    /// The first call and purpose for which words of a stream were drawn a second time.
    pub reused: Option<(Ticket, u8)>,
}

/// A party's share of a probed tensor.
#[derive(Debug)]
pub enum Probed {
    /// A replicated share.
    Share(Share),
    /// An unreduced product, as additive parts.
    Parts(Parts),
}

impl Party {
    /// Exchanges seeds with the neighbours over a fresh transport: party i draws the seed of stream i + 1, from the operating system
    /// unless `seed` is given, and sends it to the next party. One message of 16 bytes each way, not counted as computation.
    ///
    /// # Errors
    /// Those of the transport and of the operating system's randomness.
    pub fn connect(
        id: PartyId,
        fixed: FixedSpec,
        rounding: Rounding,
        mut channel: Box<dyn Channel>,
        seed: Option<Seed>,
    ) -> Result<Self> {
        let mine = match seed {
            _ if planted(Fault::SeedFixed) => Seed::default(),
            Some(s) => s,
            None => fresh_seed()?,
        };
        let (mut outgoing, mut incoming) = (Mailboxes::default(), Mailboxes::default());
        outgoing[Neighbour::Next].extend(words_of(mine));
        channel.exchange(&mut outgoing, &mut incoming, [2, 0], "set-up")?;
        let heard = &incoming[Neighbour::Previous];
        let theirs = seed_of([heard[0], heard[1]]);
        let party = Self::new(id, fixed, rounding, channel, [theirs, mine]);
        party.round.set(1); // the set-up was an exchange of this transport
        Ok(party)
    }

    /// A party from its transport and the seeds of its two streams: the one it shares with the previous party (component i) and
    /// the one it shares with the next (component i + 1).
    pub fn new(id: PartyId, fixed: FixedSpec, rounding: Rounding, channel: Box<dyn Channel>, seeds: [Seed; 2]) -> Self {
        Party {
            id,
            fixed,
            rounding,
            pieces: 1,
            channel: RefCell::new(channel),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            expected: Cell::default(),
            round: Cell::new(0),
            waiting: Cell::new("start"),
            heard: Cell::new(false),
            tickets: Cell::new(0),
            streams: seeds.map(Stream::new),
            spent: RefCell::default(),
            clock: Clock::new(),
            record: RefCell::new(None),
        }
    }

    /// Runs a computation to its end, one exchange after another.
    ///
    /// # Errors
    /// Those of the computation and of the transport.
    pub fn run<T>(&self, computation: impl Future<Output = Result<T>>) -> Result<T> {
        let mut computation = pin!(computation);
        let mut context = Context::from_waker(Waker::noop());
        self.clock.restart();
        loop {
            match computation.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => self.exchange()?,
            }
        }
    }

    /// Ends the round: one exchange for all protocols that wait.
    fn exchange(&self) -> Result<()> {
        if !self.heard.take() {
            return Err(Error::misuse(format!("a protocol after {} waits, but not for a message", self.waiting.get())));
        }
        self.clock.mark(Phase::Other);
        let mut outgoing = self.outgoing.borrow_mut();
        let mut spent = self.spent.borrow_mut();
        spent.rounds += 1;
        for n in Neighbour::BOTH {
            let words = outgoing[n].len() as u64;
            spent.messages += u64::from(words > 0);
            spent.bytes += 8 * words;
        }
        let expected = self.expected.take();
        self.channel.borrow_mut().exchange(
            &mut outgoing,
            &mut self.incoming.borrow_mut(),
            expected,
            self.waiting.get(),
        )?;
        self.round.set(self.round.get() + 1);
        self.clock.mark(Phase::Waiting);
        Ok(())
    }

    /// Begins a protocol call. Every party must make the same calls in the same order.
    pub fn ticket(&self) -> Ticket {
        let t = self.tickets.get();
        self.tickets.set(t + 1);
        Ticket(t)
    }

    /// The stream of component `c`, if this party holds it.
    ///
    /// # Panics
    /// If it does not: a protocol asked for randomness that its party must not know.
    pub fn stream(&self, c: usize) -> &Stream {
        match (c + 3 - self.id.index()) % 3 {
            0 => &self.streams[0],
            1 => &self.streams[1],
            _ => panic!("party {} does not hold stream {c}", self.id),
        }
    }

    /// Appends words to what is said to a neighbour in this round, on behalf of `step`.
    pub fn say(&self, step: &'static str, to: Neighbour, write: impl FnOnce(&mut Words)) {
        let mut outgoing = self.outgoing.borrow_mut();
        let before = outgoing[to].len();
        write(&mut outgoing[to]);
        let words = before..outgoing[to].len();
        self.spent.borrow_mut().by_step.entry(step).or_default().bytes += 8 * words.len() as u64;
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.said.push(Said { exchange: self.round.get(), to: self.id.neighbour(to), step, words });
        }
    }

    /// Ends this protocol's part of the round; `words` are what it will hear from the previous and from the next party. What was
    /// heard must be read before the next await.
    pub fn hear(&self, step: &'static str, words: [usize; 2]) -> Hear<'_> {
        let mut expected = self.expected.get();
        let start = expected;
        for (e, w) in expected.iter_mut().zip(words) {
            *e += w;
        }
        self.expected.set(expected);
        self.clock.mark(Phase::of_step(step));
        self.waiting.set(step);
        self.heard.set(true);
        self.spent.borrow_mut().by_step.entry(step).or_default().rounds += 1;
        Hear { party: self, round: self.round.get(), start, words }
    }

    /// The counters so far.
    pub fn spent(&self) -> Spent {
        self.spent.borrow().clone()
    }

    /// Books the time since the last mark; protocols do so by themselves in [`Party::hear`].
    pub(crate) fn mark(&self, phase: Phase) {
        self.clock.mark(phase);
    }

    /// From here on, or no longer, time counts as the head's.
    pub(crate) fn head_runs(&self, on: bool) {
        self.clock.mark(Phase::Other);
        self.clock.head(on);
    }

    /// Where this party's time went.
    pub fn times(&self) -> BTreeMap<Phase, Duration> {
        self.clock.booked()
    }

    /// Starts or stops recording for a harness, and takes what was recorded.
    pub fn record(&self, on: bool) -> Record {
        let reused = self.streams.each_ref().map(|s| s.audit(on));
        let record = self.record.replace(on.then(Record::default)).unwrap_or_default();
        Record { reused: reused.into_iter().flatten().next(), ..record }
    }

    /// Whether a harness records.
    pub fn records(&self) -> bool {
        self.record.borrow().is_some()
    }

    /// Notes this party's part of a truncation, if anybody asked.
    pub fn note_truncation(&self, name: &str, shift: u32, part: &[u64]) {
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.truncations.push(TruncationView { name: name.to_owned(), shift, part: part.into() });
        }
    }

    /// Notes this party's share of a probed tensor, if anybody asked.
    pub fn probe(&self, point: ProbePoint, share: &Share) {
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.probes.push((point, Probed::Share(share.clone())));
        }
    }

    /// Notes this party's part of a probed unreduced tensor, if anybody asked.
    pub fn probe_parts(&self, point: ProbePoint, parts: &Parts) {
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.probes.push((point, Probed::Parts(parts.clone())));
        }
    }
}

/// Waits for the end of a round.
pub struct Hear<'p> {
    party: &'p Party,
    round: u64,
    start: [usize; 2],
    words: [usize; 2],
}

impl<'p> Future for Hear<'p> {
    type Output = Heard<'p>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Heard<'p>> {
        if self.party.round.get() == self.round {
            return Poll::Pending;
        }
        Poll::Ready(Heard { party: self.party, start: self.start, words: self.words })
    }
}

/// What was heard in the round that just ended.
pub struct Heard<'p> {
    party: &'p Party,
    start: [usize; 2],
    words: [usize; 2],
}

impl Heard<'_> {
    /// The words a neighbour said to this protocol.
    pub fn from(&self, n: Neighbour) -> Ref<'_, [u64]> {
        let (start, words) = (self.start[n as usize], self.words[n as usize]);
        // Whoever was alone in a message may have taken it.
        Ref::map(
            self.party.incoming.borrow(),
            |boxes| if words == 0 { &[][..] } else { &boxes[n][start..start + words] },
        )
    }

    /// The same as a vector of one's own: the message itself, uncopied, where this protocol was alone in it.
    pub fn take(self, n: Neighbour) -> Words {
        let (start, words) = (self.start[n as usize], self.words[n as usize]);
        if words == 0 {
            return Words::default();
        }
        let message = &mut self.party.incoming.borrow_mut()[n];
        if start == 0 && words == message.len() {
            std::mem::take(message)
        } else {
            message[start..start + words].into()
        }
    }
}

/// Fails with a caller's mistake unless the shapes agree.
pub fn same_shape(what: &str, a: (usize, usize), b: (usize, usize)) -> Result<()> {
    if a == b { Ok(()) } else { Err(Error::misuse(format!("{what}: shapes {a:?} and {b:?} differ"))) }
}
