//! The named checks. Each gathers evidence step by step and ends in an [`Outcome`].

pub mod bit_exact;
pub mod divergence;
pub mod encoding;
pub mod error_bound;
pub mod gradient_bound;
pub mod range;

use serde::Serialize;

/// What a check found.
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
