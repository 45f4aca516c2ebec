//! Range violations: what left the range in which the arithmetic is exact, where, and how often.
//!
//! The model goes on with wrapping arithmetic after a violation; the monitor is how a run that diverges says when and
//! why.

use super::truncate::Unreduced;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One operand outside its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The truncation, comparison or stored tensor, by name.
    pub operation: String,
    /// Flat, row-major, in that operation's elements.
    pub index: usize,
    /// The exact operand, before it wrapped.
    pub operand: i128,
    /// The range that was allowed, in units.
    pub allowed: RangeInclusive<i128>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Violation { operation, index, operand, allowed } = self;
        write!(f, "{operation}[{index}] is {operand}; its range is {} to {}", allowed.start(), allowed.end())
    }
}

/// Keeps the first violations and counts all of them by operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    keep: usize,
    kept: Vec<Violation>,
    counts: BTreeMap<String, u64>,
}

impl Default for Monitor {
    /// Keeps the first 16.
    fn default() -> Self {
        Monitor::new(16)
    }
}

impl Monitor {
    /// Keeps the first `keep` violations.
    pub fn new(keep: usize) -> Self {
        Monitor { keep, kept: Vec::new(), counts: BTreeMap::new() }
    }

    /// The first violations, in order of computation.
    pub fn violations(&self) -> &[Violation] {
        &self.kept
    }

    /// All violations by operation.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// The number of all violations.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns what was seen and starts afresh with the same `keep`.
    pub fn take(&mut self) -> Monitor {
        std::mem::replace(self, Monitor::new(self.keep))
    }

    /// Records one operand if it is outside `allowed`.
    pub fn check(&mut self, at: &str, index: usize, operand: i128, allowed: &RangeInclusive<i128>) {
        if !allowed.contains(&operand) {
            *self.counts.entry(at.to_owned()).or_default() += 1;
            if self.kept.len() < self.keep {
                let (operation, allowed) = (at.to_owned(), allowed.clone());
                self.kept.push(Violation { operation, index, operand, allowed });
            }
        }
    }

    /// Checks |V| < `limit` for a tensor.
    pub fn magnitude<'v>(&mut self, at: &str, values: impl IntoIterator<Item = &'v i64> + Clone, limit: i64) {
        // The bound is tested without branching first: violations are rare and tensors large.
        let limit_u = limit.unsigned_abs();
        if values.clone().into_iter().fold(false, |any, v| any | (v.unsigned_abs() >= limit_u)) {
            let allowed = i128::from(-limit + 1)..=i128::from(limit - 1);
            values.into_iter().enumerate().for_each(|(i, &v)| self.check(at, i, v.into(), &allowed));
        }
    }

    /// Checks |V| < `limit` for unreduced values, with `half` (nearest rounding's 2^(s-1), or 0) added first at the
    /// upper end.
    pub fn unreduced(&mut self, at: &str, values: &Unreduced, limit: i64, half: i64) {
        let (lo, hi) = (-limit + 1, limit - 1 - half);
        let outside = values.ring().iter().fold(false, |any, v| any | (*v < lo) | (*v > hi));
        if outside || !values.beyond().is_empty() {
            let allowed = lo.into()..=hi.into();
            let mut beyond = values.beyond().iter().peekable();
            for (i, &v) in values.ring().iter().enumerate() {
                let exact = beyond.next_if(|(at, _)| *at == i).map_or(v.into(), |&(_, exact)| exact);
                self.check(at, i, exact, &allowed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::truncate::{PRODUCT_LIMIT, UNREDUCED_LIMIT};

    #[test]
    fn keeps_the_first_and_counts_all() {
        let mut m = Monitor::new(2);
        m.magnitude("a", &[7, -8, 8, i64::MIN, -7], 8);
        assert_eq!(m.violations().iter().map(|v| (v.index, v.operand)).collect::<Vec<_>>(), [(1, -8), (2, 8)]);
        assert_eq!((m.total(), m.counts()["a"]), (3, 3));
        assert_eq!(m.violations()[0].to_string(), "a[1] is -8; its range is -7 to 7");
        assert_eq!((m.take().total(), m.total()), (3, 0));
    }

    #[test]
    fn the_exact_value_counts_even_where_the_ring_wrapped_it_back() {
        let exact = [1i128 << 64, 5, (1 << 62) - 1, 1 << 62, -(1 << 62), 1 - (1 << 62)];
        let mut m = Monitor::new(9);
        m.unreduced("p", &Unreduced::new(exact), UNREDUCED_LIMIT, 0);
        assert_eq!(m.violations().iter().map(|v| v.index).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!(m.violations()[0].operand, 1 << 64);
        m.unreduced("h", &Unreduced::new([(1i128 << 62) - 5, (1 << 62) - 4]), UNREDUCED_LIMIT, 4);
        assert_eq!(m.counts()["h"], 1, "the half of nearest rounding is included");
        let edges = [(1i128 << 61) - 1, 1 << 61, 1 - (1 << 61), -(1 << 61), (1 << 61) - 4];
        m.unreduced("product", &Unreduced::new(edges), PRODUCT_LIMIT, 0);
        assert_eq!(m.counts()["product"], 2);
    }
}
