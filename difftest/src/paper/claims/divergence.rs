//! relu-grad with more than one layer: "diverges even with the smallest possible learning rate", under each reading of
//! "smallest possible".
//!
//! The paper does not say which rates it tried. The readings:
//!
//! * (a) [`Reading::Representable`]: every rate whose product with 1 / batch our encoding of the update can represent,
//!   down to 0.00002.
//! * (b) [`Reading::WholeUnits`]: every rate whose product with 1 / batch is a whole number of units of 2^-16; with
//!   batches of 128 the smallest is 128 units, 0.00195.
//! * (c) [`Reading::Published`]: the rates that the rule of the published code arrives at, where a restart uses up an
//!   epoch of the table's 20 ([`published`]).

use super::super::cell::{Attempt, Cell, Epoch, RATE_UNIT};
use super::super::published::Run;
use super::super::wording::{layers_of, short};
use super::case::{Cases, Claim, EPOCHS, Evidence, collapsed};
use crate::check::divergence::Verdict;
use reference::spec::{Head, Rounding};

#[allow(unused_imports, reason = "for the documentation")]
use super::super::published;

/// A reading of the paper's "smallest possible learning rate".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// (a) Every rate that the encoding can represent, for so many epochs.
    Representable(usize),
    /// (b) Rates whose product with 1 / batch is a whole number of units of 2^-16.
    WholeUnits,
    /// (c) The published code's rule.
    Published,
}

/// All readings; (a) also for the longest run of the paper's text.
pub const READINGS: [Reading; 4] =
    [Reading::Representable(EPOCHS), Reading::Representable(50), Reading::WholeUnits, Reading::Published];

/// The evidence of cells of relu-grad about a reading.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Some rate trains for all epochs: the rate, and the accuracy at the end, 0 to 1.
    Trains(f64, f64),
    /// Every rate fails.
    Diverges,
    /// Rates are left that were not tried.
    Open,
}

/// Whether the rate of an attempt helps: it lasts, learns more than the most frequent class and does not lose most of
/// it again. Longer runs are judged by their beginning.
fn helps(cell: &Cell, a: &Attempt, epochs: usize) -> Option<f64> {
    let accuracy = |e: &Epoch| e.accuracy(&cell.setup);
    let end = a.epochs.get(epochs - 1).map(accuracy)?;
    let best = a.epochs.iter().take(epochs).map(accuracy).fold(0.0, f64::max);
    let learnt = end >= 2.0 / cell.setup.classes as f64 && !collapsed(best, end);
    ((a.ended.is_none() || a.epochs.len() > epochs) && learnt).then_some(end)
}

/// Reads the evidence of the cells of one configuration and seed: the grid's cell, and those of a single rate.
pub fn found(reading: Reading, cells: &[&Cell]) -> Found {
    let attempts = || cells.iter().flat_map(|c| c.attempts.iter().map(move |a| (*c, a)));
    let best = |least: f64, epochs: usize| {
        attempts()
            .filter(|(_, a)| a.learning_rate >= least)
            .find_map(|(c, a)| helps(c, a, epochs).map(|end| Found::Trains(a.learning_rate, end)))
    };
    match reading {
        Reading::Representable(epochs) => best(0.0, epochs)
            .unwrap_or_else(|| if cells.iter().any(|c| exhausted(c)) { Found::Diverges } else { Found::Open }),
        Reading::WholeUnits => {
            let smallest = cells.first().map_or(0.0, |c| c.setup.batch as f64 * RATE_UNIT);
            best(smallest, EPOCHS).unwrap_or_else(|| {
                // The smallest rate itself decides, or the next of the halved rates below it, if that fails as well.
                let near = |a: &Attempt| (smallest / 2.0..=smallest).contains(&a.learning_rate);
                if attempts().any(|(_, a)| near(a)) { Found::Diverges } else { Found::Open }
            })
        }
        Reading::Published => {
            let Some(cell) = cells.iter().find(|c| c.id.rate.is_none()) else { return Found::Open };
            let Some(run) = Run::new(cell, EPOCHS) else { return Found::Open };
            let accuracies = || (1..=EPOCHS).filter_map(|e| run.accuracy(cell, e));
            let Some((rate, end)) = accuracies().next_back() else { return Found::Open };
            let best = accuracies().filter(|(r, _)| *r == rate).map(|(_, a)| a).fold(0.0, f64::max);
            let learnt = end >= 2.0 / cell.setup.classes as f64 && !collapsed(best, end);
            if run.goes_on && learnt { Found::Trains(rate, end) } else { Found::Diverges }
        }
    }
}

/// Whether no smaller rate is left that could train: none can be represented, or under nearest rounding the last one
/// moved nothing in an epoch, and its half rounds to no update all the more.
fn exhausted(cell: &Cell) -> bool {
    let last = cell.last();
    let still = cell.id.rounding == Some(Rounding::Nearest)
        && last.epochs.len() == 1
        && matches!(last.verdict, Verdict::Stalls { .. })
        && cell.attempts.len() > 1;
    cell.id.rate.is_none() && (still || cell.setup.spec(&cell.id, last.learning_rate / 2.0).is_err())
}

/// The cells of each seed of a configuration: of relu-grad on the secure side or else the integer side's, or of
/// relu-grad-code.
pub fn seeds(cells: &[Cell], code: bool, layers: usize, rounding: Rounding, epochs: usize) -> Vec<(u64, Vec<&Cell>)> {
    let fits = |c: &&Cell| {
        let id = &c.id;
        let this = (id.head, id.layers, id.rounding) == (Head::ReluGrad, layers, Some(rounding));
        this && id.code == code && id.velocity_bits == 0 && id.epochs >= epochs
    };
    let mut all: Vec<&Cell> = cells.iter().filter(fits).collect();
    all.sort_by_key(|c| c.id.seed);
    let mut told = Vec::new();
    for of_seed in all.chunk_by(|a, b| a.id.seed == b.id.seed) {
        // Of each side and single rate the shortest; a secure cell first. One side may have tried rates that the other
        // has not.
        let mut kept: Vec<&Cell> = Vec::new();
        let mut sorted = of_seed.to_vec();
        sorted.sort_by_key(|c| (c.id.rate, c.id.epochs, c.id.side));
        for cell in sorted {
            if kept.iter().all(|k| (k.id.rate, k.id.side) != (cell.id.rate, cell.id.side)) {
                kept.push(cell);
            }
        }
        told.push((of_seed[0].id.seed, kept));
    }
    told
}

/// The claim under one reading.
pub fn relu_grad(e: &Evidence, reading: Reading) -> Claim {
    let (name, smallest) = match reading {
        Reading::Representable(EPOCHS) => ("relu-grad-diverges-a", "any rate that the encoding can represent"),
        Reading::Representable(_) => {
            ("relu-grad-diverges-a-50", "any rate that the encoding can represent, for 50 epochs")
        }
        Reading::WholeUnits => (
            "relu-grad-diverges-b",
            "rates whose product with 1 / batch is a whole number of units of 2^-16, at least 0.00195 for batches of \
             128",
        ),
        Reading::Published => (
            "relu-grad-diverges-c",
            "the rates that the rule of the published code arrives at within the epochs of the table",
        ),
    };
    let epochs = if let Reading::Representable(epochs) = reading { epochs } else { EPOCHS };
    let mut cases = Cases::new(
        name,
        "section 4, table 1 and text after it",
        "Used directly in back-propagation, the replacement does not converge with more than one layer, even with the \
         smallest possible learning rate.",
        format!(
            "relu-grad at no rate trains for {epochs} epochs, with two and three layers under either rounding. \
             Smallest possible: {smallest}."
        ),
    );
    for layers in [2, 3] {
        for rounding in Rounding::ALL {
            let seeds = seeds(e.cells, false, layers, rounding, epochs);
            if seeds.is_empty() {
                cases.missing(format!("{}, {rounding}", layers_of(layers)));
            }
            for (seed, cells) in seeds {
                let side = cells[0].id.side;
                let at = format!("{}, {rounding}, seed {seed}, {side}: {}", layers_of(layers), rates(reading, &cells));
                match found(reading, &cells) {
                    Found::Trains(..) => cases.case(false, at),
                    Found::Diverges => cases.case(true, at),
                    Found::Open => cases.open(format!("{at}; smaller rates were not tried")),
                }
            }
        }
    }
    cases.finish(&format!("cells of relu-grad with 2 or 3 layers and {epochs} epochs"))
}

/// What happened at each rate of a reading.
fn rates(reading: Reading, cells: &[&Cell]) -> String {
    let cell = cells[0];
    if reading == Reading::Published {
        let Some(run) = Run::new(cell, EPOCHS) else { return "not enough epochs".into() };
        let (rate, end) = run.accuracy(cell, EPOCHS).unwrap_or_default();
        return format!(
            "{} restart{}, then {} with {:.1} % after epoch {EPOCHS}",
            run.restarts(),
            if run.restarts() == 1 { "" } else { "s" },
            short(rate),
            100.0 * end
        );
    }
    // The first side's rates, and those that it has not tried.
    let mut attempts: Vec<(&Cell, &Attempt)> = Vec::new();
    for (c, a) in cells.iter().flat_map(|c| c.attempts.iter().map(move |a| (*c, a))) {
        if attempts.iter().all(|(_, other)| other.learning_rate != a.learning_rate) {
            attempts.push((c, a));
        }
    }
    attempts.sort_by(|a, b| b.1.learning_rate.total_cmp(&a.1.learning_rate));
    let of = |(cell, a): &(&Cell, &Attempt)| {
        let end = a.epochs.last().map_or(0.0, |e| e.accuracy(&cell.setup));
        let lasts = if a.ended.is_some() { "ends in epoch" } else { "lasts" };
        let epochs = if a.ended.is_some() { "" } else { " epochs" };
        let side = if cell.id.side == cells[0].id.side { String::new() } else { format!(" ({})", cell.id.side) };
        format!("{}{side} {lasts} {}{epochs}, {:.1} %", short(a.learning_rate), a.epochs.len(), 100.0 * end)
    };
    attempts.iter().map(of).collect::<Vec<_>>().join("; ")
}
