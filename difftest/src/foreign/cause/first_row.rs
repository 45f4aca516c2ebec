//! A division that brings a whole batch to its working range by the power of two of the first row.

use crate::foreign::case::{Case, Cause};

/// Rows whose denominator is as long as the first row's are right, the others are not.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let denominators = &j.denominators;
    if denominators.len() < 2 {
        return None;
    }
    let columns = j.dim.1.max(1);
    let binade = |s: f64| s.abs().log2().floor();
    let as_first = |row: usize| binade(denominators[row % denominators.len()]) == binade(denominators[0]);
    let rows = j.dim.0;
    let mut failing = vec![false; rows];
    j.outside.iter().for_each(|i| failing[i / columns] = true);
    let like = (0..rows).filter(|&r| as_first(r)).count();
    let others = rows - like;
    let wrong = (0..rows).filter(|&r| failing[r] && !as_first(r)).count();
    let wrong_like_first = (0..rows).filter(|&r| failing[r] && as_first(r)).count();
    if others < 2 || like == 0 || wrong_like_first > 0 || 2 * wrong < others {
        return None;
    }
    case.failing(
        "normalised by the first row",
        |_, _| {
            format!(
                "the {like} rows whose denominator has the first row's power of two are right, {wrong} of the \
                 {others} others are wrong"
            )
        },
        |i| !as_first(i / columns),
    )
}
