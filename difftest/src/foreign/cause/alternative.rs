//! A mistake that is particular to the operation: momentum twice, another head's S, >= for >, another row's
//! denominator, the last batch's input.

use crate::foreign::case::{Case, Cause};
use crate::foreign::judged::Kind;
use crate::foreign::outcome::Alternative;

/// Tries the operation's own list.
pub fn explain(case: &Case) -> Option<Cause> {
    let fits = |a: &&Alternative| a.values.len() == case.judged.error.len() && differs(case, &a.values);
    case.alternatives.iter().filter(fits).find_map(|a| {
        let off = case.judged.kind == Kind::Judged;
        let cause = case.whole(a.cause, &a.what, |i| a.values[i])?;
        // A measured function may be near to both; the mistake must be nearer by far.
        (off || nearer(case, &a.values)).then_some(cause)
    })
}

/// Whether a mistake would show: some failing element differs from the right value by a quarter of a unit or more.
fn differs(case: &Case, values: &[f64]) -> bool {
    let j = case.judged;
    j.outside.iter().any(|&i| (values[i] - j.expected[i]).abs() >= 0.25 * j.unit)
}

/// Whether the values are eight times nearer to the engine's than the right ones, in the mean over the failing
/// elements.
fn nearer(case: &Case, values: &[f64]) -> bool {
    let j = case.judged;
    let sum = |of: &[f64]| j.outside.iter().map(|&i| (j.output[i] - of[i]).abs()).sum::<f64>();
    sum(values) * 8.0 < sum(&j.expected)
}
