//! The report on the paper's evaluation.

use super::plot::{Plot, Series, Stroke, legend};
use super::{Cell, Page, Table, escape};
use crate::paper::Findings;
use crate::paper::cell::{Id, Nearness, Side};
use crate::paper::claims::Judgement;
use crate::paper::result::Point;
use crate::paper::table1::{Measured, Rate, Row, checkpoints};
use reference::spec::{FixedSpec, Head, Rounding};

/// The whole page.
pub fn paper(found: &Findings) -> String {
    let mut page = Page::new("The paper, reproduced: softmax and its replacements in secure training");
    page.paragraph(
        "Keller and Sun, Effectiveness of MPC-friendly Softmax Replacement (arXiv 2011.11202), section 4: networks of one to three dense \
         layers are trained by three parties on secret shares, by an integer model of the same fixed-point arithmetic, and in f64.",
    );
    page.paragraph(&setup(found));
    claims(&mut page, found);
    table1(&mut page, found);
    rates(&mut page, found);
    table2(&mut page, found);
    curves(&mut page, found);
    nearness(&mut page, found);
    protocols(&mut page, found);
    page.finish()
}

fn setup(found: &Findings) -> String {
    let s = &found.setup;
    let machines: Vec<_> =
        found.machines.iter().map(|m| format!("{} processors, kernel {}", m.cpus, m.kernel)).collect();
    format!(
        "{} finished cells. {} training and {} test rows, batch {}, hidden layers of {} ReLU units, learning rate {}, momentum {}, eps {}. \
         After an epoch with a batch loss above 100 or accuracy below 11 %, training starts again from the same weights at half the rate, at most \
         {} times. The three parties share one machine and exchange messages in memory: {}. Parties draw their randomness from the operating system.",
        found.cells.len(),
        s.train_rows,
        s.test_rows,
        s.batch,
        s.hidden,
        s.learning_rate,
        s.momentum,
        s.epsilon,
        s.restarts,
        machines.join("; ")
    )
}

fn claims(page: &mut Page, found: &Findings) {
    page.heading("Claims");
    page.paragraph("Claims of the paper, judged from the finished cells. ± is one standard error; FAIL means that the claim does not hold here.");
    for c in &found.claims {
        let class = match c.verdict {
            Judgement::Pass => "pass",
            Judgement::Fail => "fail",
            Judgement::NotTested => "open",
        };
        let lines: String = c.numbers.iter().map(|n| format!("<li>{}</li>", escape(n))).collect();
        page.push(&format!(
            "<h3><b class=\"{class}\">{}</b> {}</h3>\n<p>{}</p>\n<details><summary>numbers ({})</summary><ul>{lines}</ul></details>",
            c.verdict,
            escape(c.name),
            escape(&c.statement),
            c.numbers.len()
        ));
    }
}

fn name(row: &Row) -> String {
    let rounding = row.rounding.map_or(String::new(), |r| format!(", {r}"));
    let bits = if row.velocity_bits > 0 { format!(", {} velocity bits", row.velocity_bits) } else { String::new() };
    let layers = if row.layers == 1 { "1 layer".into() } else { format!("{} layers", row.layers) };
    format!("{}, {layers}{rounding}{bits}", row.head)
}

fn number(v: Option<Measured>) -> Cell {
    Cell::Number(v.map_or("–".into(), |m| format!("{:.2} ± {:.2}", m.value, m.error)))
}

fn plain(v: Option<f64>) -> String {
    v.map_or("–".into(), |v| format!("{v}"))
}

fn table1(page: &mut Page, found: &Findings) {
    page.heading("Table 1: time and accuracy");
    page.paragraph(&format!(
        "A dash in the paper's columns is a figure that was not available to this project ({}) A dash elsewhere means that the attempt did not get \
         so far, or that the cells are not finished. The paper measured on three servers with 36 threads each; its seconds and ours do not compare, \
         their ratios do.",
        fixtures::paper::table1().note
    ));
    for side in Side::ALL {
        let rows: Vec<_> = found.table1.iter().filter(|r| r.side == side).collect();
        if rows.is_empty() {
            continue;
        }
        let what = match side {
            Side::Secure => "secure: three parties",
            Side::Model => "integer model of the same arithmetic (cells run side by side: seconds are rough)",
            Side::F64 => "f64 (cells run side by side: seconds are rough)",
        };
        let [a, b, c, d] = checkpoints();
        let after = [a, b, c, d].map(|e| format!("after {e}"));
        let caption =
            format!("Table 1, {what}. Seconds of training in an epoch, and test accuracy in % after so many epochs.");
        let mut table = Table::new(
            &caption,
            ["configuration", "seconds", "paper", &after[0], &after[1], &after[2], &after[3], "paper", "outcome"],
        );
        for r in rows {
            let mut cells =
                vec![Cell::Text(name(r)), number(r.seconds_per_epoch), Cell::Number(plain(r.paper.seconds_per_epoch))];
            cells.extend(r.accuracy.map(number));
            cells.push(Cell::Number(r.paper.accuracy.map(plain).join(" / ")));
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
fn rates(page: &mut Page, found: &Findings) {
    let rates: Vec<&Rate> = found.table1.iter().flat_map(|r| &r.rates).collect();
    let odd = |r: &&&Rate| {
        r.ended.is_some() || r.verdict != "trains" || rates.iter().filter(|o| o.cell == r.cell).count() > 1
    };
    let odd: Vec<_> = rates.iter().filter(odd).collect();
    if odd.is_empty() {
        return;
    }
    page.heading("What happened at each learning rate");
    page.paragraph(&format!(
        "Every cell that did not simply train. \"Grows\": a logit or weight reached {}, the end of the fixed-point range; \"range\": an operand of the \
         integer model left its range, and the model stops there; \"stalls\": accuracy at chance. The secure side shows only accuracy and, between epochs, weights; its \
         logits and dead units are what those weights make of the test rows, so its steps are ends of epochs.",
        FixedSpec::default().limit() / FixedSpec::default().one()
    ));
    let mut table = Table::new(
        "Attempts by learning rate: how long each lasted, verdict with first step and cause, and why the paper's rule ended it.",
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
    let magnitude = |v: Option<f64>| {
        Cell::Number(match v {
            None => "–".into(),
            Some(f64::MAX) => "not finite".into(),
            Some(v) if v >= 1e5 => format!("{v:.1e}"),
            Some(v) => format!("{v:.2}"),
        })
    };
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

fn table2(page: &mut Page, found: &Findings) {
    page.heading("Table 2: what each head needs and has");
    page.paragraph(
        "Use of comparison, division and exponential is read off the cost counters and truncation names of a real step by three parties. \
         Differentiable: the slopes of the probabilities agree on both sides of 0 and eps. Known loss: the gradient's Jacobian is symmetric where no logit lies between 0 \
         and eps, and differences of the stated loss are the gradient. In brackets, the paper's entry; a dash was not available to this project.",
    );
    let mut table = Table::new(
        "Table 2. The last columns are the numbers behind the verdicts.",
        [
            "head",
            "comparison",
            "division",
            "exponential",
            "differentiable",
            "known loss",
            "rounds of a step",
            "bytes a row",
            "slope jump",
            "Jacobian asymmetry",
            "the same with a logit in (0, eps]",
            "loss error",
        ],
    );
    let entry = |ours: bool, paper: Option<bool>| {
        let word = |b| if b { "yes" } else { "no" };
        Cell::Text(format!("{} ({})", word(ours), paper.map_or("–", word)))
    };
    for r in &found.table2 {
        let small = |v: f64| Cell::Number(format!("{v:.1e}"));
        table.rows.push(vec![
            Cell::Text(r.head.to_string()),
            entry(r.comparison, r.paper.comparison),
            entry(r.division, r.paper.division),
            entry(r.exponential, r.paper.exponential),
            entry(r.differentiable, r.paper.differentiable),
            entry(r.known_loss, r.paper.known_loss),
            Cell::Number(r.rounds.to_string()),
            Cell::Number(r.bytes.to_string()),
            small(r.slope_jump),
            small(r.asymmetry),
            small(r.asymmetry_below_eps),
            r.loss_error.map_or(Cell::Number("no loss".into()), small),
        ]);
    }
    page.table(&table);
}

fn stroke(id: &Id) -> Stroke {
    let colour = Head::ALL.iter().position(|h| *h == id.head).unwrap_or(0) as u8 + 1;
    Stroke { colour, dashed: id.rounding == Some(Rounding::Nearest) }
}

/// Depths, sides and cells of what is plotted.
struct Curves<'a> {
    cells: Vec<(Id, Vec<&'a Point>)>,
}

impl<'a> Curves<'a> {
    /// First seed, no extra velocity bits, the attempt that counts; `all` attempts on request.
    fn new(found: &'a Findings) -> Self {
        let ids = found.cells.iter().filter_map(|c| c.parse::<Id>().ok()).filter(|id| id.velocity_bits == 0);
        let first = ids.clone().map(|id| id.seed).min();
        let points = |id: &Id| {
            let name = id.to_string();
            found.curves.iter().filter(|p| p.cell == name).collect::<Vec<_>>()
        };
        Curves { cells: ids.filter(|id| Some(id.seed) == first).map(|id| (id.clone(), points(&id))).collect() }
    }

    /// One plot a depth for the cells of a side.
    fn plots(
        &self,
        side: Side,
        template: &Plot,
        value: impl Fn(&Point) -> Option<(f64, f64)>,
        last_attempt: bool,
    ) -> Vec<Plot> {
        let mut depths: Vec<_> = self.cells.iter().filter(|(id, _)| id.side == side).map(|(id, _)| id.layers).collect();
        depths.sort_unstable();
        depths.dedup();
        let plot = |layers: usize| {
            let cells = self.cells.iter().filter(|(id, _)| id.side == side && id.layers == layers);
            let series = cells.map(|(id, points)| {
                let last = points.last().map(|p| p.attempt);
                let kept = points.iter().filter(|p| !last_attempt || Some(p.attempt) == last);
                let rounding = id.rounding.map_or(String::new(), |r| format!(", {r}"));
                Series {
                    name: format!("{}{rounding}", id.head),
                    stroke: stroke(id),
                    points: kept.filter_map(|p| value(p)).collect(),
                }
            });
            let layers = if layers == 1 { "1 layer".into() } else { format!("{layers} layers") };
            Plot { title: format!("{layers}: {}", template.title), series: series.collect(), ..template.clone() }
        };
        depths.into_iter().map(plot).collect()
    }
}

fn show(page: &mut Page, heading: &str, text: &str, plots: &[Plot]) {
    let figures: Vec<_> = plots.iter().map(Plot::markup).filter(|m| !m.is_empty()).collect();
    if figures.is_empty() {
        return;
    }
    page.heading(heading);
    page.paragraph(text);
    page.push(&legend(plots));
    page.push(&format!("<div class=\"plots\">\n{}\n</div>", figures.join("\n")));
}

fn curves(page: &mut Page, found: &Findings) {
    let curves = Curves::new(found);
    let side = Side::ALL.into_iter().find(|s| curves.cells.iter().any(|(id, _)| id.side == *s)).unwrap_or(Side::F64);
    // Accuracies of runs that work fill the plot; those at chance lie on its lower edge.
    let working = found.curves.iter().map(|p| p.accuracy).filter(|a| *a > 70.0).fold(100.0, f64::min);
    let lowest = if working < 100.0 { (working / 5.0).floor() * 5.0 } else { 0.0 };
    let accuracy = Plot {
        title: format!("test accuracy against epochs ({side})"),
        description: "Test accuracy in percent at the end of each epoch, one line a head and rounding. The numbers are in curves.csv.".into(),
        x: "epochs",
        y: "test accuracy, %",
        log: false,
        lowest: Some(lowest),
        series: Vec::new(),
    };
    show(
        page,
        "Accuracy against epochs",
        &format!(
            "The attempt that counts of each cell; dashed: nearest rounding. Accuracies below {lowest} % are drawn on the lower edge."
        ),
        &curves.plots(side, &accuracy, |p| Some((p.epoch as f64, p.accuracy)), true),
    );
    let time = Plot {
        title: "test accuracy against seconds of secure training".into(),
        x: "seconds of secure training",
        ..accuracy
    };
    show(
        page,
        "Accuracy against secure seconds",
        "Seconds of training alone, all attempts: a failed learning rate costs time too.",
        &curves.plots(Side::Secure, &time, |p| Some((p.seconds, p.accuracy)), false),
    );

    let drifts = |side: Side| {
        let value = |p: &Point| {
            let same = |d: &&crate::paper::result::Drift| d.cell == p.cell && d.epoch == p.epoch && p.attempt == 1;
            found.drift.iter().find(same).map(|d| (d.epoch as f64, d.weights))
        };
        let template = Plot {
            title: format!("{side} against f64"),
            description:
                "Root mean square of the differences of all weights at the end of each epoch, on a logarithmic scale."
                    .into(),
            x: "epochs",
            y: "RMS weight difference",
            log: true,
            lowest: None,
            series: Vec::new(),
        };
        curves.plots(side, &template, value, false)
    };
    show(
        page,
        "Drift between the sides",
        "From the same start on the same batches, first attempts; estimated from random projections of the weights with a relative standard error of 6 %.",
        &[drifts(Side::Secure), drifts(Side::Model)].concat(),
    );

    let limits = |mut plots: Vec<Plot>, limit: f64, name: &str| {
        for plot in &mut plots {
            let xs: Vec<_> = plot.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
            let (lo, hi) = xs.iter().fold((f64::MAX, f64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
            plot.series.push(Series {
                name: name.into(),
                stroke: Stroke { colour: 6, dashed: true },
                points: if xs.is_empty() { vec![] } else { vec![(lo, limit), (hi, limit)] },
            });
        }
        plots
    };
    let logarithmic = |title: &str, y| Plot {
        title: title.into(),
        description: "Largest magnitude seen in any step of each epoch, on a logarithmic scale, one line a head."
            .into(),
        x: "epochs",
        y,
        log: true,
        lowest: None,
        series: Vec::new(),
    };
    let finite = |v: Option<f64>| v.filter(|v| *v < f64::MAX);
    let watched = if curves.cells.iter().any(|(id, _)| id.side == Side::F64) { Side::F64 } else { Side::Model };
    let epsilon = found.setup.epsilon;
    let gradient = logarithmic(&format!("largest gradient of a logit ({watched})"), "largest |gradient|");
    show(
        page,
        "Gradient magnitude against 1/eps",
        "The dotted line is 1/eps, the bound of the heads with a threshold. Softmax and relu-grad stay within 1; relu-eps has no threshold and may go beyond.",
        &limits(
            curves.plots(watched, &gradient, |p| Some((p.epoch as f64, finite(p.largest_gradient)?)), true),
            1.0 / epsilon,
            &format!("1/eps = {}", 1.0 / epsilon),
        ),
    );
    let range = (FixedSpec::default().limit() / FixedSpec::default().one()) as f64;
    let logit = logarithmic(&format!("largest logit ({watched})"), "largest |logit|");
    show(
        page,
        "Growth of the logits",
        "The dotted line is the end of the fixed-point range. f64 runs on where a fixed-point side cannot.",
        &limits(
            curves.plots(watched, &logit, |p| Some((p.epoch as f64, finite(p.largest_logit)?)), true),
            range,
            &format!("range, {range}"),
        ),
    );
}

/// Error against its bound, the deepest network of each rounding.
fn nearness(page: &mut Page, found: &Findings) {
    let ids = || found.cells.iter().filter_map(|c| c.parse::<Id>().ok()).filter(|id| id.velocity_bits == 0);
    let first = ids().map(|id| id.seed).min();
    let told = |id: &Id| found.nearness.iter().any(|n| n.cell == id.to_string());
    let Some(deepest) = ids().filter(|id| told(id)).map(|id| id.layers).max() else { return };
    let mut plots = Vec::new();
    for rounding in Rounding::ALL {
        for tensor in ["logits", "head_gradient", "layer1/dW"] {
            let mut series = Vec::new();
            for id in ids().filter(|id| (id.layers, id.rounding, Some(id.seed)) == (deepest, Some(rounding), first)) {
                let cell = id.to_string();
                let points = |of: fn(&Nearness) -> f64| {
                    let mine = found.nearness.iter().filter(|n| n.cell == cell && n.tensor == tensor);
                    mine.map(|n| (n.epoch as f64, of(&n.nearness))).collect()
                };
                let colour = stroke(&id).colour;
                for (what, dashed, points) in
                    [("error", false, points(|n| n.error)), ("bound", true, points(|n| n.bound))]
                {
                    series.push(Series {
                        name: format!("{}, {what}", id.head),
                        stroke: Stroke { colour, dashed },
                        points,
                    });
                }
            }
            plots.push(Plot {
                title: format!("{tensor}, {rounding} rounding"),
                description: "Largest error of the integer model against f64, and the proven bound of that element, by epoch, on a logarithmic scale. \
                              The numbers are in nearness.csv."
                    .into(),
                x: "epochs",
                y: "units of 2^-f",
                log: true,
                lowest: None,
                series,
            });
        }
    }
    let outside: u64 = found.nearness.iter().map(|n| n.nearness.outside).sum();
    let closest = found.nearness.iter().map(|n| n.nearness.closest).fold(0.0, f64::max);
    show(
        page,
        "Error against its bound",
        &format!(
            "One step of the integer model and of f64 from the same weights at the end of each epoch; solid: the largest error, dashed: the bound of that \
             element. Networks of {deepest} layers; over all cells {outside} elements were outside their bound, and the nearest reached {:.1} % of it.",
            100.0 * closest
        ),
        &plots,
    );
}

fn protocols(page: &mut Page, found: &Findings) {
    let steps: Vec<_> = found.protocols.iter().filter(|p| p.protocol == "all").collect();
    let Some(most) = steps.iter().map(|p| p.bytes).reduce(f64::max) else { return };
    page.heading("Rounds and bytes of a training step");
    page.paragraph(
        "All three parties together, from the exact counters. Protocols that run side by side share rounds, so the rounds of protocols do not add up to those of the step.",
    );
    let mut table = Table::new("Whole steps, by cell.", ["cell", "rounds", "megabytes"]);
    for p in &steps {
        table.rows.push(vec![
            Cell::Text(p.cell.clone()),
            Cell::Number(format!("{:.0}", p.rounds)),
            Cell::Bar(format!("{:.3}", p.bytes / 1e6), p.bytes / most),
        ]);
    }
    page.table(&table);
    let mut table = Table::new(
        "By protocol: rounds in which it takes part, and bytes of a step.",
        ["cell and protocol", "rounds", "bytes", "part of the step, %"],
    );
    for step in &steps {
        for p in found.protocols.iter().filter(|p| p.cell == step.cell && p.protocol != "all") {
            table.rows.push(vec![
                Cell::Text(format!("{} {}", p.cell, p.protocol)),
                Cell::Number(format!("{:.0}", p.rounds)),
                Cell::Number(format!("{:.0}", p.bytes)),
                Cell::Bar(format!("{:.1}", 100.0 * p.bytes / step.bytes), p.bytes / step.bytes),
            ]);
        }
    }
    page.push(&format!("<details><summary>By protocol</summary>\n{}\n</details>", table.markup()));
}
