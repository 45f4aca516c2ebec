//! Every element off by the same number of units.

use crate::foreign::case::{Case, Cause};
use crate::foreign::cause::bias;
use crate::foreign::judged::Judged;
use crate::trace::header::TraceRounding;

/// One unit too high or too low throughout: the bound holds around the moved value.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    // Where one unit is allowed either way, two floors look like an offset as well, and say more.
    if case.header.rounding != TraceRounding::Nearest && bias::explain(case).is_some() {
        return None;
    }
    [1.0, -1.0].into_iter().find_map(|by: f64| {
        let fits = |i: usize| j.error[i] - by >= j.low[i] - 1e-9 && j.error[i] - by <= j.high[i] + 1e-9;
        let all = (0..j.error.len()).filter(|&i| fits(i)).count();
        let moved = j.error.iter().any(|e| (e * by) > j.high[0].abs().max(j.low[0].abs()) + 0.45);
        if !moved || all != j.error.len() || below(j) {
            return None;
        }
        let way = if by > 0.0 { "high" } else { "low" };
        case.failing("one unit off", |_, _| format!("all {all} elements are one unit too {way}"), fits)
    })
}

/// Whether the errors are those of rounding down, which is another cause.
fn below(j: &Judged) -> bool {
    j.error.iter().all(|&e| e <= 1e-9 && e > -1.0)
}
