//! The report on one comparison, `difftest --html FILE`.

use super::plot::{Plot, Series, Stroke, legend};
use super::{Cell, Page, Table, escape};
use crate::check::Outcome;
use crate::explain::cause::Cause;
use crate::explain::health;
use crate::report::{Report, number, text};
use crate::run::free::Point;
use crate::side::Spent;

/// The whole page.
pub fn comparison(report: &Report) -> String {
    let mut page = Page::new("difftest: secure training against real numbers and the integer model");
    let scrolling = |what: &str, text: &str| {
        format!("<pre tabindex=\"0\" role=\"region\" aria-label=\"{what}\">{}</pre>", escape(text))
    };
    page.push(&scrolling("configuration", &text::heading(&report.config)));
    page.push(&scrolling("command", &report.command));
    page.paragraph(&format!("Made by {}.", report.made));
    page.paragraph(&format!("Data: {}.", report.data));

    checks(&mut page, report);
    if !report.tensors.is_empty() {
        tensors(&mut page, report);
    }
    causes(&mut page, report);
    training(&mut page, report);
    curves(&mut page, report);
    cost(&mut page, report);
    page.finish()
}

/// The verdict of every check.
fn checks(page: &mut Page, report: &Report) {
    page.heading("Checks");
    let mut table = Table::new("The named checks of this run.", ["check", "verdict", "what was checked"]);
    for c in &report.checks {
        let class = match c.word() {
            "PASS" => "pass",
            "OPEN" => "open",
            _ => "fail",
        };
        let verdict = Cell::Verdict(c.word().into(), class);
        table.rows.push(vec![Cell::Text(c.name.into()), verdict, Cell::Lines(lines(c))]);
    }
    // On a phone these rows break where others scroll.
    page.push("<div class=\"checks\">");
    page.table(&table);
    page.push("</div>");
}

/// Error and bound of every tensor.
fn tensors(page: &mut Page, report: &Report) {
    page.heading("Tensors");
    page.paragraph(
        "Errors of the fixed-point sides against real numbers, and their proven bounds, in units of 2^-f. The bar is \
         the largest part of its bound that an element uses.",
    );
    page.paragraph(
        "An element is ambiguous if it jumps with a comparison whose operand is within its bound of the threshold, so \
         that rounding may turn it: a ReLU's input near 0, a logit near a threshold. It must agree with one of the two \
         outcomes, and is in no error and no bound of its row, for its distance is that of the two outcomes and not of \
         rounding. What is computed from it has bounds that hold for both, which is why they are wide there.",
    );
    let mut table = Table::new(
        "Every probed tensor, all steps.",
        ["tensor", "elements", "ambiguous", "outside", "largest error", "mean error", "its bound", "error / bound, %"],
    );
    for t in &report.tensors {
        let number = |v: f64| {
            Cell::Number(if v == 0.0 || (1e-3..1e5).contains(&v) { format!("{v:.3}") } else { format!("{v:.2e}") })
        };
        let error = |v| if t.ambiguous < t.elements { number(v) } else { Cell::Number("–".into()) };
        table.rows.push(vec![
            Cell::Text(t.tensor.clone()),
            Cell::Number(t.elements.to_string()),
            Cell::Number(t.ambiguous.to_string()),
            Cell::Number(t.outside.to_string()),
            error(t.max_error_units),
            error(t.mean_error_units),
            number(t.bound_units),
            Cell::Bar(format!("{:.1}", 100.0 * t.closest), t.closest),
        ]);
    }
    page.table(&table);
}

/// Accuracy, time and communication of every side.
fn cost(page: &mut Page, report: &Report) {
    page.heading("Accuracy, time and communication");
    let mut table = Table::new(
        &format!(
            "{}, evaluation apart; accuracy on {}, of which {:.2} % carry the most frequent label.",
            number::count(report.steps, "step"),
            number::count(report.accuracy.rows, "test row"),
            100.0 * report.accuracy.chance
        ),
        ["side", "accuracy, %", "seconds", "rounds", "messages", "bytes"],
    );
    let accuracy = |a: f64| format!("{:.2}", 100.0 * a);
    let sides: [(&str, String, &Spent); 3] = [
        ("real", accuracy(report.accuracy.real), &report.cost.real),
        ("integer model", "–".into(), &report.cost.integer),
        ("secure", accuracy(report.accuracy.secure), &report.cost.secure),
    ];
    for (side, accuracy, spent) in sides {
        let numbers = [
            accuracy,
            format!("{:.3}", spent.seconds),
            spent.rounds.to_string(),
            spent.messages.to_string(),
            spent.bytes.to_string(),
        ];
        table.rows.push(std::iter::once(Cell::Text(side.into())).chain(numbers.map(Cell::Number)).collect());
    }
    page.table(&table);
}

/// How each side's training went.
fn training(page: &mut Page, report: &Report) {
    page.heading("Training watch");
    let mut table = Table::new(
        "Losses, and what of the range and of the network is in use. An update vanishes below 2^-f; a velocity is \
         stuck where rounding keeps it from decaying.",
        [
            "side",
            "verdict",
            "loss, first -> last",
            "largest logit",
            "largest weight",
            "dead units by layer",
            "updates that vanish",
            "velocities stuck",
        ],
    );
    for w in &report.watch {
        let verdict = report.divergence.iter().find(|d| d.side == w.side).map(|d| d.verdict.to_string());
        let numbers = [
            health::losses(w.loss),
            number::short(w.largest_logit),
            number::short(w.largest_weight),
            health::dead_units(&w.layers),
            health::percentages(&w.layers, |l| l.vanishing),
            health::percentages(&w.layers, |l| l.stuck),
        ];
        let texts = [Cell::Text(w.side.into()), Cell::Text(verdict.unwrap_or_default())];
        table.rows.push(texts.into_iter().chain(numbers.map(Cell::Number)).collect());
    }
    page.table(&table);
}

/// Free mode: how far the sides have come apart, and how each of them learns.
fn curves(page: &mut Page, report: &Report) {
    if report.curve.is_empty() {
        return;
    }
    page.heading("Curves");
    page.paragraph(
        "Drift is judged beside the noise floor: where two secure runs that differ in their coins alone are as far \
         apart as the secure and the real one, the coins explain the distance. The legend of each row of charts stands \
         above it.",
    );
    let points = &report.curve;
    for plots in [vec![drift(points)], vec![loss(points), accuracy(points)]] {
        let drawn: Vec<_> = plots.into_iter().map(|plot| (plot.markup(), plot)).filter(|p| !p.0.is_empty()).collect();
        let (markup, plots): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        if !plots.is_empty() {
            page.push(&format!(
                "<div class=\"charts\">\n{}\n<div class=\"plots\">\n{}\n</div>\n</div>",
                legend(&plots),
                markup.join("\n")
            ));
        }
    }
}

/// One line of a plot against steps.
fn line(points: &[Point], name: &str, colour: u8, of: fn(&Point) -> Option<f64>) -> Series {
    Series {
        name: name.into(),
        stroke: Stroke { colour, dashed: colour == 2 },
        points: points.iter().filter_map(|p| Some((p.step as f64, of(p)?))).collect(),
    }
}

/// How far the weights of two runs are apart.
fn drift(points: &[Point]) -> Plot {
    Plot {
        title: "Drift of the weights".into(),
        description: "Root mean square difference of all weights against steps: real to secure, and the noise floor, \
                      one secure run to another with other coins."
            .into(),
        x: "steps",
        y: "RMS weight difference",
        log: true,
        lowest: None,
        series: vec![
            line(points, "drift: real to secure", 1, |p| Some(p.drift)),
            line(points, "noise floor: secure to secure with other coins", 2, |p| Some(p.noise)),
        ],
    }
}

/// The loss of both weights on one sample.
fn loss(points: &[Point]) -> Plot {
    Plot {
        title: "Loss".into(),
        description: "Mean loss on the first test rows against steps, of the real and of the secure weights.".into(),
        x: "steps",
        y: "mean loss",
        log: false,
        lowest: None,
        series: vec![line(points, "real", 1, |p| p.loss?.0), line(points, "secure", 2, |p| p.loss?.1)],
    }
}

/// The accuracy of both weights on one sample.
fn accuracy(points: &[Point]) -> Plot {
    Plot {
        title: "Accuracy".into(),
        description: "Part of the first test rows that is classified correctly against steps, by the real and by the \
                      secure weights."
            .into(),
        x: "steps",
        y: "accuracy, %",
        log: false,
        lowest: None,
        series: vec![
            line(points, "real", 1, |p| Some(100.0 * p.accuracy.0)),
            line(points, "secure", 2, |p| Some(100.0 * p.accuracy.1)),
        ],
    }
}

/// The cause of every difference, by tensor.
fn causes(page: &mut Page, report: &Report) {
    if report.budget.is_empty() {
        return;
    }
    page.heading("Causes");
    let f = report.config.spec.fixed.fraction_bits;
    let mut columns = vec!["tensor", "total"];
    columns.extend(Cause::ALL.map(Cause::name));
    let mut table = Table {
        caption: format!(
            "Largest part of a difference between the secure and the real side that each cause explains, in units of \
             2^-{f}. The parts of an element add up to its difference, with signs; ambiguous elements are in here, \
             under the cause branch."
        ),
        columns: columns.into_iter().map(String::from).collect(),
        rows: Vec::new(),
    };
    for row in &report.budget {
        let parts = std::iter::once(&row.total).chain(Cause::ALL.iter().filter_map(|c| row.parts.get(c.name())));
        let numbers = parts.map(|p| Cell::Number(number::short(p.max_units)));
        table.rows.push(std::iter::once(Cell::Text(row.tensor.clone())).chain(numbers).collect());
    }
    page.table(&table);
}

/// The lines of a check's cell: its summary, and of its failure what the summary does not say already.
fn lines(check: &Outcome) -> Vec<String> {
    let failure = check.failure.iter().flat_map(|f| f.lines());
    let label = format!("FAIL {}", check.name);
    let more = failure.map(|l| l.strip_prefix(&label).unwrap_or(l).trim());
    let more = more.filter(|l| !l.is_empty() && !check.summary.contains(l)).map(String::from);
    std::iter::once(check.summary.clone()).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_a_thing_once() {
        let failure = "FAIL divergence\n  real stalls (accuracy 9.8 %)\n  again: difftest --steps 5";
        let outcome = Outcome::new("divergence", "real stalls (accuracy 9.8 %)".into(), Some(failure.into()));
        assert_eq!(lines(&outcome), ["real stalls (accuracy 9.8 %)", "again: difftest --steps 5"]);
        let outcome = Outcome::new("range", "8 operands".into(), Some("FAIL range   step 7: logits[1]".into()));
        assert_eq!(lines(&outcome), ["8 operands", "step 7: logits[1]"]);
    }
}
