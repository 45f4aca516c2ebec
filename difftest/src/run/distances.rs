//! Distances between the tested and the real side, gathered over the judged steps of a run.

use crate::check::comparison::{Comparisons, Judged, merge};
use crate::compare::{self, Verdict, real};
use crate::config::Config;
use crate::trace::Trace;
use reference::spec::ProbePoint;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many of the worst elements `--probe` shows.
pub const DETAILS: usize = 10;

/// One element looked at closely (`--probe`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detail {
    /// Step and place.
    pub at: String,
    /// The value of the real side.
    pub real: f64,
    /// The value of the integer model, units.
    pub integer: i64,
    /// The value of the secure side, units.
    pub secure: i64,
    /// |secure - f64|, real.
    pub error: f64,
    /// The bound of the error, real.
    pub bound: f64,
    /// The verdict on the element, in words.
    pub verdict: &'static str,
}

impl Detail {
    /// Error / bound: 0 where there is no error, whatever the bound.
    fn closeness(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error / self.bound }
    }
}

/// Bound / largest error, of each step in which anything differed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tightness {
    /// Of the worst-case bound.
    pub worst_case: Vec<f64>,
    /// Of the statistical bound.
    pub statistical: Vec<f64>,
}

/// The distances of all sides, gathered over the steps of a run.
#[derive(Debug, Default)]
pub struct Distances {
    /// By tensor, all judged steps together.
    pub tensors: Comparisons,
    /// The distances of the same elements under the statistical bound, where there is one.
    pub statistical: Comparisons,
    /// How tight both bounds were in each step.
    pub tightness: BTreeMap<ProbePoint, Tightness>,
    /// The worst elements of the tensor asked for with `--probe`.
    pub details: Vec<Detail>,
}

impl Distances {
    /// Adds a judged step.
    pub fn see(&mut self, config: &Config, trace: &Trace, judged: &Judged) {
        merge(&mut self.tensors, &judged.worst_case);
        merge(&mut self.statistical, &judged.statistical);
        for (point, comparison) in &judged.worst_case {
            self.tightness.entry(*point).or_default().worst_case.extend(comparison.tightness());
            if config.only_probe.is_some() {
                self.details.extend(worst(trace, *point, judged));
                nearest(&mut self.details);
            }
        }
        for (point, comparison) in &judged.statistical {
            self.tightness.entry(*point).or_default().statistical.extend(comparison.tightness());
        }
    }
}

/// Keeps the elements that came nearest to their bounds.
fn nearest(details: &mut Vec<Detail>) {
    details.sort_by(|a, b| b.closeness().total_cmp(&a.closeness()));
    details.truncate(DETAILS);
}

/// The elements of one tensor that came nearest to their bounds.
fn worst(trace: &Trace, point: ProbePoint, judged: &Judged) -> Vec<Detail> {
    let scale = point.scale(trace.spec.fixed, trace.spec.sgd.extra_velocity_bits);
    let (bounded, reals, tested) = (&judged.bounds[&point], &trace.real.tensors[&point], &trace.tested.tensors[&point]);
    let verdicts = compare::verdicts(reals, tested, scale, bounded);
    let columns = tested.ncols();
    let detail = |(flat, verdict): (usize, Verdict)| {
        let at = [flat / columns, flat % columns];
        let (value, units) = (reals[at], tested[at]);
        Detail {
            at: format!("step {}, {}", trace.step, compare::place(&point, (at[0], at[1]))),
            real: value,
            integer: trace.integer.tensors.get(&point).map_or(0, |t| t[at]),
            secure: units,
            error: (real(units, scale) - value).abs(),
            bound: bounded.radius[at],
            verdict: match verdict {
                Verdict::Equal => "equal",
                Verdict::Within { .. } => "within",
                Verdict::Ambiguous { .. } => "ambiguous",
                Verdict::Outside { .. } => "OUTSIDE",
            },
        }
    };
    let mut list: Vec<_> = verdicts.into_iter().enumerate().map(detail).collect();
    nearest(&mut list);
    list
}
