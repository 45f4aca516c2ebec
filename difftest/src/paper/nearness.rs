//! How near the integer side comes to its bounds: one step of it and of the real side from the same weights.

use super::cell::Nearness;
use super::data::Data;
use crate::bound;
use crate::compare;
use crate::error::Error;
use crate::generate;
use crate::run::free::Free;
use crate::side::Side as _;
use crate::side::integer::Integer;
use crate::side::real::Real;
use reference::fixed::{Coins, Parameters};
use reference::spec::{ProbePoint, TrainSpec};
use std::collections::BTreeMap;

/// Error and bound of logits, head gradient and weight gradients, by tensor, in one step on `rows` of the training set;
/// empty if the step leaves the range, for the bounds are theorems about arithmetic that stays inside. The integer side
/// draws coins of its own.
///
/// # Errors
/// Parameters or rows that do not fit.
pub fn of(
    spec: &TrainSpec,
    parameters: &Parameters,
    data: &Data,
    rows: &[u32],
) -> Result<BTreeMap<String, Nearness>, Error> {
    let mut integer = Integer::with_coins(spec.clone(), Coins::seeded(0))?;
    integer.load(parameters)?;
    let mut real = Real::new(spec.clone(), parameters)?;
    let mut run = Free::new(spec, std::iter::once(generate::rows(data.train(), rows, spec.fixed)));
    (run.real, run.integer) = (Some(&mut real), Some(&mut integer));
    let Some(trace) = run.next().transpose()? else { return Ok(BTreeMap::new()) };
    if trace.violations.total() > 0 {
        return Ok(BTreeMap::new());
    }
    let (ours, theirs) = (&trace.integer.tensors, &trace.real.tensors);
    let start = parameters.decode(spec.fixed, &spec.sgd);
    let bounds = bound::network::step(spec, &start, &trace.batch.reals, &trace.batch.labels, theirs)?;
    let unit = 1.0 / spec.fixed.one() as f64;
    let layers = (1..=spec.network.layers()).map(ProbePoint::WeightGradient);
    let told = [ProbePoint::Logits, ProbePoint::HeadGradient].into_iter().chain(layers).map(|point| {
        let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
        let found = compare::tensor(0, &theirs[&point], &ours[&point], scale, &bounds[&point]);
        let (error, bound) = (found.max_error / unit, found.bound_there / unit);
        (point.to_string(), Nearness { error, bound, closest: found.closest, outside: found.outside })
    });
    Ok(told.collect())
}
