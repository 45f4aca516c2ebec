//! Vectors of words whose memory is used again.
//!
//! A training step makes some hundreds of vectors: shares, messages, masks, of the same lengths in every step.
//! [`Words`] gives its memory back to a pool when it is dropped and takes it from there when it is made, so that from
//! the second step on nothing is allocated for a share or a message. What is written from end to end anyway need not be
//! zeroed before ([`Words::unset`]).
//!
//! Every thread has its own pool, which needs no lock and whose memory is warm in its core's cache. Messages move
//! between threads, though, and not as many one way as the other: what a thread has too much of goes to a shared list
//! where the others find it, emptied.
//!
//! Contents are not erased while a party lives: memory that is used again holds what it held. When a party ends, it
//! erases what lies in its thread's pool and in the shared list ([`erase`]); a vector that no pool takes back is erased
//! as it is freed. Not erased: scratch memory of the kernels, registers, and what the system has swapped out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroize;

/// A vector of 64-bit words, from the pool and back to it. Reads as a slice.
#[derive(Default)]
pub struct Words(Vec<u64>);

/// Vectors from 2^4 to 2^20 words (8 MB) are kept, by powers of two: the tensors of a step, not data sets.
const SMALLEST: u32 = 4;
const LARGEST: u32 = 20;
const SIZES: usize = (LARGEST - SMALLEST + 1) as usize;

/// How many vectors of one size a thread keeps to itself, and how many the shared list holds for all: more than a step
/// has in use at once (some 110, the shares of logits in an exponential under nearest rounding), and never more than
/// were in use.
const KEPT: usize = 16;
const MOST_SHARED: usize = 256;

type Pool = [Vec<Vec<u64>>; SIZES];

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new([const { Vec::new() }; SIZES]) };
}

static SHARED: [Mutex<Vec<Vec<u64>>>; SIZES] = [const { Mutex::new(Vec::new()) }; SIZES];

/// How many vectors had to be allocated.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// Where vectors with room for `n` words are kept, and that room; `None`: too large for the pool.
fn size_for(n: usize) -> Option<(usize, usize)> {
    let bits = n.max(1 << SMALLEST).next_power_of_two().ilog2();
    (bits <= LARGEST).then_some(((bits - SMALLEST) as usize, 1 << bits))
}

/// Where a vector of this capacity is kept.
fn size_of(capacity: usize) -> Option<usize> {
    let bits = capacity.checked_ilog2()?;
    (SMALLEST..=LARGEST).contains(&bits).then(|| (bits - SMALLEST) as usize)
}

/// A vector with room for `n` words; length and contents are whatever they were.
fn take(n: usize) -> Vec<u64> {
    if n == 0 {
        return Vec::new();
    }
    let allocate = |capacity| {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        Vec::with_capacity(capacity)
    };
    let Some((size, capacity)) = size_for(n) else { return allocate(n) };
    let kept = POOL.try_with(|pool| pool.borrow_mut()[size].pop()).ok().flatten();
    let found = kept.or_else(|| SHARED[size].lock().ok()?.pop());
    found.unwrap_or_else(|| allocate(capacity))
}

/// Keeps a vector for [`take`], or erases and frees it where there are enough of its size.
fn give(words: Vec<u64>) {
    let mut words = Some(words);
    let size = words.as_ref().and_then(|w| size_of(w.capacity()));
    if let Some(size) = size {
        // A thread that is ending has no pool any more.
        let _ = POOL.try_with(|pool| {
            let kept = &mut pool.borrow_mut()[size];
            if kept.len() < KEPT {
                kept.extend(words.take());
            }
        });
        if words.is_some()
            && let Ok(mut shared) = SHARED[size].lock()
            && shared.len() < MOST_SHARED
        {
            // Threads are parties: what one held, no other gets to see.
            shared.extend(words.take().map(|mut w| {
                w.clear();
                w
            }));
        }
    }
    words.zeroize();
}

/// Erases what lies in this thread's pool and in the shared list: for a party that ends.
pub fn erase() {
    let _ = POOL.try_with(|pool| pool.borrow_mut().iter_mut().flatten().for_each(zeroize_whole));
    for list in &SHARED {
        if let Ok(mut list) = list.lock() {
            list.iter_mut().for_each(zeroize_whole);
        }
    }
}

/// Whether nothing in this thread's pool has held a word since it was erased: what is erased is empty as well.
#[cfg(test)]
pub(crate) fn is_erased() -> bool {
    POOL.with(|pool| pool.borrow().iter().flatten().all(Vec::is_empty))
}

/// Overwrites all that a vector has room for, beyond its length as well, and leaves it empty.
fn zeroize_whole(words: &mut Vec<u64>) {
    words.zeroize();
}

impl Words {
    /// How many vectors have been allocated so far, by all threads: those that no pool had room for.
    pub fn allocated() -> u64 {
        ALLOCATED.load(Ordering::Relaxed)
    }

    /// No words yet, with room for `n`.
    pub fn with_capacity(n: usize) -> Self {
        let mut words = take(n);
        words.clear();
        Words(words)
    }

    /// A buffer of `n` zeros.
    pub fn zeros(n: usize) -> Self {
        let mut out = Self::with_capacity(n);
        out.0.resize(n, 0);
        out
    }

    /// `n` words that still hold what they held last, for who writes every one of them before it reads any. Debug
    /// builds fill them with a pattern, which no result survives.
    pub fn unset(n: usize) -> Self {
        let mut words = take(n);
        words.resize(n, 0);
        if cfg!(debug_assertions) {
            words.fill(0xa5a5_5a5a_c3c3_3c3c);
        }
        Words(words)
    }

    /// Whether there is room for `more` words beyond the present ones.
    pub fn has_room(&self, more: usize) -> bool {
        more <= self.0.capacity() - self.0.len()
    }

    /// Room for `more` words beyond the present ones.
    pub fn reserve(&mut self, more: usize) {
        let needed = self.0.len() + more;
        if needed > self.0.capacity() {
            let mut grown = Self::with_capacity(needed.max(2 * self.0.capacity()));
            grown.0.extend_from_slice(&self.0);
            *self = grown;
        }
    }

    /// Appends a copy of these words.
    pub fn extend_from_slice(&mut self, words: &[u64]) {
        self.reserve(words.len());
        self.0.extend_from_slice(words);
    }

    /// Makes it `n` words long, with zeros where it grows.
    pub fn resize(&mut self, n: usize) {
        self.reserve(n.saturating_sub(self.0.len()));
        self.0.resize(n, 0);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
}

impl Deref for Words {
    type Target = [u64];
    #[inline]
    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

impl From<&[u64]> for Words {
    fn from(words: &[u64]) -> Self {
        let mut out = Self::with_capacity(words.len());
        out.0.extend_from_slice(words);
        out
    }
}

impl From<Vec<u64>> for Words {
    fn from(words: Vec<u64>) -> Self {
        Words(words)
    }
}

impl Clone for Words {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Extend<u64> for Words {
    #[inline(always)]
    fn extend<I: IntoIterator<Item = u64>>(&mut self, words: I) {
        let words = words.into_iter();
        match words.size_hint() {
            (n, Some(most)) if n == most => {
                self.reserve(n);
                self.0.extend(words);
            }
            // The vector must not grow by itself: its memory would not come from the pool.
            _ => words.for_each(|word| {
                self.reserve(1);
                self.0.push(word);
            }),
        }
    }
}

impl FromIterator<u64> for Words {
    #[inline(always)]
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        let mut out = Words::default();
        out.extend(words);
        out
    }
}

impl<'a> IntoIterator for &'a Words {
    type Item = &'a u64;
    type IntoIter = std::slice::Iter<'a, u64>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Words {
    type Item = &'a mut u64;
    type IntoIter = std::slice::IterMut<'a, u64>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Words {}

impl std::fmt::Debug for Words {
    /// The length alone: words are shares, masks and keys, and what is printed ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} words", self.len())
    }
}

/// As bytes, each word lowest byte first.
impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.iter().flat_map(|w| w.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Words;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("words of 8 bytes each")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Words, E> {
                let (words, rest) = bytes.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                let mut out = Words::with_capacity(words.len());
                out.extend(words.iter().map(|w| u64::from_le_bytes(*w)));
                Ok(out)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_handed_out_again() {
        for n in [1, 16, 17, 1000, 1 << LARGEST] {
            let first = Words::zeros(n);
            let at = first.as_ptr();
            drop(first);
            let again = Words::unset(n);
            assert_eq!((again.as_ptr(), again.len()), (at, n));
            assert_ne!(Words::zeros(n).as_ptr(), at, "in use");
        }
        let large = Words::zeros((1 << LARGEST) + 1);
        assert_eq!(large.0.capacity(), large.len(), "a large vector has no room to spare and is freed");
    }

    #[test]
    fn contents_are_those_of_a_vector() {
        // Junk of every size first, so that nothing is zero by luck.
        for n in [0, 1, 15, 16, 17, 33, 100, 5000] {
            drop(Words::from(vec![7; n + 64]));
            drop((0..n as u64).map(|v| v | 1 << 40).collect::<Words>());
            assert_eq!(*Words::zeros(n), vec![0; n]);
            let mut words = Words::with_capacity(n);
            assert!(words.is_empty());
            words.extend((0..n as u64).filter(|v| v % 3 == 0));
            words.extend_from_slice(&[5; 40]);
            words.resize(words.len() + n);
            words.resize(words.len() - n.min(1));
            let mut want: Vec<u64> = (0..n as u64).filter(|v| v % 3 == 0).collect();
            want.extend([5; 40]);
            want.resize(want.len() + n, 0);
            want.truncate(want.len() - n.min(1));
            assert_eq!(*words, want);
            assert_eq!(words.clone(), words);
        }
    }

    #[test]
    fn a_vector_that_grows_word_by_word_moves_a_few_times_however_long_it_gets() {
        let (mut words, mut moves, mut at) = (Words::default(), 0, std::ptr::null());
        for k in 0..1 << (LARGEST + 2) {
            words.extend([k]);
            moves += u32::from(words.as_ptr() != at);
            at = words.as_ptr();
        }
        assert!(moves <= LARGEST + 2, "{moves}");
        assert!(words.iter().zip(0..).all(|(w, k)| *w == k));
    }

    #[test]
    fn what_one_thread_wrote_another_cannot_read() {
        const N: usize = 5000;
        let made: Vec<Words> = (0..KEPT + MOST_SHARED + 10).map(|_| Words::unset(N)).collect();
        std::thread::spawn(move || drop(made)).join().unwrap();
        let size = size_for(N).unwrap().0;
        // How many there are is for `tests/shared_buffers.rs`: other tests take some meanwhile.
        let shared = SHARED[size].lock().unwrap();
        assert!(shared.len() <= MOST_SHARED && shared.iter().all(Vec::is_empty));
    }
}
