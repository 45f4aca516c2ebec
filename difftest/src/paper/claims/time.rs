//! Claims about time: what the replacements and probabilistic rounding save.
//!
//! Only whole grids that ran alone on like machines are compared; anything else leaves a claim open, with the reason.

use super::super::cell::{Cell, Untimed, binomial_error, layers_of, mean_and_error};
use super::case::{Cases, Claim, DEPTHS, EPOCHS, Evidence, REPLACEMENTS, configurations, points};
use reference::spec::{Head, Rounding};

/// Seconds of an epoch and their standard error: one cell's, or the mean of several.
fn seconds(cells: &[&Cell]) -> Option<(f64, f64)> {
    let each: Vec<_> = cells.iter().filter_map(|c| c.seconds_per_epoch()).collect();
    match each[..] {
        [one] => Some(one),
        _ => mean_and_error(&each.iter().map(|s| s.0).collect::<Vec<_>>()),
    }
}

/// Why the seconds of these cells are not compared, if they are not.
fn incomparable(cells: &[&Cell]) -> Option<String> {
    let untimed = |c: &&Cell| c.timed().err().map(|why: Untimed| format!("{} has {}", c.id, reason(why)));
    let different = || {
        let like = cells.windows(2).all(|w| w[0].machine == w[1].machine && w[0].program == w[1].program);
        (!like).then(|| "timed on different machines or by different programs".into())
    };
    cells.iter().find_map(untimed).or_else(different)
}

fn reason(why: Untimed) -> &'static str {
    match why {
        Untimed::Short => "fewer than 20 whole epochs",
        Untimed::Busy => "other processes beside it",
        Untimed::NotMeasured => "no record of what else the machine did",
    }
}

/// What a replacement saves of softmax's seconds: part, standard error, and both in words.
fn saved(e: &Evidence, head: Head, layers: usize, rounding: Rounding) -> Result<(f64, f64, String), Option<String>> {
    let base = e.secure(Head::Softmax, layers, rounding, 1);
    let cells = e.secure(head, layers, rounding, 1);
    let (Some((base_s, base_error)), Some((s, error))) = (seconds(&base), seconds(&cells)) else { return Err(None) };
    if let Some(why) = incomparable(&[base, cells].concat()) {
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

const NEEDS: &str = "secure cells of softmax and the replacements with 20 epochs, on a quiet machine";

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
        let base = e.secure(Head::Softmax, layers, rounding, EPOCHS);
        for head in REPLACEMENTS {
            let at = format!("{}, {rounding}, {head}", layers_of(layers));
            let cells = e.secure(head, layers, rounding, EPOCHS);
            let same_seed = |c: &&Cell| base.iter().find(|b| b.id.seed == c.id.seed).copied();
            let pairs: Vec<_> = cells.iter().filter_map(|c| Some((*c, same_seed(c)?))).collect();
            if pairs.is_empty() {
                cases.missing(at.clone());
            }
            for (other, base) in pairs {
                let at = if cells.len() > 1 { format!("{at}, seed {}", other.id.seed) } else { at.clone() };
                if let Some(why) = incomparable(&[other, base]) {
                    cases.open(why);
                    continue;
                }
                match never_behind(e, &best_by_time(base), &best_by_time(other)) {
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
    (told > 0).then(|| (behind == 0, format!("{told} times compared, softmax {worst}")))
}

/// (seconds of training so far, best accuracy so far) at the end of every epoch, failed rates included.
fn best_by_time(cell: &Cell) -> Vec<(f64, f64)> {
    let (mut time, mut best) = (0.0, 0.0f64);
    let epochs = cell.attempts.iter().flat_map(|a| &a.epochs);
    epochs
        .map(|e| {
            time += e.seconds;
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
        let cells = Rounding::ALL.map(|r| e.secure(Head::Softmax, layers, r, EPOCHS));
        let [Some((p, pe)), Some((n, ne))] = cells.each_ref().map(|c| seconds(c)) else {
            cases.missing(layers_of(layers));
            continue;
        };
        let at = format!("{}: {p:.2} ± {pe:.2} s against {n:.2} ± {ne:.2} s", layers_of(layers));
        if let Some(why) = incomparable(&cells.concat()) {
            cases.open(format!("{at}, {why}"));
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
