//! The time that a party spends, by phase.
//!
//! Joined protocols interleave, so time is booked in segments: what passed since the last mark belongs to whoever sets
//! the next one. A protocol marks when it has computed what it says in a round, a matrix product when it is done, the
//! transport when it has waited. Everything but products and waiting counts as the head while the head runs.

use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A phase of the computation, to which a segment of time is booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// The local part of matrix products.
    MatrixProducts,
    /// Truncation outside of the head.
    Truncation,
    /// Comparison, bit conversion and selection outside of the head.
    Comparison,
    /// Everything that the output head computes and sends.
    Head,
    /// Waiting for the neighbours' messages.
    Waiting,
    /// The rest: gathering rows, resharing products, adding weights.
    Other,
}

impl Phase {
    /// The phase of a protocol's step outside of the head.
    pub(crate) const fn of_step(step: Step) -> Phase {
        match step {
            Step::Truncate => Phase::Truncation,
            Step::Adder | Step::And | Step::BitToRing | Step::Select | Step::Input => Phase::Comparison,
            Step::Multiply | Step::Reveal => Phase::Other,
        }
    }
}

/// One party's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Cell<Instant>,
    in_head: Cell<bool>,
    booked: RefCell<BTreeMap<Phase, Duration>>,
}

impl Clock {
    pub fn new() -> Self {
        Clock { last: Cell::new(Instant::now()), in_head: Cell::new(false), booked: RefCell::default() }
    }

    /// Books the time since the last mark.
    pub fn mark(&self, phase: Phase) {
        let phase = match phase {
            Phase::MatrixProducts | Phase::Waiting => phase,
            _ if self.in_head.get() => Phase::Head,
            _ => phase,
        };
        let now = Instant::now();
        *self.booked.borrow_mut().entry(phase).or_default() += now - self.last.replace(now);
    }

    /// Forgets the time since the last mark: nothing was computed.
    pub fn restart(&self) {
        self.last.set(Instant::now());
    }

    pub fn head(&self, on: bool) {
        self.in_head.set(on);
    }

    pub fn booked(&self) -> BTreeMap<Phase, Duration> {
        self.booked.borrow().clone()
    }
}
