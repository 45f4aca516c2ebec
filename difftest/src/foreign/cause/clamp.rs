//! An argument that is cut before the function: from some place on, the result is a constant.

use crate::foreign::case::{Case, Cause};

/// All failing elements have one and the same value, and should be beyond it.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    // Only exp and log are known to be cut; elsewhere a constant has another reason.
    if !(j.tensor == "head/exp" || ["exp", "log"].contains(&j.operation)) {
        return None;
    }
    let &first = j.outside.first()?;
    let constant = j.output[first];
    let near = |v: f64| (v - constant).abs() <= 2.0 * j.unit;
    let beyond =
        |i: usize| if j.expected[first] < constant { j.expected[i] < constant } else { j.expected[i] > constant };
    if j.outside.len() < 3 || constant == 0.0 {
        return None;
    }
    case.failing(
        "argument clamped",
        |n, of| format!("{n} of {of} failing elements are all {constant:e}, and should be beyond it"),
        |i| near(j.output[i]) && beyond(i),
    )
}
