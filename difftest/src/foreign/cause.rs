//! The causes that may explain a failure. Each is one file, says what it saw in numbers, and is named only if it
//! explains the elements that fail.

pub mod alternative;
pub mod bias;
pub mod branch;
pub mod carry;
pub mod clamp;
pub mod coins;
pub mod exponent;
pub mod factor;
pub mod first_row;
pub mod missing;
pub mod offset;
pub mod polynomial;
pub mod random;
pub mod range;
pub mod shifted;
pub mod sign;
pub mod ties;
pub mod transposed;
pub mod wrap;

use super::case::{Case, Cause, UNKNOWN};
use super::judged::Kind;

/// The causes, the more particular ones first.
pub const CAUSES: &[fn(&Case) -> Option<Cause>] = &[
    coins::explain,
    ties::explain,
    missing::explain,
    sign::explain,
    factor::explain,
    alternative::explain,
    branch::explain,
    wrap::explain,
    range::explain,
    random::explain,
    transposed::explain,
    shifted::explain,
    offset::explain,
    carry::explain,
    bias::explain,
    exponent::explain,
    exponent::not_bits,
    exponent::overflow,
    clamp::explain,
    polynomial::explain,
    first_row::explain,
];

/// Explains a failure; [`UNKNOWN`] if nothing does.
pub fn explain(case: &Case) -> Vec<Cause> {
    let mut causes: Vec<_> = CAUSES.iter().filter_map(|explain| explain(case)).collect();
    if causes.is_empty() && case.judged.kind == Kind::Judged {
        let j = case.judged;
        let failing = j.outside.len();
        let worst = j.outside.iter().map(|&i| j.error[i].abs()).fold(0.0, f64::max);
        let evidence = format!("{failing} of {} elements, the largest error {worst:.3} units", j.error.len());
        causes.push(Cause { name: UNKNOWN, evidence, explained: 0, failing });
    }
    causes
}

#[cfg(test)]
mod tests;
