//! The report for build servers: GitHub's annotations and summary, and JUnit's XML.

use super::verdict::Report;
use std::fmt::Write;

/// Workflow commands that annotate a run, and the table in Markdown.
pub fn github(report: &Report, file: &str) -> String {
    let mut out = String::new();
    for check in &report.checks {
        let kind = match check.word() {
            "FAIL" => "error",
            "OPEN" => "warning",
            _ => continue,
        };
        let text = check.failure.as_deref().unwrap_or(&check.summary);
        let _ =
            writeln!(out, "::{kind} title={}::{}", property(&format!("{} {}", check.word(), check.name)), data(text));
    }
    let _ = writeln!(out, "{}", markdown(report, file));
    out
}

/// A table in Markdown, for a summary.
pub fn markdown(report: &Report, file: &str) -> String {
    let mut out = format!("### difftest check: {} ({})\n\n", cell(&report.engine), cell(file));
    out.push_str("| | operation | tensor | elements | outside | max error, units | bound, units | cause |\n");
    out.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    for r in &report.rows {
        let bound = r.bound_units.map_or_else(|| "–".to_owned(), |b| format!("{b:.3}"));
        let cause = r.causes.first().map(|c| format!("{}: {}", c.name, c.evidence)).unwrap_or_default();
        let why = if cause.is_empty() && !r.lacks.is_empty() { format!("lacks {}", r.lacks.join(", ")) } else { cause };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {:.3} | {bound} | {} |",
            r.verdict,
            r.operation,
            cell(&r.tensor),
            r.elements,
            r.outside,
            r.max_error_units,
            cell(&why)
        );
    }
    out
}

/// JUnit: one test case a check.
pub fn junit(report: &Report, file: &str) -> String {
    let failed = report.checks.iter().filter(|c| c.word() == "FAIL").count();
    let open = report.checks.iter().filter(|c| c.word() == "OPEN").count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"difftest check {}\" tests=\"{}\" \
            failures=\"{failed}\" \
         skipped=\"{open}\">\n",
        xml(file),
        report.checks.len()
    );
    for check in &report.checks {
        let _ = write!(out, "  <testcase classname=\"{}\" name=\"{}\"", xml(&report.engine), xml(check.name));
        let _ = match (check.word(), &check.failure) {
            ("FAIL", Some(text)) => {
                writeln!(
                    out,
                    ">\n    <failure message=\"{}\">{}</failure>\n  </testcase>",
                    xml(&check.summary),
                    xml(text)
                )
            }
            ("OPEN", _) => writeln!(out, ">\n    <skipped message=\"{}\"/>\n  </testcase>", xml(&check.summary)),
            _ => writeln!(out, "/>"),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

/// Text inside a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

/// Text inside XML; control characters that XML cannot hold become spaces.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
