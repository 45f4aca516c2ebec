//! The report as one HTML page: the table with bars against the bound, the first faults, and a small map of where in
//! each tensor the errors are.

use super::verdict::{MAP, Report, Row};
use crate::count::counted;
use crate::report::html::{Cell, Page, Table, escape};
use std::fmt::Write;

/// The whole page.
pub fn page(report: &Report, file: &str) -> String {
    let mut page = Page::new(&format!("difftest check: {}", report.engine));
    let steps = counted(report.steps.len(), "step");
    page.paragraph(&format!("{file}, {steps}. Errors are those of each operation by itself."));
    page.heading("Checks");
    let mut checks = Table::new("Checks", ["check", "verdict", "what"]);
    for c in &report.checks {
        let class = match c.word() {
            "PASS" => "pass",
            "FAIL" => "fail",
            _ => "open",
        };
        let mut lines = vec![c.summary.clone()];
        lines.extend(c.failure.iter().flat_map(|f| f.lines().map(str::to_owned)));
        checks.rows.push(vec![Cell::Text(c.name.into()), Cell::Verdict(c.word().into(), class), Cell::Lines(lines)]);
    }
    page.table(&checks);
    page.heading("Operations");
    page.table(&operations(report));
    page.heading("Where in the tensors");
    page.paragraph(
        "Each square is one tensor in 16 x 16 fields, rows downwards. The darker a field, the nearer its \
            largest error is to the bound; red is outside.",
    );
    for row in report.rows.iter().filter(|r| r.elements > 0) {
        page.push(&map(row));
    }
    page.finish()
}

fn operations(report: &Report) -> Table {
    let columns = [
        "tensor",
        "operation",
        "verdict",
        "elements",
        "outside",
        "largest error, units",
        "mean error, units",
        "bound, units",
        "causes",
    ];
    let mut table = Table::new("Operations: each recomputed from what the engine put into it", columns);
    for r in &report.rows {
        let class = match r.verdict {
            "PASS" => "pass",
            "FAIL" => "fail",
            _ => "open",
        };
        let part = r.bound_units.filter(|b| *b > 0.0).map_or(0.0, |b| r.max_error_units / b);
        let mut causes: Vec<String> = r.causes.iter().map(|c| format!("{}: {}", c.name, c.evidence)).collect();
        if !r.lacks.is_empty() {
            causes.push(format!("lacks {}", r.lacks.join(", ")));
        }
        table.rows.push(vec![
            Cell::Text(r.tensor.clone()),
            Cell::Text(r.operation.into()),
            Cell::Verdict(r.verdict.into(), class),
            Cell::Number(r.elements.to_string()),
            Cell::Number(r.outside.to_string()),
            Cell::Bar(format!("{:.3}", r.max_error_units), part),
            Cell::Number(format!("{:.4}", r.mean_error_units)),
            Cell::Number(r.bound_units.map_or_else(|| "–".into(), |b| format!("{b:.3}"))),
            Cell::Lines(causes),
        ]);
    }
    table
}

/// A tensor's map as inline SVG.
fn map(row: &Row) -> String {
    const FIELD: usize = 7;
    let size = MAP * FIELD;
    let title = escape(&format!("{} of {}: largest error by place", row.tensor, row.operation));
    let mut out = format!(
        "<figure style=\"display:inline-block;margin:0 1em 1em 0\"><svg role=\"img\" width=\"{size}\" \
            height=\"{size}\" viewBox=\"0 0 {size} \
         {size}\"><title>{title}</title>"
    );
    let judged = row.bound_units.is_some();
    let largest = row.map.iter().copied().filter(|v| v.is_finite()).fold(0.0f64, f64::max);
    for (i, &v) in row.map.iter().enumerate() {
        let exact = row.bound_units == Some(0.0);
        let outside = judged && row.outside > 0 && (v > 1.0 || (exact && v > 0.0) || v.is_infinite());
        let part = if judged {
            v
        } else if largest > 0.0 {
            v / largest
        } else {
            0.0
        };
        let (color, opacity) = if outside { ("#c62828", 1.0) } else { ("#1565c0", 0.08 + 0.9 * part.clamp(0.0, 1.0)) };
        let _ = write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{FIELD}\" height=\"{FIELD}\" fill=\"{color}\" \
                fill-opacity=\"{opacity:.2}\"/>",
            i % MAP * FIELD,
            i / MAP * FIELD
        );
    }
    let _ = write!(out, "</svg><figcaption>{}</figcaption></figure>", escape(&row.tensor));
    out
}
