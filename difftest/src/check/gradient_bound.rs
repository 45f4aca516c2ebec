//! `gradient-bound`: no element of the head's gradient exceeds what the head promises.
//!
//! 1/eps for the heads with a threshold (|1/S - 1/x_t| < 1/x_t <= 1/eps; section 3 of arXiv 2011.11202), 1/e for
//! `relu-eps`, and 1 for softmax and relu-grad, whose gradients are differences of probabilities. Exactly in f64; the
//! secure side may add its error bound.

use super::comparison::Judged;
use super::{Check, Outcome};
use crate::bound::network::Bounded;
use crate::compare::{place, real};
use crate::config::Config;
use crate::failure::{Failure, Sides};
use crate::trace::Trace;
use ndarray::Array2;
use reference::spec::{Head, ProbePoint, TrainSpec};

/// The largest magnitude that the gradient of a logit can have, real.
pub fn limit(spec: &TrainSpec) -> f64 {
    match spec.head {
        Head::Softmax | Head::ReluGrad => 1.0,
        Head::ReluProb | Head::ReluProbCut => 1.0 / spec.epsilon,
        Head::ReluEps => spec.fixed.one() as f64,
    }
}

/// Gathers the largest gradients.
#[derive(Debug)]
pub struct GradientBound<'c> {
    config: &'c Config,
    tested: &'static str,
    largest_real: f64,
    /// Of the steps that were judged.
    largest_tested: Option<f64>,
    first: Option<String>,
}

impl<'c> GradientBound<'c> {
    /// Nothing seen yet.
    pub fn new(config: &'c Config) -> Self {
        GradientBound { config, tested: "secure", largest_real: 0.0, largest_tested: None, first: None }
    }

    /// Checks one step's head gradient; without a bound (a step that is not judged) only the real side's.
    fn step(&mut self, step: usize, gradient: &Array2<f64>, tested: &Array2<i64>, bounded: Option<&Bounded>) {
        let (limit, scale) = (limit(&self.config.spec), self.config.spec.fixed.fraction_bits);
        for (index, &g) in gradient.indexed_iter() {
            let units = tested[index];
            let allowed = bounded.map_or(f64::INFINITY, |b| limit + b.radius[index]);
            let value = real(units, scale).abs();
            self.largest_real = self.largest_real.max(g.abs());
            if bounded.is_some() {
                self.largest_tested = Some(self.largest_tested.unwrap_or(0.0).max(value));
            }
            if self.first.is_none() && !(g.abs() <= limit && value <= allowed) {
                let failure = Failure {
                    check: "gradient-bound",
                    at: format!("step {step}, {}", place(&ProbePoint::HeadGradient, index)),
                    sides: Sides { real: Some(g), integer: None, tested: Some((self.tested, units)), scale },
                    what: format!("real must be within {limit}, {} within {allowed}", self.tested),
                    repeat: format!("--step {step} --probe head_gradient"),
                };
                self.first = Some(failure.text(self.config));
            }
        }
    }
}

impl Check for GradientBound<'_> {
    fn name(&self) -> &'static str {
        "gradient-bound"
    }

    fn see(&mut self, trace: &Trace, judged: Option<&Judged>) {
        self.tested = trace.tested_name;
        let point = ProbePoint::HeadGradient;
        if !(trace.complete() && self.config.compares(trace.step)) {
            return;
        }
        if let (Some(real), Some(tested)) = (trace.real.tensors.get(&point), trace.tested.tensors.get(&point))
            && real.dim() == tested.dim()
        {
            self.step(trace.step, real, tested, judged.and_then(|j| j.bounds.get(&point)));
        }
    }

    fn failed(&self) -> bool {
        self.first.is_some()
    }

    fn finish(self: Box<Self>) -> Outcome {
        let (real, limit, tested) = (self.largest_real, limit(&self.config.spec), self.tested);
        match self.largest_tested {
            None if self.first.is_none() => {
                let summary = format!(
                    "largest |gradient| {real:.6} real; the head promises {limit}; {tested}: no step was judged"
                );
                Outcome::open("gradient-bound", summary)
            }
            largest => {
                let largest = largest.map_or("-".into(), |v| format!("{v:.6}"));
                let summary =
                    format!("largest |gradient| {real:.6} real, {largest} {tested}; the head promises {limit}");
                Outcome::new("gradient-bound", summary, self.first)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small;
    use ndarray::array;
    use reference::spec::Rounding;

    /// What the check says of one element: real, in units of 2^-16, and with this bound, if the step was judged.
    fn judged(head: Head, value: f64, units: i64, radius: Option<f64>) -> Outcome {
        let config = small(head, Rounding::Nearest);
        let bounded = radius.map(|r| Bounded { radius: array![[0.0, r]], ambiguous: Vec::new() });
        let mut check = Box::new(GradientBound::new(&config));
        check.step(3, &array![[0.0, value]], &array![[0, units]], bounded.as_ref());
        assert_eq!(check.failed(), check.first.is_some());
        check.finish()
    }

    #[test]
    fn every_head_keeps_the_limit_of_its_formula() {
        let limits = [
            (Head::Softmax, 1.0),
            (Head::ReluGrad, 1.0),
            (Head::ReluProb, 10.0),
            (Head::ReluProbCut, 10.0),
            (Head::ReluEps, 65536.0),
        ];
        for (head, limit) in limits {
            for sign in [1.0, -1.0] {
                assert_eq!(judged(head, sign * limit, 0, Some(0.0)).word(), "PASS", "{head}");
                assert_eq!(judged(head, sign * f64::next_up(limit), 0, Some(0.0)).word(), "FAIL", "{head}");
            }
        }
        assert_eq!(judged(Head::Softmax, f64::NAN, 0, Some(0.0)).word(), "FAIL");
    }

    #[test]
    fn the_tested_side_may_add_its_bound_and_no_more() {
        let unit = 1.0 / 65536.0;
        for sign in [1, -1] {
            assert_eq!(judged(Head::Softmax, 0.0, sign * 65538, Some(2.0 * unit)).word(), "PASS");
            let failure = judged(Head::Softmax, 0.0, sign * 65539, Some(2.0 * unit)).failure.expect("a unit too far");
            assert!(failure.contains("step 3, head_gradient[0, 1]"), "{failure}");
        }
        let outcome = judged(Head::Softmax, 0.25, -32768, Some(unit));
        assert_eq!(outcome.summary, "largest |gradient| 0.250000 real, 0.500000 secure; the head promises 1");
    }

    #[test]
    fn a_step_that_is_not_judged_says_nothing_of_the_tested_side() {
        let outcome = judged(Head::Softmax, 0.25, 1 << 40, None);
        assert_eq!(outcome.word(), "OPEN", "{outcome:?}");
        assert_eq!(judged(Head::Softmax, 1.5, 0, None).word(), "FAIL", "the real side has its limit all the same");
    }
}
