//! The budget of causes as rows for programs and as a table for people.

use crate::explain::cause::{Budget, Cause, Sums, TensorBudget};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One cause in one tensor, in units of 2^-f.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartRow {
    /// Mean over the elements, with sign: the bias.
    pub bias_units: f64,
    /// The mean magnitude, units.
    pub mean_units: f64,
    /// The largest magnitude, units.
    pub max_units: f64,
}

/// One tensor: its difference secure - f64, and the parts that add up to it element by element.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetRow {
    /// Name of the probe.
    pub tensor: String,
    /// The number of elements booked.
    pub elements: u64,
    /// The whole difference.
    pub total: PartRow,
    /// Its parts by the name of the cause.
    pub parts: BTreeMap<&'static str, PartRow>,
}

/// The rows of one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepBudget {
    /// Counted from 0.
    pub step: usize,
    /// Every tensor, in the order of computation.
    pub tensors: Vec<BudgetRow>,
}

impl BudgetRow {
    fn new(tensor: String, b: &TensorBudget, unit: f64) -> Self {
        let n = b.elements.max(1) as f64 * unit;
        let row =
            |s: &Sums| PartRow { bias_units: s.sum / n, mean_units: s.magnitude / n, max_units: s.largest / unit };
        let parts = Cause::ALL.into_iter().map(|c| (c.name(), row(b.part(c)))).collect();
        BudgetRow { tensor, elements: b.elements, total: row(&b.total), parts }
    }
}

/// Rows of one step, or of all steps merged, in the order of computation.
pub fn rows(budget: &Budget, unit: f64) -> Vec<BudgetRow> {
    budget.iter().map(|(point, b)| BudgetRow::new(point.to_string(), b, unit)).collect()
}

/// All steps together.
pub fn merged(budgets: &[(usize, Budget)]) -> Budget {
    let mut all = Budget::new();
    for (point, one) in budgets.iter().flat_map(|(_, b)| b) {
        all.entry(*point).or_default().merge(one);
    }
    all
}

/// The causes of one tensor by their share of the magnitudes, largest first.
fn shares(row: &BudgetRow) -> String {
    let sum: f64 = row.parts.values().map(|p| p.mean_units).sum();
    let mut parts: Vec<_> =
        row.parts.iter().filter(|(_, p)| p.mean_units >= 5e-4 * sum && p.mean_units > 0.0).collect();
    parts.sort_by(|a, b| b.1.mean_units.total_cmp(&a.1.mean_units));
    let list: Vec<_> = parts.iter().map(|(name, p)| format!("{name} {:.1} %", 100.0 * p.mean_units / sum)).collect();
    if list.is_empty() { "no difference".into() } else { list.join(", ") }
}

/// The tensors that a summary shows.
pub const SHOWN: [&str; 4] = ["logits", "head_gradient", "layer1/dW", "layer1/weights"];

/// Tells the causes of the differences in the tensors that matter most, one line each.
pub fn summary(rows: &[BudgetRow]) -> String {
    let mut out = String::new();
    for (i, row) in rows.iter().filter(|r| SHOWN.contains(&r.tensor.as_str())).enumerate() {
        let head = if i == 0 { "cause of the differences" } else { "" };
        let _ = writeln!(out, "{head:<26} {:<15} {}", row.tensor, shares(row));
    }
    out
}

/// Largest and mean magnitude of every part of every tensor.
pub fn table(rows: &[BudgetRow], f: u32) -> String {
    let mut out = String::new();
    let columns: Vec<&str> = std::iter::once("total").chain(Cause::ALL.map(Cause::name)).collect();
    for (title, largest) in [("largest part, units", true), ("mean part, units", false)] {
        let of = |p: &PartRow| if largest { p.max_units } else { p.mean_units };
        let _ = write!(out, "\n{title:<26}");
        columns.iter().for_each(|c| out += &format!(" {c:>13}"));
        out.push('\n');
        for row in rows {
            let _ = write!(out, "{:<26}", row.tensor);
            for part in std::iter::once(&row.total).chain(Cause::ALL.iter().map(|c| &row.parts[c.name()])) {
                let _ = write!(out, " {:>13}", super::number::short(of(part)));
            }
            out.push('\n');
        }
    }
    let _ = writeln!(
        out,
        "total: |secure - real|; the parts of every element add up to it, with signs; a unit is 2^-{f}; parts of 1e-10 \
         are f64's own rounding"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::spec::ProbePoint;

    #[test]
    fn rows_are_in_units_and_shares_add_up() {
        let sums = |sum: f64, magnitude: f64, largest: f64| Sums { sum, magnitude, largest };
        let mut one = TensorBudget { elements: 4, total: sums(0.5, 1.0, 0.5), ..TensorBudget::default() };
        one.parts[Cause::Rounding as usize] = sums(0.25, 0.75, 0.5);
        one.parts[Cause::Protocol as usize] = sums(0.25, 0.25, 0.25);
        let steps = [(0, Budget::from([(ProbePoint::Logits, one)])), (1, Budget::from([(ProbePoint::Logits, one)]))];
        let rows = rows(&merged(&steps), 0.25);
        assert_eq!((rows[0].elements, rows[0].total.mean_units, rows[0].total.max_units), (8, 1.0, 2.0));
        assert_eq!(rows[0].parts["rounding"], PartRow { bias_units: 0.25, mean_units: 0.75, max_units: 2.0 });
        assert_eq!(shares(&rows[0]), "rounding 75.0 %, protocol 25.0 %");
        assert!(summary(&rows).contains("logits          rounding 75.0 %"), "{}", summary(&rows));
        assert_eq!(table(&rows, 2).lines().count(), 7);
    }
}
