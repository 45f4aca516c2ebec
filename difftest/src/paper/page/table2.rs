//! Table 2: what each head needs and has.

use super::super::result::Findings;
use super::super::table2::Printed;
use crate::report::html::{Cell, Page, Table};

pub(super) fn table2(page: &mut Page, found: &Findings) {
    page.heading("Table 2: what each head needs and has");
    page.paragraph(
        "Use of comparison, division and exponential is read off the cost counters and truncation names of a real step \
         by three parties. \
         Differentiable: the slopes of the probabilities agree on both sides of 0 and eps. Known loss: the gradient's \
         Jacobian is symmetric where no logit lies between 0 \
         and eps, and differences of the stated loss are the gradient. In brackets, the paper's entry; a dash stands \
         where it has no such head.",
    );
    let mut table = Table::new(
        "Table 2. Ours, and the paper's in brackets.",
        ["head", "comparison", "division", "exponential", "differentiable", "known loss"],
    );
    let word = |b| if b { "yes" } else { "no" };
    let mut numbers = Table::new(
        "The numbers behind table 2.",
        ["head", "rounds", "bytes a row", "slope jump", "asymmetry", "asymmetry below eps", "loss error"],
    );
    for r in &found.table2 {
        let entry = |ours: bool, paper: fn(&Printed) -> bool| {
            Cell::Text(format!("{} ({})", word(ours), r.paper.as_ref().map_or("–", |p| word(paper(p)))))
        };
        let small = |v: f64| Cell::Number(format!("{v:.1e}"));
        table.rows.push(vec![
            Cell::Text(r.head.to_string()),
            entry(r.comparison, |p| p.comparison),
            entry(r.division, |p| p.division),
            entry(r.exponential, |p| p.exponential),
            entry(r.differentiable, |p| p.differentiable),
            entry(r.known_loss, |p| p.known_loss),
        ]);
        numbers.rows.push(vec![
            Cell::Text(r.head.to_string()),
            Cell::Number(r.rounds.to_string()),
            Cell::Number(r.bytes.to_string()),
            small(r.slope_jump),
            small(r.asymmetry),
            small(r.asymmetry_below_eps),
            r.loss_error.map_or(Cell::Number("no loss".into()), small),
        ]);
    }
    page.table(&table);
    page.table(&numbers);
}
