use super::*;
use crate::foreign::testing;
use reference::spec::{Head, Rounding};

/// No false alarm: every head, rounding and depth, whole traces.
#[test]
fn clean_traces_of_every_head_rounding_and_depth_pass() {
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            for layers in 1..=3 {
                for seed in 0..6 {
                    let trace = testing::record(&testing::spec(head, rounding, layers), 3, seed);
                    let report = judge(&trace).unwrap();
                    let bad: Vec<_> = report.rows.iter().filter(|r| r.verdict != "PASS").collect();
                    assert!(bad.is_empty(), "{head} {rounding} {layers} layers, seed {seed}: {bad:#?}");
                    assert!(report.holds(false), "{head} {rounding} {layers}: {:#?}", report.checks);
                    assert!(report.checks.iter().any(|c| c.name == "end-to-end"), "{:?}", report.checks);
                }
            }
        }
    }
}

/// A trace without a tensor is open there, and not held to pass.
#[test]
fn what_is_missing_is_open_and_never_passes() {
    let whole = testing::trace(Head::Softmax, Rounding::Nearest, 2, 2);
    let needed = ["logits", "labels", "input", "layer1/dW", "layer2/weights", "start/layer1/weights", "head_gradient"];
    for name in needed {
        let mut trace = whole.clone();
        for step in 0..2 {
            // A later step may start from what the earlier one left.
            trace.tensors.remove(&format!("step/{step}/{name}"));
        }
        if let Some(left) = name.strip_prefix("start/") {
            trace.tensors.remove(&format!("step/0/{left}"));
        }
        let report = judge(&trace).unwrap();
        assert!(!report.holds(false), "without {name}: {:?}", report.checks);
        assert!(report.checks.iter().any(|c| c.open), "without {name}: {:?}", report.checks);
        assert!(report.checks.iter().all(|c| c.failure.is_none()), "without {name}: {:?}", report.checks);
        assert!(report.holds(true), "without {name} the rest passes");
    }
}

/// One row of a tensor with these errors, in units of 1, truncated by 16 bits; the bound is one unit below and two
/// above.
fn judged(expected: &[f64], error: &[f64]) -> Judged {
    let n = error.len();
    Judged {
        operation: "logits",
        tensor: "logits".into(),
        step: 3,
        dim: (1, n),
        output: expected.iter().zip(error).map(|(v, e)| v + e).collect(),
        expected: expected.into(),
        error: error.into(),
        low: vec![-1.0; n],
        high: vec![2.0; n],
        fraction: Vec::new(),
        outside: (0..n).filter(|&i| !(-1.0..=2.0).contains(&error[i])).collect(),
        unit: 1.0,
        truncations: 1,
        shift: 16,
        kind: Kind::Judged,
        spare: 0.0,
        denominators: Vec::new(),
    }
}

/// In 64 bits a share of a value of 2^47 units wraps every other time, and is then off by 2^48 units.
#[test]
fn wraps_are_no_fault_only_if_all_are_wraps_and_no_more_than_predicted() {
    let wrap = 48f64.exp2();
    let of = |value: f64, error: &[f64]| {
        let mut found = judged(&vec![value; error.len()], error);
        wraps_as_predicted(&mut found, 64);
        found.outside.len()
    };
    let half: Vec<f64> = (0..64).map(|i| if i % 2 == 0 { 0.5 } else { wrap }).collect();
    assert_eq!(of(47f64.exp2(), &half), 0);
    assert_eq!(of(-47f64.exp2(), &half), 0);
    assert_eq!(of(40f64.exp2(), &half), 32, "so many are not to be expected of smaller values");
    assert_eq!(of(47f64.exp2(), &[wrap; 64]), 64, "nor all of them");
    let mut other = half.clone();
    other[0] = 5.0;
    assert_eq!(of(47f64.exp2(), &other), 33, "one is no wrap");
    for (off, left) in [(3.0, 0), (3.1, 1), (-3.0, 0), (-3.1, 1)] {
        assert_eq!(of(47f64.exp2(), &[wrap + off, 0.0]), left, "off by the bound at both ends");
    }
}

#[test]
fn a_row_keeps_the_largest_error_and_bound_and_where_they_are() {
    let mut rows = Rows::default();
    let row = rows.row("logits", "logits");
    row.measure(&judged(&[1.0; 4], &[0.5, -1.5, f64::INFINITY, 0.25]));
    row.measure(&Judged { high: vec![9.0; 2], low: vec![-1.0; 2], ..judged(&[1.0; 2], &[0.5, -0.25]) });
    assert_eq!((row.steps, row.elements, row.sum), (2, 6, -0.5));
    assert_eq!((row.max_error_units, row.bound_units), (f64::INFINITY, Some(9.0)));
    row.measure(&judged(&[1.0], &[f64::NAN]));
    assert_eq!((row.max_error_units, row.map.iter().filter(|v| v.is_infinite()).count()), (f64::INFINITY, 2));
    let row = rows.row("exp", "exp");
    row.measure(&Judged { kind: Kind::Measured, ..judged(&[1.0; 2], &[-4.0, 3.0]) });
    assert_eq!((row.max_error_units, row.bound_units), (4.0, None));
}

#[test]
fn errors_are_told_by_the_power_of_two_of_the_exact_value() {
    let mut rows = Rows::default();
    let row = rows.row("exp", "exp");
    row.by_range(&judged(&[1.0, 1.5, -3.0, 0.0, 2.0, 1.0], &[1.0, -2.0, 4.0, 8.0, -6.0, f64::NAN]));
    let told = |r: &Range| (r.from, r.to, r.elements, r.max_error_units, r.mean_error_units);
    let ranges: Vec<_> = row.ranges.iter().map(told).collect();
    let none = (0.0, (-63f64).exp2(), 1, 8.0, 8.0);
    assert_eq!(ranges, [(2.0, 4.0, 2, 6.0, -1.0), (1.0, 2.0, 2, 2.0, -0.5), none]);
}
