//! All checks together, step by step.

use super::comparison::{self, Judged};
use super::{Check, Outcome, bit_exact, encoding, error_bound, gradient_bound, range};
use crate::config::Config;
use crate::error::Error;
use crate::trace::Trace;
use fixtures::Split;

/// Every check of single steps, in the order of the report. `data` is the training set that the batches are taken from,
/// if they are.
///
/// # Errors
/// Constants that cannot be encoded.
pub fn all<'c>(config: &'c Config, data: Option<&'c Split>) -> Result<Vec<Box<dyn Check + 'c>>, Error> {
    Ok(vec![
        Box::new(encoding::Encodings::new(config, data)?),
        Box::new(bit_exact::BitExact::new(config)),
        Box::new(error_bound::ErrorBound::new(config)),
        Box::new(gradient_bound::GradientBound::new(config)),
        Box::new(range::Range::new(config)),
    ])
}

/// The checks of a run, step by step.
pub struct Judge<'c> {
    config: &'c Config,
    checks: Vec<Box<dyn Check + 'c>>,
    elements: u64,
    in_range: bool,
}

impl<'c> Judge<'c> {
    /// Judges by `checks`. The statistical bound fails with probability 2^-40 over `elements` elements: those of the
    /// whole run, whatever part of it is looked at.
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
                Some(comparison::judge(trace, &start.values, self.elements, |point| self.config.wants(point))?)
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
