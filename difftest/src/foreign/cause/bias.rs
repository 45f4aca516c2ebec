//! Truncations that always go down (mean error -1/2 unit), twice (-1), or up; nearest rounding without its half.

use crate::foreign::case::{Case, Cause};
use crate::trace::header::TraceRounding;

/// The errors fill the interval of one or two floors, or of ceilings.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let n = j.error.len();
    if n < 16 {
        return None;
    }
    let mean = j.error.iter().sum::<f64>() / n as f64;
    let within =
        |low: f64, high: f64| j.error.iter().filter(|&&e| e >= low && e <= high).count() as f64 >= 0.99 * n as f64;
    // Some errors must be away from 0, or there is no bias at all.
    let tail = |at: f64| j.error.iter().filter(|&&e| if at < 0.0 { e < at } else { e > at }).count() * 20 > n;
    let nearest = case.header.rounding == TraceRounding::Nearest;
    // A function has errors of its own beside those of its last truncation.
    let wide = if j.tensor == "head/exp" { 0.25 } else { 0.0 };
    let (name, what) = if within(-1.0 - wide, 1e-6 + wide) && tail(-0.5) {
        let name = if nearest { "half missing" } else { "floor" };
        (name, "every result is rounded down once")
    } else if within(-2.0, 1e-6) && tail(-1.0) {
        ("two floors", "every result is rounded down twice")
    } else if within(-1e-6, 1.0) && tail(0.5) {
        (if nearest { "half twice" } else { "ceiling" }, "every result is rounded up")
    } else {
        return None;
    };
    let failing = j.outside.len();
    let evidence = format!("{what}: mean error {mean:.3} units over {n} elements, none on the other side of 0");
    Some(Cause { name, evidence, explained: failing, failing })
}
