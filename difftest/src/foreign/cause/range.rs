//! A value that was out of its range before the operation.

use crate::foreign::case::{Case, Cause};

/// Every failing element has a result, or an unreduced operand, that the number format does not hold.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let f = case.header.fraction_bits?;
    let value = 2f64.powi(case.header.value_bits as i32 - 1 - f as i32);
    let product = 2f64.powi(case.header.ring_bits as i32 - 2);
    let too_large = |i: usize| {
        let operand = (j.expected[i] / j.unit).abs() * 2f64.powi(j.shift as i32);
        let denominator = match j.denominators.len() {
            0 => 0.0,
            n => j.denominators[i / j.dim.1.max(1) % n].abs(),
        };
        j.expected[i].abs() >= value || operand >= product || denominator >= value
    };
    case.failing(
        "out of range before the operation",
        |n, of| {
            let largest = j.outside.iter().map(|&i| j.expected[i].abs()).fold(0.0, f64::max);
            format!(
                "{n} of {of} failing elements, or what they are divided by, are {value} or more in size, where \
                 the format ends; the largest result should be {largest:.1}"
            )
        },
        too_large,
    )
}
