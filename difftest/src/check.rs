//! The named checks. Each is a [`Check`] in a file of its own, gathers evidence from one [`Trace`] after the other and ends in an [`Outcome`].
//!
//! To add one, write its file and name it in [`all`].

pub mod bit_exact;
pub mod divergence;
pub mod error_bound;
pub mod gradient_bound;
pub mod range;

use crate::config::Config;
use crate::error::Error;
use crate::trace::Trace;
use error_bound::Judged;
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

/// One named check.
pub trait Check {
    /// The name on the report.
    fn name(&self) -> &'static str;

    /// Looks at one step; `judged` holds its distances to the real side and their bounds, where they are proven: in a step that starts all sides from
    /// the same parameters, as long as no operand has left its range.
    fn see(&mut self, trace: &Trace, judged: Option<&Judged>);

    /// Whether anything was wrong so far.
    fn failed(&self) -> bool;

    /// The verdict on all steps seen.
    fn finish(self: Box<Self>) -> Outcome;
}

/// Every check of single steps, in the order of the report.
pub fn all(config: &Config) -> Vec<Box<dyn Check + '_>> {
    vec![
        Box::new(bit_exact::BitExact::new(config)),
        Box::new(error_bound::ErrorBound::new(config)),
        Box::new(gradient_bound::GradientBound::new(config)),
        Box::new(range::Range::new(config)),
    ]
}

/// The checks of a run, step by step.
pub struct Judge<'c> {
    config: &'c Config,
    checks: Vec<Box<dyn Check + 'c>>,
    elements: u64,
    in_range: bool,
}

impl<'c> Judge<'c> {
    /// Judges by `checks`. The statistical bound fails with probability 2^-40 over `elements` elements: those of the whole run, whatever part of it is
    /// looked at.
    pub fn new(config: &'c Config, checks: Vec<Box<dyn Check + 'c>>, elements: u64) -> Self {
        Judge { config, checks, elements, in_range: true }
    }

    /// Shows a step to every check; returns its distances and bounds, where they are proven and asked for.
    ///
    /// # Errors
    /// A name for `--probe` that no tensor has; constants that cannot be encoded.
    pub fn see(&mut self, trace: &Trace) -> Result<Option<Judged>, Error> {
        self.in_range &= trace.violations.total() == 0;
        let compared = trace.complete() && self.config.compares(trace.step);
        if compared {
            self.config.probe_exists(trace.real.tensors.keys())?;
        }
        // The bounds are theorems about arithmetic that stays in range.
        let judged = match &trace.start {
            Some(start) if compared && self.in_range => {
                Some(error_bound::judge(trace, &start.values, self.elements, |point| self.config.wants(point))?)
            }
            _ => None,
        };
        self.checks.iter_mut().for_each(|check| check.see(trace, judged.as_ref()));
        Ok(judged)
    }

    /// Whether any check has failed so far.
    pub fn failed(&self) -> bool {
        self.checks.iter().any(|check| check.failed())
    }

    /// The verdict of every check.
    pub fn finish(self) -> Vec<Outcome> {
        self.checks.into_iter().map(|check| check.finish()).collect()
    }
}
