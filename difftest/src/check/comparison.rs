//! The tensors of one step against their bounds: what the checks judge and the reports list.

use crate::bound::network::{self, Bounded, Bounds};
use crate::bound::statistical;
use crate::compare::{self, Comparison};
use crate::error::Error;
use crate::trace::Trace;
use rayon::prelude::*;
use reference::fixed::LayerValues;
use reference::spec::{Head, ProbePoint, TrainSpec};
use std::collections::BTreeMap;

/// The comparison of every tensor.
pub type Comparisons = BTreeMap<ProbePoint, Comparison>;

/// Adds a later step.
pub fn merge(all: &mut Comparisons, step: &Comparisons) {
    for (point, comparison) in step {
        all.entry(*point).or_insert_with(Comparison::empty).merge(comparison.clone());
    }
}

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
        // Gradient, velocity and value of weights and biases; logits and their gradient, or a hidden layer's three
        // tensors.
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

/// Bounds a step from the parameters `start` on, and compares the `wanted` tensors of the tested side with the real
/// side's. The statistical bound fails with probability 2^-40 over `elements` elements: those of the whole run,
/// whatever part of it is looked at.
///
/// # Errors
/// The specification's constants cannot be encoded.
pub fn judge(
    trace: &Trace,
    start: &[LayerValues],
    elements: u64,
    wanted: impl Fn(&ProbePoint) -> bool + Sync,
) -> Result<Judged, Error> {
    let Trace { step, spec, batch, real, tested, .. } = trace;
    let (x, labels, reals) = (&batch.reals, &batch.labels, &real.tensors);
    let bounds = network::step(spec, start, x, labels, reals)?;
    let factor = statistical::factor(elements);
    let radii = statistical::step(spec, start, x, labels, reals, &bounds, factor)?.unwrap_or_default();
    let likely = |(point, radius)| (point, Bounded { radius, ambiguous: bounds[&point].ambiguous.clone() });
    let likely: Bounds = radii.into_iter().map(likely).collect();
    let compared = |(point, bounded): (&ProbePoint, &Bounded)| {
        // A tensor of another shape is told by `bit-exact`, and missed by the count of `error-bound`.
        let units = tested.tensors.get(point).filter(|u| u.dim() == reals[point].dim())?;
        let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
        Some((*point, compare::tensor(*step, &reals[point], units, scale, bounded)))
    };
    let all = |bounds: &Bounds| bounds.par_iter().filter(|(point, _)| wanted(point)).filter_map(compared).collect();
    let (worst_case, statistical) = rayon::join(|| all(&bounds), || all(&likely));
    Ok(Judged { bounds, worst_case, statistical })
}
