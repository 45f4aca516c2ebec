//! `range`: no operand of the fixed-point arithmetic left the range in which it is exact, as seen by the integer
//! model's monitor.

use super::comparison::Judged;
use super::{Check, Outcome};
use crate::config::Config;
use crate::count::counted;
use crate::trace::Trace;
use reference::fixed::Violation;
use std::collections::BTreeMap;

/// Gathers the operands that left their range.
#[derive(Debug)]
pub struct Range<'c> {
    config: &'c Config,
    first: Option<(usize, Violation)>,
    counts: BTreeMap<String, u64>,
}

impl<'c> Range<'c> {
    /// Nothing seen yet.
    pub fn new(config: &'c Config) -> Self {
        Range { config, first: None, counts: BTreeMap::new() }
    }
}

impl Check for Range<'_> {
    fn name(&self) -> &'static str {
        "range"
    }

    fn see(&mut self, trace: &Trace, _: Option<&Judged>) {
        for (name, count) in trace.violations.counts() {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        if self.first.is_none() {
            self.first = trace.violations.violations().first().map(|v| (trace.step, v.clone()));
        }
    }

    fn failed(&self) -> bool {
        self.first.is_some()
    }

    fn finish(self: Box<Self>) -> Outcome {
        let total: u64 = self.counts.values().sum();
        let summary = match self.counts.iter().max_by_key(|(_, n)| **n) {
            None => "every operand inside its range".to_owned(),
            Some((most, n)) => format!("{} out of range, most often ({n}) in {most}", counted(total, "operand")),
        };
        let failure = self.first.map(|(step, v)| {
            format!(
                "FAIL range   step {step}: {v}{}\n  beyond it the ring wraps; lower --lr, stop earlier, or choose a \
                 head that keeps the logits' scale\n  again: {}",
                beyond(&v),
                self.config.command(&format!("--steps {}", step + 1))
            )
        });
        Outcome::new("range", summary, failure)
    }
}

/// How far beyond, as units say little to somebody who thinks in reals.
fn beyond(v: &Violation) -> String {
    let (lowest, highest) = (*v.allowed.start(), *v.allowed.end());
    let limit = if v.operand > highest { highest } else { lowest };
    // Below a range that begins at 0 there is no factor.
    let factor = v.operand as f64 / limit as f64;
    if limit != 0 && factor > 1.0 { format!(", {factor:.3} times its limit") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_told_by_its_factor_where_it_has_one() {
        let of = |operand, allowed| beyond(&Violation { operation: "a".into(), index: 0, operand, allowed });
        assert_eq!(of(300, 0..=200), ", 1.500 times its limit");
        assert_eq!(of(-300, -200..=199), ", 1.500 times its limit");
        assert_eq!(of(-3, 0..=200), "");
        assert_eq!(of(3, -200..=0), "");
    }
}
