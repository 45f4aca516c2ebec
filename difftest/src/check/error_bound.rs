//! `error-bound`: every element of every probed tensor lies inside its proven bounds around f64, or agrees with one
//! outcome of the comparisons it depends on. Two bounds, judged and named apart: the worst case over all coins, and
//! under probabilistic rounding the statistical one, which chance exceeds in one of 2^40 runs at most.

use super::comparison::{self, Comparisons, Judged, merge};
use super::{Check, Outcome};
use crate::bound::statistical::LOG2_FAILURE;
use crate::compare::{Comparison, place};
use crate::config::Config;
use crate::count::counted;
use crate::failure::{Failure, Sides};
use crate::trace::Trace;
use std::fmt::Write;

/// Gathers the distances of all steps.
#[derive(Debug)]
pub struct ErrorBound<'c> {
    config: &'c Config,
    tested: &'static str,
    worst_case: Comparisons,
    statistical: Comparisons,
    judged: usize,
    /// The first step with an operand out of range: from there on nothing is proven.
    left: Option<usize>,
}

impl<'c> ErrorBound<'c> {
    /// Nothing compared yet.
    pub fn new(config: &'c Config) -> Self {
        let (worst_case, statistical) = (Comparisons::new(), Comparisons::new());
        ErrorBound { config, tested: "secure", worst_case, statistical, judged: 0, left: None }
    }

    /// How much was compared, and how much of it is outside or hangs on comparisons.
    fn summary(&self) -> String {
        let ErrorBound { worst_case, statistical, judged, .. } = self;
        let (elements, ambiguous) = (sum(worst_case, |c| c.elements), sum(worst_case, |c| c.ambiguous));
        let outside = sum(worst_case, |c| c.outside);
        let mut summary = format!(
            "{outside} of {} of {} outside their bound, {ambiguous} ambiguous",
            counted(elements, "element"),
            counted(*judged, "step")
        );
        if !statistical.is_empty() {
            let (outside, elements) = (sum(statistical, |c| c.outside), sum(statistical, |c| c.elements));
            let _ = write!(
                summary,
                "; {outside} of {elements} outside the statistical one (by chance: 2^{LOG2_FAILURE} a run)"
            );
        }
        if let Some(step) = self.left {
            let _ = write!(summary, "; not judged from step {step} on, where the range was left");
        }
        summary
    }

    /// The text of the first failure: an element outside, or elements that were not compared.
    fn failure(&self) -> Option<String> {
        let missing = || {
            let (elements, steps) = (sum(&self.worst_case, |c| c.elements), self.judged);
            let expected = comparison::elements(&self.config.spec) * steps as u64;
            let have = if steps == 1 { "has" } else { "have" };
            let were = if elements == 1 { "was" } else { "were" };
            let (elements_text, steps_text) = (counted(elements, "element"), counted(steps, "step"));
            let text = format!("FAIL error-bound   {elements_text} {were} compared; {steps_text} {have} {expected}");
            (self.config.only_probe.is_none() && elements != expected).then_some(text)
        };
        self.first(&self.worst_case, "worst-case bound")
            .or_else(|| self.first(&self.statistical, "statistical bound"))
            .or_else(missing)
    }

    /// The text of the first element outside: the first step, and within it the tensor that is computed first.
    fn first(&self, tensors: &Comparisons, kind: &str) -> Option<String> {
        let config = self.config;
        let first =
            tensors.iter().filter_map(|(p, c)| c.first_outside.as_ref().map(|f| (p, f))).min_by_key(|(p, f)| (f.0, *p));
        first.map(|(point, (step, e))| {
            let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
            let unit = 2f64.powi(config.spec.fixed.fraction_bits as i32);
            let (error, bound) = (e.error * unit, e.bound * unit);
            let bits = config.spec.fixed.fraction_bits;
            Failure {
                check: "error-bound",
                at: format!("step {step}, {}", place(point, e.index)),
                sides: Sides { real: Some(e.real), integer: None, tested: Some((self.tested, e.units)), scale },
                what: format!("error {error:.4} units   {kind} {bound:.4} units of 2^-{bits}"),
                repeat: format!("--step {step} --probe {point}"),
            }
            .text(config)
        })
    }
}

impl Check for ErrorBound<'_> {
    fn name(&self) -> &'static str {
        "error-bound"
    }

    fn see(&mut self, trace: &Trace, judged: Option<&Judged>) {
        self.tested = trace.tested_name;
        if trace.violations.total() > 0 {
            self.left.get_or_insert(trace.step);
        }
        let Some(judged) = judged else { return };
        self.judged += 1;
        merge(&mut self.worst_case, &judged.worst_case);
        merge(&mut self.statistical, &judged.statistical);
    }

    fn failed(&self) -> bool {
        self.worst_case.values().chain(self.statistical.values()).any(|c| c.outside > 0)
    }

    fn finish(self: Box<Self>) -> Outcome {
        let (mut summary, failure) = (self.summary(), self.failure());
        // What hangs on a comparison agrees with one of its outcomes, which is little to say of a tensor that hangs on
        // them as a whole.
        let undecided = self.worst_case.iter().find(|(_, c)| 2 * c.ambiguous > c.elements);
        if failure.is_some() || (sum(&self.worst_case, |c| c.elements) > 0 && undecided.is_none()) {
            return Outcome::new("error-bound", summary, failure);
        }
        if let Some((point, c)) = undecided {
            let (part, all) = (c.ambiguous, c.elements);
            let _ = write!(summary, "; {point}: {part} of {all} hang on comparisons, too many to judge it");
        }
        Outcome::open("error-bound", summary)
    }
}

fn sum(list: &Comparisons, of: fn(&Comparison) -> u64) -> u64 {
    list.values().map(of).sum()
}
