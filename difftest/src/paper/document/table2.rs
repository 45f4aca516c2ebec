//! Table 2 beside the paper's.

use super::markdown::{heading, paragraph};
use crate::paper::table2;
use std::fmt::Write;

pub(super) fn second(out: &mut String, rows: &[table2::Row]) {
    heading(out, "Table 2: what each head needs and has");
    paragraph(
        out,
        "Ours beside the paper's entry, in brackets. Comparison, division and exponential are read off a recorded step \
         of the three parties; the rest is tried \
         numerically in real numbers.",
    );
    out.push_str(
        "\n| head | comparison | division | exponential | differentiable | known loss |\n| --- | --- | --- | \
        --- | --- | --- |\n",
    );
    let word = |b| if b { "yes" } else { "no" };
    for r in rows {
        let entry = |ours: bool, paper: fn(&table2::Printed) -> bool| {
            format!("{} ({})", word(ours), r.paper.as_ref().map_or("–", |p| word(paper(p))))
        };
        let columns = [
            entry(r.comparison, |p| p.comparison),
            entry(r.division, |p| p.division),
            entry(r.exponential, |p| p.exponential),
            entry(r.differentiable, |p| p.differentiable),
            entry(r.known_loss, |p| p.known_loss),
        ];
        let _ = writeln!(out, "| {} | {} |", r.head, columns.join(" | "));
    }
}
