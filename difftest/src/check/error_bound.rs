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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Element;
    use crate::config::small;
    use reference::spec::{Head, ProbePoint, Rounding};

    /// So many elements, of which so many hang on comparisons; the first outside, if any is, at this step.
    fn compared(elements: u64, ambiguous: u64, outside: Option<usize>) -> Comparison {
        let element = Element { index: (2, 1), real: 0.5, units: 32771, error: 3.0 / 65536.0, bound: 1.0 / 65536.0 };
        let first_outside = outside.map(|step| (step, element));
        Comparison { elements, ambiguous, outside: u64::from(outside.is_some()), first_outside, ..Comparison::empty() }
    }

    fn outcome(
        config: &Config,
        steps: usize,
        worst_case: &[(ProbePoint, Comparison)],
        statistical: &[(ProbePoint, Comparison)],
    ) -> Outcome {
        let mut check = Box::new(ErrorBound::new(config));
        check.judged = steps;
        check.worst_case.extend(worst_case.iter().cloned());
        check.statistical.extend(statistical.iter().cloned());
        let outside = worst_case.iter().chain(statistical).any(|(_, c)| c.outside > 0);
        assert_eq!(check.failed(), outside, "before the end");
        check.finish()
    }

    #[test]
    fn elements_that_were_not_compared_are_a_failure_unless_one_tensor_is_asked_for() {
        let mut config = small(Head::Softmax, Rounding::Probabilistic);
        let all = 2 * comparison::elements(&config.spec);
        let of =
            |config: &Config, elements| outcome(config, 2, &[(ProbePoint::Logits, compared(elements, 0, None))], &[]);
        assert_eq!(of(&config, all).word(), "PASS");
        for elements in [all - 1, all + 1] {
            let failure = of(&config, elements).failure.expect("the count is off by one");
            assert!(failure.contains(&format!("2 steps have {all}")), "{failure}");
        }
        config.only_probe = Some("logits".into());
        assert_eq!(of(&config, 1).word(), "PASS");
        assert_eq!(of(&config, 0).word(), "OPEN", "nothing was compared");
    }

    #[test]
    fn a_tensor_of_which_more_than_half_hangs_on_comparisons_is_not_judged() {
        let config = Config { only_probe: Some("logits".into()), ..small(Head::Softmax, Rounding::Probabilistic) };
        let of = |ambiguous| outcome(&config, 1, &[(ProbePoint::Logits, compared(8, ambiguous, None))], &[]);
        assert_eq!((of(4).word(), of(5).word()), ("PASS", "OPEN"));
        assert!(of(5).summary.ends_with("; logits: 5 of 8 hang on comparisons, too many to judge it"));
        let failed = outcome(&config, 1, &[(ProbePoint::Logits, compared(8, 7, Some(0)))], &[]);
        assert_eq!(failed.word(), "FAIL", "one that is outside fails whatever the others hang on");
    }

    #[test]
    fn the_first_step_is_told_and_of_it_the_tensor_that_is_computed_first() {
        let config = Config { only_probe: Some("logits".into()), ..small(Head::Softmax, Rounding::Probabilistic) };
        let (early, late) = (ProbePoint::PreActivation(1), ProbePoint::HeadGradient);
        let failure =
            |worst: &[_], statistical: &[_]| outcome(&config, 9, worst, statistical).failure.expect("outside");
        let text = failure(&[(early, compared(9, 0, Some(5))), (late, compared(9, 0, Some(4)))], &[]);
        assert!(text.contains("step 4, head_gradient[2, 1]") && text.contains("worst-case bound 1.0000"), "{text}");
        let text = failure(&[(early, compared(9, 0, Some(4))), (late, compared(9, 0, Some(4)))], &[]);
        assert!(text.contains("step 4, layer1/") && text.contains("error 3.0000 units"), "{text}");
        let text = failure(&[(late, compared(9, 0, Some(7)))], &[(early, compared(9, 0, Some(1)))]);
        assert!(text.contains("step 7") && text.contains("worst-case"), "the proven bound comes first: {text}");
        let text = failure(&[(late, compared(9, 0, None))], &[(early, compared(9, 0, Some(1)))]);
        assert!(text.contains("step 1") && text.contains("statistical bound"), "{text}");
    }

    #[test]
    fn the_statistical_bound_is_told_of_where_there_is_one() {
        let config = Config { only_probe: Some("logits".into()), ..small(Head::Softmax, Rounding::Probabilistic) };
        let worst = [(ProbePoint::Logits, compared(8, 0, None))];
        let summary = |statistical: &[_]| outcome(&config, 1, &worst, statistical).summary;
        assert!(!summary(&[]).contains("statistical"));
        let one = summary(&[(ProbePoint::Logits, compared(8, 0, None))]);
        assert!(one.contains("; 0 of 8 outside the statistical one (by chance: 2^-40 a run)"), "{one}");
    }
}
