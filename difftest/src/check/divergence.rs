//! `divergence`: what became of the training on each side, told apart by cause. Accuracy or a NaN alone is no test for it: a head
//! that fixes only the ratios of the logits keeps classifying well while their scale leaves every fixed-point range.

use super::Outcome;
use crate::compare::{place, real};
use crate::config::Config;
use crate::side::Tensors;
use crate::trace::Trace;
use ndarray::Array2;
use reference::spec::{FixedSpec, ProbePoint, TrainSpec};
use serde::{Deserialize, Serialize};

/// What became of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// None of the following.
    Trains,
    /// A logit or weight beyond the largest fixed-point value.
    Grows {
        /// First step.
        step: usize,
        /// Tensor and index.
        at: String,
        /// The value, real.
        value: f64,
    },
    /// The integer model's monitor saw an operand out of range.
    Range {
        /// First step.
        step: usize,
        /// Operation, index, operand and range.
        at: String,
    },
    /// Accuracy at chance after at least an epoch, or near it with a hidden layer whose units are all dead.
    Stalls {
        /// On the test set.
        accuracy: f64,
        /// A hidden layer without any positive activation in the last batch.
        dead_layer: Option<usize>,
    },
    /// Infinite or not a number.
    NonFinite {
        /// First step.
        step: usize,
        /// Tensor and index.
        at: String,
    },
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Trains => write!(f, "trains"),
            Verdict::Grows { step, at, value } => write!(f, "grows (step {step}: {at} = {value:.1})"),
            Verdict::Range { step, at } => write!(f, "range (step {step}: {at})"),
            Verdict::Stalls { accuracy, dead_layer } => {
                write!(f, "stalls (accuracy {:.1} %", 100.0 * accuracy)?;
                dead_layer.map_or(Ok(()), |l| write!(f, ", all units of layer {l} dead"))?;
                write!(f, ")")
            }
            Verdict::NonFinite { step, at } => write!(f, "non-finite (step {step}: {at})"),
        }
    }
}

/// One side's evidence.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// `real`, `integer` or `secure`.
    pub side: &'static str,
    limit: f64,
    grows: Option<Verdict>,
    range: Option<Verdict>,
    non_finite: Option<Verdict>,
    dead_layer: Option<usize>,
}

impl Evidence {
    /// Nothing seen yet.
    pub fn new(side: &'static str, fixed: FixedSpec) -> Self {
        let limit = fixed.limit() as f64 / fixed.one() as f64;
        Evidence { side, limit, grows: None, range: None, non_finite: None, dead_layer: None }
    }

    /// Looks at one tensor (reals) of a step.
    fn tensor(&mut self, step: usize, point: &ProbePoint, tensor: &Array2<f64>) {
        for (index, &value) in tensor.indexed_iter() {
            let at = || place(point, index);
            if !value.is_finite() && self.non_finite.is_none() {
                self.non_finite = Some(Verdict::NonFinite { step, at: at() });
            } else if value.abs() >= self.limit && self.grows.is_none() {
                self.grows = Some(Verdict::Grows { step, at: at(), value });
            }
        }
    }

    /// Looks at logits, weights and activations of a step; `real` turns an element into a real.
    pub fn step<T>(&mut self, step: usize, tensors: &Tensors<T>, real: impl Fn(&T) -> f64) {
        self.dead_layer = None;
        for (point, tensor) in tensors {
            match point {
                ProbePoint::Logits | ProbePoint::Weights(_) | ProbePoint::Bias(_) => {
                    self.tensor(step, point, &tensor.map(&real))
                }
                ProbePoint::Activation(l) if self.dead_layer.is_none() && tensor.iter().all(|v| real(v) == 0.0) => {
                    self.dead_layer = Some(*l)
                }
                _ => {}
            }
        }
    }

    /// Notes the first range violation.
    pub fn violated(&mut self, step: usize, at: String) {
        self.range.get_or_insert(Verdict::Range { step, at });
    }

    /// The verdict, given accuracy on the test set and whether an epoch has passed.
    pub fn verdict(&self, accuracy: f64, classes: usize, epoch_passed: bool) -> Verdict {
        let found = self.non_finite.as_ref().or(self.range.as_ref()).or(self.grows.as_ref());
        // The paper's code calls it divergence below 11 % for ten classes. A network with a dead layer answers nearly the same for every row, and the
        // most frequent class alone is more than that (11.35 % of MNIST's test rows).
        let at_chance = accuracy < if self.dead_layer.is_some() { 2.0 } else { 1.1 } / classes as f64;
        match found {
            Some(verdict) => verdict.clone(),
            None if at_chance && (epoch_passed || self.dead_layer.is_some()) => {
                Verdict::Stalls { accuracy, dead_layer: self.dead_layer }
            }
            None => Verdict::Trains,
        }
    }
}

/// How a training ended, which decides whether a side learnt anything.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// Part of the test set that each side classifies correctly.
    pub accuracy: [f64; 3],
    /// Whether at least one pass over the training set was taken.
    pub epoch_passed: bool,
}

/// The evidence of the three sides, step by step.
#[derive(Debug, Clone)]
pub struct Divergence {
    sides: [Evidence; 3],
    classes: usize,
}

impl Divergence {
    /// Nothing seen yet of the sides with these names, in the order real, integer, tested.
    pub fn new(names: [&'static str; 3], spec: &TrainSpec) -> Self {
        Divergence { sides: names.map(|name| Evidence::new(name, spec.fixed)), classes: spec.network.classes() }
    }

    /// Looks at one step. A step that a side did not finish is not looked at.
    pub fn see(&mut self, trace: &Trace) {
        if !trace.complete() {
            return;
        }
        let (step, f) = (trace.step, trace.spec.fixed.fraction_bits);
        let [real_side, integer, tested] = &mut self.sides;
        real_side.step(step, &trace.real.tensors, |v| *v);
        integer.step(step, &trace.integer.tensors, |v| real(*v, f));
        tested.step(step, &trace.tested.tensors, |v| real(*v, f));
        if let Some(violation) = trace.violations.violations().first() {
            integer.violated(step, violation.to_string());
        }
    }

    /// The evidence of one side, for what no trace shows: tensors of evaluations between steps.
    pub fn side(&mut self, number: usize) -> &mut Evidence {
        &mut self.sides[number]
    }

    /// The verdict on every side.
    pub fn verdicts(&self, end: &Ending) -> Vec<(&'static str, Verdict)> {
        let verdict = |(e, accuracy): (&Evidence, f64)| (e.side, e.verdict(accuracy, self.classes, end.epoch_passed));
        self.sides.iter().zip(end.accuracy).map(verdict).collect()
    }
}

/// The verdict on all sides: it passes if all of them train.
pub fn outcome(config: &Config, sides: &[(&'static str, Verdict)]) -> Outcome {
    let list: Vec<_> = sides.iter().map(|(side, v)| format!("{side} {v}")).collect();
    let failure = sides.iter().find(|(_, v)| *v != Verdict::Trains).map(|_| {
        let lines: String = list.iter().map(|l| format!("\n  {l}")).collect();
        format!("FAIL divergence{lines}\n  again: {}", config.command(&format!("--steps {}", config.steps)))
    });
    Outcome::new("divergence", list.join(", "), failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn causes_are_told_apart_and_the_first_step_is_kept() {
        let watch = || Evidence::new("real", FixedSpec::default());
        let logits = |v: f64| Tensors::from([(ProbePoint::Logits, array![[0.0, v]])]);

        let mut w = watch();
        w.step(0, &logits(32767.9), |v| *v);
        assert_eq!(w.verdict(0.5, 10, true), Verdict::Trains);
        w.step(1, &logits(-32768.0), |v| *v);
        w.step(2, &logits(1e9), |v| *v);
        assert_eq!(w.verdict(0.9, 10, true), Verdict::Grows { step: 1, at: "logits[0, 1]".into(), value: -32768.0 });
        w.violated(3, "head/sum[0]".into());
        assert!(matches!(w.verdict(0.9, 10, true), Verdict::Range { step: 3, .. }));
        w.step(4, &logits(f64::NAN), |v| *v);
        assert!(matches!(w.verdict(0.9, 10, true), Verdict::NonFinite { step: 4, .. }));

        let mut w = watch();
        w.step(0, &Tensors::from([(ProbePoint::Activation(1), array![[0.0, 0.0]])]), |v| *v);
        assert_eq!(w.verdict(0.1, 10, false), Verdict::Stalls { accuracy: 0.1, dead_layer: Some(1) });
        assert_eq!(w.verdict(0.1140, 10, true), Verdict::Stalls { accuracy: 0.1140, dead_layer: Some(1) });
        assert_eq!(
            w.verdict(0.3, 10, true),
            Verdict::Trains,
            "the rest of the network may do without that layer's last batch"
        );
        assert_eq!(watch().verdict(0.1140, 10, true), Verdict::Trains);
        assert_eq!(watch().verdict(0.1, 10, false), Verdict::Trains, "a few steps say nothing about accuracy");
        assert!(matches!(watch().verdict(0.1, 10, true), Verdict::Stalls { .. }));
    }
}
