//! The named checks. Each is a [`Check`] in a file of its own, gathers evidence from one [`Trace`] after the other and
//! ends in an [`Outcome`].
//!
//! To add one, write its file and name it in [`judge::all`].

pub mod bit_exact;
pub mod comparison;
pub mod divergence;
pub mod encoding;
pub mod error_bound;
pub mod gradient_bound;
pub mod judge;
pub mod range;

use crate::trace::Trace;
use comparison::Judged;
use serde::Serialize;

/// The verdict of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its name on the report.
    pub name: &'static str,
    /// Whether it holds. Not so where there was nothing to judge.
    pub passed: bool,
    /// Whether there was nothing to judge, or too little, and no failure either.
    pub open: bool,
    /// One line: what was checked and how much of it.
    pub summary: String,
    /// The first failure in full, with the command that repeats it.
    pub failure: Option<String>,
}

impl Outcome {
    /// Passes if there is no failure.
    pub fn new(name: &'static str, summary: String, failure: Option<String>) -> Self {
        Outcome { name, passed: failure.is_none(), open: false, summary, failure }
    }

    /// Neither passes nor fails: of what the check is about, too little could be compared.
    pub fn open(name: &'static str, summary: String) -> Self {
        Outcome { name, passed: false, open: true, summary, failure: None }
    }

    /// `PASS`, `FAIL` or `OPEN`.
    pub fn word(&self) -> &'static str {
        match (self.passed, self.open) {
            (true, _) => "PASS",
            (false, true) => "OPEN",
            (false, false) => "FAIL",
        }
    }

    /// Its line of a report.
    pub fn line(&self) -> String {
        format!("{}  {:<15} {}\n", self.word(), self.name, self.summary)
    }
}

/// One named check.
pub trait Check {
    /// The name on the report.
    fn name(&self) -> &'static str;

    /// Looks at one step; `judged` holds its distances to the real side and their bounds, where they are proven: in a
    /// step that starts all sides from the same parameters, as long as no operand has left its range.
    fn see(&mut self, trace: &Trace, judged: Option<&Judged>);

    /// Whether anything was wrong so far.
    fn failed(&self) -> bool;

    /// The verdict on all steps seen.
    fn finish(self: Box<Self>) -> Outcome;
}

#[cfg(test)]
mod tests;
