//! What explains a failure. Each cause is one file, says what it saw in numbers, and is named only if it explains the elements that fail.

pub mod alternative;
pub mod bias;
pub mod clamp;
pub mod coins;
pub mod factor;
pub mod first_row;
pub mod missing;
pub mod offset;
pub mod range;
pub mod shifted;
pub mod sign;
pub mod transposed;
pub mod wrap;

use super::coin::Coins;
use super::judged::{Judged, Kind};
use super::operation::Alternative;
use super::view::View;
use crate::trace::header::Header;
use serde::Serialize;

/// The name where nothing explains a failure.
pub const UNKNOWN: &str = "unknown";

/// A cause with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Its name.
    pub name: &'static str,
    /// What was seen, in numbers.
    pub evidence: String,
    /// Failing elements that it explains.
    pub explained: usize,
    /// Failing elements.
    pub failing: usize,
}

/// A failure that is to be explained.
pub struct Case<'c> {
    /// The errors.
    pub judged: &'c Judged,
    /// The step that it happened in.
    pub view: &'c View<'c>,
    /// The trace's header.
    pub header: &'c Header,
    /// What the coins say, where there are coins.
    pub coins: Option<Coins>,
    /// What the operation gives under its own mistakes.
    pub alternatives: &'c [Alternative],
}

/// Part of the elements that an explanation must fit.
const MOST: f64 = 0.99;

impl Case<'_> {
    /// The cause, if `value`, before rounding, fits nearly all failing elements and nearly all elements of the tensor.
    pub fn whole(&self, name: &'static str, what: &str, value: impl Fn(usize) -> f64) -> Option<Cause> {
        let j = self.judged;
        let fits = |i: usize| j.could_be(i, value(i));
        let of = j.error.len();
        let all = (0..of).filter(|&i| fits(i)).count();
        if (all as f64) < MOST * of as f64 {
            return None;
        }
        self.failing(name, |explained, failing| format!("{what}: explains {explained} of {failing} failing elements"), fits)
    }

    /// The cause, if `fits` holds for nearly all failing elements.
    pub fn failing(
        &self,
        name: &'static str,
        evidence: impl Fn(usize, usize) -> String,
        fits: impl Fn(usize) -> bool,
    ) -> Option<Cause> {
        let failing = self.judged.outside.len();
        let explained = self.judged.outside.iter().filter(|&&i| fits(i)).count();
        if failing == 0 || (explained as f64) < MOST * failing as f64 {
            return None;
        }
        Some(Cause { name, evidence: evidence(explained, failing), explained, failing })
    }

    /// Whether enough of the tensor is not 0 for its structure to say something.
    pub fn telling(&self) -> bool {
        let j = self.judged;
        j.outside.iter().any(|&i| j.expected[i] != 0.0 || j.output[i] != 0.0)
    }
}

/// The causes, the more particular ones first.
pub const CAUSES: &[fn(&Case) -> Option<Cause>] = &[
    coins::explain,
    missing::explain,
    sign::explain,
    factor::explain,
    alternative::explain,
    wrap::explain,
    range::explain,
    transposed::explain,
    shifted::explain,
    offset::explain,
    bias::explain,
    clamp::explain,
    first_row::explain,
];

/// Explains a failure; [`UNKNOWN`] if nothing does.
pub fn explain(case: &Case) -> Vec<Cause> {
    let mut causes: Vec<_> = CAUSES.iter().filter_map(|explain| explain(case)).collect();
    if causes.is_empty() && case.judged.kind == Kind::Judged {
        let j = case.judged;
        let failing = j.outside.len();
        let worst = j.outside.iter().map(|&i| j.error[i].abs()).fold(0.0, f64::max);
        let evidence = format!("{failing} of {} elements, the largest error {worst:.3} units", j.error.len());
        causes.push(Cause { name: UNKNOWN, evidence, explained: 0, failing });
    }
    causes
}

#[cfg(test)]
mod tests;
