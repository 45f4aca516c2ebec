//! Rows, checks and the whole report.

use super::case::{Case, Cause};
use super::cause;
use super::coin::{self, Coins};
use super::end_to_end;
use super::judged::{Judged, Kind};
use super::operation;
use super::outcome::{Alternative, Outcome};
use super::view::View;
use crate::check::Outcome as Check;
use crate::statistics;
use crate::trace::TraceFile;
use crate::trace::header::TraceRounding;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON report.
pub const SCHEMA: u32 = 1;

/// Rows and columns of the map of where in a tensor the errors are.
pub const MAP: usize = 16;

/// An error of a measured function beyond this, real, is looked at for a cause.
const GROSS: f64 = 1.0 / 64.0;

/// The first element outside, with all values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct First {
    /// Step, tensor and index.
    pub at: String,
    /// The engine's value, real.
    pub engine: f64,
    /// The value before rounding, real.
    pub exact: f64,
    /// Their distance in units.
    pub error_units: f64,
    /// Least and largest error that is allowed, units.
    pub allowed_units: [f64; 2],
}

/// The errors of a measured function in one range of its exact value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Range {
    /// Values from this size on, real.
    pub from: f64,
    /// Values up to this size, real.
    pub to: f64,
    /// The number of elements.
    pub elements: u64,
    /// Largest error, units.
    pub max_error_units: f64,
    /// Mean error with its sign, units.
    pub mean_error_units: f64,
}

/// The verdict on one tensor, over all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The operation that makes it.
    pub operation: &'static str,
    /// The name of the tensor.
    pub tensor: String,
    /// `PASS`, `FAIL`, `OPEN` or `MEASURED`.
    pub verdict: &'static str,
    /// The number of steps compared.
    pub steps: u64,
    /// The number of elements compared.
    pub elements: u64,
    /// The number of elements outside.
    pub outside: u64,
    /// Largest error, units.
    pub max_error_units: f64,
    /// Mean error with its sign, units.
    pub mean_error_units: f64,
    /// Largest bound, units; null for what is only measured.
    pub bound_units: Option<f64>,
    /// Coins that were tested, and the least likely log2 p-value.
    pub coins: Option<(u64, f64)>,
    /// The first step that fails.
    pub first_step: Option<usize>,
    /// The first element outside.
    pub first: Option<First>,
    /// The causes that were named.
    pub causes: Vec<Cause>,
    /// The tensors that the trace lacks, of an open row.
    pub lacks: Vec<String>,
    /// Errors by the size of the exact value, of a measured function.
    pub ranges: Vec<Range>,
    /// Largest error in bounds (for a measured function, in units) in each of 16 x 16 fields of the tensor, row-major.
    pub map: Vec<f64>,
    #[serde(skip)]
    sum: f64,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this report.
    pub schema: u32,
    /// The engine, with its version.
    pub engine: String,
    /// Steps in the trace.
    pub steps: Vec<usize>,
    /// Rows by order of execution.
    pub rows: Vec<Row>,
    /// Checks, one a line of the report's end.
    pub checks: Vec<Check>,
    /// End to end, where it could be.
    pub end_to_end: end_to_end::Found,
}

impl Report {
    /// Whether every check passes; `allow_open`: or is open, while something passes.
    pub fn holds(&self, allow_open: bool) -> bool {
        let fine = |c: &Check| c.passed || (allow_open && c.open);
        self.checks.iter().all(fine) && self.checks.iter().any(|c| c.passed)
    }

    /// The first row that fails: the earliest step, and of that the first operation. What a later step does with the
    /// values that a fault has left
    /// may look like faults of other operations.
    pub fn first_fault(&self) -> Option<&Row> {
        self.rows.iter().filter(|r| r.verdict == "FAIL").min_by_key(|r| r.first_step)
    }

    /// The causes that were named, in order of execution.
    pub fn causes(&self) -> Vec<&'static str> {
        self.rows.iter().flat_map(|r| &r.causes).map(|c| c.name).collect()
    }
}

/// Judges a trace.
///
/// # Errors
/// A tensor whose shape does not fit the network; a trace with neither steps nor blocks.
pub fn judge(trace: &TraceFile) -> Result<Report, String> {
    let header = &trace.header;
    let steps = trace.steps();
    if steps.is_empty() && trace.blocks().is_empty() {
        return Err("it holds neither a step nor a block; see docs/trace.md".into());
    }
    if !steps.is_empty() && header.widths.is_empty() {
        return Err("header: widths are missing; steps need the network's widths".into());
    }
    let mut rows = Rows::default();
    let mut whole = end_to_end::walk::Walk::new(header);
    let mut previous: Option<View> = None;
    for &step in &steps {
        let view = View::new(trace, step, previous.as_ref())?;
        for operation in operation::all() {
            for outcome in operation.judge(&view) {
                rows.add(&view, operation.name(), outcome, |tensor| operation.alternatives(&view, tensor));
            }
        }
        whole.step(&view);
        previous = Some(view);
    }
    if !trace.blocks().is_empty() {
        let empty = TraceFile::new(header.clone());
        let view = View::new(&empty, 0, None)?;
        for (kind, outcome) in operation::block::judge(trace, &view)? {
            rows.add(&view, kind, outcome, |_| Vec::new());
        }
    }
    let end_to_end = whole.finish();
    let rows = rows.finish();
    let mut checks = checks(&rows);
    checks.extend(end_to_end::checks(&end_to_end));
    let version = header.engine_version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
    Ok(Report { schema: SCHEMA, engine: format!("{}{version}", header.engine), steps, rows, checks, end_to_end })
}

/// Rows under construction, in the order in which they first appear.
#[derive(Default)]
struct Rows {
    order: Vec<(&'static str, String)>,
    rows: BTreeMap<(&'static str, String), Row>,
}

impl Rows {
    fn row(&mut self, operation: &'static str, tensor: &str) -> &mut Row {
        let key = (operation, tensor.to_owned());
        if !self.rows.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.rows.entry(key).or_insert_with(|| Row {
            operation,
            tensor: tensor.into(),
            verdict: "PASS",
            steps: 0,
            elements: 0,
            outside: 0,
            max_error_units: 0.0,
            mean_error_units: 0.0,
            bound_units: None,
            coins: None,
            first_step: None,
            first: None,
            causes: Vec::new(),
            lacks: Vec::new(),
            ranges: Vec::new(),
            map: vec![0.0; MAP * MAP],
            sum: 0.0,
        })
    }

    fn add(
        &mut self,
        view: &View,
        operation: &'static str,
        outcome: Outcome,
        alternatives: impl Fn(&str) -> Vec<Alternative>,
    ) {
        match outcome {
            Outcome::Missing { tensor, lacks } => {
                let row = self.row(operation, &tensor);
                row.lacks.extend(lacks.into_iter().filter(|l| !row.lacks.contains(l)).collect::<Vec<_>>());
            }
            Outcome::Compared(judged) => {
                let row = self.row(operation, &judged.tensor);
                row.see(view, *judged, alternatives);
            }
        }
    }

    fn finish(mut self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.order.iter().filter_map(|key| self.rows.remove(key)).collect();
        for row in &mut rows {
            row.mean_error_units = row.sum / row.elements.max(1) as f64;
            if row.verdict != "FAIL" && !row.lacks.is_empty() {
                row.verdict = "OPEN";
            }
        }
        rows
    }
}

impl Row {
    /// Adds one tensor of one step.
    fn see(&mut self, view: &View, mut judged: Judged, alternatives: impl Fn(&str) -> Vec<Alternative>) {
        self.measure(&judged);
        let coins = match view.header.rounding {
            TraceRounding::Probabilistic => coin::test(&judged),
            _ => None,
        };
        self.toss(coins);
        if judged.kind == Kind::Measured {
            self.verdict = if self.verdict == "FAIL" { "FAIL" } else { "MEASURED" };
            self.by_range(&judged);
            judged.outside =
                (0..judged.error.len()).filter(|&i| (judged.error[i] * judged.unit).abs() > GROSS).collect();
        } else if view.header.rounding == TraceRounding::Local {
            wraps_as_predicted(&mut judged, view.header.ring_bits);
        }
        let odd = coins.is_some_and(|c| !c.sound());
        if judged.outside.is_empty() && !odd {
            return;
        }
        let list = alternatives(&judged.tensor);
        let case = Case { judged: &judged, view, header: view.header, coins, alternatives: &list };
        let causes = cause::explain(&case);
        if judged.kind == Kind::Measured && causes.is_empty() {
            return;
        }
        self.verdict = "FAIL";
        self.first_step.get_or_insert(judged.step);
        self.outside += judged.outside.len() as u64;
        for cause in causes {
            if !self.causes.iter().any(|c| c.name == cause.name) {
                self.causes.push(cause);
            }
        }
        if let (None, Some(&i)) = (&self.first, judged.outside.first()) {
            self.first = Some(First {
                at: if judged.operation == "block" {
                    judged.place(i)
                } else {
                    format!("step {}, {}", judged.step, judged.place(i))
                },
                engine: judged.output[i],
                exact: judged.expected[i],
                error_units: judged.error[i],
                allowed_units: [judged.low[i], judged.high[i]],
            });
        }
    }

    fn measure(&mut self, judged: &Judged) {
        self.steps += 1;
        self.elements += judged.error.len() as u64;
        let (rows, columns) = (judged.dim.0.max(1), judged.dim.1.max(1));
        for (i, &e) in judged.error.iter().enumerate() {
            self.sum += if e.is_finite() { e } else { 0.0 };
            self.max_error_units = self.max_error_units.max(if e.is_nan() { f64::INFINITY } else { e.abs() });
            let bound = judged.high[i].max(-judged.low[i]);
            if judged.kind == Kind::Judged {
                self.bound_units = Some(self.bound_units.unwrap_or(0.0).max(bound));
            }
            let field = i / columns * MAP / rows * MAP + i % columns * MAP / columns;
            let part = if bound.is_finite() && bound > 0.0 { e.abs() / bound } else { e.abs() };
            self.map[field] = self.map[field].max(if part.is_nan() { f64::INFINITY } else { part });
        }
    }

    fn toss(&mut self, coins: Option<Coins>) {
        if let Some(c) = coins {
            let least = c.log2_p.min(c.log2_p_repeats);
            let (n, p) = self.coins.unwrap_or((0, 0.0));
            self.coins = Some((n + c.tossed, p.min(least)));
        }
    }

    /// Errors by the power of two of the exact value.
    fn by_range(&mut self, judged: &Judged) {
        for (&e, &v) in judged.error.iter().zip(&judged.expected).filter(|(e, _)| e.is_finite()) {
            let k = if v == 0.0 { -64.0 } else { v.abs().log2().floor().clamp(-64.0, 64.0) };
            let (from, to) = (if k == -64.0 { 0.0 } else { k.exp2() }, (k + 1.0).exp2());
            let at = self.ranges.iter().position(|r| r.to == to).unwrap_or_else(|| {
                self.ranges.push(Range { from, to, elements: 0, max_error_units: 0.0, mean_error_units: 0.0 });
                self.ranges.len() - 1
            });
            let range = &mut self.ranges[at];
            range.mean_error_units = (range.mean_error_units * range.elements as f64 + e) / (range.elements + 1) as f64;
            range.elements += 1;
            range.max_error_units = range.max_error_units.max(e.abs());
        }
        self.ranges.sort_by(|a, b| b.to.total_cmp(&a.to));
    }
}

/// Truncating each share wraps with a known probability; so many wraps are what the header says, and no fault.
fn wraps_as_predicted(judged: &mut Judged, ring_bits: u32) {
    let ring = ring_bits as i32;
    let modulus = 2f64.powi(ring - judged.shift as i32);
    let rate = |i: usize| (judged.expected[i] / judged.unit).abs() * 2f64.powi(judged.shift as i32 - ring);
    let n = judged.error.len() as u64;
    let mean = (0..judged.error.len()).map(rate).sum::<f64>() / n.max(1) as f64;
    let wraps = |i: usize| {
        let rest = judged.error[i].abs() - modulus;
        rest.abs() <= judged.high[i].abs() + judged.low[i].abs() + 1e-6
    };
    let explained = judged.outside.iter().filter(|&&i| wraps(i)).count();
    if explained == judged.outside.len()
        && statistics::binomial(n, explained as u64, mean.min(1.0)) >= statistics::FALSE_ALARM
    {
        judged.outside.clear();
    }
}

/// One check an operation, in order of execution.
fn checks(rows: &[Row]) -> Vec<Check> {
    let mut names: Vec<&'static str> = Vec::new();
    for row in rows {
        if !names.contains(&row.operation) {
            names.push(row.operation);
        }
    }
    names.into_iter().filter_map(|name| check(name, rows.iter().filter(|r| r.operation == name))).collect()
}

fn check<'r>(name: &'static str, rows: impl Iterator<Item = &'r Row> + Clone) -> Option<Check> {
    let count = |of: fn(&Row) -> u64| rows.clone().map(of).sum::<u64>();
    let (elements, outside) = (count(|r| r.elements), count(|r| r.outside));
    let judged = rows.clone().any(|r| r.verdict != "MEASURED");
    let lacks: Vec<_> = rows.clone().flat_map(|r| r.lacks.iter().map(|l| l.as_str())).collect();
    let summary = format!("{outside} of {elements} elements outside the bound of the operation");
    if let Some(failed) = rows.clone().find(|r| r.verdict == "FAIL") {
        return Some(Check::new(name, summary, Some(explained(failed))));
    }
    if !lacks.is_empty() {
        return Some(Check::open(name, format!("{summary}; not judged without {}", short(&lacks))));
    }
    // What is only measured is reported, and neither passes nor fails.
    judged.then(|| Check::new(name, summary, None))
}

/// The first few of a list.
fn short(list: &[&str]) -> String {
    let shown = list.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    if list.len() > 4 { format!("{shown} and {} more", list.len() - 4) } else { shown }
}

/// The first fault of a row in words.
fn explained(row: &Row) -> String {
    let mut text = match &row.first {
        Some(f) => format!(
            "{}: engine {}, exact {}, error {:.4} units, allowed {:.4} to {:.4}",
            f.at, f.engine, f.exact, f.error_units, f.allowed_units[0], f.allowed_units[1]
        ),
        None => format!("{}: every element is inside its bound, the coins are not", row.tensor),
    };
    for cause in &row.causes {
        text.push_str(&format!("\n  cause: {}: {}", cause.name, cause.evidence));
    }
    text
}

#[cfg(test)]
mod tests;
