//! The report on one comparison, `difftest --html FILE`.

use super::plot::{Plot, Series, Stroke, legend};
use super::{Cell, Page, Table, escape};
use crate::explain::health;
use crate::report::{Report, number, text};
use crate::side::Spent;

/// The whole page.
pub fn comparison(report: &Report) -> String {
    let mut page = Page::new("difftest: secure training against f64 and the integer model");
    let scrolling = |what: &str, text: &str| {
        format!("<pre tabindex=\"0\" role=\"region\" aria-label=\"{what}\">{}</pre>", escape(text))
    };
    page.push(&scrolling("configuration", &text::heading(&report.config)));
    page.push(&scrolling("command", &report.command));

    page.heading("Checks");
    let mut table = Table::new("The named checks of this run.", ["check", "verdict", "what was checked"]);
    for c in &report.checks {
        let class = match c.word() {
            "PASS" => "pass",
            "OPEN" => "open",
            _ => "fail",
        };
        let verdict = Cell::Verdict(c.word().into(), class);
        let lines = std::iter::once(c.summary.as_str()).chain(c.failure.iter().flat_map(|f| f.lines()));
        table.rows.push(vec![Cell::Text(c.name.into()), verdict, Cell::Lines(lines.map(String::from).collect())]);
    }
    page.table(&table);

    if !report.tensors.is_empty() {
        page.heading("Tensors");
        page.paragraph("Errors of the fixed-point sides against f64, and their proven bounds, in units of 2^-f. The bar is the largest part of its bound that an element uses.");
        let mut table = Table::new(
            "Every probed tensor, all steps.",
            [
                "tensor",
                "elements",
                "ambiguous",
                "outside",
                "largest error",
                "mean error",
                "its bound",
                "error / bound, %",
            ],
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
    training(&mut page, report);
    drift(&mut page, report);

    page.heading("Accuracy, time and communication");
    let mut table = Table::new(
        &format!("All {} steps, evaluation apart; accuracy on {} test rows.", report.steps, report.accuracy.rows),
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
    page.finish()
}

/// How each side's training went.
fn training(page: &mut Page, report: &Report) {
    page.heading("Training watch");
    let mut table = Table::new(
        "Losses, and what of the range and of the network is in use. An update vanishes below 2^-f; a velocity is stuck where rounding keeps it from decaying.",
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

/// Free mode: how far the sides have come apart.
fn drift(page: &mut Page, report: &Report) {
    let series = |name: &str, colour, of: fn(&crate::run::free::Point) -> f64| Series {
        name: name.into(),
        stroke: Stroke { colour, dashed: colour == 6 },
        points: report.curve.iter().map(|p| (p.step as f64, of(p))).collect(),
    };
    let plot = Plot {
        title: "Drift of the weights".into(),
        description:
            "Root mean square difference of all weights against steps: real to secure, and one secure run to another."
                .into(),
        x: "steps",
        y: "RMS weight difference",
        log: true,
        lowest: None,
        series: vec![series("real to secure", 1, |p| p.drift), series("secure to secure, other coins", 6, |p| p.noise)],
    };
    let markup = plot.markup();
    if !report.curve.is_empty() && !markup.is_empty() {
        page.heading("Drift");
        page.push(&legend(&[plot]));
        page.push(&format!("<div class=\"plots\">\n{markup}\n</div>"));
    }
}
