//! One party's view of a computation: its id, its two neighbours, the streams it shares with them, and the round it is
//! in.
//!
//! A protocol is an `async fn` that every party runs (SPMD). Where it must receive from a neighbour it awaits the end
//! of the round; protocols that are joined (`try_join!`) therefore share rounds by construction: [`Party::run`] polls
//! all of them as far as they get, then makes one exchange for all. Which protocols wait never depends on data, so all
//! parties take the same rounds.

use crate::buffer::Words;
use crate::clock::{Clock, Phase};
use crate::cost::Spent;
use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::id::{Neighbour, PartyId};
use crate::net::recorded::{Expected, Sent};
use crate::net::{Channel, Mailboxes, Round, SET_UP, StepList};
use crate::prg::{CallId, Seed, Stream, fresh_seed, seed_of, words_of};
use crate::share::{Doubled, Share};
use crate::step::Step;
use serde::{Deserialize, Serialize};
use spec::{FixedSpec, ProbePoint, Rounding};
use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The part of a truncation's coins that party 0 or party 1 knows: its additive part of the masked value. The coins
/// follow from the two views together, which only a test harness ever brings together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TruncationView {
    /// Name of the truncation, as in the arithmetic specification.
    pub name: String,
    /// Bits that are cut off.
    pub shift: u32,
    /// Party 0: x_0; party 1: m, where the shifted value is x_0 - m.
    pub part: Words,
}

/// One of the three parties, with its transport, its two streams and its counters.
pub struct Party {
    /// The party's number.
    pub id: PartyId,
    /// The number format of all values.
    pub fixed: FixedSpec,
    /// The rounding of every truncation.
    pub rounding: Rounding,
    /// Into how many pieces a matrix product is cut for whoever has nothing else to do; results do not depend on it.
    pub pieces: usize,
    /// Rounds so far, where another thread can see that this party gets on.
    pub progress: Arc<AtomicU64>,
    channel: RefCell<Box<dyn Channel>>,
    outgoing: RefCell<Mailboxes>,
    incoming: RefCell<Mailboxes>,
    /// The messages declared for the round that is under way.
    round: RefCell<Round>,
    /// True if some protocol waits for the end of this round.
    waits: Cell<bool>,
    calls: Cell<u64>,
    /// Streams of this party's own component i (shared with the previous party) and of component i + 1 (with the next).
    streams: [Stream; 2],
    spent: RefCell<Spent>,
    clock: Clock,
    /// Set by a harness that compares: this party's shares of the probed tensors and its views of the truncations.
    record: RefCell<Option<Record>>,
}

/// The record that one party hands to a test harness, out of band: no message between parties carries it, and a party
/// without a harness keeps none.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Views of truncations, in the order of execution.
    pub truncations: Vec<TruncationView>,
    /// Shares of probed tensors, in the order of execution.
    pub probes: Vec<(ProbePoint, Probed)>,
    /// The protocol that wrote each range of words of the messages, for a transport that records them.
    pub sent: Vec<Sent>,
    /// The protocol that expected each range of words of the messages.
    pub expected: Vec<Expected>,
    /// The first call and purpose for which words of a stream were drawn a second time.
    pub reused: Option<(CallId, u8)>,
}

/// A party's share of a probed tensor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Probed {
    /// A replicated share of the tensor.
    Share(Share),
    /// An unreduced product, as additive parts of its double.
    Doubled(Doubled),
}

impl Party {
    /// Exchanges seeds with the neighbours over a fresh transport: party i draws the seed of stream i + 1, from the
    /// operating system unless `seed` is given, and sends it to the next party. One message of 16 bytes each way, not
    /// counted as computation.
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
            Some(s) => faulty!(SeedFixed => Seed::default(), s),
            None => faulty!(SeedFixed => Seed::default(), fresh_seed()?),
        };
        let (mut outgoing, mut incoming) = (Mailboxes::default(), Mailboxes::default());
        outgoing[Neighbour::Next].extend(words_of(mine));
        let mut seeds = StepList::default();
        seeds.add(SET_UP, 2);
        let none = StepList::default();
        let (sends, receives) = ([none, seeds], [seeds, none]);
        let round = Round { number: 0, step: SET_UP, expected: [2, 0], sends, receives };
        channel.exchange(&round, &mut outgoing, &mut incoming)?;
        let received = &incoming[Neighbour::Previous];
        let theirs = seed_of([received[0], received[1]]);
        let party = Self::new(id, fixed, rounding, channel, [theirs, mine]);
        party.begin_round(1); // the set-up was an exchange of this transport
        Ok(party)
    }

    /// A party from its transport and the seeds of its two streams: the one it shares with the previous party
    /// (component i) and the one it shares with the next (component i + 1). Its first round has number 1: number 0 is
    /// the set-up, and a transport that records does not keep it.
    pub fn new(id: PartyId, fixed: FixedSpec, rounding: Rounding, channel: Box<dyn Channel>, seeds: [Seed; 2]) -> Self {
        Party {
            id,
            fixed,
            rounding,
            pieces: 1,
            channel: RefCell::new(channel),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            round: RefCell::new(Round { number: 1, step: "start", ..Round::default() }),
            waits: Cell::new(false),
            progress: Arc::default(),
            calls: Cell::new(0),
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
        let round = *self.round.borrow();
        if !self.waits.take() {
            return Err(Error::misuse(format!("a protocol after {} waits, but not for a message", round.step)));
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
        self.channel.borrow_mut().exchange(&round, &mut outgoing, &mut self.incoming.borrow_mut())?;
        self.begin_round(round.number + 1);
        self.clock.mark(Phase::Waiting);
        Ok(())
    }

    fn begin_round(&self, number: u64) {
        let step = self.round.borrow().step;
        *self.round.borrow_mut() = Round { number, step, ..Round::default() };
        self.progress.store(number, Ordering::Relaxed);
    }

    /// Tells both neighbours why this party stops; it can compute no more.
    pub fn stop(&self, reason: &Error) {
        self.channel.borrow_mut().stop(reason);
    }

    /// Begins a protocol call. Every party must make the same calls in the same order.
    pub fn call_id(&self) -> CallId {
        let t = self.calls.get();
        self.calls.set(t + 1);
        CallId(t)
    }

    /// Protocol calls so far: where the streams are.
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Goes on as if there had been so many calls. With streams that have masked messages after that call already, the
    /// masks serve twice: only for seeds that were asked for, which hide nothing.
    pub fn go_on_at(&self, calls: u64) {
        self.calls.set(calls);
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

    /// Appends words to the message to a neighbour in this round, on behalf of `step`.
    pub fn send(&self, step: Step, to: Neighbour, write: impl FnOnce(&mut Words)) {
        let mut outgoing = self.outgoing.borrow_mut();
        let before = outgoing[to].len();
        write(&mut outgoing[to]);
        self.written(step, to, before..outgoing[to].len());
    }

    /// Counts and notes that these words of the message to a neighbour are of `step`.
    fn written(&self, step: Step, to: Neighbour, words: Range<usize>) {
        self.spent.borrow_mut().by_step.entry(step).or_default().bytes += 8 * words.len() as u64;
        let mut round = self.round.borrow_mut();
        round.sends[to as usize].add(step.name(), words.len());
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.sent.push(Sent { exchange: round.number, to: self.id.neighbour(to), step: step.name(), words });
        }
    }

    /// Ends this protocol's part of the round; `words` are what it will receive from the previous and from the next
    /// party. What was received must be read before the next await.
    pub fn receive(&self, step: Step, words: [usize; 2]) -> Receive<'_> {
        let mut round = self.round.borrow_mut();
        let start = round.expected;
        for n in Neighbour::BOTH {
            let (i, from) = (n as usize, self.id.neighbour(n));
            round.expected[i] += words[i];
            round.receives[i].add(step.name(), words[i]);
            if let Some(record) = self.record.borrow_mut().as_mut() {
                let words = start[i]..start[i] + words[i];
                record.expected.push(Expected { exchange: round.number, from, step: step.name(), words });
            }
        }
        self.clock.mark(Phase::of_step(step));
        round.step = step.name();
        self.waits.set(true);
        self.spent.borrow_mut().by_step.entry(step).or_default().rounds += 1;
        Receive { party: self, round: round.number, start, words }
    }

    /// The cost so far.
    pub fn spent(&self) -> Spent {
        self.spent.borrow().clone()
    }

    /// Books the time since the last mark; protocols do so by themselves in [`Party::receive`].
    pub(crate) fn mark(&self, phase: Phase) {
        self.clock.mark(phase);
    }

    /// From here on, or no longer, time counts as the head's.
    pub(crate) fn head_runs(&self, on: bool) {
        self.clock.mark(Phase::Other);
        self.clock.head(on);
    }

    /// The time that this party has spent, by phase.
    pub fn times(&self) -> BTreeMap<Phase, Duration> {
        self.clock.booked()
    }

    /// Starts or stops recording for a harness, and takes what was recorded.
    pub fn record(&self, on: bool) -> Record {
        let reused = self.streams.each_ref().map(|s| s.audit(on));
        let record = self.record.replace(on.then(Record::default)).unwrap_or_default();
        Record { reused: reused.into_iter().flatten().next(), ..record }
    }

    /// True while a harness records.
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
    pub fn probe_doubled(&self, point: ProbePoint, parts: &Doubled) {
        if let Some(record) = self.record.borrow_mut().as_mut() {
            record.probes.push((point, Probed::Doubled(parts.clone())));
        }
    }
}

/// Waits for the end of a round.
pub struct Receive<'p> {
    party: &'p Party,
    round: u64,
    start: [usize; 2],
    words: [usize; 2],
}

impl<'p> Future for Receive<'p> {
    type Output = Received<'p>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Received<'p>> {
        if self.party.round.borrow().number == self.round {
            return Poll::Pending;
        }
        Poll::Ready(Received { party: self.party, start: self.start, words: self.words })
    }
}

/// The messages of the round that just ended.
pub struct Received<'p> {
    party: &'p Party,
    start: [usize; 2],
    words: [usize; 2],
}

impl Received<'_> {
    /// The words that a neighbour sent to this protocol.
    pub fn from(&self, n: Neighbour) -> Ref<'_, [u64]> {
        let (start, words) = (self.start[n as usize], self.words[n as usize]);
        // Whoever was alone in a message may have taken it.
        Ref::map(
            self.party.incoming.borrow(),
            |boxes| if words == 0 { &[][..] } else { &boxes[n][start..start + words] },
        )
    }

    /// The words that a neighbour sent, as an owned vector: the message itself, uncopied, where this protocol was alone
    /// in it.
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
