//! The course of training: accuracy, drift between the sides, gradients and logits, by epoch.

use super::super::cell::{Id, Side};
use super::super::result::{Drift, Findings, Point};
use super::super::wording::layers_of;
use crate::report::html::Page;
use crate::report::html::plot::{Plot, Series, Stroke, legend};
use reference::spec::{FixedSpec, Head, Rounding};

/// The colour of a head, dashed under nearest rounding.
pub(super) fn stroke(id: &Id) -> Stroke {
    let colour = Head::ALL.iter().position(|h| *h == id.head).unwrap_or(0) as u8 + 1;
    Stroke { colour, dashed: id.rounding == Some(Rounding::Nearest) }
}

/// What is plotted: cells with their epochs.
struct Curves<'a> {
    cells: Vec<(Id, Vec<&'a Point>)>,
}

impl<'a> Curves<'a> {
    /// First seed, no extra velocity bits, the attempt that counts; `all` attempts on request.
    fn new(found: &'a Findings) -> Self {
        let ids = found.cells.iter().filter_map(|c| c.parse::<Id>().ok()).filter(Id::is_plain);
        let first = ids.clone().map(|id| id.seed).min();
        let points = |id: &Id| {
            let name = id.to_string();
            found.curves.iter().filter(|p| p.cell == name).collect::<Vec<_>>()
        };
        Curves { cells: ids.filter(|id| Some(id.seed) == first).map(|id| (id.clone(), points(&id))).collect() }
    }

    fn has(&self, side: Side) -> bool {
        self.cells.iter().any(|(id, _)| id.side == side)
    }

    /// The side whose steps show gradients and logits.
    fn watched(&self) -> Side {
        if self.has(Side::Real) { Side::Real } else { Side::Integer }
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
            Plot {
                title: format!("{}: {}", layers_of(layers), template.title),
                series: series.collect(),
                ..template.clone()
            }
        };
        depths.into_iter().map(plot).collect()
    }
}

/// Plots under a heading; nothing where none has a point.
pub(super) fn show(page: &mut Page, heading: &str, text: &str, plots: &[Plot]) {
    let figures: Vec<_> = plots.iter().map(Plot::markup).filter(|m| !m.is_empty()).collect();
    if figures.is_empty() {
        return;
    }
    page.heading(heading);
    page.paragraph(text);
    page.push(&legend(plots));
    page.push(&format!("<div class=\"plots\">\n{}\n</div>", figures.join("\n")));
}

/// All of them.
pub(super) fn curves(page: &mut Page, found: &Findings) {
    let curves = Curves::new(found);
    accuracy(page, &curves);
    drift(page, &curves, found);
    gradients(page, &curves, found.setup.epsilon);
    logits(page, &curves);
}

fn accuracy(page: &mut Page, curves: &Curves) {
    let side = Side::ALL.into_iter().find(|s| curves.has(*s)).unwrap_or(Side::Real);
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

fn drift(page: &mut Page, curves: &Curves, found: &Findings) {
    let of = |side: Side| {
        let value = |p: &Point| {
            let same = |d: &&Drift| d.cell == p.cell && d.epoch == p.epoch && p.attempt == 1;
            found.drift.iter().find(same).map(|d| (d.epoch as f64, d.weights))
        };
        let template = logarithmic(
            format!("{side} against real numbers"),
            "Root mean square of the differences of all weights at the end of each epoch, on a logarithmic scale.",
            "RMS weight difference",
        );
        curves.plots(side, &template, value, false)
    };
    show(
        page,
        "Drift between the sides",
        "From the same start on the same batches, first attempts; estimated from random projections of the weights \
         with a relative standard error of 6 %.",
        &[of(Side::Secure), of(Side::Integer)].concat(),
    );
}

const LARGEST: &str = "Largest magnitude seen in any step of each epoch, on a logarithmic scale, one line a head.";

fn gradients(page: &mut Page, curves: &Curves, epsilon: f64) {
    let watched = curves.watched();
    let gradient = logarithmic(format!("largest gradient of a logit ({watched})"), LARGEST, "largest |gradient|");
    show(
        page,
        "Gradient magnitude against 1/eps",
        "The dotted line is 1/eps, the bound of the heads with a threshold. Softmax and relu-grad stay within 1; \
         relu-eps has no threshold and may go beyond.",
        &limited(
            curves.plots(watched, &gradient, |p| Some((p.epoch as f64, finite(p.largest_gradient)?)), true),
            1.0 / epsilon,
            &format!("1/eps = {}", 1.0 / epsilon),
        ),
    );
}

fn logits(page: &mut Page, curves: &Curves) {
    let watched = curves.watched();
    let range = (FixedSpec::default().limit() / FixedSpec::default().one()) as f64;
    let logit = logarithmic(format!("largest logit ({watched})"), LARGEST, "largest |logit|");
    show(
        page,
        "Growth of the logits",
        "The dotted line is the end of the fixed-point range. Real numbers run on where a fixed-point side cannot.",
        &limited(
            curves.plots(watched, &logit, |p| Some((p.epoch as f64, finite(p.largest_logit)?)), true),
            range,
            &format!("range, {range}"),
        ),
    );
}

/// A plot against epochs on a logarithmic scale, without lines.
pub(super) fn logarithmic(title: String, description: &str, y: &'static str) -> Plot {
    Plot { title, description: description.into(), x: "epochs", y, log: true, lowest: None, series: Vec::new() }
}

/// A value that was finite.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| *v < f64::MAX)
}

/// The plots with a dashed line at `limit` from their first epoch to their last.
fn limited(mut plots: Vec<Plot>, limit: f64, name: &str) -> Vec<Plot> {
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
}
