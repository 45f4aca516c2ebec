//! Claims about the replacements' accuracy beside softmax's.

use super::super::wording::layers_of;
use super::case::{Cases, Claim, EPOCHS, Evidence, REPLACEMENTS, configurations, points, seeds};
use reference::spec::{Head, Rounding};

/// A loss of accuracy that must be visible before its absence contradicts a claim, 0 to 1.
const RESOLUTION: f64 = 0.01;

/// What both claims say of a difference within its uncertainty.
const UNCERTAIN: &str = "A difference within two standard errors contradicts that where these are at most one point, \
    and leaves it open elsewhere.";

/// A replacement that is used as an output probability.
#[derive(Debug, Clone, Copy)]
pub struct Replacement {
    head: Head,
    name: &'static str,
    what: &'static str,
}

/// The paper's formula.
pub const RELU_PROB: Replacement =
    Replacement { head: Head::ReluProb, name: "relu-prob-printed", what: "as the formula of section 2 is printed" };

/// The paper's published code.
pub const RELU_PROB_CUT: Replacement =
    Replacement { head: Head::ReluProbCut, name: "relu-prob-coded", what: "as the published code computes it" };

/// The replacement as a probability converges, with lower accuracy than softmax.
pub fn below_softmax(e: &Evidence, which: Replacement) -> Claim {
    let Replacement { head, name, what } = which;
    let mut cases = Cases::new(
        name,
        "section 2, after the bound on the gradient; table 1",
        format!(
            "With eps = {}, ReLU probability ({what}) converges, with a lower accuracy than softmax.",
            e.setup.epsilon
        ),
        format!(
            "{head} trains, and after {EPOCHS} epochs it is below softmax by more than two standard errors, at every \
             depth and rounding. {UNCERTAIN}"
        ),
    );
    for (layers, rounding) in configurations() {
        compare(&mut cases, e, head, layers, rounding);
    }
    cases.finish(&format!("secure or integer cells of {head} and softmax with {EPOCHS} epochs"))
}

fn compare(cases: &mut Cases, e: &Evidence, head: Head, layers: usize, rounding: Rounding) {
    let cells = e.trained(head, layers, rounding, 0, EPOCHS);
    let base = e.trained(Head::Softmax, layers, rounding, 0, EPOCHS);
    let at = format!("{}, {rounding}, {head}", layers_of(layers));
    match (e.accuracy(&cells, EPOCHS), e.accuracy(&base, EPOCHS)) {
        (Some(a), Some(b)) => {
            let (gap, error) = b.minus(a);
            let numbers =
                format!("{at}: {a} ({}) against {b} ({}), {}", seeds(&cells), seeds(&base), points(-gap, error));
            let below = gap > 2.0 * error;
            if !below && gap >= -2.0 * error && 2.0 * error > RESOLUTION {
                cases.open(format!("{numbers}: the seeds lie too far apart to tell"));
            } else {
                cases.case(cells.iter().all(|c| c.trains()) && below, numbers);
            }
        }
        (None, Some(_)) if !cells.is_empty() => {
            cases.case(false, format!("{at}: does not converge at the rates tried, in some of {}", seeds(&cells)))
        }
        _ => cases.missing(at),
    }
}

/// Either use of the replacement reduces accuracy.
pub fn always_reduced(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "always-reduced",
        "abstract; section 4, text after table 1",
        "Every replacement of softmax loses accuracy, with any number of layers, in places a great deal.",
        format!(
            "After {EPOCHS} epochs every replacement is below softmax by more than two standard errors, at every depth \
             and rounding; one that does not train is below it. {UNCERTAIN}"
        ),
    );
    for head in REPLACEMENTS {
        for (layers, rounding) in configurations() {
            let cells = e.trained(head, layers, rounding, 0, EPOCHS);
            if !cells.is_empty() && cells.iter().all(|c| !c.trains()) {
                cases.case(true, format!("{}, {rounding}, {head}: does not train", layers_of(layers)));
            } else {
                compare(&mut cases, e, head, layers, rounding);
            }
        }
    }
    cases.finish(&format!("secure or integer cells of softmax and the replacements with {EPOCHS} epochs"))
}
