//! Whole steps against real numbers: what users see. The bound is propagated with the rules of
//! [`bound::network`](crate::bound::network), under the errors that the header states for truncations and functions.
//!
//! Two comparisons: each [step](Span::Step) from the engine's own parameters, and the whole [run](Span::Run), in which
//! f64 trains on from the first step's parameters and never looks at the engine's again. There the radius of every
//! weight and velocity goes from step to step. So a run also sees what happens between steps.
//!
//! * [`walk`]: both comparisons, step by step; [`update`]: radii of velocities and weights, in the header's form.

pub mod update;
pub mod walk;

use super::operation::head::claimed;
use crate::bound::rules::Errors;
use crate::check::Outcome as Check;
use crate::trace::header::{Header, Numbers, TraceRounding};
use serde::Serialize;

/// The parameters that a comparison starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// Each step, from the engine's own parameters.
    Step,
    /// All steps, from the parameters of the first.
    Run,
}

/// One tensor over all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The parameters that the comparison starts from.
    pub span: Span,
    /// The name of the tensor.
    pub tensor: String,
    /// The number of elements compared.
    pub elements: u64,
    /// Elements of them that had a bound.
    pub bounded: u64,
    /// Elements outside the propagated bound.
    pub outside: u64,
    /// Elements that hang on an undecided comparison and agree with one outcome.
    pub ambiguous: u64,
    /// Largest error, units of 2^-f.
    pub max_error_units: f64,
    /// Largest bound, units of 2^-f; null where there is none.
    pub bound_units: Option<f64>,
}

/// Everything that was compared end to end.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Found {
    /// One row a tensor and span.
    pub rows: Vec<Row>,
    /// Why some or all of it has no bound, and is OPEN.
    pub open: Vec<String>,
}

/// The errors of truncations and functions, or what the header lacks for a bound.
fn errors(header: &Header) -> Result<Errors, &'static str> {
    let head = header.head.ok_or("the header names no head")?;
    if header.numbers != Numbers::Fixed {
        return Err("the engine computes in floating point");
    }
    let units = truncation_units(header).ok_or("the header states no rounding that has a bound")?;
    let functions = claimed(header, head).ok_or("the header claims nothing of the functions of its head")?;
    // The head's own truncations are part of its claims; the larger of the two covers both.
    Ok(Errors { truncate: functions.truncate.max(units * functions.unit), ..functions })
}

/// The largest error of one truncation in units; `None` for one that may wrap or is not known.
fn truncation_units(header: &Header) -> Option<f64> {
    match (header.truncation_error, header.rounding) {
        (Some([low, high]), _) => Some(high.max(-low)),
        (None, TraceRounding::Nearest) => Some(0.5),
        (None, TraceRounding::Probabilistic | TraceRounding::Floor) => Some(1.0),
        // A wrap has no bound.
        (None, TraceRounding::Local | TraceRounding::Unknown) => None,
    }
}

/// The checks: one for each span in which something had a bound.
pub fn checks(found: &Found) -> Vec<Check> {
    let spans = [(Span::Step, "end-to-end", "a step"), (Span::Run, "whole-run", "all steps from the first")];
    spans.into_iter().filter_map(|(span, name, what)| check(found, span, name, what)).collect()
}

fn check(found: &Found, span: Span, name: &'static str, what: &str) -> Option<Check> {
    let bounded: Vec<_> = found.rows.iter().filter(|r| r.span == span && r.bounded > 0).collect();
    let sum = |of: fn(&Row) -> u64| bounded.iter().map(|r| of(r)).sum::<u64>();
    let (elements, outside) = (sum(|r| r.bounded), sum(|r| r.outside));
    if bounded.is_empty() {
        return None;
    }
    let summary = format!("{outside} of {elements} elements outside the bound propagated through {what}");
    let failure = bounded.iter().find(|r| r.outside > 0).map(|r| {
        format!(
            "{}: {} of {} elements outside, largest error {:.3} units, largest bound {:.3} units",
            r.tensor,
            r.outside,
            r.bounded,
            r.max_error_units,
            r.bound_units.unwrap_or(f64::NAN)
        )
    });
    Some(Check::new(name, summary, failure))
}

#[cfg(test)]
mod tests;
