//! A truncation whose carry from the bits that are cut off is wrong: results are a whole unit off, either way.

use crate::foreign::case::{Case, Cause};

/// Elements one unit beyond what rounding gives, some up and some down, the others right.
///
/// A rounding of another kind errs in one direction, or by less.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    if j.truncations != 1 {
        return None;
    }
    let up = j.outside.iter().filter(|&&i| j.error[i] > 0.0).count();
    let down = j.outside.len() - up;
    if 10 * up.min(down) < j.outside.len() {
        return None;
    }
    case.failing(
        "wrong carry",
        |n, of| {
            format!(
                "{n} of {of} failing elements are one unit beyond their rounding, {up} up and {down} down, of {} \
                 elements: the carry of the bits that are cut off depends on the shares",
                j.error.len()
            )
        },
        |i| {
            let beyond = if j.error[i] > 0.0 { j.error[i] - j.high[i] } else { j.low[i] - j.error[i] };
            (0.0..=1.0 + 1e-9).contains(&beyond)
        },
    )
}
