//! The coins of a step as tensors of a trace, so that the integer model can replay them.
//!
//! `step/N/coins/NAME` has one 0 or 1 for each element of truncation NAME (none under nearest rounding), and
//! `step/N/wraps/NAME` a row (index, e) for each operand that was out of range and wrapped. A second truncation of the
//! same name is called `NAME#2`, and so on.

use super::file::TraceFile;
use super::tensor::{Tensor, Values};
use reference::fixed::{Rounded, Tape};
use std::collections::BTreeMap;

/// Adds the coins of step `step`.
pub fn write(trace: &mut TraceFile, step: usize, tape: &Tape) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, rounded) in tape.entries() {
        let number = seen.entry(name).or_insert(0);
        *number += 1;
        let name = if *number == 1 { name.to_owned() } else { format!("{name}#{number}") };
        let coins = rounded.coins.iter().map(|&c| i64::from(c)).collect();
        trace.tensors.insert(format!("step/{step}/coins/{name}"), list(vec![rounded.coins.len()], coins));
        if !rounded.wraps.is_empty() {
            let wraps = rounded.wraps.iter().flat_map(|&(i, e)| [i as i64, i64::from(e)]).collect();
            trace.tensors.insert(format!("step/{step}/wraps/{name}"), list(vec![rounded.wraps.len(), 2], wraps));
        }
    }
}

fn list(shape: Vec<usize>, units: Vec<i64>) -> Tensor {
    Tensor { shape, values: Values::Units(units) }
}

/// The coins of step `step`.
///
/// # Errors
/// Names the tensor that has something else than coins or wraps.
pub fn read(trace: &TraceFile, step: usize) -> Result<Tape, String> {
    let prefix = format!("step/{step}/coins/");
    let mut entries: Vec<(&str, usize, &str)> = Vec::new();
    for full in trace.tensors.range(prefix.clone()..).map(|t| t.0).take_while(|n| n.starts_with(&prefix)) {
        let name = &full[prefix.len()..];
        let (base, number) = match name.rsplit_once('#') {
            Some((base, k)) => (base, k.parse().map_err(|_| format!("{full}: after # there must be a number"))?),
            None => (name, 1),
        };
        entries.push((base, number, name));
    }
    entries.sort_unstable();
    let mut tape = Tape::default();
    for (base, _, name) in entries {
        tape.push(base, Rounded { coins: tossed(trace, step, name)?, wraps: wraps(trace, step, name)? });
    }
    Ok(tape)
}

fn tossed(trace: &TraceFile, step: usize, name: &str) -> Result<Vec<bool>, String> {
    let full = format!("step/{step}/coins/{name}");
    let refuse = || format!("{full}: a coin is the integer 0 or 1");
    let Some(Values::Units(v)) = trace.tensors.get(&full).map(|t| &t.values) else { return Err(refuse()) };
    v.iter().map(|v| [0, 1].contains(v).then_some(*v == 1)).collect::<Option<_>>().ok_or_else(refuse)
}

fn wraps(trace: &TraceFile, step: usize, name: &str) -> Result<Vec<(usize, i8)>, String> {
    let full = format!("step/{step}/wraps/{name}");
    let Some(tensor) = trace.tensors.get(&full) else { return Ok(Vec::new()) };
    let refuse = || format!("{full}: a wrap is a row of two integers, an index and -128 to 127");
    let (Values::Units(v), [_, 2]) = (&tensor.values, tensor.shape.as_slice()) else { return Err(refuse()) };
    let wrap = |w: &[i64; 2]| Some((usize::try_from(w[0]).ok()?, i8::try_from(w[1]).ok()?));
    v.as_chunks::<2>().0.iter().map(wrap).collect::<Option<_>>().ok_or_else(refuse)
}
