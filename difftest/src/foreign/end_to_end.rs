//! Whole steps against real numbers: what users see. Each step starts from the engine's own parameters, and the bound
//! is propagated through it
//! with the rules of [`bound::network`](crate::bound::network), under the errors that the header states for
//! truncations and functions.

use super::number::Number;
use super::operation::head::{claimed, spec};
use super::view::View;
use crate::bound::{Errors, network};
use crate::check::Outcome as Check;
use crate::compare::{self, Verdict};
use crate::side::Batch;
use crate::side::real::Real;
use crate::trace::header::{Header, Numbers, TraceRounding, Truncation};
use ndarray::Array2;
use reference::fixed::{LayerValues, Tape};
use reference::spec::{Head, ProbePoint, TrainSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// One tensor over all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub tensor: String,
    /// Elements compared.
    pub elements: u64,
    /// Elements outside the propagated bound.
    pub outside: u64,
    /// Elements that hang on an undecided comparison and agree with one outcome.
    pub ambiguous: u64,
    /// Largest error, units of 2^-f.
    pub max_error_units: f64,
    /// Largest bound, units of 2^-f; null where the header claims too little for one.
    pub bound_units: Option<f64>,
}

/// The walk through a trace.
pub struct Walk<'h> {
    header: &'h Header,
    rows: BTreeMap<ProbePoint, Row>,
}

impl<'h> Walk<'h> {
    /// Before the first step.
    pub fn new(header: &'h Header) -> Self {
        Walk { header, rows: BTreeMap::new() }
    }

    /// Compares one step, if the trace has what it started from.
    pub fn step(&mut self, view: &View) {
        let Some(head) = self.header.head else { return };
        let Some((start, batch)) = inputs(view) else { return };
        let spec = spec(self.header, head);
        let Some(real) = reals(&spec, &start, &batch) else { return };
        let bounds = errors(self.header, head)
            .and_then(|errors| network::gradients(&spec, &errors, &start, &batch.reals, &batch.labels, &real).ok());
        for (point, value) in &real {
            let Some(out) = view.get(&point.to_string()).map(|n| n.reals()) else { continue };
            let bounded = bounds.as_ref().and_then(|b| b.get(point)).map(|b| self.truncated(head, point, view, b));
            let bounded = bounded.as_ref();
            if bounded.is_none() && matches!(point, ProbePoint::Weights(_) | ProbePoint::Bias(_)) {
                continue;
            }
            self.compare(point, value, &out, bounded);
        }
    }

    /// The bound of a weight gradient that is kept below the scale of products: one truncation more.
    fn truncated(&self, head: Head, point: &ProbePoint, view: &View, bounded: &network::Bounded) -> network::Bounded {
        let mut bounded = bounded.clone();
        let scale = self.header.scale(&point.to_string());
        let whole = Some(scale) == self.header.fraction_bits.map(|f| 2 * f);
        let integers = matches!(view.get(&point.to_string()), Some(Number::Units { .. }));
        if let (ProbePoint::WeightGradient(_), Some(errors)) = (point, errors(self.header, head))
            && !(whole && integers)
        {
            bounded.radius.mapv_inplace(|r| r + errors.truncate);
        }
        bounded
    }

    fn compare(
        &mut self,
        point: &ProbePoint,
        value: &Array2<f64>,
        out: &Array2<f64>,
        bounded: Option<&network::Bounded>,
    ) {
        if value.dim() != out.dim() {
            return;
        }
        let unit = self.header.unit();
        let row = self.rows.entry(*point).or_insert_with(|| Row {
            tensor: point.to_string(),
            elements: 0,
            outside: 0,
            ambiguous: 0,
            max_error_units: 0.0,
            bound_units: None,
        });
        row.elements += value.len() as u64;
        let verdicts = bounded.map(|b| compare::verdicts_of_reals(value, out, b));
        for (i, (v, o)) in value.iter().zip(out).enumerate() {
            match verdicts.as_ref().map(|list| list[i]) {
                Some(Verdict::Ambiguous { .. }) => row.ambiguous += 1,
                Some(Verdict::Outside { .. }) => row.outside += 1,
                _ => {}
            }
            if !matches!(verdicts.as_ref().map(|list| list[i]), Some(Verdict::Ambiguous { .. })) {
                let error = (v - o).abs() / unit;
                row.max_error_units = row.max_error_units.max(if error.is_nan() { f64::INFINITY } else { error });
            }
        }
        if let Some(b) = bounded {
            let largest = b.radius.iter().fold(0.0f64, |m, r| m.max(*r)) / unit;
            row.bound_units = Some(row.bound_units.unwrap_or(0.0).max(largest));
        }
    }

    /// The rows, in order of execution.
    pub fn finish(self) -> Vec<Row> {
        self.rows.into_values().collect()
    }
}

/// Parameters and batch of a step as reals; velocities that are not there are 0.
fn inputs(view: &View) -> Option<(Vec<LayerValues>, Batch)> {
    let mut layers = Vec::new();
    for l in 1..=view.layers() {
        let get = |what: &str| view.get(&format!("start/layer{l}/{what}")).map(|n| n.reals());
        let weights = get("weights")?;
        let outputs = weights.ncols();
        let row = |what: &str| get(what).map_or_else(|| ndarray::Array1::zeros(outputs), |m| m.row(0).to_owned());
        layers.push(LayerValues {
            weight_velocity: get("weight_velocity").unwrap_or_else(|| Array2::zeros(weights.dim())),
            bias: row("bias"),
            bias_velocity: row("bias_velocity"),
            weights,
        });
    }
    let reals = view.get("input")?.reals();
    let units = Array2::zeros((0, 0));
    Some((layers, Batch { units, reals, labels: view.labels.clone()? }))
}

fn reals(spec: &TrainSpec, start: &[LayerValues], batch: &Batch) -> Option<crate::side::Tensors<f64>> {
    use crate::side::Side;
    let finite = start.iter().all(|l| l.weights.iter().chain(&l.bias).all(|v| v.is_finite()));
    if !finite {
        return None;
    }
    Some(Real::with(spec.clone(), start.to_vec()).ok()?.step(batch, Tape::default()).ok()?.tensors)
}

/// The errors of truncations and functions, if the header states them all.
fn errors(header: &Header, head: Head) -> Option<Errors> {
    if header.numbers != Numbers::Fixed || header.truncation != Truncation::DotProduct {
        return None;
    }
    let units = match (header.truncation_error, header.rounding) {
        (Some([low, high]), _) => high.max(-low),
        (None, TraceRounding::Nearest) => 0.5,
        (None, TraceRounding::Probabilistic | TraceRounding::Floor) => 1.0,
        // A wrap has no bound.
        (None, TraceRounding::Local | TraceRounding::Unknown) => return None,
    };
    let functions = claimed(header, head)?;
    // The head's own truncations are part of its claims; the larger of the two covers both.
    Some(Errors { truncate: functions.truncate.max(units * functions.unit), ..functions })
}

/// The check; `None` if nothing had a bound.
pub fn check(rows: &[Row]) -> Option<Check> {
    let bounded: Vec<_> = rows.iter().filter(|r| r.bound_units.is_some()).collect();
    let (elements, outside): (u64, u64) =
        (bounded.iter().map(|r| r.elements).sum(), bounded.iter().map(|r| r.outside).sum());
    if bounded.is_empty() {
        return None;
    }
    let summary = format!("{outside} of {elements} elements outside the bound propagated through a step");
    let failure = bounded.iter().find(|r| r.outside > 0).map(|r| {
        format!(
            "{}: {} of {} elements outside, largest error {:.3} units",
            r.tensor, r.outside, r.elements, r.max_error_units
        )
    });
    Some(Check::new("end-to-end", summary, failure))
}
