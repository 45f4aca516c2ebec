//! Table 1's seconds beside the paper's, and where they come from.

use super::markdown::{heading, item, paragraph};
use crate::count::counted;
use crate::paper::compared::Compared;
use crate::paper::seconds::Seconds;
use crate::paper::train;
use std::fmt::Write;

pub(super) fn seconds(out: &mut String, all: &[Compared]) {
    let timed: Vec<_> = all.iter().filter(|c| c.time.seconds.is_some()).collect();
    if timed.is_empty() {
        return;
    }
    heading(out, "Table 1: seconds of an epoch");
    paragraph(
        out,
        &format!(
            "Wall-clock seconds of training alone, three parties in one process; *processor* is the time that all its \
             threads took. A configuration timed *by itself* ran for a few epochs, each followed by one of training in \
             real numbers, and the first pair is not counted; its accuracies above are of other cells, which may be of \
             another day and program. Seconds *in training* are those of the secure cells of the accuracies, one cell \
             at a time, with training in real numbers in turn with their first {} epochs. *Real* has batches ready in \
             memory. The paper measured on three servers of 36 threads each: its ratios compare with ours, its seconds \
             do not.",
            train::PAIRED
        ),
    );
    out.push_str(
        "\n| configuration | secure, s | processor, s | secure / real | paper, s | paper / secure | timed \
        |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let number = |v: Option<f64>, digits: usize| v.map_or("–".into(), |v| format!("{v:.digits$}"));
    for c in &timed {
        let time = &c.time;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {}{} |",
            c.name(),
            number(time.seconds.map(|s| s.value), 2),
            number(time.cpu_seconds, 2),
            number(time.ratio, 1),
            number(time.paper_seconds, 1),
            number(time.paper_ratio, 1),
            if time.timed_on.is_some() { "by itself" } else { "in training" },
            if time.untimed.is_none() { "" } else { ", not quiet" }
        );
    }
    out.push('\n');
    let mut sources: Vec<_> = timed.iter().map(|c| source(&c.time)).collect();
    sources.sort();
    for same in sources.chunk_by(|a, b| a == b) {
        item(out, &format!("{} of {}: {}.", same.len(), timed.len(), same[0]));
    }
    if timed.iter().any(|c| c.time.untimed.is_some()) {
        let mut reasons: Vec<&str> = timed.iter().filter_map(|c| c.time.untimed.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        paragraph(out, &format!("Rows that are not quiet bear no claim about time: {}.", reasons.join("; ")));
    }
}

/// Where seconds come from, in words.
fn source(time: &Seconds) -> String {
    let machine = time.machine.as_deref().unwrap_or("machine not recorded");
    match (&time.timed_on, time.timed_epochs, &time.timed_by) {
        (Some(day), Some(epochs), Some(program)) => {
            format!("by itself on {day}, {} each, {machine}, {program}", counted(epochs, "counted epoch"))
        }
        _ => format!("in training, {machine}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use crate::paper::claims::tests::cell;
    use crate::paper::finished::Finished;
    use crate::paper::time_cell::tests::timed;

    #[test]
    fn seconds_say_where_they_come_from() {
        let cells =
            [cell("secure-softmax-l1-prob-s1-e20", &[0.92; 20]), cell("secure-softmax-l2-prob-s1-e20", &[0.97; 20])];
        let times = vec![timed("softmax-l1-prob", 4.0), timed("softmax-l3-nearest", 40.0)];
        let text = tables(&Finished { times, ..Finished::new(&cells[0].setup, &cells) }).unwrap();
        for line in [
            "| 1 layer, prob, softmax | 4.00 | 8.00 | 10.0 | 12.0 | 3.0 | by itself |",
            "| 3 layers, nearest, softmax | 40.00 | 80.00 | 10.0 | 70.1 | 1.8 | by itself |",
            "- 2 of 3: by itself on 2026-11-29, 3 counted epochs each, P, 2 processors, kernel portable, difftest 1.",
            "- 1 of 3: in training, processor not recorded, 2 processors, kernel portable.",
            "| prob, softmax | 1 (1 secure) | 92.00 / 92.00 / 92.00 / 92.00 | – | 91.6 / 92.2 / 92.2 / 92.4 | \
             +0.40 / -0.20 / -0.20 / -0.40 |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        // What was only timed has no accuracy to show.
        assert!(!text.contains("| 3 layers | seeds |"), "{text}");
    }
}
