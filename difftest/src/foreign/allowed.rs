//! The error that an operation may have, in units: from the header's rounding and the number of truncations.

use crate::trace::header::{Header, Numbers, TraceRounding, Truncation};

/// How often an operation truncates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncations {
    /// Never: integers must be equal.
    None,
    /// So many times, whatever the header says of terms.
    Times(usize),
    /// Once a dot product or once a term, as the header says.
    DotProduct,
}

/// Least and largest error in units; whether the ends are excluded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowed {
    /// The least error that is allowed.
    pub low: f64,
    /// The largest error that is allowed.
    pub high: f64,
    /// Whether an error of exactly -1 or 1 truncation is a fault already: a probabilistic truncation never moves an
    /// exact multiple.
    pub open: bool,
    /// Whether the least error itself is a fault, because halves go up.
    pub ties_up: bool,
    /// The number of truncations counted.
    pub count: usize,
}

impl Allowed {
    /// The bound of an operation over `terms` terms.
    pub fn of(header: &Header, truncations: Truncations, terms: usize) -> Self {
        let count = match truncations {
            Truncations::None => 0,
            Truncations::Times(n) => n,
            Truncations::DotProduct if header.truncation == Truncation::DotProduct => 1,
            Truncations::DotProduct => terms,
        };
        if count == 0 || header.numbers != Numbers::Fixed {
            return Allowed { low: 0.0, high: 0.0, open: false, ties_up: false, count: 0 };
        }
        let k = count as f64;
        let ties_up = header.ties_up && header.rounding == TraceRounding::Nearest && header.truncation_error.is_none();
        let (low, high, open) = match (header.truncation_error, header.rounding) {
            (Some([low, high]), _) => (low, high, false),
            (None, TraceRounding::Nearest) => (-0.5, 0.5, false),
            (None, TraceRounding::Probabilistic) => (-1.0, 1.0, true),
            (None, TraceRounding::Floor) => (-1.0, 0.0, false),
            (None, TraceRounding::Local | TraceRounding::Unknown) => (-1.0, 1.0, false),
        };
        Allowed { low: k * low, high: k * high, open, ties_up, count }
    }

    /// Whether an error of `units` is inside, with `slack` units for what is not known exactly.
    pub fn holds(&self, units: f64, slack: f64) -> bool {
        if slack == 0.0 && self.open {
            units > self.low && units < self.high
        } else if slack == 0.0 && self.ties_up {
            units > self.low && units <= self.high
        } else {
            units >= self.low - slack && units <= self.high + slack
        }
    }
}
