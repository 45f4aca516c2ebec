//! Rows and columns exchanged.

use crate::foreign::case::{Case, Cause};

/// Output\[i, j\] = expected\[j, i\] of a square tensor, or the columns' order in a tensor of another shape.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let (rows, columns) = j.dim;
    if rows < 2 || columns < 2 || !case.telling() {
        return None;
    }
    let square = |i: usize| j.expected[(i % columns) * columns + i / columns];
    if rows == columns {
        let found = case.whole("transposed", "rows and columns are exchanged", square);
        if found.is_some() {
            return found;
        }
    }
    // The elements of the transposed tensor, in its own order, poured into this shape.
    let poured = |i: usize| j.expected[(i % rows) * columns + i / rows];
    case.whole("transposed", "the elements are in column order", poured)
}
