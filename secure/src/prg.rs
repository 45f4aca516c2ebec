//! Pseudorandom words that two parties share.
//!
//! *Stream c* (c = 0, 1, 2) is known to exactly the two parties that hold share component c: parties c - 1 and c. Its
//! key is exchanged once; every protocol call takes a [`CallId`] at all three parties in the same order, and every draw
//! names its call and purpose, so that no two draws use the same (key, counter) pair however the calls interleave.

use crate::buffer::Words;
use crate::fault::faulty;
use crate::kernel::CtrKey;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// The number of one protocol call, equal at all parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(pub(crate) u64);

/// A key of 128 bits.
pub type Seed = [u8; 16];

/// The key of two words, lowest byte first, as a message carries it.
pub(crate) fn seed_of([low, high]: [u64; 2]) -> Seed {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

/// The two words of a key.
pub(crate) fn words_of(seed: Seed) -> [u64; 2] {
    let both = u128::from_le_bytes(seed);
    [both as u64, (both >> 64) as u64]
}

/// One stream of pseudorandom words, which two parties share.
pub struct Stream {
    key: CtrKey,
    /// Debug builds remember every (call, purpose) that was drawn and refuse to draw it again.
    used: RefCell<std::collections::HashSet<(u64, u8)>>,
    audit: RefCell<Option<Audit>>,
}

/// The first blocks that were drawn while somebody wanted to know.
#[derive(Debug, Default)]
struct Audit {
    drawn: std::collections::HashSet<u128>,
    reused: Option<(CallId, u8)>,
}

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: Seed) -> Self {
        Stream { key: CtrKey::new(seed), used: RefCell::default(), audit: RefCell::default() }
    }

    /// The words of one draw. Every (call, purpose) may be drawn once.
    pub fn draw(&self, call: CallId, purpose: u8) -> Draw<'_> {
        if cfg!(debug_assertions) {
            let fresh = self.used.borrow_mut().insert((call.0, purpose));
            assert!(fresh, "randomness drawn twice: call {}, purpose {purpose}", call.0);
        }
        let counted = faulty!(StreamReused => CallId(0), call);
        // First block: call (64 bits), purpose (8 bits), block (56 bits).
        let start = (u128::from(counted.0) << 64) | (u128::from(purpose) << 56);
        if let Some(audit) = self.audit.borrow_mut().as_mut()
            && !audit.drawn.insert(start)
        {
            audit.reused.get_or_insert((counted, purpose));
        }
        Draw { key: &self.key, start }
    }

    /// Starts or stops to watch the counters themselves, in any build. Answers with the first (call, purpose) that was
    /// drawn a second time since the last start.
    pub fn audit(&self, on: bool) -> Option<(CallId, u8)> {
        self.audit.replace(on.then(Audit::default)).and_then(|audit| audit.reused)
    }

    /// The first `n` words of a draw.
    pub fn words(&self, call: CallId, purpose: u8, n: usize) -> Words {
        let mut out = Words::unset(n);
        self.draw(call, purpose).fill(0, &mut out);
        out
    }

    /// `out[i]` += word i of a draw, wrapping.
    pub fn add(&self, call: CallId, purpose: u8, out: &mut [u64]) {
        self.draw(call, purpose).add(0, out);
    }

    /// `out[i]` -= word i of a draw, wrapping.
    pub fn sub(&self, call: CallId, purpose: u8, out: &mut [u64]) {
        self.draw(call, purpose).sub(0, out);
    }

    /// `out[i]` ^= word i of a draw.
    pub fn xor(&self, call: CallId, purpose: u8, out: &mut [u64]) {
        self.draw(call, purpose).xor(0, out);
    }
}

/// The words of one draw, addressed by position, so that long vectors can be worked on in pieces that stay in the
/// cache.
#[derive(Clone, Copy)]
pub struct Draw<'s> {
    key: &'s CtrKey,
    start: u128,
}

impl Draw<'_> {
    /// A block of the stream is two words: pieces start at even positions.
    fn block(&self, at: usize) -> u128 {
        debug_assert!(at.is_multiple_of(2));
        self.start + (at / 2) as u128
    }

    /// `out[i]` = word at + i.
    pub fn fill(&self, at: usize, out: &mut [u64]) {
        self.key.fill(self.block(at), out);
    }

    /// `out[i]` += word at + i, wrapping.
    pub fn add(&self, at: usize, out: &mut [u64]) {
        faulty!(
            StreamNarrow => crate::fault::prg::narrow(out, |words| self.fill(at, words), u64::wrapping_add),
            self.key.add_fill(self.block(at), out)
        );
    }

    /// `out[i]` -= word at + i, wrapping.
    pub fn sub(&self, at: usize, out: &mut [u64]) {
        faulty!(
            StreamNarrow => crate::fault::prg::narrow(out, |words| self.fill(at, words), u64::wrapping_sub),
            self.key.sub_fill(self.block(at), out)
        );
    }

    /// `out[i]` ^= word at + i.
    pub fn xor(&self, at: usize, out: &mut [u64]) {
        self.key.xor_fill(self.block(at), out);
    }
}

/// A fresh seed from the operating system.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn fresh_seed() -> crate::error::Result<Seed> {
    let mut seed = Seed::default();
    getrandom::fill(&mut seed)
        .map_err(|e| crate::error::Error::misuse(format!("the operating system gives no randomness: {e}")))?;
    Ok(seed)
}
