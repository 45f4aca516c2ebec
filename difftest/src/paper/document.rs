//! The evaluation as Markdown, and its place in a document between two markers.
//!
//! Lines of text are at most [`WIDTH`](markdown::WIDTH) columns; a table's cells hold at most four numbers each.

mod accuracy;
mod claims;
pub mod markdown;
mod readings;
mod seconds;
mod table2;
mod unrepeated;

use super::cell::{Cell, Setup, Side};
use super::explain::explained;
use super::finished::Finished;
use super::standard_error::binomial_error;
use crate::count::counted;
use crate::error::{CellError, Error};
use markdown::paragraph;

/// The line before the tables.
pub const BEGIN: &str = "<!-- table: difftest paper table -->";
/// The line after them.
pub const END: &str = "<!-- end -->";

/// Everything, from finished cells of one setup.
///
/// # Errors
/// Table 2 needs three parties for a moment, which may fail to start.
pub fn tables(finished: &Finished) -> Result<String, Error> {
    let table2 = super::table2::rows()?;
    let Finished { setup, cells, times } = finished;
    let all = explained(cells, times);
    let mut out = String::new();
    notes(&mut out, setup, cells);
    accuracy::accuracy(&mut out, &all);
    accuracy::sentences(&mut out, &all);
    seconds::seconds(&mut out, &all);
    readings::readings(&mut out, cells);
    accuracy::others(&mut out, cells);
    claims::judged(&mut out, &super::claims::judge(finished, &table2));
    table2::second(&mut out, &table2);
    unrepeated::text_figures(&mut out);
    Ok(out)
}

/// What was run.
fn notes(out: &mut String, setup: &Setup, cells: &[Cell]) {
    let count = |side| cells.iter().filter(|c| c.id.side == side).count();
    let [secure, integer, real] = Side::ALL.map(count);
    paragraph(
        out,
        &format!(
            "{}: {secure} secure, {integer} integer, {real} real. {} training and {} \
             test rows, batch {}, rate {}, momentum {}, \
             eps {}, hidden layers of {} units. Accuracy has a binomial standard error of {:.2} points at 97 %.",
            counted(cells.len(), "cell"),
            setup.train_rows,
            setup.test_rows,
            setup.batch,
            setup.learning_rate,
            setup.momentum,
            setup.epsilon,
            setup.hidden,
            100.0 * binomial_error(0.97, setup.test_rows),
        ),
    );
}

/// `text` with what is between the markers replaced.
///
/// # Errors
/// A text without the two markers, each on its own line, in order.
pub fn replaced(text: &str, tables: &str) -> Result<String, Error> {
    let (before, after) = split(text).ok_or(CellError::NoMarkers { begin: BEGIN, end: END })?;
    Ok(format!("{before}\n{}\n\n{after}", tables.trim()))
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

    fn document(cells: &[Cell]) -> String {
        tables(&Finished::new(&cells[0].setup, cells)).unwrap()
    }

    #[test]
    fn a_row_a_configuration_with_the_papers_figures() {
        let curve = [0.92; 20];
        let mut secure = cell("secure-softmax-l1-prob-s1-e20", &curve);
        for e in &mut secure.attempts[0].epochs[..5] {
            e.plain_seconds = Some(1.25);
        }
        let mut broken = cell("secure-relu-grad-l2-nearest-s1-e20", &curve[..7]);
        broken.attempts[0].verdict = Verdict::Stalls { accuracy: 0.1, dead_layer: None };
        let mut second = cell("secure-relu-grad-l2-nearest-s1-e20", &curve).attempts.remove(0);
        second.learning_rate = 0.005;
        broken.attempts.push(second);
        let cells = [
            secure,
            broken,
            cell("integer-softmax-l1-prob-s2-e20", &[0.94; 20]),
            cell("real-softmax-l1-s1-e20", &curve),
        ];
        let text = document(&cells);
        for line in [
            "| prob, softmax | 2 (1 secure) | 93.00 / 93.00 / 93.00 / 93.00 ± 1.41 | 92.00 / 92.00 / 92.00 / 92.00 | \
             91.6 / 92.2 / 92.2 / 92.4 | +1.40 / +0.80 / +0.80 / +0.60 |",
            "| nearest, relu-grad | 1 (1 secure) | 92.00 / 92.00 / 92.00 / 92.00 | – | ⊥ | – |",
            "| 1 layer, prob, softmax | 10.00 | – | 8.0 | 12.0 | 1.2 | in training, not quiet |",
            "| 2 layers, nearest, relu-grad | trains at 0.005: 92.0 % | trains at 0.005: 92.0 % | trains at 0.005: \
             92.0 % |",
            "#### table2-exponential: holds",
            "| softmax | yes (yes) | yes (yes) | yes (yes) | yes (yes) | yes (yes) |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.contains("1173 s with softmax"), "{text}");
    }

    #[test]
    fn a_shorter_grid_shows_its_end() {
        let text = document(&[cell("secure-softmax-l1-prob-s1-e2", &[0.5, 0.61])]);
        assert!(
            text.contains("| prob, softmax | 1 (1 secure) | –; epoch 2: 61.00 | – | 91.6 / 92.2 / 92.2 / 92.4 | – |"),
            "{text}"
        );
    }

    /// Text that anyone can read on a page of 120 columns: no line of text is longer, and no cell of a table fills more
    /// than three lines of its column.
    #[test]
    fn the_document_is_readable() {
        let deep = |id: &str| {
            let mut one = cell(id, &[0.92, 0.1]);
            let again = one.attempts[0].clone();
            one.attempts.extend([again.clone(), again]);
            one
        };
        let cells = [
            deep("secure-relu-grad-l2-prob-s1-e20"),
            deep("secure-relu-grad-l3-prob-s1-e20"),
            cell("secure-softmax-l3-nearest-s1-e20", &[0.9; 20]),
        ];
        for line in document(&cells).lines() {
            if line.starts_with('|') {
                assert!(line.split('|').all(|c| c.chars().count() <= 120), "{line}");
            } else {
                assert!(line.chars().count() <= 120, "{line}");
            }
        }
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
