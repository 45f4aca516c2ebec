//! The report as JSON. Numbers are complete; a reader must check `schema`.

use super::Report;

/// The whole report, indented, with a line feed at the end.
pub fn report(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("strings, numbers and lists always have a JSON form");
    text.push('\n');
    text
}
