//! The report as text.

use super::end_to_end::Span;
use super::verdict::{Report, Row};
use crate::count::counted;
use std::fmt::Write;

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut out = format!("difftest check   {}   {}\n\n", report.engine, counted(report.steps.len(), "step"));
    let _ = writeln!(
        out,
        "{:<10} {:<14} {:<30} {:>10} {:>9} {:>12} {:>11} {:>12}  cause",
        "", "operation", "tensor", "elements", "outside", "max error", "mean error", "bound"
    );
    let _ = writeln!(
        out,
        "{:<10} {:<14} {:<30} {:>10} {:>9} {:>12} {:>11} {:>12}",
        "", "", "", "", "", "units", "units", "units"
    );
    for row in &report.rows {
        let _ = writeln!(out, "{}", line(row).trim_end());
    }
    for row in report.rows.iter().filter(|r| !r.ranges.is_empty()) {
        let _ = writeln!(
            out,
            "\n{} by the size of the exact value (measured; the header claims nothing of it)",
            row.tensor
        );
        for r in &row.ranges {
            let _ = writeln!(
                out,
                "  {:>10.3e} to {:<10.3e} {:>9} elements   max error {:>11.3} units   mean error {:>10.3} units",
                r.from, r.to, r.elements, r.max_error_units, r.mean_error_units
            );
        }
    }
    end_to_end(&mut out, report);
    out.push('\n');
    for check in &report.checks {
        out.push_str(&check.line());
    }
    if let Some(row) = report.first_fault() {
        let at = row.first.as_ref().map_or_else(|| row.tensor.clone(), |f| f.at.clone());
        let _ = writeln!(out, "\nfirst fault   {at}   ({})", row.operation);
    }
    for check in report.checks.iter().filter(|c| c.failure.is_some()) {
        let _ = writeln!(out, "\nFAIL  {}\n  {}", check.name, check.failure.as_deref().unwrap_or_default());
    }
    out
}

/// The tensors of whole steps and of the whole run, against real numbers.
fn end_to_end(out: &mut String, report: &Report) {
    let spans = [
        (Span::Step, "end to end   each step as a whole, from the engine's own parameters, against real numbers"),
        (Span::Run, "whole run    all steps from the first one's parameters, against real numbers"),
    ];
    for (span, title) in spans {
        let rows: Vec<_> = report.end_to_end.rows.iter().filter(|r| r.span == span).collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "\n{title}");
        }
        for r in rows {
            let bound = r.bound_units.map_or_else(|| "OPEN".to_owned(), |b| format!("{b:.3}"));
            let _ = writeln!(
                out,
                "  {:<30} {:>10} elements {:>9} outside {:>6} ambiguous   max error {:>12.3} units   bound {bound:>12}",
                r.tensor, r.elements, r.outside, r.ambiguous, r.max_error_units
            );
        }
    }
    for why in &report.end_to_end.open {
        let _ = writeln!(out, "\nOPEN  {why}");
    }
}

/// A row of the table.
fn line(row: &Row) -> String {
    let bound = row.bound_units.map_or_else(|| "-".to_owned(), |b| format!("{b:.3}"));
    let why = match (row.causes.first(), row.lacks.is_empty()) {
        (Some(cause), _) => cause.name.to_owned(),
        (None, false) => format!("lacks {}", row.lacks.join(", ")),
        _ => String::new(),
    };
    format!(
        "{:<10} {:<14} {:<30} {:>10} {:>9} {:>12.3} {:>11.4} {:>12}  {why}",
        row.verdict,
        row.operation,
        row.tensor,
        row.elements,
        row.outside,
        row.max_error_units,
        row.mean_error_units,
        bound
    )
}

/// The operations that can be judged: `difftest check --list`.
pub fn list() -> String {
    let mut out = String::from("operations of a step, from docs/trace.md\n");
    for operation in super::operation::all() {
        let _ = writeln!(out, "  {:<14} {}", operation.name(), operation.what());
    }
    out.push_str("blocks outside of a step: block/KIND/NAME/..\n");
    for (kind, tensors) in crate::trace::file::BLOCKS {
        let _ = writeln!(out, "  {kind:<14} {}", tensors.join(", "));
    }
    out
}
