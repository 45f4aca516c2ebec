//! `error-bound`: every element of every probed tensor lies inside its proven bounds around f64, or agrees with one outcome of the
//! comparisons it depends on. Two bounds, judged and named apart: the worst case over all coins, and under probabilistic rounding the
//! statistical one, which chance exceeds in one of 2^40 runs at most.

use super::Outcome;
use crate::bound::network::{self, Bounded, Bounds};
use crate::bound::statistical::{self, LOG2_FAILURE};
use crate::compare::{self, Comparison, place};
use crate::config::Config;
use crate::error::Error;
use crate::failure::{Failure, Sides};
use crate::side::{Batch, Tensors};
use reference::fixed::LayerValues;
use reference::spec::{Head, ProbePoint, TrainSpec};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Elements that one step compares: every tensor of [`ProbePoint`] that the head has.
pub fn elements(spec: &TrainSpec) -> u64 {
    let (batch, classes) = (spec.sgd.batch, spec.network.classes());
    let head = match spec.head {
        Head::Softmax => 2 * batch + 2 * batch * classes,
        Head::ReluGrad => batch + 2 * batch * classes,
        Head::ReluProb | Head::ReluProbCut | Head::ReluEps => 3 * batch + batch * classes,
    };
    let layer = |l| {
        let (inputs, outputs) = spec.network.shape(l);
        // Gradient, velocity and value of weights and biases; logits and their gradient, or a hidden layer's three tensors.
        3 * (inputs + 1) * outputs + (if l == spec.network.layers() { 2 } else { 3 }) * batch * outputs
    };
    (head + (1..=spec.network.layers()).map(layer).sum::<usize>()) as u64
}

/// One step's tensors against their bounds.
pub struct Judged {
    /// The worst case.
    pub bounds: Bounds,
    /// Comparisons under it.
    pub worst_case: Comparisons,
    /// Comparisons under the statistical bound, of the tensors that have one.
    pub statistical: Comparisons,
}

/// Bounds step `step` from the parameters `start` on, and compares the `wanted` tensors of a fixed-point side with f64's. The statistical bound fails
/// with probability 2^-40 over `elements` elements: those of the whole run, whatever part of it is looked at.
///
/// # Errors
/// What the bounds are made from does not fit the specification.
pub fn judge(
    spec: &TrainSpec,
    (step, elements): (usize, u64),
    start: &[LayerValues],
    batch: &Batch,
    (reals, units): (&Tensors<f64>, &Tensors<i64>),
    wanted: impl Fn(&ProbePoint) -> bool,
) -> Result<Judged, Error> {
    let (x, labels) = (&batch.reals, &batch.labels);
    let bounds = network::step(spec, start, x, labels, reals)?;
    let factor = statistical::factor(elements);
    let mut radii = statistical::step(spec, start, x, labels, reals, &bounds, factor)?.unwrap_or_default();
    let (mut worst_case, mut likely) = (Comparisons::new(), Comparisons::new());
    for (point, bounded) in bounds.iter().filter(|(point, _)| wanted(point)) {
        // A tensor of another shape is told by `bit-exact`, and missed by the count below.
        let Some(units) = units.get(point).filter(|u| u.dim() == reals[point].dim()) else { continue };
        let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
        let compared = |bounded| compare::tensor(step, &reals[point], units, scale, bounded);
        worst_case.insert(*point, compared(bounded));
        if let Some(radius) = radii.remove(point) {
            likely.insert(*point, compared(&Bounded { radius, ambiguous: bounded.ambiguous.clone() }));
        }
    }
    Ok(Judged { bounds, worst_case, statistical: likely })
}

/// The verdict on all comparisons under either bound; `judged` steps were compared, the others not, for the reason given.
pub fn finish(
    config: &Config,
    tensors: &Comparisons,
    statistical: &Comparisons,
    judged: usize,
    unjudged: Option<String>,
) -> Outcome {
    let sum = |list: &Comparisons, of: fn(&Comparison) -> u64| list.values().map(of).sum::<u64>();
    let (elements, ambiguous) = (sum(tensors, |c| c.elements), sum(tensors, |c| c.ambiguous));
    let outside = sum(tensors, |c| c.outside);
    let mut summary =
        format!("{outside} of {elements} elements of {judged} steps outside their bound, {ambiguous} ambiguous");
    if !statistical.is_empty() {
        let (outside, elements) = (sum(statistical, |c| c.outside), sum(statistical, |c| c.elements));
        let _ = write!(
            summary,
            "; {outside} of {elements} outside the statistical one (by chance: 2^{LOG2_FAILURE} a run)"
        );
    }
    if let Some(reason) = unjudged {
        summary.push_str("; ");
        summary.push_str(&reason);
    }
    let expected = self::elements(&config.spec) * judged as u64;
    let missing = || {
        let text = format!("FAIL error-bound   {elements} elements were compared; {judged} steps have {expected}");
        (config.only_probe.is_none() && elements != expected).then_some(text)
    };
    let failure = first(config, tensors, "worst-case bound")
        .or_else(|| first(config, statistical, "statistical bound"))
        .or_else(missing);
    // What hangs on a comparison agrees with one of its outcomes, which is little to say of a tensor that hangs on them as a whole.
    let undecided = tensors.iter().find(|(_, c)| 2 * c.ambiguous > c.elements);
    if failure.is_some() || (elements > 0 && undecided.is_none()) {
        return Outcome::new("error-bound", summary, failure);
    }
    if let Some((point, c)) = undecided {
        let _ =
            write!(summary, "; {point}: {} of {} hang on comparisons, too many to judge it", c.ambiguous, c.elements);
    }
    Outcome::open("error-bound", summary)
}

/// By tensor.
pub type Comparisons = BTreeMap<ProbePoint, Comparison>;

/// The text of the first element outside: the first step, and within it the tensor that is computed first.
fn first(config: &Config, tensors: &Comparisons, kind: &str) -> Option<String> {
    let first =
        tensors.iter().filter_map(|(p, c)| c.first_outside.as_ref().map(|f| (p, f))).min_by_key(|(p, f)| (f.0, *p));
    first.map(|(point, (step, e))| {
        let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
        let unit = 2f64.powi(config.spec.fixed.fraction_bits as i32);
        Failure {
            check: "error-bound",
            at: format!("step {step}, {}", place(point, e.index)),
            sides: Sides { real: Some(e.real), integer: None, secure: Some(e.units), scale },
            what: format!(
                "error {:.4} units   {kind} {:.4} units of 2^-{}",
                e.error * unit,
                e.bound * unit,
                config.spec.fixed.fraction_bits
            ),
            repeat: format!("--step {step} --probe {point}"),
        }
        .text(config)
    })
}
