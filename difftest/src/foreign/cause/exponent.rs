//! Exponentials whose power of two is wrong. exp(x) = 2^n 2^r, and 2^n is put together from the bits of n.

use crate::foreign::case::{Case, Cause};
use std::collections::BTreeMap;

/// Failing elements that are right but for a power of two: the carry into n is lost.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = exponential(case)?;
    let power = |i: usize| (j.output[i] / j.expected[i]).log2().round();
    let right = |i: usize, k: f64| (j.output[i] - j.expected[i] * k.exp2()).abs() <= 1.5 * j.unit;
    let near = |i: usize, k: f64| right(i, k) || (j.output[i] / j.expected[i] / k.exp2() - 1.0).abs() <= 0.01;
    // A result of a few units has any power of two.
    let clear: Vec<_> = j.outside.iter().filter(|&&i| j.output[i] >= 32.0 * j.unit).collect();
    let proven = clear.iter().filter(|&&&i| power(i) != 0.0 && near(i, power(i)));
    if clear.len() < 3 || proven.count() < clear.len() {
        return None;
    }
    let mut powers: BTreeMap<i64, usize> = BTreeMap::new();
    clear.iter().for_each(|&&i| *powers.entry(power(i) as i64).or_insert(0) += 1);
    let list = powers.iter().map(|(k, n)| format!("2^{k} {n} times")).collect::<Vec<_>>().join(", ");
    case.failing(
        "wrong exponent",
        |n, of| format!("{n} of {of} failing elements are a power of two times what they should be: {list}"),
        |i| j.output[i] == 0.0 || (-64..=64).any(|k| right(i, f64::from(k))) || near(i, power(i)),
    )
}

/// Where exp is exactly 1, whole multiples of 1, not always the same: bits of n that are neither 0 nor 1.
pub fn not_bits(case: &Case) -> Option<Cause> {
    let j = exponential(case)?;
    let ones: Vec<f64> = j.outside.iter().filter(|&&i| j.expected[i] == 1.0).map(|&i| j.output[i]).collect();
    let whole = ones.iter().filter(|v| (**v - v.round()).abs() <= 1.5 * j.unit).count();
    let differ = ones.iter().any(|v| (v - ones[0]).abs() > 0.5);
    if ones.len() < 4 || whole < ones.len() || !differ {
        return None;
    }
    let (low, high) = ones.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    let evidence = format!(
        "{} elements that should be 1 are other whole numbers, from {low:.0} to {high:.0}: a selection by a bit that \
         is 2 or -1",
        ones.len()
    );
    Some(Cause { name: "bit is not a bit", evidence, explained: ones.len(), failing: j.outside.len() })
}

/// Results outside of \[0, 1\] that are the same few wherever the argument is: an intermediate leaves its range.
pub fn overflow(case: &Case) -> Option<Cause> {
    let j = exponential(case)?;
    let strange = j.outside.iter().filter(|&&i| j.output[i] < -j.unit || j.output[i] > 1.0 + j.unit).count();
    let mut groups: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    j.outside.iter().for_each(|&i| groups.entry(j.expected[i].to_bits()).or_default().push(j.output[i]));
    let repeated: Vec<_> = groups.values().filter(|g| g.len() > 1).collect();
    let same = repeated.iter().filter(|g| 2 * distinct(g, j.unit) <= g.len() + 1).count();
    if 2 * strange < j.outside.len() || repeated.len() < 3 || 10 * same < 8 * repeated.len() {
        return None;
    }
    let evidence = format!(
        "{strange} of {} failing elements are below 0 or above 1, and {same} of {} arguments that occur again have the \
         same few wrong results: an intermediate leaves its range, as where a factor has another scale",
        j.outside.len(),
        repeated.len()
    );
    Some(Cause { name: "overflow inside the function", evidence, explained: strange, failing: j.outside.len() })
}

/// The number of values that differ by more than rounding.
fn distinct(values: &[f64], unit: f64) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    1 + sorted.windows(2).filter(|w| w[1] - w[0] > 1.5 * unit).count()
}

fn exponential<'c>(case: &'c Case) -> Option<&'c crate::foreign::judged::Judged> {
    (case.judged.tensor == "head/exp").then_some(case.judged)
}
