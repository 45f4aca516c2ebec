//! Table 1's accuracies beside the paper's, and those of a head that the paper does not train.

use super::markdown::{heading, item, paragraph};
use crate::paper::cell::Cell;
use crate::paper::compared::{Compared, Mean, pooled};
use crate::paper::table1::{self, Checkpoints};
use crate::paper::wording::layers_of;
use std::fmt::Write;

/// One table a depth.
pub(super) fn accuracy(out: &mut String, all: &[Compared]) {
    heading(out, "Table 1: accuracy");
    paragraph(
        out,
        "Test accuracy in % after 5 / 10 / 15 / 20 epochs, the mean of the seeds; ± is the standard deviation of a \
         run, pooled over the four. *Ours* is the \
         secure side, seed by seed, or the integer side where no secure cell is finished. A difference is bold where \
         it exceeds twice its standard error, \
         which comes from our seeds and the paper's single run; with one seed there is none. ⊥ is the paper's sign for \
         divergence even with the smallest \
         possible learning rate. A dash: the attempt did not get so far.",
    );
    let trained: Vec<_> = all.iter().filter(|c| c.seeds > 0).collect();
    let mut depths: Vec<_> = trained.iter().map(|c| c.layers).collect();
    depths.dedup();
    for layers in depths {
        let _ = write!(
            out,
            "\n| {} | seeds | ours | real numbers | paper | difference |\n| --- | --- | --- | --- | --- | --- |\n",
            layers_of(layers)
        );
        for c in trained.iter().filter(|c| c.layers == layers) {
            let paper = if c.paper_diverges { "⊥".into() } else { values(c.paper, |v| format!("{v:.1}")) };
            let ours = match c.last {
                Some(last) if c.ours.after_20.is_none() => {
                    format!("{}; epoch {}: {:.2}", with_spread(c.ours), last.epoch, last.accuracy)
                }
                _ => with_spread(c.ours),
            };
            let _ = writeln!(
                out,
                "| {}, {} | {} ({} secure) | {ours} | {} | {paper} | {} |",
                c.rounding,
                c.head,
                c.seeds,
                c.secure_seeds,
                with_spread(c.real),
                differences(c)
            );
        }
    }
}

fn differences(c: &Compared) -> String {
    let (values, beyond) = (c.difference.all(), c.beyond.all());
    let told = [0, 1, 2, 3].map(|i| match (values[i], beyond[i]) {
        (None, _) => "–".into(),
        (Some(d), Some(true)) => format!("**{d:+.2}**"),
        (Some(d), _) => format!("{d:+.2}"),
    });
    if values.iter().all(Option::is_none) { "–".into() } else { told.join(" / ") }
}

pub(super) fn sentences(out: &mut String, all: &[Compared]) {
    let told: Vec<_> = all.iter().filter_map(|c| Some((c.name(), c.explanation.as_ref()?))).collect();
    if told.is_empty() {
        return;
    }
    paragraph(out, "Differences beyond that:");
    out.push('\n');
    for (name, sentence) in told {
        item(out, &format!("*{name}.* {sentence}"));
    }
}

/// Cells that the paper has no row for.
pub(super) fn others(out: &mut String, cells: &[Cell]) {
    let rows = table1::rows(cells);
    let relu_eps: Vec<_> = rows.iter().filter(|r| r.head == "relu-eps" && r.velocity_bits == 0).collect();
    if relu_eps.is_empty() {
        return;
    }
    heading(out, "relu-eps, which the paper discusses and does not train");
    out.push_str(
        "\n| configuration | side | after 5 / 10 / 15 / 20 epochs, % | outcome |\n| --- | --- | --- | --- |\n",
    );
    for r in relu_eps {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            r.name(),
            r.side,
            values(r.accuracy, |m| format!("{:.2}", m.value)),
            r.outcome
        );
    }
}

fn values<T: Copy>(at: Checkpoints<Option<T>>, text: impl Fn(T) -> String) -> String {
    let told = at.all().map(|v| v.map_or("–".into(), &text));
    if told.iter().all(|t| t == "–") { "–".into() } else { told.join(" / ") }
}

fn with_spread(means: Checkpoints<Option<Mean>>) -> String {
    let spread = pooled(&means).map_or(String::new(), |s| format!(" ± {s:.2}"));
    values(means, |m| format!("{:.2}", m.mean)) + &spread
}
