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
