//! The report on the paper's evaluation.

use super::cell::{Id, Nearness, Side};
use super::claims::Judgement;
use super::compared::{Compared, Mean};
use super::result::{Drift, Findings, Point};
use super::table1::{CHECKPOINTS, Measured, Rate};
use crate::report::html::plot::{Plot, Series, Stroke, legend};
use crate::report::html::{Cell, Page, Table, escape};
use reference::spec::{FixedSpec, Head, Rounding};

/// The whole page.
pub fn page(found: &Findings) -> String {
    let mut page = Page::new("The paper, reproduced: softmax and its replacements in secure training");
    page.paragraph(
        "Keller and Sun, Effectiveness of MPC-friendly Softmax Replacement (arXiv 2011.11202), section 4: networks of \
         one to three dense \
         layers are trained by three parties on secret shares, by an integer model of the same fixed-point arithmetic, \
         and in real numbers (f64).",
    );
    page.paragraph(&setup(found));
    claims(&mut page, found);
    beside(&mut page, found);
    seconds(&mut page, found);
    sides(&mut page, found);
    rates(&mut page, found);
    table2(&mut page, found);
    curves(&mut page, found);
    nearness(&mut page, found);
    protocols(&mut page, found);
    page.finish()
}

fn setup(found: &Findings) -> String {
    let s = &found.setup;
    let machines: Vec<_> = found.machines.iter().map(ToString::to_string).collect();
    format!(
        "{} finished cells. {} training and {} test rows, batch {}, hidden layers of {} ReLU units, learning rate {}, \
         momentum {}, eps {}. \
         After an epoch with a batch loss above 100 or accuracy below 11 %, training starts again from the same \
         weights at half the rate, at most \
         {} times. The three parties share one machine and exchange messages in memory: {}. Parties draw their \
         randomness from the operating system. \
         Report of {}.",
        found.cells.len(),
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

fn claims(page: &mut Page, found: &Findings) {
    page.heading("Claims");
    page.paragraph("The paper's claims in our words, judged from the finished cells. ± is one standard error.");
    for c in &found.claims {
        let class = match c.verdict {
            Judgement::Holds => "pass",
            Judgement::DoesNotHold => "fail",
            Judgement::NotTested => "open",
        };
        let lines: String = c.numbers.iter().map(|n| format!("<li>{}</li>", escape(n))).collect();
        page.push(&format!(
            "<h3><b class=\"{class}\">{}</b> {}</h3>\n<p>{} ({}.) Test: {}</p>\n<details><summary>numbers \
             ({})</summary><ul>{lines}</ul></details>",
            c.verdict,
            escape(c.name),
            escape(&c.statement),
            escape(c.place),
            escape(&c.test),
            c.numbers.len()
        ));
    }
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

/// Accuracy beside the paper's: four rows a configuration.
fn beside(page: &mut Page, found: &Findings) {
    page.heading("Table 1: accuracy beside the paper's");
    page.paragraph(
        "Test accuracy in %, the mean of the seeds; ± is the standard deviation of a run. Ours is the secure side, \
         seed by seed, or the integer model where no \
         secure cell is finished. A difference beyond twice its standard error, which comes from our seeds and the \
         paper's single run, is marked. A dash means \
         that the attempt did not get so far; the paper has no figure where it prints its sign for divergence.",
    );
    let after = CHECKPOINTS.map(|e| format!("after {e}"));
    let mut table = Table::new(
        "Table 1, accuracy. Test accuracy in % after so many epochs, and the difference from the paper in points.",
        ["configuration", "", &after[0], &after[1], &after[2], &after[3]],
    );
    for c in found.table1.iter().filter(|c| c.seeds > 0) {
        let row = |what: String, cells: [Cell; 4]| {
            let mut row = vec![Cell::Text(c.name()), Cell::Text(what)];
            row.extend(cells);
            row
        };
        let ours = format!("ours, {} of {} seeds secure", c.secure_seeds, c.seeds);
        table.rows.push(row(ours, c.ours.all().map(with_mean)));
        table.rows.push(row("real numbers".into(), c.real.all().map(with_mean)));
        if c.paper_diverges {
            table.rows.push(row("paper: diverges".into(), [(); 4].map(|()| Cell::Number("–".into()))));
            continue;
        }
        table.rows.push(row("paper".into(), c.paper.all().map(|v| Cell::Number(plain(v, 1)))));
        table.rows.push(row("difference".into(), differences(c)));
    }
    page.table(&table);
    let told = found.table1.iter().filter_map(|c| Some((c.name(), c.explanation.as_ref()?)));
    let told: String = told.map(|(name, why)| format!("<li><b>{}.</b> {}</li>", escape(&name), escape(why))).collect();
    if !told.is_empty() {
        page.push(&format!("<p>Differences beyond that:</p>\n<ul>{told}</ul>"));
    }
}

fn differences(c: &Compared) -> [Cell; 4] {
    let (values, beyond) = (c.difference.all(), c.beyond.all());
    [0, 1, 2, 3].map(|i| match (values[i], beyond[i]) {
        (None, _) => Cell::Number("–".into()),
        (Some(d), Some(true)) => Cell::Verdict(format!("{d:+.2} beyond"), "open"),
        (Some(d), _) => Cell::Number(format!("{d:+.2}")),
    })
}

fn seconds(page: &mut Page, found: &Findings) {
    let timed: Vec<_> = found.table1.iter().filter(|c| c.time.seconds.is_some()).collect();
    if timed.is_empty() {
        return;
    }
    page.heading("Table 1: seconds of an epoch");
    page.paragraph(
        "Wall-clock seconds of training alone and processor seconds of all threads, secure side. By itself: epochs of \
         the configuration and of training in real numbers in turn, apart from the cells that accuracies are of. In \
         training: of those cells. The paper measured on three servers with 36 threads each: its ratios compare with \
         ours, its seconds do not. Claims about time are judged from quiet machines only.",
    );
    let mut table = Table::new(
        "Table 1, seconds. Secure against real numbers, timed in turn, and against the paper.",
        [
            "configuration",
            "secure",
            "processor",
            "secure / real",
            "paper",
            "paper / secure",
            "timed",
            "quiet machine",
            "machine",
        ],
    );
    for c in timed {
        table.rows.push(vec![
            Cell::Text(c.name()),
            number(c.time.seconds),
            Cell::Number(plain(c.time.cpu_seconds, 2)),
            Cell::Number(plain(c.time.ratio, 1)),
            Cell::Number(plain(c.time.paper_seconds, 1)),
            Cell::Number(plain(c.time.paper_ratio, 1)),
            Cell::Text(c.time.timed_on.as_ref().map_or("in training".into(), |day| format!("by itself, {day}"))),
            Cell::Text(c.time.untimed.clone().unwrap_or_else(|| "yes".into())),
            Cell::Text(c.time.machine.clone().unwrap_or_default()),
        ]);
    }
    page.table(&table);
}

fn sides(page: &mut Page, found: &Findings) {
    page.heading("Table 1 by side");
    for side in Side::ALL {
        let rows: Vec<_> = found.sides.iter().filter(|r| r.side == side).collect();
        if rows.is_empty() {
            continue;
        }
        let what = match side {
            Side::Secure => "secure: three parties",
            Side::Integer => "integer model of the same arithmetic (cells run side by side: seconds are rough)",
            Side::Real => "real numbers (cells run side by side: seconds are rough)",
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
fn rates(page: &mut Page, found: &Findings) {
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
         integer model left its range, and the model stops there; \"stalls\": accuracy at chance. The secure side \
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
    table.rows.extend(odd.into_iter().map(|r| attempt(r)));
    page.table(&table);
}

/// The row of one attempt.
fn attempt(r: &Rate) -> Vec<Cell> {
    let magnitude = |v: Option<f64>| {
        Cell::Number(match v {
            None => "–".into(),
            Some(f64::MAX) => "not finite".into(),
            Some(v) if v >= 1e5 => format!("{v:.1e}"),
            Some(v) => format!("{v:.2}"),
        })
    };
    let dead: Vec<_> = r.dead_units.iter().map(usize::to_string).collect();
    vec![
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
    ]
}

fn table2(page: &mut Page, found: &Findings) {
    page.heading("Table 2: what each head needs and has");
    page.paragraph(
        "Use of comparison, division and exponential is read off the cost counters and truncation names of a real step \
         by three parties. \
         Differentiable: the slopes of the probabilities agree on both sides of 0 and eps. Known loss: the gradient's \
         Jacobian is symmetric where no logit lies between 0 \
         and eps, and differences of the stated loss are the gradient. In brackets, the paper's entry; a dash stands \
         where it has no such head.",
    );
    let mut table = Table::new(
        "Table 2. Ours, and the paper's in brackets.",
        ["head", "comparison", "division", "exponential", "differentiable", "known loss"],
    );
    let word = |b| if b { "yes" } else { "no" };
    let mut numbers = Table::new(
        "The numbers behind table 2.",
        ["head", "rounds", "bytes a row", "slope jump", "asymmetry", "asymmetry below eps", "loss error"],
    );
    for r in &found.table2 {
        let entry = |ours: bool, paper: fn(&super::table2::Printed) -> bool| {
            Cell::Text(format!("{} ({})", word(ours), r.paper.as_ref().map_or("–", |p| word(paper(p)))))
        };
        let small = |v: f64| Cell::Number(format!("{v:.1e}"));
        table.rows.push(vec![
            Cell::Text(r.head.to_string()),
            entry(r.comparison, |p| p.comparison),
            entry(r.division, |p| p.division),
            entry(r.exponential, |p| p.exponential),
            entry(r.differentiable, |p| p.differentiable),
            entry(r.known_loss, |p| p.known_loss),
        ]);
        numbers.rows.push(vec![
            Cell::Text(r.head.to_string()),
            Cell::Number(r.rounds.to_string()),
            Cell::Number(r.bytes.to_string()),
            small(r.slope_jump),
            small(r.asymmetry),
            small(r.asymmetry_below_eps),
            r.loss_error.map_or(Cell::Number("no loss".into()), small),
        ]);
    }
    page.table(&table);
    page.table(&numbers);
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
        let ids = found
            .cells
            .iter()
            .filter_map(|c| c.parse::<Id>().ok())
            .filter(|id| id.velocity_bits == 0 && !id.code && id.rate.is_none());
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
    accuracies(page, &curves);
    drifts(page, found, &curves);
    growth(page, found, &curves);
}

/// Accuracy against epochs and against seconds.
fn accuracies(page: &mut Page, curves: &Curves) {
    let side = Side::ALL.into_iter().find(|s| curves.cells.iter().any(|(id, _)| id.side == *s)).unwrap_or(Side::Real);
    let accuracy = Plot {
        title: format!("test accuracy against epochs ({side})"),
        description:
            "Test accuracy in percent at the end of each epoch, one line a head and rounding. The numbers are \
            in curves.csv."
                .into(),
        x: "epochs",
        y: "test accuracy, %",
        log: false,
        lowest: None,
        series: Vec::new(),
    };
    show(
        page,
        "Accuracy against epochs",
        "The attempt that counts of each cell; dashed: nearest rounding. The first seed.",
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
}

/// How far the weights of the fixed-point sides are from the real ones.
fn drifts(page: &mut Page, found: &Findings, curves: &Curves) {
    let drifts = |side: Side| {
        let value = |p: &Point| {
            let same = |d: &&Drift| d.cell == p.cell && d.epoch == p.epoch && p.attempt == 1;
            found.drift.iter().find(same).map(|d| (d.epoch as f64, d.weights))
        };
        let template = Plot {
            title: format!("{side} against real numbers"),
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
        "From the same start on the same batches, first attempts; estimated from random projections of the weights \
         with a relative standard error of 6 %.",
        &[drifts(Side::Secure), drifts(Side::Integer)].concat(),
    );
}

/// How large gradients and logits become.
fn growth(page: &mut Page, found: &Findings, curves: &Curves) {
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
    let watched = if curves.cells.iter().any(|(id, _)| id.side == Side::Real) { Side::Real } else { Side::Integer };
    let epsilon = found.setup.epsilon;
    let gradient = logarithmic(&format!("largest gradient of a logit ({watched})"), "largest |gradient|");
    show(
        page,
        "Gradient magnitude against 1/eps",
        "The dotted line is 1/eps, the bound of the heads with a threshold. Softmax and relu-grad stay within 1; \
         relu-eps has no threshold and may go beyond.",
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
        "The dotted line is the end of the fixed-point range. Real numbers run on where a fixed-point side cannot.",
        &limits(
            curves.plots(watched, &logit, |p| Some((p.epoch as f64, finite(p.largest_logit)?)), true),
            range,
            &format!("range, {range}"),
        ),
    );
}

/// The error of one tensor of a cell, and its bound, against epochs.
fn error_and_bound(found: &Findings, id: &Id, tensor: &str) -> [Series; 2] {
    let (cell, colour) = (id.to_string(), stroke(id).colour);
    let series = |what: &str, dashed: bool, of: fn(&Nearness) -> f64| {
        let mine = found.nearness.iter().filter(|n| n.cell == cell && n.tensor == tensor);
        let points = mine.map(|n| (n.epoch as f64, of(&n.nearness))).collect();
        Series { name: format!("{}, {what}", id.head), stroke: Stroke { colour, dashed }, points }
    };
    [series("error", false, |n| n.error), series("bound", true, |n| n.bound)]
}

/// Error against its bound, the deepest network of each rounding.
fn nearness(page: &mut Page, found: &Findings) {
    let ids = || {
        found
            .cells
            .iter()
            .filter_map(|c| c.parse::<Id>().ok())
            .filter(|id| id.velocity_bits == 0 && !id.code && id.rate.is_none())
    };
    let first = ids().map(|id| id.seed).min();
    let told = |id: &Id| found.nearness.iter().any(|n| n.cell == id.to_string());
    let Some(deepest) = ids().filter(|id| told(id)).map(|id| id.layers).max() else { return };
    let mut plots = Vec::new();
    for rounding in Rounding::ALL {
        for tensor in ["logits", "head_gradient", "layer1/dW"] {
            let shown = ids().filter(|id| (id.layers, id.rounding, Some(id.seed)) == (deepest, Some(rounding), first));
            let series = shown.flat_map(|id| error_and_bound(found, &id, tensor)).collect();
            plots.push(Plot {
                title: format!("{tensor}, {rounding} rounding"),
                description: "Largest error of the integer model against real numbers, and the proven bound of that \
                    element, by epoch, on a logarithmic scale. \
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
            "One step of the integer model and of real numbers from the same weights at the end of each epoch; solid: \
             the largest error, dashed: the bound of that \
             element. Networks of {deepest} layers; over all cells {outside} elements were outside their bound, and \
             the nearest reached {:.1} % of it.",
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
        "All three parties together, from the exact counters. Protocols that run side by side share rounds, so the \
         rounds of protocols do not add up to those of the step.",
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
