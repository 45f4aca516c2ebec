//! Rows or classes moved by a few places.

use crate::foreign::case::{Case, Cause};

/// Output\[i\] = expected\[i + k\], along rows or columns.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let (rows, columns) = j.dim;
    if !case.telling() {
        return None;
    }
    let shifts = |n: usize| (1..n.min(5)).flat_map(move |k| [k, n - k]);
    let by_row = shifts(rows).filter(|_| rows > 1).find_map(|k| {
        let value = |i: usize| j.expected[(i / columns + k) % rows * columns + i % columns];
        case.whole("rows shifted", &format!("each row is what row + {k} should be"), value)
    });
    by_row.or_else(|| {
        shifts(columns).filter(|_| columns > 1).find_map(|k| {
            let value = |i: usize| j.expected[i / columns * columns + (i % columns + k) % columns];
            case.whole("classes shifted", &format!("each column is what column + {k} should be"), value)
        })
    })
}
