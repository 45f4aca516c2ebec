//! `relu-grad` with more than one layer, under each reading of "smallest possible learning rate".

use super::markdown::{heading, paragraph};
use crate::paper::cell::Cell;
use crate::paper::claims;
use crate::paper::claims::divergence::{self, Found, READINGS, Reading};
use crate::paper::wording::{layers_of, short};
use reference::spec::Rounding;

pub(super) fn readings(out: &mut String, cells: &[Cell]) {
    let mut rows = Vec::new();
    for layers in [2, 3] {
        for rounding in Rounding::ALL {
            for code in [false, true] {
                rows.extend(reading_row(cells, code, layers, rounding));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    heading(out, "relu-grad with more than one layer, under each reading of \"smallest possible\"");
    paragraph(
        out,
        "The paper's divergence sign stands for divergence even with the smallest possible learning rate, and does not \
         say which that is. (a) Any rate that the \
         encoding of the update can represent, 0.01 and its halves down to 0.00002. (b) Rates whose product with 1 / \
         batch is a whole number of units of 2^-16: \
         at least 0.00195. (c) The rule of the published code (MP-SPDZ 15d179a1): 0.01, halved after each epoch with \
         accuracy below 1.1 / classes or a batch \
         loss above 100, a restart using up an epoch of the 20. relu-grad-code takes the reciprocal of the sum first \
         and multiplies then, as that code does, \
         on the integer side. A rate trains if it lasts all 20 epochs at no less than twice chance, without losing \
         half of its best accuracy; in (c), if \
         epoch 20 belongs to an attempt that goes on.",
    );
    out.push_str(
        "\n| configuration | (a) representable | (b) whole units | (c) published rule |\n| --- | --- | --- | --- |\n",
    );
    rows.iter().for_each(|r| out.push_str(r));
}

fn reading_row(cells: &[Cell], code: bool, layers: usize, rounding: Rounding) -> Option<String> {
    let seeds = divergence::seeds(cells, code, layers, rounding, claims::EPOCHS);
    let told = |reading: Reading| {
        summary(&seeds.iter().map(|(_, cells)| divergence::found(reading, cells)).collect::<Vec<_>>())
    };
    let head = if code { "relu-grad-code" } else { "relu-grad" };
    let name = format!("{}, {rounding}, {head}", layers_of(layers));
    let columns: Vec<_> = READINGS
        .into_iter()
        .filter(|r| *r != Reading::Representable(50))
        .map(|r| if seeds.is_empty() { String::new() } else { told(r) })
        .collect();
    let [a, b, c] = &columns[..] else { return None };
    (!seeds.is_empty()).then(|| format!("| {name} | {a} | {b} | {c} |\n"))
}

/// What all seeds of a configuration say of a reading.
fn summary(all: &[Found]) -> String {
    let trains: Vec<(f64, f64)> =
        all.iter().filter_map(|f| if let Found::Trains(rate, end) = f { Some((*rate, *end)) } else { None }).collect();
    let diverge = all.iter().filter(|f| **f == Found::Diverges).count();
    let range = |of: fn(&(f64, f64)) -> f64, text: &dyn Fn(f64) -> String| {
        let (lo, hi) = trains.iter().map(of).fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if text(lo) == text(hi) { text(lo) } else { format!("{} to {}", text(lo), text(hi)) }
    };
    let seeds = if all.len() == 1 { String::new() } else { format!(" ({} seeds)", all.len()) };
    if trains.len() == all.len() {
        let (rate, end) = (range(|t| t.0, &short), range(|t| 100.0 * t.1, &|v| format!("{v:.1}")));
        return format!("trains at {rate}: {end} %{seeds}");
    }
    if diverge == all.len() {
        return format!("diverges{seeds}");
    }
    let open = all.len() - trains.len() - diverge;
    let told = [(trains.len(), "trains"), (diverge, "diverges"), (open, "open")];
    told.iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{what}: {n} of {}", all.len()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_summed_up() {
        let trains = |rate, end| Found::Trains(rate, end);
        for (all, text) in [
            (vec![trains(0.005, 0.5)], "trains at 0.005: 50.0 %"),
            (vec![trains(0.005, 0.5), trains(0.0025, 0.75)], "trains at 0.0025 to 0.005: 50.0 to 75.0 % (2 seeds)"),
            (vec![Found::Diverges; 3], "diverges (3 seeds)"),
            (vec![Found::Diverges, trains(0.1, 0.5), Found::Open], "trains: 1 of 3, diverges: 1 of 3, open: 1 of 3"),
        ] {
            assert_eq!(summary(&all), text);
        }
    }
}
