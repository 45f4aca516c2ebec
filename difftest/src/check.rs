//! The named checks. Each gathers evidence step by step and ends in an [`Outcome`].

pub mod bit_exact;
pub mod divergence;
pub mod error_bound;
pub mod gradient_bound;
pub mod range;
pub mod rounding;
pub mod side;
pub mod transcript;

use serde::Serialize;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its name on the report.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// One line: what was checked and how much of it.
    pub summary: String,
    /// The first failure in full, with the command that repeats it.
    pub failure: Option<String>,
}

impl Outcome {
    /// Passes if there is no failure.
    pub fn new(name: &'static str, summary: String, failure: Option<String>) -> Self {
        Outcome { name, passed: failure.is_none(), summary, failure }
    }
}
