//! Error against its bound.

use super::super::cell::Id;
use super::super::cell::Nearness;
use super::super::result::Findings;
use super::curves::{logarithmic, show, stroke};
use crate::count::counted;
use crate::report::html::Page;
use crate::report::html::plot::{Plot, Series, Stroke};
use reference::spec::Rounding;

/// The deepest network of each rounding.
pub(super) fn nearness(page: &mut Page, found: &Findings) {
    let ids = || found.cells.iter().filter_map(|c| c.parse::<Id>().ok()).filter(Id::is_plain);
    let first = ids().map(|id| id.seed).min();
    let told = |id: &Id| found.nearness.iter().any(|n| n.cell == id.to_string());
    let Some(deepest) = ids().filter(|id| told(id)).map(|id| id.layers).max() else { return };
    let mut plots = Vec::new();
    for rounding in Rounding::ALL {
        let shown: Vec<_> =
            ids().filter(|id| (id.layers, id.rounding, Some(id.seed)) == (deepest, Some(rounding), first)).collect();
        plots.extend(["logits", "head_gradient", "layer1/dW"].map(|tensor| plot(found, &shown, tensor, rounding)));
    }
    let outside: u64 = found.nearness.iter().map(|n| n.nearness.outside).sum();
    let closest = found.nearness.iter().map(|n| n.nearness.closest).fold(0.0, f64::max);
    show(
        page,
        "Error against its bound",
        &format!(
            "One step of the integer side and of real numbers from the same weights at the end of each epoch; solid: \
             the largest error, dashed: the bound of that \
             element. Networks of {deepest} layers; over all cells {} outside their bound, and \
             the nearest reached {:.1} % of it.",
            counted(outside, "element"),
            100.0 * closest
        ),
        &plots,
    );
}

/// One tensor: error and bound of each cell.
fn plot(found: &Findings, cells: &[Id], tensor: &str, rounding: Rounding) -> Plot {
    let mut series = Vec::new();
    for id in cells {
        let cell = id.to_string();
        let points = |of: fn(&Nearness) -> f64| {
            let mine = found.nearness.iter().filter(|n| n.cell == cell && n.tensor == tensor);
            mine.map(|n| (n.epoch as f64, of(&n.nearness))).collect()
        };
        let colour = stroke(id).colour;
        for (what, dashed, points) in [("error", false, points(|n| n.error)), ("bound", true, points(|n| n.bound))] {
            series.push(Series { name: format!("{}, {what}", id.head), stroke: Stroke { colour, dashed }, points });
        }
    }
    let description = "Largest error of the integer side against real numbers, and the proven bound of that element, \
                       by epoch, on a logarithmic scale. The numbers are in nearness.csv.";
    Plot { series, ..logarithmic(format!("{tensor}, {rounding} rounding"), description, "units of 2^-f") }
}
