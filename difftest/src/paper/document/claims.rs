//! Every claim with its test, its verdict and the numbers that decide.

use super::markdown::{heading, item, paragraph, wrapped};
use crate::paper::claims::{self, Claim, Judgement};
use std::fmt::Write;

/// Lines of numbers that a claim shows; all of them are in the report.
const NUMBERS: usize = 6;

pub(super) fn judged(out: &mut String, all: &[Claim]) {
    heading(out, "Claims");
    paragraph(
        out,
        "Each claim in our words, its place in the paper, how it is tested, and the numbers, those first that decide. \
         *Holds*: no number contradicts it. *Does \
         not hold*: one contradicts it by more than two standard errors. *Not tested*: cells are missing or leave it \
         open. ± is one standard error.",
    );
    let count = |verdict| all.iter().filter(|c| c.verdict == verdict).count();
    paragraph(
        out,
        &format!(
            "{} claims. Hold: {}; do not hold: {}; not tested: {}.",
            all.len(),
            count(Judgement::Holds),
            count(Judgement::DoesNotHold),
            count(Judgement::NotTested)
        ),
    );
    for claim in all {
        let _ = write!(out, "\n#### {}: {}\n\n", claim.name, claim.verdict);
        out.push_str(&wrapped(&format!("{} ({}.)", claim.statement, claim.place), "", ""));
        out.push_str(&wrapped(&format!("*Test:* {}", claim.test), "", ""));
        out.push('\n');
        let mut numbers: Vec<&str> = claim.numbers.iter().map(String::as_str).collect();
        numbers.sort_by_key(|n| !(n.ends_with(claims::CONTRADICTS) || n.ends_with(claims::SUPPORTS)));
        let more = numbers.len().saturating_sub(NUMBERS);
        numbers.iter().take(NUMBERS).for_each(|n| item(out, n));
        if more > 0 {
            item(out, &format!("and {more} more in the report"));
        }
    }
}
