//! The cost of a computation: rounds, messages and bytes, exact and independent of the data.

use crate::step::Step;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The name of a [`Step`], in records of messages.
pub type StepName = &'static str;

/// The price of a protocol as a formula: what the tests hold the counters to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The number of communication rounds.
    pub rounds: u64,
    /// Bits that all three parties together send, for one element of a vector whose length is a multiple of 64: bits
    /// travel in whole words, and every block of bits begins a new one.
    pub bits_per_element: u64,
}

impl Cost {
    /// The price of what each party computes alone.
    pub const FREE: Cost = Cost { rounds: 0, bits_per_element: 0 };

    /// One protocol after another: rounds and bits add up.
    #[must_use]
    pub const fn then(self, next: Cost) -> Cost {
        Cost { rounds: self.rounds + next.rounds, bits_per_element: self.bits_per_element + next.bits_per_element }
    }

    /// Two protocols side by side: they share their rounds.
    #[must_use]
    pub const fn beside(self, other: Cost) -> Cost {
        Cost {
            rounds: if self.rounds > other.rounds { self.rounds } else { other.rounds },
            bits_per_element: self.bits_per_element + other.bits_per_element,
        }
    }

    /// A protocol on `n` operands for each element, in the same rounds.
    #[must_use]
    pub const fn times(self, n: u64) -> Cost {
        Cost { rounds: self.rounds, bits_per_element: n * self.bits_per_element }
    }
}

/// The cost of one named step, over all its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSpent {
    /// Rounds in which this step took part. Steps that run side by side share rounds, so these do not add up.
    pub rounds: u64,
    /// The number of bytes sent.
    pub bytes: u64,
}

/// The cost so far of one party, or of all three together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Communication rounds, counted once for all parties: exchanges, in which not every party has to wait
    /// ([`chain`](crate::net::chain)).
    pub rounds: u64,
    /// Messages sent: at most one to each neighbour in each round.
    pub messages: u64,
    /// The number of bytes sent.
    pub bytes: u64,
    /// The part of each step that sent anything.
    pub by_step: BTreeMap<Step, StepSpent>,
}

impl Spent {
    /// Adds what another party spent in the same rounds.
    pub fn join(&mut self, other: &Spent) {
        self.rounds = self.rounds.max(other.rounds);
        // The numbers of a party in another process may be any.
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (step, s) in &other.by_step {
            let mine = self.by_step.entry(*step).or_default();
            mine.rounds = mine.rounds.max(s.rounds);
            mine.bytes = mine.bytes.saturating_add(s.bytes);
        }
    }

    /// The cost since an earlier reading of this counter.
    #[must_use]
    pub fn since(&self, earlier: &Spent) -> Spent {
        let mut by_step = self.by_step.clone();
        for (step, s) in &earlier.by_step {
            let mine = by_step.entry(*step).or_default();
            mine.rounds -= s.rounds;
            mine.bytes -= s.bytes;
        }
        by_step.retain(|_, s| *s != StepSpent::default());
        Spent {
            rounds: self.rounds - earlier.rounds,
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            by_step,
        }
    }
}

/// The name of a step of this program, from another process.
pub(crate) fn known_step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StepName, D::Error> {
    Ok(Step::deserialize(deserializer)?.name())
}
