//! Clean runs are inside the propagated bound and near it; what happens between steps is seen by a whole run alone.

use super::*;
use crate::foreign::testing::{self, spec};
use crate::foreign::{Report, judge};
use crate::trace::header::Truncation;
use reference::spec::{Head, Rounding};

fn row<'r>(report: &'r Report, span: Span, tensor: &str) -> &'r Row {
    let mut rows = report.end_to_end.rows.iter();
    rows.find(|r| r.span == span && r.tensor == tensor).unwrap_or_else(|| panic!("{span:?} {tensor}"))
}

fn outcome<'r>(report: &'r Report, name: &str) -> &'r Check {
    report.checks.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[test]
fn clean_runs_are_inside_the_bound_of_every_tensor_and_step() {
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            for layers in 1..=2 {
                let report = judge(&testing::trace(head, rounding, layers, 4)).unwrap();
                for name in ["end-to-end", "whole-run"] {
                    let check = outcome(&report, name);
                    assert!(check.passed, "{head} {rounding} {layers}: {check:?}");
                }
                for tensor in ["layer1/weights", "layer1/bias", "layer1/weight_velocity", "layer1/bias_velocity"] {
                    let (step, run) = (row(&report, Span::Step, tensor), row(&report, Span::Run, tensor));
                    assert_eq!(step.bounded, step.elements, "{head} {tensor}");
                    assert!(run.bound_units >= step.bound_units, "{head} {tensor}: a run adds up what steps lose");
                }
            }
        }
    }
}

/// A bound that is never nearly reached proves little.
#[test]
fn errors_of_a_run_come_near_their_bound() {
    let report = judge(&testing::trace(Head::Softmax, Rounding::Probabilistic, 1, 4)).unwrap();
    for tensor in ["layer1/weights", "layer1/weight_velocity"] {
        let run = row(&report, Span::Run, tensor);
        let part = run.max_error_units / run.bound_units.unwrap();
        assert!(part > 0.1, "{tensor}: {} of {:?} units", run.max_error_units, run.bound_units);
    }
}

#[test]
fn parameters_that_change_between_steps_are_seen_by_the_run_alone() {
    let spec = spec(Head::Softmax, Rounding::Nearest, 2);
    let mut steps = 0;
    let trace = testing::record_batches(&spec, 4, |start, rng| {
        if steps == 1 {
            start.layers[0].weights.mapv_inplace(|w| w + 3000);
        }
        steps += 1;
        testing::batch(&spec, rng)
    });
    let report = judge(&trace).unwrap();
    assert!(report.rows.iter().all(|r| r.verdict == "PASS"), "every operation is right");
    assert!(outcome(&report, "end-to-end").passed, "every step is right");
    assert!(!outcome(&report, "whole-run").passed, "{:?}", report.end_to_end);
}

#[test]
fn one_truncation_a_term_widens_the_bound() {
    let mut trace = testing::trace(Head::Softmax, Rounding::Nearest, 2, 2);
    let once = judge(&trace).unwrap();
    trace.header.truncation = Truncation::Term;
    let each = judge(&trace).unwrap();
    assert!(each.holds(false), "{:?}", each.checks);
    let bound = |report: &Report| row(report, Span::Step, "logits").bound_units.unwrap();
    assert!(bound(&each) > 2.0 * bound(&once));
}

#[test]
fn what_the_header_does_not_state_leaves_it_open() {
    let clean = testing::trace(Head::Softmax, Rounding::Nearest, 2, 2);
    let open = |change: fn(&mut Header), why: &str| {
        let mut trace = clean.clone();
        change(&mut trace.header);
        let report = judge(&trace).unwrap();
        assert!(report.checks.iter().all(|c| c.name != "end-to-end" && c.name != "whole-run"), "{why}");
        assert!(report.end_to_end.open.iter().any(|o| o.contains(why)), "{:?}", report.end_to_end.open);
        let logits = row(&report, Span::Step, "logits");
        assert!(logits.bounded == 0 && logits.bound_units.is_none() && logits.elements > 0, "{why}");
    };
    open(|h| h.rounding = TraceRounding::Unknown, "no rounding");
    open(|h| h.claims.exp = None, "functions of its head");
}

/// The larger of what the header says of a truncation and what it claims of the head's own.
#[test]
fn a_truncation_errs_by_the_most_that_the_header_says() {
    let mut header = testing::trace(Head::Softmax, Rounding::Probabilistic, 1, 1).header;
    let unit = header.unit();
    assert_eq!(errors(&header).map(|e| e.truncate), Ok(unit));
    header.truncation_error = Some([-3.0, 0.5]);
    assert_eq!(errors(&header).map(|e| e.truncate), Ok(3.0 * unit));
    header.truncation_error = Some([-0.25, 0.25]);
    assert!(errors(&header).is_ok_and(|e| e.truncate >= unit / 2.0), "the head's division cuts off as well");
    header.rounding = TraceRounding::Local;
    header.truncation_error = None;
    assert!(errors(&header).is_err(), "a wrap has no bound");
}
