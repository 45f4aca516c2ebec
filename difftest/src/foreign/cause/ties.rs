//! Nearest rounding that takes halves down where the header says that they go up.

use crate::foreign::case::{Case, Cause};
use crate::trace::header::TraceRounding;

/// Exactly the halves fail, each by half a unit down.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    if case.header.rounding != TraceRounding::Nearest || j.fraction.is_empty() {
        return None;
    }
    let halves = j.fraction.iter().filter(|r| **r == 0.5).count();
    case.failing(
        "ties down",
        |n, of| format!("{n} of {of} failing elements are exact halves, {halves} in the tensor, and went down"),
        |i| j.fraction[i] == 0.5 && j.error[i] == -0.5,
    )
}
