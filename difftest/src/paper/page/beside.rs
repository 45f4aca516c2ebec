//! Table 1, accuracy: ours beside the paper's.

use super::super::compared::Compared;
use super::super::result::Findings;
use super::super::table1::CHECKPOINTS;
use super::{plain, with_mean};
use crate::report::html::{Cell, Page, Table, escape};

/// Accuracy beside the paper's: four rows a configuration.
pub(super) fn beside(page: &mut Page, found: &Findings) {
    page.heading("Table 1: accuracy beside the paper's");
    page.paragraph(
        "Test accuracy in %, the mean of the seeds; ± is the standard deviation of a run. Ours is the secure side, \
         seed by seed, or the integer side where no \
         secure cell is finished. A difference beyond twice its standard error, which comes from our seeds and the \
         paper's single run, is marked. A dash means \
         that the attempt did not get so far; the paper has no figure where it prints its sign for divergence.",
    );
    let after = CHECKPOINTS.map(|e| format!("after {e}"));
    let mut table = Table::new(
        "Table 1, accuracy. Test accuracy in % after so many epochs, and the difference from the paper in points.",
        ["configuration", "", &after[0], &after[1], &after[2], &after[3]],
    );
    for c in found.table1.iter().filter(|c| c.seeds > 0) {
        let row = |what: String, cells: [Cell; 4]| {
            let mut row = vec![Cell::Text(c.name()), Cell::Text(what)];
            row.extend(cells);
            row
        };
        let ours = format!("ours, {} of {} seeds secure", c.secure_seeds, c.seeds);
        table.rows.push(row(ours, c.ours.all().map(with_mean)));
        table.rows.push(row("real numbers".into(), c.real.all().map(with_mean)));
        if c.paper_diverges {
            table.rows.push(row("paper: diverges".into(), [(); 4].map(|()| Cell::Number("–".into()))));
            continue;
        }
        table.rows.push(row("paper".into(), c.paper.all().map(|v| Cell::Number(plain(v, 1)))));
        table.rows.push(row("difference".into(), differences(c)));
    }
    page.table(&table);
    let told = found.table1.iter().filter_map(|c| Some((c.name(), c.explanation.as_ref()?)));
    let told: String = told.map(|(name, why)| format!("<li><b>{}.</b> {}</li>", escape(&name), escape(why))).collect();
    if !told.is_empty() {
        page.push(&format!("<p>Differences beyond that:</p>\n<ul>{told}</ul>"));
    }
}

fn differences(c: &Compared) -> [Cell; 4] {
    let (values, beyond) = (c.difference.all(), c.beyond.all());
    [0, 1, 2, 3].map(|i| match (values[i], beyond[i]) {
        (None, _) => Cell::Number("–".into()),
        (Some(d), Some(true)) => Cell::Verdict(format!("{d:+.2} beyond"), "open"),
        (Some(d), _) => Cell::Number(format!("{d:+.2}")),
    })
}
