//! Table 1, seconds of an epoch, and where they come from.

use super::super::result::Findings;
use super::{number, plain};
use crate::report::html::{Cell, Page, Table};

pub(super) fn seconds(page: &mut Page, found: &Findings) {
    let timed: Vec<_> = found.table1.iter().filter(|c| c.time.seconds.is_some()).collect();
    if timed.is_empty() {
        return;
    }
    page.heading("Table 1: seconds of an epoch");
    page.paragraph(
        "Wall-clock seconds of training alone and processor seconds of all threads, secure side. By itself: epochs of \
         the configuration and of training in real numbers in turn, apart from the cells that accuracies are of. In \
         training: of those cells. The paper measured on three servers with 36 threads each: its ratios compare with \
         ours, its seconds do not. Claims about time are judged from quiet machines only.",
    );
    let mut table = Table::new(
        "Table 1, seconds. Secure against real numbers, timed in turn, and against the paper.",
        [
            "configuration",
            "secure",
            "processor",
            "secure / real",
            "paper",
            "paper / secure",
            "timed",
            "quiet machine",
            "machine",
        ],
    );
    for c in timed {
        table.rows.push(vec![
            Cell::Text(c.name()),
            number(c.time.seconds),
            Cell::Number(plain(c.time.cpu_seconds, 2)),
            Cell::Number(plain(c.time.ratio, 1)),
            Cell::Number(plain(c.time.paper_seconds, 1)),
            Cell::Number(plain(c.time.paper_ratio, 1)),
            Cell::Text(c.time.timed_on.as_ref().map_or("in training".into(), |day| format!("by itself, {day}"))),
            Cell::Text(c.time.untimed.clone().unwrap_or_else(|| "yes".into())),
            Cell::Text(c.time.machine.clone().unwrap_or_default()),
        ]);
    }
    page.table(&table);
}
