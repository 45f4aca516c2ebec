//! The walk through a trace: f64 beside the engine, with the radius of every tensor.

use super::update::Update;
use super::{Found, Row, Span, errors};
use crate::bound::network::{self, Bounded, Bounds};
use crate::compare::{self, Verdict};
use crate::foreign::number::Number;
use crate::foreign::operation::head::spec;
use crate::foreign::view::View;
use crate::side::real::Real;
use crate::side::{Batch, Side, Tensors};
use crate::trace::header::Header;
use ndarray::{Array1, Array2, Axis};
use reference::fixed::{LayerValues, Tape};
use reference::spec::{ProbePoint, SgdSpec, TrainSpec};
use std::collections::BTreeMap;

/// A radius of a weight, real, beyond which the bound of a run says nothing any more.
const WIDEST: f64 = 1.0;

/// The walk through a trace.
pub struct Walk<'h> {
    header: &'h Header,
    rows: BTreeMap<(Span, ProbePoint), Row>,
    run: Option<Run>,
    open: Vec<String>,
    /// Steps of the longest run without a gap.
    longest: usize,
}

/// Where f64 stands in a run that it takes by itself.
struct Run {
    next: usize,
    steps: usize,
    start: Start,
}

/// Parameters of the f64 side, and how far the engine's may be from them; `None` if that is not known.
struct Start {
    values: Vec<LayerValues>,
    radii: Option<Vec<LayerValues>>,
}

/// One step of f64.
struct Taken {
    real: Tensors<f64>,
    bounds: Option<Bounds>,
    after: Vec<LayerValues>,
}

impl<'h> Walk<'h> {
    /// Before the first step.
    pub fn new(header: &'h Header) -> Self {
        let open = errors(header).err().map(|why| format!("end to end without a bound: {why}"));
        Walk { header, rows: BTreeMap::new(), run: None, open: open.into_iter().collect(), longest: 0 }
    }

    /// Compares one step, if the trace has what it started from.
    pub fn step(&mut self, view: &View) {
        let Some((own, batch)) = self.inputs(view) else { return };
        if let Some(taken) = self.take(&own, &batch, view) {
            self.compare(Span::Step, view, &taken);
        }
        let before = self.run.take().filter(|run| run.next == view.step);
        let (steps, start) = before.map_or((0, own), |run| (run.steps, run.start));
        let Some(taken) = self.take(&start, &batch, view) else { return };
        self.compare(Span::Run, view, &taken);
        self.longest = self.longest.max(steps + 1);
        let radii = taken.bounds.as_ref().and_then(|bounds| self.radii(view.step, bounds, start.values.len()));
        let start = Start { values: taken.after, radii };
        self.run = Some(Run { next: view.step + 1, steps: steps + 1, start });
    }

    /// The rows, in order of execution. A run of one step is that step.
    pub fn finish(self) -> Found {
        let several = self.longest > 1;
        let rows: Vec<_> = self.rows.into_values().filter(|r| r.span == Span::Step || several).collect();
        // Where nothing could be compared, nothing is open either.
        let open = if rows.is_empty() { Vec::new() } else { self.open };
        Found { rows, open }
    }

    /// What is trained, as the f64 side takes it.
    fn spec(&self) -> Option<TrainSpec> {
        let spec = spec(self.header, self.header.head?);
        let learning_rate = self.header.learning_rate.unwrap_or(0.0);
        Some(TrainSpec { sgd: SgdSpec { learning_rate, momentum: self.header.momentum, ..spec.sgd }, ..spec })
    }

    /// Parameters and batch of a step as reals; velocities and biases that are not there are 0.
    fn inputs(&self, view: &View) -> Option<(Start, Batch)> {
        let turn = Update::of(self.header, true).map_or(1.0, |u| u.turn);
        let (mut values, mut radii) = (Vec::new(), Vec::new());
        for l in 1..=view.layers() {
            let get = |what: &str| view.get(&format!("start/layer{l}/{what}"));
            let dim = get("weights")?.dim();
            let matrix = |what: &str, dim: (usize, usize), turn: f64| {
                let zero = || (Array2::zeros(dim), Array2::zeros(dim));
                get(what).map_or_else(zero, |n| {
                    let v = n.reals() * turn;
                    let stored = v.mapv(|v| v.abs() * n.half_ulp());
                    (v, stored)
                })
            };
            let row = |what: &str, turn: f64| {
                let (v, stored) = matrix(what, (1, dim.1), turn);
                (v.row(0).to_owned(), stored.row(0).to_owned())
            };
            let (weights, bias) = (matrix("weights", dim, 1.0), row("bias", 1.0));
            let (weight_velocity, bias_velocity) = (matrix("weight_velocity", dim, turn), row("bias_velocity", turn));
            let layer = |weights, bias, weight_velocity, bias_velocity| LayerValues {
                weights,
                bias,
                weight_velocity,
                bias_velocity,
            };
            values.push(layer(weights.0, bias.0, weight_velocity.0, bias_velocity.0));
            radii.push(layer(weights.1, bias.1, weight_velocity.1, bias_velocity.1));
        }
        let reals = view.get("input")?.reals();
        let batch = Batch { units: Array2::zeros((0, 0)), reals, labels: view.labels.clone()? };
        let finite = values.iter().all(|l| l.weights.iter().chain(&l.bias).all(|v| v.is_finite()));
        finite.then_some((Start { values, radii: Some(radii) }, batch))
    }

    /// One step of f64, with bounds as far as the header allows.
    fn take(&self, start: &Start, batch: &Batch, view: &View) -> Option<Taken> {
        let spec = self.spec()?;
        let mut side = Real::with(spec.clone(), start.values.clone()).ok()?;
        let real = side.step(batch, Tape::default()).ok()?.tensors;
        let bounds = start.radii.as_ref().and_then(|radii| self.bounds(&spec, start, radii, batch, &real, view));
        Some(Taken { real, bounds, after: side.layers() })
    }

    fn bounds(
        &self,
        spec: &TrainSpec,
        start: &Start,
        radii: &[LayerValues],
        batch: &Batch,
        real: &Tensors<f64>,
        view: &View,
    ) -> Option<Bounds> {
        let errors = errors(self.header).ok()?;
        let per_term = self.header.truncation == crate::trace::header::Truncation::Term;
        let from = network::From { values: &start.values, radii, per_term };
        let mut bounds = network::gradients(spec, &errors, from, &batch.reals, &batch.labels, real).ok()?;
        let terms = if per_term { batch.labels.len() as f64 } else { 1.0 };
        for (point, bounded) in &mut bounds {
            if let ProbePoint::WeightGradient(_) = point
                && !self.at_product_scale(point, view)
            {
                bounded.radius.mapv_inplace(|r| r + terms * errors.truncate);
            }
        }
        self.update(&mut bounds, start, radii, real, view);
        Some(bounds)
    }

    /// Whether a weight gradient is kept at the scale of products, where nothing is truncated.
    fn at_product_scale(&self, point: &ProbePoint, view: &View) -> bool {
        let scale = self.header.scale(&point.to_string());
        let whole = Some(scale) == self.header.fraction_bits.map(|f| 2 * f);
        // A gradient that is not recorded has the scale that the header states.
        whole && matches!(view.get(&point.to_string()), None | Some(Number::Units { .. }))
    }

    /// Adds the bounds of velocities and weights, where the header says how an update is made.
    fn update(&self, bounds: &mut Bounds, start: &Start, radii: &[LayerValues], real: &Tensors<f64>, view: &View) {
        let kept = self.header.momentum != 0.0 || view.get("layer1/weight_velocity").is_some();
        let Some(rules) = Update::of(self.header, kept) else { return };
        let row = |v: &Array1<f64>| v.clone().insert_axis(Axis(0));
        for (l, (layer, off)) in (1..).zip(start.values.iter().zip(radii)) {
            let weights = (
                [ProbePoint::WeightGradient(l), ProbePoint::WeightVelocity(l), ProbePoint::Weights(l)],
                [layer.weight_velocity.clone(), off.weight_velocity.clone()],
                [layer.weights.clone(), off.weights.clone()],
            );
            let bias = (
                [ProbePoint::BiasGradient(l), ProbePoint::BiasVelocity(l), ProbePoint::Bias(l)],
                [row(&layer.bias_velocity), row(&off.bias_velocity)],
                [row(&layer.bias), row(&off.bias)],
            );
            for ([gradient, velocity, value], [v, v_off], [w, w_off]) in [weights, bias] {
                let dv = rules.velocity((&v, &v_off), (&real[&gradient], &bounds[&gradient].radius));
                let dw = rules.weight((&w, &w_off), (&real[&velocity], &dv));
                bounds.insert(velocity, Bounded { radius: dv, ambiguous: Vec::new() });
                bounds.insert(value, Bounded { radius: dw, ambiguous: Vec::new() });
            }
        }
    }

    /// The radii with which the next step of a run starts; `None` once they are too wide to say anything.
    fn radii(&mut self, step: usize, bounds: &Bounds, layers: usize) -> Option<Vec<LayerValues>> {
        let row = |point| Some(bounds.get(&point)?.radius.row(0).to_owned());
        let layer = |l| {
            Some(LayerValues {
                weights: bounds.get(&ProbePoint::Weights(l))?.radius.clone(),
                bias: row(ProbePoint::Bias(l))?,
                weight_velocity: bounds.get(&ProbePoint::WeightVelocity(l))?.radius.clone(),
                bias_velocity: row(ProbePoint::BiasVelocity(l))?,
            })
        };
        let radii = (1..=layers).map(layer).collect::<Option<Vec<_>>>()?;
        if radii.iter().flat_map(|l| l.weights.iter().chain(&l.bias)).all(|r| *r <= WIDEST) {
            return Some(radii);
        }
        self.open.push(format!("the run has no bound after step {step}: it would be wider than {WIDEST} for a weight"));
        None
    }

    fn compare(&mut self, span: Span, view: &View, taken: &Taken) {
        let turn = Update::of(self.header, true).map_or(1.0, |u| u.turn);
        for (point, value) in &taken.real {
            let Some(out) = view.get(&point.to_string()) else { continue };
            let velocity = matches!(point, ProbePoint::WeightVelocity(_) | ProbePoint::BiasVelocity(_));
            let after = velocity || matches!(point, ProbePoint::Weights(_) | ProbePoint::Bias(_));
            if after && self.header.learning_rate.is_none() {
                continue;
            }
            let turn = if velocity { turn } else { 1.0 };
            let mut bounded = taken.bounds.as_ref().and_then(|b| b.get(point)).cloned();
            let reals = out.reals();
            if let Some(b) = bounded.as_mut().filter(|b| b.radius.dim() == reals.dim()) {
                let stored = reals.mapv(|v| v.abs() * out.half_ulp());
                b.radius = &b.radius / turn.abs() + stored;
            }
            self.row(span, point, &(value / turn), &reals, bounded.as_ref());
        }
    }

    fn row(
        &mut self,
        span: Span,
        point: &ProbePoint,
        value: &Array2<f64>,
        out: &Array2<f64>,
        bounded: Option<&Bounded>,
    ) {
        if value.dim() != out.dim() {
            return;
        }
        let unit = self.header.unit();
        let row = self.rows.entry((span, *point)).or_insert_with(|| Row {
            span,
            tensor: point.to_string(),
            elements: 0,
            bounded: 0,
            outside: 0,
            ambiguous: 0,
            max_error_units: 0.0,
            bound_units: None,
        });
        row.elements += value.len() as u64;
        let verdicts = bounded.map(|b| compare::verdicts_of_reals(value, out, b));
        for (i, (v, o)) in value.iter().zip(out).enumerate() {
            let error = (v - o).abs() / unit;
            match verdicts.as_ref().map(|list| list[i]) {
                Some(Verdict::Ambiguous { .. }) => {
                    row.ambiguous += 1;
                    continue;
                }
                Some(Verdict::Outside { .. }) => row.outside += 1,
                _ => {}
            }
            row.max_error_units = row.max_error_units.max(if error.is_nan() { f64::INFINITY } else { error });
        }
        if let Some(b) = bounded {
            row.bounded += value.len() as u64;
            let largest = b.radius.iter().fold(0.0f64, |m, r| m.max(*r)) / unit;
            row.bound_units = Some(row.bound_units.unwrap_or(0.0).max(largest));
        }
    }
}
