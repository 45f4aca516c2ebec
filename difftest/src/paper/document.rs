//! The evaluation as Markdown, and its place in a document between two markers.
//!
//! Lines of text are at most [`WIDTH`] columns; a table's cells hold at most four numbers each.

use super::cell::{Cell, Setup, Side, binomial_error, layers_of, short};
use super::claims::divergence::{self, Found, READINGS, Reading};
use super::claims::{self, Claim, Judgement};
use super::compared::{Compared, Mean, pooled};
use super::explain::explained;
use super::finished::Finished;
use super::seconds::Seconds;
use super::table1::{self, Checkpoints};
use super::{table2, train};
use crate::count::counted;
use crate::error::{CellError, Error};
use reference::spec::Rounding;
use std::fmt::Write;

/// The line before the tables.
pub const BEGIN: &str = "<!-- table: difftest paper table -->";
/// The line after them.
pub const END: &str = "<!-- end -->";

/// Columns of a line of text.
pub const WIDTH: usize = 118;

/// Lines of numbers that a claim shows; all of them are in the report.
const NUMBERS: usize = 6;

/// Everything, from finished cells of one setup.
///
/// # Errors
/// Table 2 needs three parties for a moment, which may fail to start.
pub fn tables(finished: &Finished) -> Result<String, Error> {
    let table2 = table2::rows()?;
    let Finished { setup, cells, times } = finished;
    let all = explained(cells, times);
    let mut out = String::new();
    notes(&mut out, setup, cells);
    accuracy(&mut out, &all);
    sentences(&mut out, &all);
    seconds(&mut out, &all);
    readings(&mut out, cells);
    others(&mut out, cells);
    judged(&mut out, &claims::judge(finished, &table2));
    second(&mut out, &table2);
    text_figures(&mut out);
    Ok(out)
}

/// `text` in lines of at most [`WIDTH`] columns, those after the first indented.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut bare = true;
    // A number and its per cent sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n']).filter(|w| !w.is_empty()) {
        if !bare && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = rest.to_owned();
            bare = true;
        }
        if !bare {
            line.push(' ');
        }
        line.push_str(word);
        bare = false;
    }
    out + &line + "\n"
}

fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(&wrapped(text, "", ""));
}

fn item(out: &mut String, text: &str) {
    out.push_str(&wrapped(text, "- ", "  "));
}

fn heading(out: &mut String, text: &str) {
    let _ = write!(out, "\n### {text}\n");
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

fn values<T: Copy>(at: Checkpoints<Option<T>>, text: impl Fn(T) -> String) -> String {
    let told = at.all().map(|v| v.map_or("–".into(), &text));
    if told.iter().all(|t| t == "–") { "–".into() } else { told.join(" / ") }
}

fn with_spread(means: Checkpoints<Option<Mean>>) -> String {
    let spread = pooled(&means).map_or(String::new(), |s| format!(" ± {s:.2}"));
    values(means, |m| format!("{:.2}", m.mean)) + &spread
}

/// One table a depth.
fn accuracy(out: &mut String, all: &[Compared]) {
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

fn sentences(out: &mut String, all: &[Compared]) {
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

fn seconds(out: &mut String, all: &[Compared]) {
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

fn readings(out: &mut String, cells: &[Cell]) {
    let mut rows = Vec::new();
    for layers in [2, 3] {
        for rounding in Rounding::ALL {
            for code in [false, true] {
                rows.extend(reading_row(cells, code, layers, rounding));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    heading(out, "relu-grad with more than one layer, under each reading of \"smallest possible\"");
    paragraph(
        out,
        "The paper's divergence sign stands for divergence even with the smallest possible learning rate, and does not \
         say which that is. (a) Any rate that the \
         encoding of the update can represent, 0.01 and its halves down to 0.00002. (b) Rates whose product with 1 / \
         batch is a whole number of units of 2^-16: \
         at least 0.00195. (c) The rule of the published code (MP-SPDZ 15d179a1): 0.01, halved after each epoch with \
         accuracy below 1.1 / classes or a batch \
         loss above 100, a restart using up an epoch of the 20. relu-grad-code takes the reciprocal of the sum first \
         and multiplies then, as that code does, \
         on the integer side. A rate trains if it lasts all 20 epochs at no less than twice chance, without losing \
         half of its best accuracy; in (c), if \
         epoch 20 belongs to an attempt that goes on.",
    );
    out.push_str(
        "\n| configuration | (a) representable | (b) whole units | (c) published rule |\n| --- | --- | --- | --- |\n",
    );
    rows.iter().for_each(|r| out.push_str(r));
}

fn reading_row(cells: &[Cell], code: bool, layers: usize, rounding: Rounding) -> Option<String> {
    let seeds = divergence::seeds(cells, code, layers, rounding, claims::EPOCHS);
    let told = |reading: Reading| {
        summary(&seeds.iter().map(|(_, cells)| divergence::found(reading, cells)).collect::<Vec<_>>())
    };
    let head = if code { "relu-grad-code" } else { "relu-grad" };
    let name = format!("{}, {rounding}, {head}", layers_of(layers));
    let columns: Vec<_> = READINGS
        .into_iter()
        .filter(|r| *r != Reading::Representable(50))
        .map(|r| if seeds.is_empty() { String::new() } else { told(r) })
        .collect();
    let [a, b, c] = &columns[..] else { return None };
    (!seeds.is_empty()).then(|| format!("| {name} | {a} | {b} | {c} |\n"))
}

/// What all seeds of a configuration say of a reading.
fn summary(all: &[Found]) -> String {
    let trains: Vec<(f64, f64)> =
        all.iter().filter_map(|f| if let Found::Trains(rate, end) = f { Some((*rate, *end)) } else { None }).collect();
    let diverge = all.iter().filter(|f| **f == Found::Diverges).count();
    let range = |of: fn(&(f64, f64)) -> f64, text: &dyn Fn(f64) -> String| {
        let (lo, hi) = trains.iter().map(of).fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if text(lo) == text(hi) { text(lo) } else { format!("{} to {}", text(lo), text(hi)) }
    };
    let seeds = if all.len() == 1 { String::new() } else { format!(" ({} seeds)", all.len()) };
    if trains.len() == all.len() {
        let (rate, end) = (range(|t| t.0, &short), range(|t| 100.0 * t.1, &|v| format!("{v:.1}")));
        return format!("trains at {rate}: {end} %{seeds}");
    }
    if diverge == all.len() {
        return format!("diverges{seeds}");
    }
    let open = all.len() - trains.len() - diverge;
    let told = [(trains.len(), "trains"), (diverge, "diverges"), (open, "open")];
    told.iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{what}: {n} of {}", all.len()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Cells that the paper has no row for.
fn others(out: &mut String, cells: &[Cell]) {
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

fn judged(out: &mut String, all: &[Claim]) {
    heading(out, "Claims");
    paragraph(
        out,
        "Each claim in our words, its place in the paper, how it is tested, and the numbers, those first that decide. \
         *Holds*: no number contradicts it. *Does \
         not hold*: one contradicts it by more than two standard errors. *Not tested*: cells are missing or leave it \
         open. ± is one standard error.",
    );
    let count = |verdict| all.iter().filter(|c| c.verdict == verdict).count();
    paragraph(
        out,
        &format!(
            "{} claims: {} hold, {} do not hold, {} are not tested.",
            all.len(),
            count(Judgement::Holds),
            count(Judgement::DoesNotHold),
            count(Judgement::NotTested)
        ),
    );
    for claim in all {
        let _ = write!(out, "\n#### {}: {}\n\n", claim.name, claim.verdict);
        out.push_str(&wrapped(&format!("{} ({}.)", claim.statement, claim.place), "", ""));
        out.push_str(&wrapped(&format!("*Test:* {}", claim.test), "", ""));
        out.push('\n');
        let mut numbers: Vec<&str> = claim.numbers.iter().map(String::as_str).collect();
        numbers.sort_by_key(|n| !(n.ends_with(claims::CONTRADICTS) || n.ends_with(claims::SUPPORTS)));
        let more = numbers.len().saturating_sub(NUMBERS);
        numbers.iter().take(NUMBERS).for_each(|n| item(out, n));
        if more > 0 {
            item(out, &format!("and {more} more in the report"));
        }
    }
}

fn second(out: &mut String, rows: &[table2::Row]) {
    heading(out, "Table 2: what each head needs and has");
    paragraph(
        out,
        "Ours beside the paper's entry, in brackets. Comparison, division and exponential are read off a recorded step \
         of the three parties; the rest is tried \
         numerically in real numbers.",
    );
    out.push_str(
        "\n| head | comparison | division | exponential | differentiable | known loss |\n| --- | --- | --- | \
        --- | --- | --- |\n",
    );
    let word = |b| if b { "yes" } else { "no" };
    for r in rows {
        let entry = |ours: bool, paper: fn(&table2::Printed) -> bool| {
            format!("{} ({})", word(ours), r.paper.as_ref().map_or("–", |p| word(paper(p))))
        };
        let columns = [
            entry(r.comparison, |p| p.comparison),
            entry(r.division, |p| p.division),
            entry(r.exponential, |p| p.exponential),
            entry(r.differentiable, |p| p.differentiable),
            entry(r.known_loss, |p| p.known_loss),
        ];
        let _ = writeln!(out, "| {} | {} |", r.head, columns.join(" | "));
    }
}

/// What the paper's text reports and nothing here repeats.
fn text_figures(out: &mut String) {
    let text = fixtures::paper::text();
    heading(out, "Figures of the paper's text that are not repeated here");
    out.push('\n');
    let two = &text.two_party;
    let each: Vec<_> =
        two.seconds_per_epoch.iter().map(|s| format!("{} s with {}", s.seconds, s.head.name())).collect();
    item(
        out,
        &format!(
            "Two parties ({}), {}, {} rounding: an epoch takes {}.",
            two.setting,
            layers_of(two.layers),
            two.rounding.name(),
            each.join(", ")
        ),
    );
    for other in &text.others {
        let accuracy = other.accuracy.map(|a| format!("{a} % after {} epochs", other.epochs));
        let seconds = other.seconds_per_epoch.map(|s| format!("{s} s an epoch over {} epochs", other.epochs));
        let told: Vec<_> = [accuracy, seconds].into_iter().flatten().collect();
        item(out, &format!("{}: {}.", other.work, told.join(", ")));
    }
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
    use super::super::time_cell::tests::timed;
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

    #[test]
    fn seeds_are_summed_up() {
        let trains = |rate, end| Found::Trains(rate, end);
        for (all, text) in [
            (vec![trains(0.005, 0.5)], "trains at 0.005: 50.0 %"),
            (vec![trains(0.005, 0.5), trains(0.0025, 0.75)], "trains at 0.0025 to 0.005: 50.0 to 75.0 % (2 seeds)"),
            (vec![Found::Diverges; 3], "diverges (3 seeds)"),
            (vec![Found::Diverges, trains(0.1, 0.5), Found::Open], "trains: 1 of 3, diverges: 1 of 3, open: 1 of 3"),
        ] {
            assert_eq!(summary(&all), text);
        }
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
