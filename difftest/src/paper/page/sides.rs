//! Table 1 side by side, and what happened at each learning rate.

use super::super::cell::Side;
use super::super::result::Findings;
use super::super::table1::{CHECKPOINTS, Rate};
use super::number;
use crate::report::html::{Cell, Page, Table};
use reference::spec::FixedSpec;

pub(super) fn sides(page: &mut Page, found: &Findings) {
    page.heading("Table 1 by side");
    for side in Side::ALL {
        let rows: Vec<_> = found.sides.iter().filter(|r| r.side == side).collect();
        if rows.is_empty() {
            continue;
        }
        let what = match side {
            Side::Secure => "secure: three parties",
            Side::Integer => "integer: the same arithmetic in plaintext (cells run side by side: seconds are rough)",
            Side::Real => "real: real numbers (cells run side by side: seconds are rough)",
        };
        let after = CHECKPOINTS.map(|e| format!("after {e}"));
        let caption =
            format!("Table 1, {what}. Seconds of training in an epoch, and test accuracy in % after so many epochs.");
        let mut table = Table::new(
            &caption,
            ["configuration", "seeds", "seconds", &after[0], &after[1], &after[2], &after[3], "end", "outcome"],
        );
        for r in rows {
            let mut cells = vec![Cell::Text(r.name()), Cell::Number(r.seeds.to_string()), number(r.seconds_per_epoch)];
            cells.extend(r.accuracy.all().map(number));
            let last = r.last.map_or("–".into(), |l| format!("{:.2} after {}", l.accuracy, l.epoch));
            cells.push(Cell::Number(last));
            let class = match r.outcome.as_str() {
                "trains" => "pass",
                _ if r.trained => "open",
                _ => "fail",
            };
            cells.push(Cell::Verdict(r.outcome.clone(), class));
            table.rows.push(cells);
        }
        page.table(&table);
    }
}

/// Attempts that ended early, or whose verdict is not that they train.
pub(super) fn rates(page: &mut Page, found: &Findings) {
    let rates: Vec<&Rate> = found.sides.iter().flat_map(|r| &r.rates).collect();
    let odd = |r: &&&Rate| {
        r.ended.is_some() || r.verdict != "trains" || rates.iter().filter(|o| o.cell == r.cell).count() > 1
    };
    let odd: Vec<_> = rates.iter().filter(odd).collect();
    if odd.is_empty() {
        return;
    }
    page.heading("What happened at each learning rate");
    page.paragraph(&format!(
        "Every cell that did not simply train. \"Grows\": a logit or weight reached {}, the end of the fixed-point \
         range; \"range\": an operand of the \
         integer side left its range, and that side stops there; \"stalls\": accuracy at chance. The secure side \
         shows only accuracy and, between epochs, weights; its \
         logits and dead units are what those weights make of the test rows, so its steps are ends of epochs.",
        FixedSpec::default().limit() / FixedSpec::default().one()
    ));
    let mut table = Table::new(
        "Attempts by learning rate: how long each lasted, verdict with first step and cause, and why the paper's rule \
         ended it.",
        [
            "cell",
            "rate",
            "epochs",
            "accuracy, %",
            "verdict",
            "ended by",
            "largest |logit|",
            "logits leave the range at step",
            "largest |weight|",
            "operands out of range",
            "dead units",
        ],
    );
    for r in odd {
        let dead: Vec<_> = r.dead_units.iter().map(usize::to_string).collect();
        table.rows.push(vec![
            Cell::Text(r.cell.clone()),
            Cell::Number(format!("{}", r.learning_rate)),
            Cell::Number(r.epochs.to_string()),
            Cell::Number(format!("{:.2}", r.accuracy)),
            Cell::Text(r.verdict.clone()),
            Cell::Text(r.ended.clone().unwrap_or_else(|| "–".into())),
            magnitude(r.largest_logit),
            Cell::Number(r.logits_leave.map_or("–".into(), |s| s.to_string())),
            magnitude(r.largest_weight),
            Cell::Number(if r.violations == 0 { "–".into() } else { r.violations.to_string() }),
            Cell::Number(if dead.is_empty() { "–".into() } else { dead.join(" + ") }),
        ]);
    }
    page.table(&table);
}

fn magnitude(value: Option<f64>) -> Cell {
    Cell::Number(match value {
        None => "–".into(),
        Some(f64::MAX) => "not finite".into(),
        Some(v) if v >= 1e5 => format!("{v:.1e}"),
        Some(v) => format!("{v:.2}"),
    })
}
