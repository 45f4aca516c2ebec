//! Figures of the paper's text that are not repeated.

use super::markdown::{heading, item};
use crate::paper::wording::layers_of;

/// What the paper's text reports and nothing here repeats.
pub(super) fn text_figures(out: &mut String) {
    let text = fixtures::paper::text();
    heading(out, "Figures of the paper's text that are not repeated here");
    out.push('\n');
    let two = &text.two_party;
    let each: Vec<_> =
        two.seconds_per_epoch.iter().map(|s| format!("{} s with {}", s.seconds, s.head.name())).collect();
    item(
        out,
        &format!(
            "Two parties ({}), {}, {} rounding: an epoch takes {}.",
            two.setting,
            layers_of(two.layers),
            two.rounding.name(),
            each.join(", ")
        ),
    );
    for other in &text.others {
        let accuracy = other.accuracy.map(|a| format!("{a} % after {} epochs", other.epochs));
        let seconds = other.seconds_per_epoch.map(|s| format!("{s} s an epoch over {} epochs", other.epochs));
        let told: Vec<_> = [accuracy, seconds].into_iter().flatten().collect();
        item(out, &format!("{}: {}.", other.work, told.join(", ")));
    }
}
