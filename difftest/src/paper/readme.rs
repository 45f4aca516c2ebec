//! Table 1 and the claims as Markdown, and their place in a README between two markers.

use super::cell::{Cell, Setup, Side};
use super::claims;
use super::result::machines;
use super::table1::{self, Measured, Row, checkpoints};
use crate::error::Error;
use reference::spec::Rounding;
use std::fmt::Write;

/// The line before the tables.
pub const BEGIN: &str = "<!-- table: difftest paper table -->";
/// The line after them.
pub const END: &str = "<!-- end -->";

/// Lines of numbers that a claim shows; all of them are in the report.
const NUMBERS: usize = 6;

/// Both tables, from finished cells of one setup.
pub fn tables(setup: &Setup, cells: &[Cell]) -> String {
    let rows = table1::rows(cells);
    let [a, b, c, d] = checkpoints();
    let mut out = format!(
        "| layers | rounding | head | secure, % after {a} / {b} / {c} / {d} | f64, % | s an epoch, secure | f64 | ratio | what happened | paper |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    // Secure rows; where none is finished, the model's stand for them.
    let secure = rows.iter().any(|r| r.side == Side::Secure);
    let side = if secure { Side::Secure } else { Side::Model };
    for row in rows.iter().filter(|r| r.side == side) {
        let same = |r: &&Row| (r.head, r.layers, r.epochs) == (row.head, row.layers, row.epochs);
        let real = rows.iter().filter(|r| r.side == Side::F64).find(same);
        let model = rows
            .iter()
            .filter(|r| r.side == Side::Model && r.side != side)
            .find(|r| same(r) && (r.rounding, r.velocity_bits) == (row.rounding, row.velocity_bits));
        let mut head = row.head.to_string();
        if row.epochs != d as usize {
            let _ = write!(head, ", {} epochs", row.epochs);
        }
        if row.velocity_bits > 0 {
            let _ = write!(head, ", {} velocity bits", row.velocity_bits);
        }
        let number = |v: Option<f64>, digits| v.map_or("–".into(), |v| format!("{v:.digits$}"));
        let _ = writeln!(
            out,
            "| {} | {} | {head} | {} | {} | {} | {} | {} | {} | {} |",
            row.layers,
            row.rounding.map_or("–", Rounding::name),
            accuracies(row.accuracy),
            real.map_or("–".into(), |r| accuracies(r.accuracy)),
            number(row.seconds_per_epoch.map(|s| s.value), 2),
            number(row.plain_seconds, 2),
            number(row.ratio, 1),
            happened(&[(side.name(), Some(row)), ("model", model), ("f64", real)]),
            printed(row),
        );
    }
    notes(&mut out, setup, cells);

    out.push_str("\n| claim of the paper | here | numbers |\n| --- | --- | --- |\n");
    for claim in claims::judge(setup, cells) {
        let mut numbers: Vec<&str> = claim.numbers.iter().map(String::as_str).collect();
        // What decides comes first.
        numbers.sort_by_key(|n| !(n.ends_with(claims::CONTRADICTS) || n.ends_with(claims::SUPPORTS)));
        let more = numbers.len().saturating_sub(NUMBERS);
        numbers.truncate(NUMBERS);
        let more = if more > 0 { format!("<br>and {more} more lines in the report") } else { String::new() };
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{}`: {} | **{}** | {}{more} |",
            claim.name,
            cell(&claim.statement),
            claim.verdict,
            cell(&numbers.join("<br>"))
        );
    }
    out
}

fn accuracies(accuracy: [Option<Measured>; 4]) -> String {
    accuracy.map(|a| a.map_or("–".into(), |a| format!("{:.2}", a.value))).join(" / ")
}

/// What each side did, sides that did the same together.
fn happened(sides: &[(&'static str, Option<&Row>)]) -> String {
    let mut told: Vec<(Vec<&str>, &str)> = Vec::new();
    for (name, row) in sides {
        let Some(row) = row else { continue };
        match told.iter_mut().find(|(_, what)| *what == row.happened) {
            Some((names, _)) => names.push(name),
            None => told.push((vec![name], &row.happened)),
        }
    }
    match &told[..] {
        [(_, only)] => (*only).into(),
        _ => told.iter().map(|(names, what)| format!("{}: {what}", names.join(", "))).collect::<Vec<_>>().join("<br>"),
    }
}

/// The paper's figures for a row, as far as they were available to us.
fn printed(row: &Row) -> String {
    let accuracy = row
        .paper
        .accuracy
        .iter()
        .any(Option::is_some)
        .then(|| row.paper.accuracy.map(|a| a.map_or("–".into(), |a| format!("{a}"))).join(" / ") + " %");
    let seconds = row.paper.seconds_per_epoch.map(|s| format!("{s} s"));
    let diverges = row.paper.diverges.filter(|d| *d).map(|_| "diverges".to_owned());
    let told: Vec<String> = [seconds, accuracy, diverges].into_iter().flatten().collect();
    if told.is_empty() { "–".into() } else { told.join(", ") }
}

/// What was run, and how it was timed.
fn notes(out: &mut String, setup: &Setup, cells: &[Cell]) {
    let ran: Vec<_> = machines(cells).iter().map(|m| format!("{} processors, kernel {}", m.cpus, m.kernel)).collect();
    let _ = writeln!(
        out,
        "\n{} cells, {} training and {} test rows, batch {}, rate {}, momentum {}, eps {}, hidden layers of {} units ({}). A dash: the attempt did not \
         get so far, or the figure is not available. Accuracy has a binomial standard error of up to {:.2} points at 97 %. Seconds are wall-clock seconds \
         of training alone; secure cells run one at a time, three parties in one process; f64 is timed in turn with the first {} epochs of the same cell, with \
         batches ready in memory. The paper measured on three servers of 36 threads: ratios compare, seconds do not. Steps count from 0 in each attempt; \
         the secure side's are ends of epochs.",
        cells.len(),
        setup.train_rows,
        setup.test_rows,
        setup.batch,
        setup.learning_rate,
        setup.momentum,
        setup.epsilon,
        setup.hidden,
        ran.join("; "),
        100.0 * table1::binomial_error(0.97, setup.test_rows),
        super::train::PAIRED,
    );
}

/// `text` with what is between the markers replaced.
///
/// # Errors
/// A text without the two markers, each on its own line, in order.
pub fn replaced(text: &str, tables: &str) -> Result<String, Error> {
    let (before, after) = split(text).ok_or_else(|| {
        Error::Usage(format!("there are no lines {BEGIN} and {END} between which the table could go; add them"))
    })?;
    Ok(format!("{before}\n{}\n\n{after}", tables.trim_end()))
}

/// The text up to the first marker's line, with it, and from the second on.
fn split(text: &str) -> Option<(&str, &str)> {
    let begin = text.find(&format!("{BEGIN}\n"))? + BEGIN.len() + 1;
    let end = begin + text[begin..].find(END)?;
    Some((&text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::*;
    use crate::check::divergence::Verdict;

    #[test]
    fn a_row_a_configuration_with_what_happened_on_each_side() {
        let curve = [0.97; 20];
        let mut secure = cell("secure-softmax-l1-prob-s1-e20", &curve);
        for e in &mut secure.attempts[0].epochs[..5] {
            e.plain_seconds = Some(1.25);
        }
        let mut broken = cell("secure-relu-grad-l2-nearest-s1-e20", &curve[..7]);
        broken.attempts[0].verdict = Verdict::Stalls { accuracy: 0.1, dead_layer: None };
        let mut second = cell("secure-relu-grad-l2-nearest-s1-e20", &curve).attempts.remove(0);
        second.learning_rate = 0.005;
        broken.attempts.push(second);
        let mut real = cell("f64-relu-grad-l2-s1-e20", &curve);
        real.attempts[0].verdict = Verdict::Grows { step: 812, at: "logits[3, 4]".into(), value: 4e4 };
        let cells = [secure, broken, cell("f64-softmax-l1-s1-e20", &curve), real];
        let text = tables(&cells[0].setup, &cells);
        for line in [
            "| 1 | prob | softmax | 97.00 / 97.00 / 97.00 / 97.00 | 97.00 / 97.00 / 97.00 / 97.00 | 10.00 | 1.25 | 8.0 | trains | 12 s |",
            "| 2 | nearest | relu-grad | 97.00 / 97.00 / 97.00 / 97.00 | 97.00 / 97.00 / 97.00 / 97.00 | 10.00 | – | – | \
             secure: 0.01: at chance, ended in epoch 7; 0.005: trains<br>f64: logits out of range at step 812 | – |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.contains("| `gradient-bound`: ") && text.contains("| **NOT TESTED** |"), "{text}");
        let columns = |l: &&str| l.replace("\\|", "").matches('|').count();
        let table: Vec<_> = text.lines().filter(|l| l.starts_with('|')).collect();
        assert!(table.iter().all(|l| [11, 4].contains(&columns(l))), "{text}");
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&text, "| t |\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\n\n| t |\n\n{END}\nb\n"));
        assert_eq!(replaced(&new, "| t |").unwrap(), new);
        for broken in ["", BEGIN, &format!("{END}\n{BEGIN}\n")] {
            assert!(replaced(broken, "").unwrap_err().to_string().contains("add them"), "{broken}");
        }
    }
}
