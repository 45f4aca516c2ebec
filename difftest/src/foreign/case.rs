//! A failure that is to be explained, and what an explanation must fit.

use super::coin::Coins;
use super::judged::Judged;
use super::outcome::Alternative;
use super::view::View;
use crate::trace::header::Header;
use serde::Serialize;

/// The name where nothing explains a failure.
pub const UNKNOWN: &str = "unknown";

/// A cause with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The name of the cause in reports.
    pub name: &'static str,
    /// The evidence, in numbers.
    pub evidence: String,
    /// Failing elements that it explains.
    pub explained: usize,
    /// The number of failing elements.
    pub failing: usize,
}

/// A failure that is to be explained.
pub struct Case<'c> {
    /// The tensor with its errors.
    pub judged: &'c Judged,
    /// The step that it happened in.
    pub view: &'c View<'c>,
    /// The trace's header.
    pub header: &'c Header,
    /// The statistics of the coins, where there are coins.
    pub coins: Option<Coins>,
    /// The values that the operation gives under its own mistakes.
    pub alternatives: &'c [Alternative],
}

/// Part of the elements that an explanation must fit.
const MOST: f64 = 0.99;

impl Case<'_> {
    /// The cause, if `value`, before rounding, fits nearly all failing elements and nearly all elements of the tensor.
    pub fn whole(&self, name: &'static str, what: &str, value: impl Fn(usize) -> f64) -> Option<Cause> {
        self.whole_within(name, what, value, 0.0)
    }

    /// As [`Case::whole`], with some units more of tolerance.
    pub fn whole_within(
        &self,
        name: &'static str,
        what: &str,
        value: impl Fn(usize) -> f64,
        more: f64,
    ) -> Option<Cause> {
        let j = self.judged;
        let (low, high) = j.widest();
        let fits = |i: usize| {
            let error = (j.output[i] - value(i)) / j.unit;
            // Subtracting large numbers leaves the last place of them.
            let wide = more + j.output[i].abs() / j.unit * f64::EPSILON;
            error >= low - wide && error <= high + wide
        };
        let of = j.error.len();
        let all = (0..of).filter(|&i| fits(i)).count();
        if (all as f64) < MOST * of as f64 {
            return None;
        }
        self.failing(
            name,
            |explained, failing| format!("{what}: explains {explained} of {failing} failing elements"),
            fits,
        )
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
