//! The right values with the wrong sign.

use crate::foreign::case::{Case, Cause};

/// Output = -expected.
pub fn explain(case: &Case) -> Option<Cause> {
    case.telling().then(|| case.whole("sign", "the values have the opposite sign", |i| -case.judged.expected[i]))?
}
