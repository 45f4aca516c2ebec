//! Rounds and bytes of a training step.

use super::super::result::Findings;
use crate::report::html::{Cell, Page, Table};

pub(super) fn protocols(page: &mut Page, found: &Findings) {
    let steps: Vec<_> = found.protocols.iter().filter(|p| p.protocol == "all").collect();
    let Some(most) = steps.iter().map(|p| p.bytes).reduce(f64::max) else { return };
    page.heading("Rounds and bytes of a training step");
    page.paragraph(
        "All three parties together, from the exact counters. Protocols that run side by side share rounds, so the \
         rounds of protocols do not add up to those of the step.",
    );
    let mut table = Table::new("Whole steps, by cell.", ["cell", "rounds", "megabytes"]);
    for p in &steps {
        table.rows.push(vec![
            Cell::Text(p.cell.clone()),
            Cell::Number(format!("{:.0}", p.rounds)),
            Cell::Bar(format!("{:.3}", p.bytes / 1e6), p.bytes / most),
        ]);
    }
    page.table(&table);
    let mut table = Table::new(
        "By protocol: rounds in which it takes part, and bytes of a step.",
        ["cell and protocol", "rounds", "bytes", "part of the step, %"],
    );
    for step in &steps {
        for p in found.protocols.iter().filter(|p| p.cell == step.cell && p.protocol != "all") {
            table.rows.push(vec![
                Cell::Text(format!("{} {}", p.cell, p.protocol)),
                Cell::Number(format!("{:.0}", p.rounds)),
                Cell::Number(format!("{:.0}", p.bytes)),
                Cell::Bar(format!("{:.1}", 100.0 * p.bytes / step.bytes), p.bytes / step.bytes),
            ]);
        }
    }
    page.push(&format!("<details><summary>By protocol</summary>\n{}\n</details>", table.markup()));
}
