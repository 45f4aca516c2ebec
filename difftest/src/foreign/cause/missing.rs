//! A tensor that was never computed: all zeros.

use crate::foreign::case::{Case, Cause};

/// Every element is 0 and should not be.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    if j.output.iter().any(|&v| v != 0.0) || !case.telling() {
        return None;
    }
    let name = if j.tensor.ends_with("/db") { "bias gradient missing" } else { "missing" };
    case.failing(name, |n, of| format!("every element is 0; {n} of {of} should not be"), |i| j.expected[i] != 0.0)
}
