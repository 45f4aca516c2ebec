//! Accuracy that falls in late epochs under nearest rounding.

use super::super::cell::Cell;
use super::super::wording::layers_of;
use super::case::{Accuracy, Cases, Claim, DEPTHS, EPOCHS, Evidence, HEADS, SUPPORTS, collapsed, points};
use reference::spec::Rounding;

impl Evidence<'_> {
    /// Best accuracy of the first three quarters, and at the end. `None` for what ends early or collapses: that is not
    /// a decline.
    fn decline(&self, cells: &[&Cell]) -> Option<(Accuracy, Accuracy)> {
        let end = self.accuracy(cells, EPOCHS)?;
        let early = (1..=EPOCHS * 3 / 4).filter_map(|e| self.accuracy(cells, e));
        let best = early.max_by(|a, b| a.value.total_cmp(&b.value))?;
        (!collapsed(best.value, end.value)).then_some((best, end))
    }
}

/// Accuracy falls under nearest rounding and not under probabilistic rounding.
pub fn late_decline(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "late-decline",
        "table 1, the rows of ReLU probability with nearest rounding; the text does not mention it",
        "Under nearest rounding accuracy can fall again in late epochs (in the paper's table from 92.9 to 87.2 % with \
         two layers).",
        format!(
            "In some configuration epoch {EPOCHS} is below the best of the first {} by more than two standard errors \
             under nearest rounding, \
             and is not under probabilistic rounding.",
            EPOCHS * 3 / 4
        ),
    );
    let falls = |(best, end): (Accuracy, Accuracy)| {
        let (drop, error) = best.minus(end);
        (drop > 2.0 * error, points(-drop, error))
    };
    let (mut seen, mut fallen, mut alone) = (0, 0, 0);
    for (layers, head) in DEPTHS.into_iter().flat_map(|l| HEADS.map(|h| (l, h))) {
        let at = format!("{}, {head}", layers_of(layers));
        let cells = Rounding::ALL.map(|r| e.trained(head, layers, r, 0, EPOCHS));
        if cells.iter().any(Vec::is_empty) {
            cases.missing(at);
            continue;
        }
        let (control, nearest) = match cells.map(|c| e.decline(&c)) {
            [Some(control), Some(nearest)] => (control, nearest),
            [Some(_), None] => {
                cases.open(format!("{at}: ends early or collapses, under nearest rounding only"));
                continue;
            }
            _ => {
                cases.note(format!("{at}: ends early or collapses"));
                continue;
            }
        };
        let ((control_falls, by), (nearest_falls, numbers)) = (falls(control), falls(nearest));
        seen += 1;
        fallen += usize::from(nearest_falls);
        let supports = nearest_falls && !control_falls;
        alone += usize::from(supports);
        let (best, end) = nearest;
        let line = format!("{at}: best {best}, end {end}, {numbers} (probabilistic: {by})");
        cases.note(if supports { line + SUPPORTS } else { line });
    }
    decided(&mut cases, seen, fallen, alone);
    cases.finish(&format!("secure or integer cells under both roundings with {EPOCHS} epochs"))
}

/// One configuration decides for the claim, and none only once all are there.
fn decided(cases: &mut Cases, seen: usize, fallen: usize, alone: usize) {
    if seen == 0 {
        return;
    }
    let numbers = format!(
        "{fallen} of {seen} configurations fall beyond twice the standard error, {alone} of them only under nearest \
         rounding"
    );
    match alone {
        // Those that are missing might still fall.
        0 if !cases.missing.is_empty() || cases.open => cases.open(numbers),
        0 => cases.case(false, numbers),
        _ => {
            cases.case(true, numbers + SUPPORTS);
            cases.missing.clear();
            cases.open = false;
        }
    }
}

/// Extra velocity bits cure the decline.
pub fn velocity_bits(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "velocity-bits",
        "not in the paper: a possible cause of the decline",
        "The decline comes from velocities of a few units, which nearest rounding never lets decay.",
        "With extra velocity bits accuracy does not fall under nearest rounding, and does not end lower than without.",
    );
    let bits = e.cells.iter().map(|c| c.id.velocity_bits).max().unwrap_or(0);
    for (layers, head) in DEPTHS.into_iter().filter(|_| bits > 0).flat_map(|l| HEADS.map(|h| (l, h))) {
        let at = format!("{}, {head}", layers_of(layers));
        let cells = [bits, 0].map(|bits| e.trained(head, layers, Rounding::Nearest, bits, EPOCHS));
        if cells.iter().any(Vec::is_empty) {
            cases.missing(at);
            continue;
        }
        let ((best, end), (_, without)) = match cells.map(|c| e.decline(&c)) {
            [Some(with), Some(without)] => (with, without),
            [None, Some(_)] => {
                cases.case(false, format!("{at}, {bits} bits: ends early, and does not without them"));
                continue;
            }
            [Some(_), None] => {
                cases.open(format!("{at}: ends early without extra bits"));
                continue;
            }
            [None, None] => {
                cases.note(format!("{at}: ends early with and without them"));
                continue;
            }
        };
        let ((drop, error), (gain, gain_error)) = (best.minus(end), end.minus(without));
        let numbers = format!(
            "{at}, {bits} bits: {} from its best; {end} against {without} without, {}",
            points(-drop, error),
            points(gain, gain_error)
        );
        cases.case(drop <= 2.0 * error && gain >= -2.0 * gain_error, numbers);
    }
    cases.finish(&format!("cells under nearest rounding with --velocity-bits 0,8 and {EPOCHS} epochs"))
}
