//! `gradient-bound`: no element of the head's gradient exceeds what the head promises.
//!
//! 1/eps for the heads with a threshold (|1/S - 1/x_t| < 1/x_t <= 1/eps; section 3 of arXiv 2011.11202), 1/e for `relu-eps`, and 1
//! for softmax and relu-grad, whose gradients are differences of probabilities. Exactly in f64; the secure side may add its error bound.

use super::Outcome;
use crate::bound::network::Bounded;
use crate::compare::{place, real};
use crate::config::Config;
use crate::failure::{Failure, Sides};
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
#[derive(Debug, Default)]
pub struct GradientBound {
    largest_real: f64,
    /// Of the steps that were judged.
    largest_secure: Option<f64>,
    first: Option<String>,
}

impl GradientBound {
    /// Checks one step's head gradient; without a bound (a step that is not judged) only the f64 side.
    pub fn step(
        &mut self,
        config: &Config,
        step: usize,
        gradient: &Array2<f64>,
        secure: &Array2<i64>,
        bounded: Option<&Bounded>,
    ) {
        let (limit, scale) = (limit(&config.spec), config.spec.fixed.fraction_bits);
        for (index, &g) in gradient.indexed_iter() {
            let units = secure[index];
            let allowed = bounded.map_or(f64::INFINITY, |b| limit + b.radius[index]);
            let value = real(units, scale).abs();
            self.largest_real = self.largest_real.max(g.abs());
            if bounded.is_some() {
                self.largest_secure = Some(self.largest_secure.unwrap_or(0.0).max(value));
            }
            if self.first.is_none() && !(g.abs() <= limit && value <= allowed) {
                let failure = Failure {
                    check: "gradient-bound",
                    at: format!("step {step}, {}", place(&ProbePoint::HeadGradient, index)),
                    sides: Sides { real: Some(g), integer: None, secure: Some(units), scale },
                    what: format!("real must be within {limit}, secure within {allowed}"),
                    repeat: format!("--step {step} --probe head_gradient"),
                };
                self.first = Some(failure.text(config));
            }
        }
    }

    /// Whether any gradient was too large so far.
    pub fn failed(&self) -> bool {
        self.first.is_some()
    }

    /// The verdict.
    pub fn finish(self, config: &Config) -> Outcome {
        let (real, limit) = (self.largest_real, limit(&config.spec));
        match self.largest_secure {
            None if self.first.is_none() => {
                let summary =
                    format!("largest |gradient| {real:.6} real; the head promises {limit}; secure: no step was judged");
                Outcome::open("gradient-bound", summary)
            }
            secure => {
                let secure = secure.map_or("-".into(), |v| format!("{v:.6}"));
                let summary = format!("largest |gradient| {real:.6} real, {secure} secure; the head promises {limit}");
                Outcome::new("gradient-bound", summary, self.first)
            }
        }
    }
}
