//! Results that are random in the ring: their shares do not add up.

use crate::foreign::case::{Case, Cause};

/// The fewest failing elements whose distribution says anything.
const FEWEST: usize = 12;

/// Errors of both signs and every size far beyond what rounding does.
///
/// So it is where a term of a product of shares is missing or counted twice, or the copies of a share differ between
/// the parties. Every such mistake adds a number to the result that only the parties' randomness knows, so a file
/// cannot tell one of them from another.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let mut sizes: Vec<f64> = j.outside.iter().map(|&i| j.error[i].abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let n = sizes.len();
    let bits = sizes.last()?.log2().ceil();
    if n < FEWEST || !bits.is_finite() {
        return None;
    }
    let low = j.outside.iter().filter(|&&i| j.error[i] < 0.0).count();
    let both_ways = 4 * low >= n && 4 * low <= 3 * n;
    // The middle one is not far below the largest, and few occur twice.
    let spread = sizes[n / 2] >= (bits - 4.0).exp2();
    let repeated = sizes.windows(2).filter(|w| w[0] == w[1]).count();
    let far = if function(case) { beyond_one(case) } else { bits >= f64::from(case.header.value_bits) + 2.0 };
    if !(both_ways && spread && far && 10 * repeated <= n) {
        return None;
    }
    let evidence = format!(
        "{n} failing elements are spread up to 2^{bits} units, {low} of them downwards, {repeated} as far off as \
         another: a term of a product of shares is missing or counted twice, or copies of a share differ"
    );
    Some(Cause { name: "random in the ring", evidence, explained: n, failing: n })
}

/// Whether the tensor is a function's, which truncates by itself, so that the ring's end is nearer.
fn function(case: &Case) -> bool {
    case.judged.tensor == "head/exp"
}

/// Whether most elements of an exponential, which cannot be below 0 or above 1, are.
fn beyond_one(case: &Case) -> bool {
    let j = case.judged;
    let strange = j.outside.iter().filter(|&&i| j.output[i] < -j.unit || j.output[i] > 1.0 + j.unit).count();
    10 * strange >= 9 * j.error.len()
}
