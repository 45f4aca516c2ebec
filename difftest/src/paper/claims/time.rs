//! Claims about time: what the replacements and probabilistic rounding save.
//!
//! Only configurations timed by themselves on a quiet machine, or else whole grids that ran alone, are compared, and
//! those of like machines; anything else leaves a claim open, with the reason.

use super::super::cell::{Cell, Untimed};
use super::super::seconds::Source;
use super::super::standard_error::binomial_error;
use super::super::wording::layers_of;
use super::case::{Cases, Claim, DEPTHS, EPOCHS, Evidence, REPLACEMENTS, configurations, points};
use crate::count::counted;
use reference::spec::{Head, Rounding};

/// Why these seconds are not compared, if they are not.
fn incomparable(sources: &[&Source]) -> Option<String> {
    let untimed = sources.iter().find_map(|s| s.untimed()).map(|(cell, why)| format!("{cell} has {}", reason(why)));
    let different = || {
        let made: Vec<_> = sources.iter().flat_map(|s| s.made()).collect();
        let like = made.windows(2).all(|w| w[0] == w[1]);
        (!like).then(|| "timed on different machines or by different programs".into())
    };
    untimed.or_else(different)
}

fn reason(why: Untimed) -> &'static str {
    match why {
        Untimed::Short => "fewer than 20 whole epochs",
        Untimed::Few => "fewer than 3 counted epochs",
        Untimed::Busy => "other processes beside it",
        Untimed::NotMeasured => "no record of what else the machine did",
    }
}

/// What a replacement saves of softmax's seconds: part, standard error, and both in words.
fn saved(e: &Evidence, head: Head, layers: usize, rounding: Rounding) -> Result<(f64, f64, String), Option<String>> {
    let [base, other] = [Head::Softmax, head].map(|head| e.source(head, layers, rounding, 1));
    let (Some((base_s, base_error)), Some((s, error))) = (base.seconds(), other.seconds()) else { return Err(None) };
    if let Some(why) = incomparable(&[&base, &other]) {
        return Err(Some(why));
    }
    let (saved, error) = (1.0 - s / base_s, s / base_s * (error / s).hypot(base_error / base_s));
    let words = format!("{s:.2} s against {base_s:.2} s, saves {:.1} ± {:.1} %", 100.0 * saved, 100.0 * error);
    Ok((saved, error, words))
}

/// The paper's bound on the saving with two or more layers, 0 to 1.
fn bound() -> f64 {
    fixtures::paper::text().largest_saving_percent / 100.0
}

const NEEDS: &str =
    "softmax and the replacements timed by themselves, or their secure cells with 20 epochs, on a quiet machine";

/// With one layer some replacement saves more than the bound.
pub fn one_layer(e: &Evidence) -> Claim {
    let percent = 100.0 * bound();
    let mut cases = Cases::new(
        "saving-1-layer",
        "abstract",
        "The replacement makes training faster to a significant degree with a single layer only.",
        format!(
            "With one layer, the fastest replacement saves more than {percent:.0} % of softmax's seconds an epoch, \
             under either rounding."
        ),
    );
    for rounding in Rounding::ALL {
        let mut told = Vec::new();
        for head in REPLACEMENTS {
            let at = format!("1 layer, {rounding}, {head}");
            match saved(e, head, 1, rounding) {
                Ok((saved, error, words)) => told.push((saved, error, format!("{at}: {words}"))),
                Err(Some(why)) => cases.open(why),
                Err(None) => cases.missing(at),
            }
        }
        // The largest saving decides, once all three are there.
        told.sort_by(|a, b| b.0.total_cmp(&a.0));
        let complete = told.len() == REPLACEMENTS.len();
        for (k, (saved, error, n)) in told.into_iter().enumerate() {
            if k == 0 && complete { cases.case(saved + 2.0 * error > bound(), n) } else { cases.note(n) }
        }
    }
    cases.finish(NEEDS)
}

/// With more layers none does.
pub fn more_layers(e: &Evidence) -> Claim {
    let percent = 100.0 * bound();
    let mut cases = Cases::new(
        "saving-more-layers",
        "section 4, text after table 1",
        format!("With two or more layers, the replacements shorten an epoch by less than {percent:.0} %."),
        "No replacement saves more of softmax's seconds than that by more than two standard errors, with two and three \
         layers under either rounding.",
    );
    for (layers, rounding) in configurations().filter(|(layers, _)| *layers > 1) {
        for head in REPLACEMENTS {
            let at = format!("{}, {rounding}, {head}", layers_of(layers));
            match saved(e, head, layers, rounding) {
                Ok((saved, error, words)) => cases.case(saved - 2.0 * error < bound(), format!("{at}: {words}")),
                Err(Some(why)) => cases.open(why),
                Err(None) => cases.missing(at),
            }
        }
    }
    cases.finish(NEEDS)
}

/// Softmax is never behind in time.
pub fn first_in_time(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "first-in-time",
        "section 4, text after table 1; section 5",
        "Measured by the time until some accuracy is reached, softmax is always the best.",
        "At the end of no epoch of a replacement, from softmax's first on, is its best accuracy so far above softmax's \
         of that time by more than two \
         standard errors; failed learning rates count.",
    );
    for (layers, rounding) in configurations() {
        for head in REPLACEMENTS {
            let at = format!("{}, {rounding}, {head}", layers_of(layers));
            let sources = [Head::Softmax, head].map(|head| e.source(head, layers, rounding, EPOCHS));
            let by_itself = sources.iter().all(Source::is_clean_time);
            let [base, cells] = [Head::Softmax, head].map(|head| courses(e, head, layers, rounding, by_itself));
            let same_seed = |c: &&Cell| base.iter().find(|b| b.id.seed == c.id.seed).copied();
            let pairs: Vec<_> = cells.iter().filter_map(|c| Some((*c, same_seed(c)?))).collect();
            if pairs.is_empty() {
                cases.missing(at.clone());
            }
            for (other, base) in pairs {
                let at = if cells.len() > 1 { format!("{at}, seed {}", other.id.seed) } else { at.clone() };
                let [base_time, time] = if by_itself {
                    sources.each_ref().map(|s| s.clone())
                } else {
                    [base, other].map(|cell| Source::Training(vec![cell]))
                };
                if let Some(why) = incomparable(&[&base_time, &time]) {
                    cases.open(why);
                    continue;
                }
                match never_behind(e, &best_by_time(base, &base_time), &best_by_time(other, &time)) {
                    Some((holds, numbers)) => cases.case(holds, format!("{at}: {numbers}")),
                    None => cases.open(format!("{at}: over before softmax's first epoch was")),
                }
            }
        }
    }
    cases.finish(NEEDS)
}

/// Whether softmax is nowhere behind; how often, and how far at most. `None` if they have no time in common.
fn never_behind(e: &Evidence, softmax: &[(f64, f64)], other: &[(f64, f64)]) -> Option<(bool, String)> {
    let (mut told, mut behind, mut largest) = (0, 0, (0.0f64, 0.0, 0.0));
    let rows = e.setup.test_rows;
    for &(time, accuracy) in other.iter().filter(|p| softmax.first().is_some_and(|s| p.0 >= s.0)) {
        let best = softmax.iter().take_while(|p| p.0 <= time).map(|p| p.1).fold(0.0, f64::max);
        let error = binomial_error(accuracy, rows).hypot(binomial_error(best, rows));
        told += 1;
        if accuracy - best > 2.0 * error {
            behind += 1;
            if accuracy - best > largest.0 {
                largest = (accuracy - best, time, error);
            }
        }
    }
    let worst = match behind {
        0 => "never behind".into(),
        _ => format!("behind at {behind}, most at {:.1} s: {}", largest.1, points(-largest.0, largest.2)),
    };
    (told > 0).then(|| (behind == 0, format!("{} compared, softmax {worst}", counted(told, "time"))))
}

/// The cells whose accuracies are compared in time: those of the integer side as well where seconds do not come from
/// them.
fn courses<'a>(e: &Evidence<'a>, head: Head, layers: usize, rounding: Rounding, by_itself: bool) -> Vec<&'a Cell> {
    if by_itself { e.trained(head, layers, rounding, 0, EPOCHS) } else { e.secure(head, layers, rounding, EPOCHS) }
}

/// (seconds of training so far, best accuracy so far) at the end of every epoch, failed rates included.
fn best_by_time(cell: &Cell, source: &Source) -> Vec<(f64, f64)> {
    let (mut time, mut best) = (0.0, 0.0f64);
    let whole = cell.setup.train_rows.div_ceil(cell.setup.batch.max(1)) as f64;
    let each = source.is_clean_time().then(|| source.seconds()).flatten();
    let epochs = cell.attempts.iter().flat_map(|a| &a.epochs);
    epochs
        .map(|e| {
            time += each.map_or(e.seconds, |(seconds, _)| seconds * e.steps as f64 / whole);
            best = best.max(e.accuracy(&cell.setup));
            (time, best)
        })
        .collect()
}

/// Probabilistic rounding is cheaper at equal accuracy.
pub fn rounding_cost(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "rounding-cost",
        "section 4, on rounding; table 1",
        "Probabilistic rounding is particularly efficient in secure computation.",
        "softmax takes fewer seconds an epoch than with nearest rounding, and is not less accurate by more than two \
         standard errors, at every depth.",
    );
    for layers in DEPTHS {
        let sources = Rounding::ALL.map(|r| e.source(Head::Softmax, layers, r, EPOCHS));
        let [Some((p, pe)), Some((n, ne))] = sources.each_ref().map(Source::seconds) else {
            cases.missing(layers_of(layers));
            continue;
        };
        let at = format!("{}: {p:.2} ± {pe:.2} s against {n:.2} ± {ne:.2} s", layers_of(layers));
        if let Some(why) = incomparable(&sources.each_ref()) {
            cases.open(format!("{at}, {why}"));
            continue;
        }
        let by_itself = sources.iter().all(Source::is_clean_time);
        let cells = Rounding::ALL.map(|r| courses(e, Head::Softmax, layers, r, by_itself));
        if cells.iter().any(Vec::is_empty) {
            cases.missing(format!("{}, accuracy", layers_of(layers)));
            continue;
        }
        match cells.each_ref().map(|c| e.accuracy(c, EPOCHS)) {
            [Some(a), Some(b)] => {
                let (gap, error) = a.minus(b);
                let cheaper = n - p > 2.0 * pe.hypot(ne);
                cases.case(cheaper && gap >= -2.0 * error, format!("{at}, {}", points(gap, error)));
            }
            [None, _] => cases.case(false, format!("{at}, ends early under probabilistic rounding")),
            [_, None] => cases.open(format!("{at}, ends early under nearest rounding")),
        }
    }
    cases.finish(NEEDS)
}
