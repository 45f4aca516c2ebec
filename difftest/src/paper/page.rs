//! The report on the paper's evaluation.

mod beside;
mod claims;
mod curves;
mod nearness;
mod protocols;
mod seconds;
mod sides;
mod table2;

use super::compared::Mean;
use super::result::Findings;
use super::table1::Measured;
use crate::count::counted;
use crate::report::html::{Cell, Page};

/// The whole page.
pub fn page(found: &Findings) -> String {
    let mut page = Page::new("The paper, reproduced: softmax and its replacements in secure training");
    page.paragraph(
        "Keller and Sun, Effectiveness of MPC-friendly Softmax Replacement (arXiv 2011.11202), section 4: networks of \
         one to three dense \
         layers are trained by three parties on secret shares (secure), in plaintext integers by the same fixed-point \
         arithmetic (integer), and in real numbers (real).",
    );
    page.paragraph(&setup(found));
    claims::claims(&mut page, found);
    beside::beside(&mut page, found);
    seconds::seconds(&mut page, found);
    sides::sides(&mut page, found);
    sides::rates(&mut page, found);
    table2::table2(&mut page, found);
    curves::curves(&mut page, found);
    nearness::nearness(&mut page, found);
    protocols::protocols(&mut page, found);
    page.finish()
}

fn setup(found: &Findings) -> String {
    let s = &found.setup;
    let machines: Vec<_> = found.machines.iter().map(ToString::to_string).collect();
    format!(
        "{}. {} training and {} test rows, batch {}, hidden layers of {} ReLU units, learning rate {}, \
         momentum {}, eps {}. \
         After an epoch with a batch loss above 100 or accuracy below 11 %, training starts again from the same \
         weights at half the rate, at most \
         {} times. The three parties share one machine and exchange messages in memory: {}. Parties draw their \
         randomness from the operating system. \
         Report of {}.",
        counted(found.cells.len(), "finished cell"),
        s.train_rows,
        s.test_rows,
        s.batch,
        s.hidden,
        s.learning_rate,
        s.momentum,
        s.epsilon,
        s.restarts,
        machines.join("; "),
        found.program
    )
}

fn number(v: Option<Measured>) -> Cell {
    Cell::Number(v.map_or("–".into(), |m| format!("{:.2} ± {:.2}", m.value, m.error)))
}

fn plain(v: Option<f64>, digits: usize) -> String {
    v.map_or("–".into(), |v| format!("{v:.digits$}"))
}

fn with_mean(mean: Option<Mean>) -> Cell {
    Cell::Number(mean.map_or("–".into(), |m| {
        format!("{:.2}{}", m.mean, m.deviation.map_or(String::new(), |d| format!(" ± {d:.2}")))
    }))
}
