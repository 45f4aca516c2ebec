//! A wrong coefficient in the polynomial of an exponential.

use crate::foreign::case::{Case, Cause};

/// exp(x) = 2^n 2^r with n whole and 0 <= r < 1, and 2^r by a polynomial: an error a r^k 2^n for one k explains every
/// element.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let exponential = j.tensor == "head/exp" || j.operation == "exp";
    if !exponential || j.outside.len() < 3 {
        return None;
    }
    // (r, 2^n in units) of every element with a result.
    let parts: Vec<_> = j
        .expected
        .iter()
        .map(|&v| {
            let y = v.log2();
            if y.is_finite() { (y - y.floor(), y.floor().exp2() / j.unit) } else { (0.0, 0.0) }
        })
        .collect();
    (1..=5).rev().find_map(|k| {
        let term = |i: usize| parts[i].0.powi(k) * parts[i].1;
        let (up, down) =
            (0..parts.len()).fold((0.0, 0.0), |(u, d), i| (u + term(i) * j.error[i], d + term(i) * term(i)));
        let a = up / down;
        let fits = |i: usize| {
            let rest = j.error[i] - a * term(i);
            rest >= j.low[i] - 1.0 && rest <= j.high[i] + 1.0
        };
        let all = (0..parts.len()).filter(|&i| fits(i)).count();
        if !a.is_finite() || (all as f64) < 0.99 * parts.len() as f64 {
            return None;
        }
        case.failing(
            "coefficient of exp",
            |n, of| {
                format!(
                    "exp(x) = 2^n 2^r: {a:.3e} r^{k} 2^n too much explains {n} of {of} failing elements, and nothing \
                     is left elsewhere"
                )
            },
            fits,
        )
    })
}
