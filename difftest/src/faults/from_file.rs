//! Faults judged from trace files alone: what `difftest check` says of an engine in which a fault is planted, without
//! having seen the engine.

use super::Planted;
use super::training::{data, spec};
use crate::error::{Error, FileKind, Malformed};
use crate::foreign;
use crate::run::record;
use crate::trace::TraceFile;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;
use reference::spec::{Head, Rounding};
use secure::fault::Fault;
use std::fmt::Write;
use std::path::Path;

/// One fault, and the verdict on the files that were written with it.
#[derive(Debug, Clone)]
pub struct Row {
    /// The planted fault.
    pub fault: Fault,
    /// The first trace that shows it, its first failing operation and the cause named there.
    pub found: Option<(String, String, String)>,
    /// Traces that could not be recorded because the parties did not finish.
    pub unfinished: usize,
    /// Why a trace cannot show it, if it cannot.
    pub hidden: Option<&'static str>,
}

impl Row {
    /// Whether the fault was found exactly where a trace can show it.
    pub fn holds(&self) -> bool {
        self.found.is_some() || self.unfinished > 0 || self.hidden.is_some()
    }
}

/// Faults that change no value of a trace.
fn hidden(fault: Fault) -> Option<&'static str> {
    use Fault::*;
    Some(match fault {
        SeedFixed | StreamReused | StreamNarrow => "the randomness is weak, every value is right",
        InputUnmasked | AndUnmasked | ReshareUnmasked | AdderUnmasked | BitUnmasked | SelectUnmasked
        | TruncateUnmasked | ResultUnmasked | AnswerMask | PieceOffset => {
            "a message shows too much, every value is right"
        }
        MaskLowBits => "coins depend on shares, which no trace has; their frequencies are right",
        AndOdd => "no training step has a conjunction of an odd number of factors",
        LogCoefficient => "no training step takes a logarithm",
        TiesHighest => "the maximum is the same whichever of equal logits wins",
        ExpTail => "the last unit of exp's tail is inside the claim",
        StaleBatch => "only runs on data that stay shared have it; a trace hands each batch over",
        _ => return None,
    })
}

/// Faults that show as another one does in every file, and why.
fn alike(fault: Fault) -> Option<&'static str> {
    use Fault::*;
    Some(match fault {
        WeightForgotten | DifferenceOnce | CrossTerm | Replicas => {
            "what is added to the result depends on shares alone, whichever share is wrong"
        }
        LostCarry | SignTop => "which comparisons fail depends on shares alone, whichever carry or bit is wrong",
        AndOdd | MaximumPower => "with ten classes both leave out the same comparison",
        _ => return None,
    })
}

/// The traces that a fault is looked for in: a corner case of each head, then training with it.
fn traces() -> impl Iterator<Item = (String, Result<TraceFile, Error>)> {
    let pairs = ROUNDINGS.into_iter().flat_map(|rounding| Head::ALL.map(|head| (head, rounding)));
    pairs.flat_map(|(head, rounding)| {
        [true, false].into_iter().map(move |corners| {
            let what = if corners { "corners" } else { "training" };
            (format!("{what}, {head}, {rounding}"), trace(head, rounding, corners))
        })
    })
}

/// Nearest first: without coins, values themselves are compared.
const ROUNDINGS: [Rounding; 2] = [Rounding::Nearest, Rounding::Probabilistic];

fn trace(head: Head, rounding: Rounding, corners: bool) -> Result<TraceFile, Error> {
    if corners {
        return record::corners(head, rounding);
    }
    let split = data(&mut ChaCha12Rng::seed_from_u64(1), 40).train;
    record::training(&spec(head, rounding, 2, 10, 16), &split, 3, 1, None)
}

/// Judges one fault from its files.
///
/// # Errors
/// A trace that is none: the harness's own mistake.
pub fn judge(fault: Fault) -> Result<Row, Error> {
    let _planted = Planted::new(fault);
    let mut row = Row { fault, found: None, unfinished: 0, hidden: hidden(fault) };
    for (name, trace) in traces() {
        let Ok(trace) = trace else {
            row.unfinished += 1;
            continue;
        };
        // Through the bytes of a file and back.
        let refuse = |what: String| Malformed::new(FileKind::Trace, Path::new(&name), what);
        let bytes = trace.bytes(false).map_err(refuse)?;
        let report = TraceFile::parse(&bytes).and_then(|t| foreign::judge(&t)).map_err(refuse)?;
        if let Some(first) = report.first_fault() {
            let cause = first.causes.first().map_or("unknown", |c| c.name);
            row.found = Some((name, format!("{}: {}", first.operation, first.tensor), cause.into()));
            break;
        }
        if report.checks.iter().any(|c| c.failure.is_some()) {
            row.found = Some((name, "end-to-end".into(), "unknown".into()));
            break;
        }
    }
    Ok(row)
}

/// Judges every fault.
///
/// # Errors
/// Those of [`judge`].
pub fn matrix() -> Result<Vec<Row>, Error> {
    Fault::ALL.iter().map(|&fault| judge(fault)).collect()
}

/// The table of `docs/check-faults.md`.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| fault | planted at | first failing operation: tensor | cause named | trace |\n| --- | --- | --- | \
            --- | --- |\n",
    );
    for row in rows {
        let (name, place) = (row.fault.name(), row.fault.place());
        let _ = match (&row.found, row.hidden) {
            (Some((trace, at, cause)), _) => {
                let why = alike(row.fault).map(|why| format!(" (no file tells more: {why})")).unwrap_or_default();
                writeln!(out, "| {name} | {place} | {at} | {cause}{why} | {trace} |")
            }
            (None, Some(why)) => writeln!(out, "| {name} | {place} | not in a trace: {why} | – | – |"),
            (None, None) if row.unfinished > 0 => {
                writeln!(out, "| {name} | {place} | the parties do not finish, so there is no trace | – | – |")
            }
            (None, None) => writeln!(out, "| {name} | {place} | NOT FOUND | – | – |"),
        };
    }
    let found = rows.iter().filter(|r| r.found.is_some()).count();
    let _ = writeln!(out, "\n{found} of {} faults are found from the file alone.", rows.len());
    out
}
