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
