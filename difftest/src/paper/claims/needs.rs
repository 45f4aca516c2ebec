//! Table 2, column by column.

use super::super::table2::{Printed, Row};
use super::case::{Cases, Claim};

/// Name, what the column says, how it is tried here, our entry, the paper's.
type Column = (&'static str, &'static str, &'static str, fn(&Row) -> bool, fn(&Printed) -> bool);

const COLUMNS: [Column; 5] = [
    (
        "table2-differentiable",
        "Softmax is differentiable, either use of the replacement is not.",
        "The slopes of the probabilities on both sides of each branch point, 0 and eps, in real numbers.",
        |r| r.differentiable,
        |p| p.differentiable,
    ),
    (
        "table2-known-loss",
        "Softmax and ReLU probability follow from a known loss, ReLU gradient does not.",
        "The Jacobian of the gradient is symmetric, and differences of the stated loss are the gradient, in real \
         numbers.",
        |r| r.known_loss,
        |p| p.known_loss,
    ),
    (
        "table2-comparison",
        "Every variant needs comparisons.",
        "Protocols and truncations of a recorded step of three parties with one layer.",
        |r| r.comparison,
        |p| p.comparison,
    ),
    (
        "table2-division",
        "Every variant needs division.",
        "Truncations of a recorded step of three parties with one layer.",
        |r| r.division,
        |p| p.division,
    ),
    (
        "table2-exponential",
        "Softmax alone needs the exponential.",
        "Truncations of a recorded step of three parties with one layer.",
        |r| r.exponential,
        |p| p.exponential,
    ),
];

/// A claim a column.
pub fn claims(rows: &[Row]) -> Vec<Claim> {
    let mut claims: Vec<_> = COLUMNS.iter().map(|column| of_column(rows, *column)).collect();
    let established = Cases::new(
        "table2-established",
        "section 5, table 2",
        "Softmax is an established choice, either use of the replacement is not.",
        "Not a statement that an experiment can decide.",
    );
    claims.push(established.finish("a survey of the literature, which this program does not have"));
    claims
}

fn of_column(rows: &[Row], (name, statement, test, ours, papers): Column) -> Claim {
    let mut cases = Cases::new(name, "section 5, table 2", statement, test);
    let word = |b| if b { "yes" } else { "no" };
    for row in rows {
        let Some(paper) = &row.paper else { continue };
        let (ours, papers) = (ours(row), papers(paper));
        cases.case(ours == papers, format!("{}: {} here, {} in the paper", row.head, word(ours), word(papers)));
    }
    cases.finish("table 2")
}
