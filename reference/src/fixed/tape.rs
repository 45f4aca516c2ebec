//! Where the coins of truncations come from: a tape that the secure side recorded, or a generator.

use super::ModelError;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use std::collections::{BTreeMap, VecDeque};

/// How the elements of one truncation were rounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounded {
    /// c of every element, flat; empty under nearest rounding.
    pub coins: Vec<bool>,
    /// (flat index, e) where e is not 0 but -1, in increasing index. Only operands outside the range of truncation can
    /// have one.
    pub wraps: Vec<(usize, i8)>,
}

/// The coins of one step by the name of the truncation; each name is a queue, first in first out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tape(BTreeMap<String, VecDeque<Rounded>>);

impl Tape {
    /// Appends to the queue of `name`.
    pub fn push(&mut self, name: impl Into<String>, rounded: Rounded) {
        self.0.entry(name.into()).or_default().push_back(rounded);
    }

    /// Takes the oldest entry of `name`.
    pub fn pop(&mut self, name: &str) -> Option<Rounded> {
        let queue = self.0.get_mut(name)?;
        let rounded = queue.pop_front();
        if queue.is_empty() {
            self.0.remove(name);
        }
        rounded
    }

    /// Whether every entry was used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every entry with its name, each name's oldest entry first.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Rounded)> {
        self.0.iter().flat_map(|(name, queue)| queue.iter().map(|rounded| (name.as_str(), rounded)))
    }

    /// The names with entries left, and how many.
    pub fn left(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, queue)| (name.as_str(), queue.len()))
    }
}

/// The operands and coins of one replayed truncation, for tests of how the coins are distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Name of the truncation.
    pub name: String,
    /// Bits that were cut off.
    pub shift: u32,
    /// V of every element, modulo 2^64.
    pub operands: Vec<i64>,
    /// c of every element; empty under nearest rounding.
    pub coins: Vec<bool>,
}

/// The source of coins. Nearest rounding draws none, but takes the wraps of a tape.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // one a run
pub enum Coins {
    /// Replays a recorded step. Under probabilistic rounding every truncation must have its entry; under nearest
    /// rounding a missing entry means that nothing wrapped.
    Tape(Tape),
    /// Replays like [`Coins::Tape`], and keeps what each truncation was given.
    Observed {
        /// The coins.
        tape: Tape,
        /// Every truncation so far, in the order of computation.
        seen: Vec<Replayed>,
    },
    /// Draws each coin with exactly the probability of the fraction cut off; never a wrap.
    Random(ChaCha12Rng),
    /// Every coin 0 (`up: false`: all floors), or 1 wherever it may be (all ceilings): the two ends of what coins can
    /// do. Where a result is monotone in its coins they bracket every draw, which is how worst cases are measured.
    Extreme {
        /// Whether every coin that may be 1 is 1: all ceilings.
        up: bool,
    },
}

impl Coins {
    /// A reproducible generator.
    pub fn seeded(seed: u64) -> Self {
        Coins::Random(ChaCha12Rng::seed_from_u64(seed))
    }

    /// Checks that nothing is left on a tape.
    ///
    /// # Errors
    /// Names the first truncation with entries left.
    pub fn finish(&self) -> Result<(), ModelError> {
        match self {
            Coins::Tape(tape) | Coins::Observed { tape, .. } => match tape.left().next() {
                Some((name, left)) => Err(ModelError::ExtraCoins { name: name.into(), left }),
                None => Ok(()),
            },
            Coins::Random(_) | Coins::Extreme { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_queue_and_an_empty_queue_is_gone() {
        let entry = |c| Rounded { coins: vec![c], wraps: vec![] };
        let mut tape = Tape::default();
        tape.push("a", entry(true));
        tape.push("a", entry(false));
        assert_eq!(tape.left().collect::<Vec<_>>(), [("a", 2)]);
        assert_eq!(tape.entries().collect::<Vec<_>>(), [("a", &entry(true)), ("a", &entry(false))]);
        assert_eq!(tape.pop("a"), Some(entry(true)));
        assert_eq!(
            Coins::Tape(tape.clone()).finish(),
            Err(ModelError::ExtraCoins { name: "a".into(), left: 1 }),
            "one step a tape"
        );
        assert_eq!(tape.pop("a"), Some(entry(false)));
        assert_eq!((tape.pop("a"), tape.pop("b"), tape.is_empty()), (None, None, true));
        assert_eq!(Coins::Tape(tape).finish(), Ok(()));
    }
}
