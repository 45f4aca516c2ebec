//! The gradient with respect to the logits: from the head's last intermediates where the trace has them, from the
//! logits alone otherwise.

use super::head_parts::{Row, THRESHOLDS};
use crate::bound::head::HeadRules;
use crate::bound::interval::Interval;
use crate::bound::rules::Errors;
use crate::foreign::allowed::Truncations;
use crate::foreign::exact::Expected;
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;
use crate::trace::header::{Header, Numbers};
use ndarray::Array2;
use reference::f64::{Masks, RealHead};
use reference::spec::{Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};

/// The head's gradient.
pub struct HeadGradient;

impl Operation for HeadGradient {
    fn name(&self) -> &'static str {
        "head gradient"
    }

    fn what(&self) -> &'static str {
        "head_gradient, exactly from quotients or reciprocals if they are there, else from logits and labels \
            against the claims for exp and division"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        if view.layers() == 0 {
            return Vec::new();
        }
        let tensor = "head_gradient".to_owned();
        let mut lacks = view.missing(&["logits", "labels", "head_gradient"]);
        if view.header.head.is_none() {
            lacks.push("header head".into());
        }
        let parts = (view.header.head, view.get("logits"), &view.labels, view.get("head_gradient"));
        let (Some(head), Some(logits), Some(labels), Some(out)) = parts else {
            return vec![Outcome::Missing { tensor, lacks }];
        };
        let row = Row::new(view.header, head);
        let x = logits.reals();
        let judged = match from_parts(view, &row, &x, labels) {
            Some(expected) => {
                Judged::new(view.header, (self.name(), "head_gradient", view.step), out, &expected, Truncations::None)
            }
            None => whole(view, head, &x, labels, out),
        };
        vec![Outcome::compared(judged)]
    }

    fn alternatives(&self, view: &View, _: &str) -> Vec<Alternative> {
        let parts = (view.header.head, view.get("logits"), &view.labels);
        let (Some(head), Some(logits), Some(labels)) = parts else { return Vec::new() };
        let row = Row::new(view.header, head);
        let x = logits.reals();
        let mut list = mistakes(&row, &x, labels);
        for (cause, what, units, other_way) in THRESHOLDS {
            if let Some(expected) = from_parts(view, &row.mistaken(units, other_way), &x, labels) {
                list.push(Alternative { cause, what: what.into(), values: expected.to_reals() });
            }
        }
        if let Some(expected) = from_parts(view, &row, &x, labels) {
            let one_hot = Array2::from_shape_fn(x.dim(), |(i, j)| if labels[i] == j { 1.0 } else { 0.0 });
            let values = expected.to_reals();
            let shifted = |by: f64| values.iter().zip(&one_hot).map(|(v, y)| v + by * y).collect();
            list.push(Alternative {
                cause: "label scale",
                what: "labels are subtracted at half their scale".into(),
                values: shifted(0.5),
            });
            list.push(Alternative {
                cause: "labels missing",
                what: "labels are not subtracted".into(),
                values: shifted(1.0),
            });
            list.push(Alternative { cause: "sign", what: "labels are added".into(), values: shifted(2.0) });
        }
        list
    }
}

/// The gradient from quotients or reciprocals; `None` without them.
fn from_parts(view: &View, row: &Row, x: &Array2<f64>, labels: &[usize]) -> Option<Expected> {
    let y = |i: usize, j: usize| if labels[i] == j { 1.0 } else { 0.0 };
    let (values, half_ulp) = match row.head {
        Head::Softmax | Head::ReluGrad => {
            let q = view.get("head/quotient")?;
            let reals = q.reals();
            (Array2::from_shape_fn(x.dim(), |(i, j)| reals[[i, j]] - y(i, j)), q.half_ulp())
        }
        _ => {
            let r = view.get("head/reciprocal")?;
            let (reals, rows) = (r.reals(), x.nrows());
            let of = |(i, j): (usize, usize)| {
                let above = |j: usize| if row.above(x[[i, j]]) { 1.0 } else { 0.0 };
                let chosen = y(i, j) * above(j);
                let rest = if row.head == Head::ReluEps { 0.0 } else { y(i, j) - chosen };
                above(j) * reals[[i, 0]] - chosen * reals[[rows + i, 0]] - rest
            };
            (Array2::from_shape_fn(x.dim(), of), r.half_ulp())
        }
    };
    let magnitude = values.iter().map(|v| v.abs() + 1.0).collect();
    let values = values.into_raw_vec_and_offset().0;
    Some(Expected::reals(x.dim(), values, magnitude, 3, half_ulp))
}

/// The specification that the header describes, as far as a head needs it.
pub fn spec(header: &Header, head: Head) -> TrainSpec {
    let epsilon = Row::new(header, head).epsilon();
    TrainSpec {
        network: NetworkSpec { widths: header.widths.clone() },
        head,
        epsilon,
        rounding: Rounding::Nearest,
        fixed: header.fixed(),
        sgd: SgdSpec { batch: header.batch, ..SgdSpec::default() },
    }
}

/// The functions' errors that the header claims; `None` if it says too little for this head.
pub fn claimed(header: &Header, head: Head) -> Option<Errors> {
    if header.numbers != Numbers::Fixed {
        return None;
    }
    let division = header.claims.division?;
    let exp = match head {
        Head::Softmax => header.claims.exp?,
        _ => header.claims.exp.unwrap_or_default(),
    };
    let unit = header.unit();
    Some(Errors {
        unit,
        encode: 0.0,
        truncate: division.absolute_units * unit,
        exp_absolute: exp.absolute_units * unit,
        exp_relative: exp.relative,
        exp_argument: exp.relative_per_argument,
        inverse: division.relative,
    })
}

/// The gradient from the logits alone: enclosures of every row at the engine's own logits.
fn whole(view: &View, head: Head, x: &Array2<f64>, labels: &[usize], out: &Number) -> Judged {
    let at = (HeadGradient.name(), "head_gradient", view.step);
    let spec = spec(view.header, head);
    let row = Row::new(view.header, head);
    let real = RealHead { head, epsilon: row.epsilon(), regulariser: row.regulariser() };
    let expected = gradients(&real, x, labels);
    let limits = claimed(view.header, head).map(|errors| {
        let rules = HeadRules::with(&spec, errors);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (row, &label) in x.rows().into_iter().zip(labels) {
            let values: Vec<f64> = row.to_vec();
            let boxes: Vec<_> = values.iter().map(|&v| Interval::point(v)).collect();
            let decisions = rules.decide(&values, &boxes);
            match rules.enclose(&boxes, label, &decisions) {
                Some(found) => {
                    low.extend(found.gradient.iter().map(|g| g.lo));
                    high.extend(found.gradient.iter().map(|g| g.hi));
                }
                None => {
                    low.extend(values.iter().map(|_| f64::NEG_INFINITY));
                    high.extend(values.iter().map(|_| f64::INFINITY));
                }
            }
        }
        (low, high)
    });
    let denominators = x.rows().into_iter().map(|x| denominator(&row, &x.to_vec())).collect();
    Judged { denominators, ..Judged::between(view.header, at, out, &expected, limits) }
}

fn gradients(real: &RealHead, x: &Array2<f64>, labels: &[usize]) -> Vec<f64> {
    let rows = x.rows().into_iter().zip(labels);
    rows.flat_map(|(x, &t)| real.gradient(&x.to_vec(), t).unwrap_or_else(|_| vec![f64::NAN; x.len()])).collect()
}

/// What heads are got wrong by.
fn mistakes(row: &Row, x: &Array2<f64>, labels: &[usize]) -> Vec<Alternative> {
    let real = RealHead { head: row.head, epsilon: row.epsilon(), regulariser: row.regulariser() };
    let mut list = Vec::new();
    let mut add = |cause, what: String, values| list.push(Alternative { cause, what, values });
    let unit = row.header.unit();
    if matches!(row.head, Head::ReluProb | Head::ReluProbCut) {
        for (cause, what, epsilon) in [
            (">= for >", "a logit equal to epsilon is decided the other way", real.epsilon),
            ("threshold off by one", "epsilon is one unit lower", real.epsilon - unit),
            ("threshold off by one", "epsilon is one unit higher", real.epsilon + unit),
            ("threshold scale", "epsilon is encoded with 8 bits fewer", real.epsilon / 256.0),
        ] {
            let strict = (row.head == Head::ReluProbCut) != (cause == ">= for >");
            let above = |x: f64| if strict { x > epsilon } else { x >= epsilon };
            add(cause, what.into(), masked(&real, x, labels, above));
        }
    }
    for head in Head::ALL.into_iter().filter(|&h| h != row.head) {
        let other = RealHead { head, ..real };
        add("another head", format!("the gradient is that of {head}"), gradients(&other, x, labels));
        add("S of another head", format!("S is that of {head}"), with_sum(row, head, x, labels));
    }
    if row.head == Head::ReluGrad {
        let classes = x.ncols() as f64;
        let mut values = gradients(&real, x, labels);
        for (i, row) in x.rows().into_iter().enumerate().filter(|(_, r)| r.iter().all(|&x| x <= 0.0)) {
            (0..row.len()).for_each(|j| values[i * row.len() + j] += 1.0 / classes);
        }
        add("nothing positive", "a row without a positive logit has probability 1 / classes".into(), values);
    }
    for (what, of) in [("the first row's", 0), ("the next row's", 1)] {
        add("denominator of another row", format!("every row has {what} denominator"), other_row(row, x, labels, of));
    }
    list
}

/// The gradient with other comparisons with epsilon.
fn masked(real: &RealHead, x: &Array2<f64>, labels: &[usize], above: impl Fn(f64) -> bool) -> Vec<f64> {
    let rows = x.rows().into_iter().zip(labels);
    rows.flat_map(|(x, &t)| {
        let x = x.to_vec();
        let masks =
            Masks { positive: x.iter().map(|&x| x > 0.0).collect(), above: x.iter().map(|&x| above(x)).collect() };
        real.gradient_with_masks(&x, t, &masks).unwrap_or_else(|_| vec![f64::NAN; x.len()])
    })
    .collect()
}

/// The denominator of a row under a head.
fn denominator(row: &Row, x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match row.head {
        Head::Softmax => x.iter().map(|x| (x - max).exp()).sum(),
        Head::ReluEps => x.iter().map(|&x| row.positive(x) + row.regulariser()).sum(),
        _ => x.iter().map(|&x| row.positive(x)).sum(),
    }
}

/// The gradient of this head with given denominators.
fn with_denominators(row: &Row, x: &Array2<f64>, labels: &[usize], sums: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len());
    for (i, x) in x.rows().into_iter().enumerate() {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let s = if sums[i] > 0.0 { sums[i] } else { row.regulariser() };
        for (j, &v) in x.iter().enumerate() {
            let is_true = labels[i] == j;
            let y = if is_true { 1.0 } else { 0.0 };
            out.push(match row.head {
                Head::Softmax => (v - max).exp() / s - y,
                Head::ReluGrad => row.positive(v) / s - y,
                _ if !row.above(v) => {
                    if row.head == Head::ReluEps {
                        0.0
                    } else {
                        -y
                    }
                }
                _ => 1.0 / s - y / row.true_operand(v),
            });
        }
    }
    out
}

fn with_sum(row: &Row, head: Head, x: &Array2<f64>, labels: &[usize]) -> Vec<f64> {
    let other = Row::new(row.header, head);
    let sums: Vec<f64> = x.rows().into_iter().map(|r| denominator(&other, &r.to_vec())).collect();
    with_denominators(row, x, labels, &sums)
}

/// Row 0's denominator for all, or that of the row after.
fn other_row(row: &Row, x: &Array2<f64>, labels: &[usize], shift: usize) -> Vec<f64> {
    let own: Vec<f64> = x.rows().into_iter().map(|r| denominator(row, &r.to_vec())).collect();
    let n = own.len().max(1);
    let sums: Vec<f64> = (0..own.len()).map(|i| if shift == 0 { own[0] } else { own[(i + shift) % n] }).collect();
    with_denominators(row, x, labels, &sums)
}
