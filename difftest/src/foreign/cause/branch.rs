//! A selection whose comparison is wrong: the element has the value of the other branch.

use crate::foreign::case::{Case, Cause};

/// Elements of max(0, x), or of what a ReLU head sums, that are 0 where x is wanted or x where 0 is.
///
/// Where the sign is read from another bit than the top one, exactly the elements beyond a power of two fail. Where a
/// carry of the comparison is lost, or one of its shares is, the elements that fail depend on the shares, which no
/// trace has: those two cannot be told apart, and are one cause.
pub fn explain(case: &Case) -> Option<Cause> {
    let j = case.judged;
    let source = match j.tensor.strip_suffix("/activation") {
        Some(layer) => format!("{layer}/pre_activation"),
        None if j.tensor == "head/positive" => "logits".into(),
        None => return None,
    };
    let x = case.view.get(&source)?.reals().into_raw_vec_and_offset().0;
    let other = |i: usize| j.output[i] == if j.expected[i] == 0.0 { x[i] } else { 0.0 };
    let passed = j.outside.iter().filter(|&&i| other(i) && j.expected[i] == 0.0).count();
    let cut = j.outside.iter().filter(|&&i| other(i) && j.expected[i] != 0.0).count();
    let what = format!("{passed} elements pass that should be 0, {cut} are 0 that should pass");
    if let Some(bits) = beyond(case, &x) {
        return case.failing(
            "sign from a lower bit",
            |n, of| format!("{what}: {n} of {of} failing elements, exactly those of 2^{bits} units or more in size"),
            other,
        );
    }
    case.failing(
        "wrong comparison",
        |n, of| format!("{what}: {n} of {of} failing elements have the other branch's value, of every size"),
        other,
    )
}

/// The power of two, in units, from which on every element fails and below which none does.
fn beyond(case: &Case, x: &[f64]) -> Option<i32> {
    let j = case.judged;
    let mut fails = vec![false; x.len()];
    j.outside.iter().for_each(|&i| fails[i] = true);
    let size = |i: usize| x[i].abs() / j.unit;
    let smallest = j.outside.iter().map(|&i| size(i)).fold(f64::INFINITY, f64::min);
    let bits = smallest.log2().floor();
    // Two's complement has one number more below 0, so the power of two itself says nothing.
    let exactly = (0..x.len()).all(|i| size(i) == bits.exp2() || (size(i) > bits.exp2()) == fails[i]);
    (bits >= 8.0 && exactly && (0..x.len()).any(|i| size(i) > 0.0 && size(i) < bits.exp2())).then_some(bits as i32)
}
