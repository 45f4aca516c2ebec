//! `divergence`: what became of the training on each side, told apart by cause. Accuracy or a NaN alone is no test for
//! it: a head that fixes only the ratios of the logits keeps classifying well while their scale leaves every
//! fixed-point range.

use super::Outcome;
use crate::chance::Chance;
use crate::compare::{place, real};
use crate::config::Config;
use crate::side::Tensors;
use crate::trace::Trace;
use ndarray::Array2;
use reference::spec::{FixedSpec, ProbePoint, TrainSpec};
use serde::{Deserialize, Serialize};

/// The verdict on one side's training.
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
    /// None of the others, but accuracy is at chance after too few steps to say more.
    TooFewSteps {
        /// On the test set.
        accuracy: f64,
        /// The share of the most frequent label.
        chance: f64,
        /// The number of steps taken.
        steps: usize,
    },
    /// None of the others, but on so few test rows the accuracy cannot be told from chance.
    TooFewRows {
        /// On the test set.
        accuracy: f64,
        /// The share of the most frequent label.
        chance: f64,
        /// Test rows.
        rows: usize,
    },
    /// Accuracy at chance after enough steps, or with a hidden layer whose units are all dead.
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
            Verdict::TooFewSteps { accuracy, chance, steps } => write!(
                f,
                "not judged (accuracy {:.1} %, chance {:.1} %: {steps} {} too few)",
                100.0 * accuracy,
                100.0 * chance,
                if *steps == 1 { "step is" } else { "steps are" }
            ),
            Verdict::TooFewRows { accuracy, chance, rows } => write!(
                f,
                "not judged (accuracy {:.1} %, chance {:.1} %: {rows} test rows are too few to tell them apart)",
                100.0 * accuracy,
                100.0 * chance
            ),
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

    /// The verdict after `steps` steps in epochs of `epoch`, given accuracy on the test set and what chance is there.
    pub fn verdict(&self, accuracy: f64, chance: &Chance, steps: usize, epoch: usize) -> Verdict {
        let found = self.non_finite.as_ref().or(self.range.as_ref()).or(self.grows.as_ref());
        if let Some(verdict) = found {
            return verdict.clone();
        }
        let (share, rows, dead_layer) = (chance.share, chance.rows, self.dead_layer);
        let enough = steps >= epoch.max(ENOUGH_STEPS);
        let level = chance.level();
        // With one label alone nobody can be better than chance.
        let doubtful = share < 1.0 && accuracy <= chance.doubtful();
        match () {
            // Behind a dead layer every row looks alike, however long the training goes on.
            () if accuracy < level && (enough || dead_layer.is_some()) => Verdict::Stalls { accuracy, dead_layer },
            () if !enough && (accuracy < level || doubtful) => Verdict::TooFewSteps { accuracy, chance: share, steps },
            () if doubtful => Verdict::TooFewRows { accuracy, chance: share, rows },
            () => Verdict::Trains,
        }
    }
}

/// Steps before which accuracy at chance says nothing, however short the epochs are.
pub const ENOUGH_STEPS: usize = 100;

impl Verdict {
    /// Whether something is wrong, as opposed to right or unknown.
    pub fn fails(&self) -> bool {
        !matches!(self, Verdict::Trains | Verdict::TooFewSteps { .. } | Verdict::TooFewRows { .. })
    }
}

/// How a training ended, which decides whether a side learnt anything.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// Part of the test set that each side classifies correctly.
    pub accuracy: [f64; 3],
    /// The share of the test set that a side gets right which has learnt nothing.
    pub chance: Chance,
    /// The number of steps taken.
    pub steps: usize,
    /// Steps of one pass over the training set.
    pub epoch: usize,
}

/// The evidence of the three sides, step by step.
#[derive(Debug, Clone)]
pub struct Divergence {
    sides: [Evidence; 3],
}

impl Divergence {
    /// Nothing seen yet of the sides with these names, in the order real, integer, tested.
    pub fn new(names: [&'static str; 3], spec: &TrainSpec) -> Self {
        Divergence { sides: names.map(|name| Evidence::new(name, spec.fixed)) }
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
        let verdict =
            |(e, accuracy): (&Evidence, f64)| (e.side, e.verdict(accuracy, &end.chance, end.steps, end.epoch));
        self.sides.iter().zip(end.accuracy).map(verdict).collect()
    }
}

/// The verdict on all sides: it fails if one of them does not train, and is open if a training that was long enough
/// cannot be told from chance.
pub fn outcome(config: &Config, sides: &[(&'static str, Verdict)]) -> Outcome {
    let list: Vec<_> = sides.iter().map(|(side, v)| format!("{side} {v}")).collect();
    let failure = sides.iter().find(|(_, v)| v.fails()).map(|_| {
        let lines: String = list.iter().map(|l| format!("\n  {l}")).collect();
        format!("FAIL divergence{lines}\n  again: {}", config.command(&format!("--steps {}", config.steps)))
    });
    if failure.is_none() && sides.iter().any(|(_, v)| matches!(v, Verdict::TooFewRows { .. })) {
        return Outcome::open("divergence", list.join(", "));
    }
    Outcome::new("divergence", list.join(", "), failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// Ten balanced classes.
    const TEN: Chance = Chance { share: 0.1, rows: 10_000 };

    #[test]
    fn causes_are_told_apart_and_the_first_step_is_kept() {
        let watch = || Evidence::new("real", FixedSpec::default());
        let logits = |v: f64| Tensors::from([(ProbePoint::Logits, array![[0.0, v]])]);
        let verdict = |w: &Evidence, accuracy| w.verdict(accuracy, &TEN, 500, 400);

        let mut w = watch();
        w.step(0, &logits(32767.9), |v| *v);
        assert_eq!(verdict(&w, 0.5), Verdict::Trains);
        w.step(1, &logits(-32768.0), |v| *v);
        w.step(2, &logits(1e9), |v| *v);
        assert_eq!(verdict(&w, 0.9), Verdict::Grows { step: 1, at: "logits[0, 1]".into(), value: -32768.0 });
        w.violated(3, "head/sum[0]".into());
        assert!(matches!(verdict(&w, 0.9), Verdict::Range { step: 3, .. }));
        w.step(4, &logits(f64::NAN), |v| *v);
        assert!(matches!(verdict(&w, 0.9), Verdict::NonFinite { step: 4, .. }));
    }

    #[test]
    fn accuracy_is_judged_against_the_labels_shares_after_enough_steps() {
        let watch = Evidence::new("real", FixedSpec::default());
        let stalls = |accuracy| Verdict::Stalls { accuracy, dead_layer: None };
        assert_eq!(watch.verdict(0.1, &TEN, 500, 400), stalls(0.1));
        let few = Verdict::TooFewSteps { accuracy: 0.1, chance: 0.1, steps: 399 };
        assert_eq!(watch.verdict(0.1, &TEN, 399, 400), few, "before the end of an epoch");
        assert!(matches!(watch.verdict(0.0, &TEN, 10, 2), Verdict::TooFewSteps { .. }), "five tiny epochs");
        assert_eq!(watch.verdict(0.12, &TEN, 10, 400), Verdict::Trains);

        let two = Chance { share: 0.5, rows: 1000 };
        assert_eq!(watch.verdict(0.521, &two, 500, 400), stalls(0.521));
        assert_eq!(watch.verdict(0.6, &two, 500, 400), Verdict::Trains);
        let rare = Chance { share: 0.95, rows: 10_000 };
        assert_eq!(watch.verdict(0.95, &rare, 500, 400), stalls(0.95));
        assert_eq!(watch.verdict(0.97, &rare, 500, 400), Verdict::Trains);
        let small = Chance { share: 0.5, rows: 40 };
        let rows = Verdict::TooFewRows { accuracy: 0.7, chance: 0.5, rows: 40 };
        assert_eq!(watch.verdict(0.7, &small, 500, 400), rows);
        assert!(matches!(watch.verdict(0.7, &small, 10, 2), Verdict::TooFewSteps { .. }), "both are too few");
        assert_eq!(watch.verdict(1.0, &Chance { share: 1.0, rows: 40 }, 500, 400), Verdict::Trains, "one label");
    }

    #[test]
    fn behind_a_dead_layer_no_number_of_steps_is_too_few() {
        let mut w = Evidence::new("real", FixedSpec::default());
        w.step(0, &Tensors::from([(ProbePoint::Activation(1), array![[0.0, 0.0]])]), |v| *v);
        assert_eq!(w.verdict(0.1, &TEN, 1, 400), Verdict::Stalls { accuracy: 0.1, dead_layer: Some(1) });
        let mnist = Chance { share: 0.1135, rows: 10_000 };
        assert_eq!(w.verdict(0.1135, &mnist, 1, 400), Verdict::Stalls { accuracy: 0.1135, dead_layer: Some(1) });
        assert_eq!(w.verdict(0.3, &TEN, 1, 400), Verdict::Trains, "the other rows may pass the layer");
        w.step(1, &Tensors::from([(ProbePoint::Activation(1), array![[0.0, 0.5], [0.0, 0.0]])]), |v| *v);
        let few = Verdict::TooFewSteps { accuracy: 0.1, chance: 0.1, steps: 2 };
        assert_eq!(w.verdict(0.1, &TEN, 2, 400), few, "one unit of the layer is alive");
        let dead = |l| (ProbePoint::Activation(l), array![[0.0]]);
        w.step(2, &Tensors::from([(ProbePoint::Activation(1), array![[1.0]]), dead(2), dead(3)]), |v| *v);
        assert_eq!(w.verdict(0.1, &TEN, 3, 400), Verdict::Stalls { accuracy: 0.1, dead_layer: Some(2) });
    }

    #[test]
    fn what_cannot_be_judged_is_no_failure() {
        let config = crate::config::small(reference::spec::Head::Softmax, reference::spec::Rounding::Nearest);
        let few = Verdict::TooFewSteps { accuracy: 0.0, chance: 0.1, steps: 10 };
        let outcome = super::outcome(&config, &[("real", few), ("secure", Verdict::Trains)]);
        assert_eq!(outcome.word(), "PASS");
        assert_eq!(
            outcome.summary,
            "real not judged (accuracy 0.0 %, chance 10.0 %: 10 steps are too few), secure trains"
        );
        let rows = Verdict::TooFewRows { accuracy: 0.7, chance: 0.5, rows: 40 };
        assert_eq!(super::outcome(&config, &[("real", Verdict::Trains), ("secure", rows.clone())]).word(), "OPEN");
        let stalls = Verdict::Stalls { accuracy: 0.5, dead_layer: Some(1) };
        assert_eq!(super::outcome(&config, &[("real", rows), ("secure", stalls)]).word(), "FAIL");
    }
}
