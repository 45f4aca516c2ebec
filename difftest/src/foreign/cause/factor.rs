//! The right values times a constant: a power of two of the number format, the batch size, 2.

use crate::foreign::case::{Case, Cause};

/// Output = factor * expected for one of the factors that people forget.
pub fn explain(case: &Case) -> Option<Cause> {
    if !case.telling() {
        return None;
    }
    let j = case.judged;
    let f = case.header.fraction_bits.unwrap_or(0) as i32;
    let batch = case.header.batch as f64;
    let rows = case.view.rows as f64;
    let two = |k: i32| 2f64.powi(k);
    let mut factors = vec![
        (two(1), "factor 2", "twice"),
        (two(-1), "factor 1/2", "half"),
        (batch, "factor batch", "the batch size times"),
        (1.0 / batch, "factor 1/batch", "one batch-size-th of"),
        (rows, "factor batch", "the number of rows times"),
        (1.0 / rows.max(1.0), "factor 1/batch", "one part in the number of rows of"),
    ];
    if f > 1 {
        factors.push((two(f), "factor 2^f", "2^f times"));
        factors.push((two(-f), "factor 2^-f", "2^-f times"));
    }
    factors.push((two(8), "factor 2^8", "256 times"));
    factors.push((two(-8), "factor 2^-8", "1/256 times"));
    // A factor that makes everything as good as 0 proves nothing: some failing element must be well above its bound
    // under it.
    let sizeable = |factor: f64| {
        let bound = j.widest().1.max(-j.widest().0).max(1.0) * factor.max(1.0) * j.unit;
        j.outside.iter().any(|&i| (j.expected[i] * factor).abs() > 4.0 * bound)
    };
    factors.into_iter().filter(|c| c.0 != 1.0 && sizeable(c.0)).find_map(|(factor, name, word)| {
        // A smaller value may have been rounded once more, a larger one carries the rounding with it.
        let more = factor.max(1.0);
        case.whole_within(name, &format!("the values are {word} what they should be"), |i| factor * j.expected[i], more)
    })
}
