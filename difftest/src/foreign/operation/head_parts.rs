//! The intermediates of the head, where a trace has them: maximum, exponentials, sums, reciprocals, quotients.

use crate::foreign::allowed::Truncations;
use crate::foreign::exact::Expected;
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;
use crate::trace::header::{Claim, Header, Numbers};
use ndarray::{Array2, Axis};
use reference::spec::Head;

/// The head's intermediates.
pub struct HeadParts;

/// The operands from which a row of a head is computed.
pub struct Row<'h> {
    /// The trace's header.
    pub header: &'h Header,
    /// The head.
    pub head: Head,
    /// A mistaken threshold: how far from eps, real, and whether a logit that equals it is decided the other way.
    pub mistake: (f64, bool),
}

/// The mistakes that are made with thresholds: the cause, the mistake in words, units from eps, and whether equality is
/// decided the other way.
pub const THRESHOLDS: [(&str, &str, f64, bool); 3] = [
    (">= for >", "a logit equal to the threshold is decided the other way", 0.0, true),
    ("threshold off by one", "the threshold is one unit lower", -1.0, false),
    ("threshold off by one", "the threshold is one unit higher", 1.0, false),
];

impl<'h> Row<'h> {
    /// The head as it should be.
    pub fn new(header: &'h Header, head: Head) -> Self {
        Row { header, head, mistake: (0.0, false) }
    }

    /// The head with a mistaken threshold.
    pub fn mistaken(&self, units: f64, other_way: bool) -> Self {
        Row { mistake: (units * self.header.unit(), other_way), ..Self::new(self.header, self.head) }
    }

    /// eps as the engine has it, real.
    pub fn epsilon(&self) -> f64 {
        match (self.header.numbers, self.header.epsilon_units) {
            (Numbers::Fixed, Some(units)) => units as f64 * self.header.unit(),
            (Numbers::Fixed, None) => (self.header.epsilon / self.header.unit()).ceil() * self.header.unit(),
            _ => self.header.epsilon,
        }
    }

    /// The regulariser of `relu-eps`: one unit, 1e-8 in floating point.
    pub fn regulariser(&self) -> f64 {
        if self.header.numbers == Numbers::Fixed { self.header.unit() } else { 1e-8 }
    }

    /// Whether the comparison of the head is true for a logit.
    pub fn above(&self, x: f64) -> bool {
        let (off, other_way) = self.mistake;
        let (threshold, with_equal) = match self.head {
            Head::ReluProb => (self.epsilon(), true),
            Head::ReluProbCut => (self.epsilon(), false),
            _ => (0.0, false),
        };
        if with_equal != other_way { x >= threshold + off } else { x > threshold + off }
    }

    /// The term of a logit in the sum of a relu head.
    pub fn positive(&self, x: f64) -> f64 {
        let keep = if self.head == Head::ReluProbCut { self.above(x) } else { x > 0.0 };
        if keep { x } else { 0.0 }
    }

    /// The operand of the reciprocal of the true logit.
    pub fn true_operand(&self, x: f64) -> f64 {
        match self.head {
            Head::ReluEps => x.max(0.0) + self.regulariser(),
            _ if self.above(x) => x,
            _ => 1.0,
        }
    }
}

impl Operation for HeadParts {
    fn name(&self) -> &'static str {
        "head"
    }

    fn what(&self) -> &'static str {
        "head/maximum, /exp, /sum, /positive, /reciprocal, /quotient, each from what goes into it, where the \
            trace has them: exp and division against the claims"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        let (Some(head), Some(logits)) = (view.header.head, view.get("logits")) else { return Vec::new() };
        let row = Row::new(view.header, head);
        let mut list = Vec::new();
        let x = logits.reals();
        for name in ["head/maximum", "head/exp", "head/positive", "head/sum", "head/reciprocal", "head/quotient"] {
            let Some(out) = view.get(name) else { continue };
            let judged = match name {
                "head/maximum" => exact(view, name, out, &maximum(&x), 1),
                "head/positive" => exact(view, name, out, &x.mapv(|x| row.positive(x)), 1),
                "head/exp" => exponential(view, out, &x),
                "head/sum" => sum(view, &row, out),
                "head/reciprocal" => reciprocal(view, &row, out, &x),
                _ => quotient(view, &row, out),
            };
            list.extend(judged.map(Outcome::compared));
        }
        list
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let (Some(head), Some(logits)) = (view.header.head, view.get("logits")) else { return Vec::new() };
        let (row, x) = (Row::new(view.header, head), logits.reals());
        match tensor {
            "head/maximum" => of_maximum(&x),
            "head/exp" => of_exp(view, &x),
            "head/sum" => of_sum(view, &row, &x),
            "head/positive" => of_positive(&row, &x),
            "head/quotient" => of_quotient(view, &row),
            "head/reciprocal" => of_reciprocal(view, &row, &x),
            _ => Vec::new(),
        }
    }
}

fn flat(v: Array2<f64>) -> Vec<f64> {
    v.into_raw_vec_and_offset().0
}

/// A part that is not rounded.
fn exact(view: &View, name: &str, out: &Number, wanted: &Array2<f64>, terms: usize) -> Option<Judged> {
    let magnitude = flat(wanted.mapv(f64::abs));
    let expected = Expected::reals(wanted.dim(), flat(wanted.clone()), magnitude, terms, out.half_ulp());
    Some(Judged::new(view.header, (HeadParts.name(), name, view.step), out, &expected, Truncations::None))
}

/// A part that a function makes: between the limits that the engine claims, if it claims any.
pub fn function(
    view: &View,
    at: (&'static str, &str),
    out: &Number,
    claim: Option<Claim>,
    values: &[f64],
    argument: impl Fn(usize) -> f64,
) -> Judged {
    let unit = view.header.unit();
    let limits = claim.map(|c| {
        let radius = |i: usize| {
            if values[i] == 0.0 && c.absolute_units == 0.0 {
                return 0.0;
            }
            c.absolute_units * unit + values[i].abs() * (c.relative + c.relative_per_argument * argument(i))
        };
        let low = values.iter().enumerate().map(|(i, v)| v - radius(i)).collect();
        (low, values.iter().enumerate().map(|(i, v)| v + radius(i)).collect())
    });
    // Functions of operands that are known differ from a mistake by little more than their own bound.
    Judged { spare: 0.5, ..Judged::between(view.header, (at.0, at.1, view.step), out, values, limits) }
}

fn maximum(x: &Array2<f64>) -> Array2<f64> {
    x.fold_axis(Axis(1), f64::NEG_INFINITY, |m, &x| m.max(x)).insert_axis(Axis(1))
}

fn exponential(view: &View, out: &Number, x: &Array2<f64>) -> Option<Judged> {
    let max = view.get("head/maximum").map_or_else(|| maximum(x), Number::reals);
    let d = x - &max;
    let values = flat(d.mapv(f64::exp));
    let d = flat(d);
    let claim = view.header.claims.exp;
    // A result that is cut to 0 is below half a unit, which the absolute part covers; the argument counts up to there.
    Some(function(view, (HeadParts.name(), "head/exp"), out, claim, &values, |i| d[i].abs().min(1e3)))
}

/// What is summed, and the constant that is added to it.
fn summands(view: &View, row: &Row) -> Option<(Array2<f64>, f64)> {
    let name = if row.head == Head::Softmax { "head/exp" } else { "head/positive" };
    let terms = match view.get(name) {
        Some(terms) => terms.reals(),
        None if row.head == Head::Softmax => return None,
        None => view.get("logits")?.reals().mapv(|x| row.positive(x)),
    };
    let regular = if row.head == Head::ReluEps { terms.ncols() as f64 * row.regulariser() } else { 0.0 };
    Some((terms, regular))
}

fn sum(view: &View, row: &Row, out: &Number) -> Option<Judged> {
    let (terms, regular) = summands(view, row)?;
    let wanted = terms.sum_axis(Axis(1)).insert_axis(Axis(1)).mapv(|s| s + regular);
    exact(view, "head/sum", out, &wanted, terms.ncols())
}

/// 1 / s, where s = 0 counts as one unit.
fn inverse(s: f64, unit: f64) -> f64 {
    1.0 / if s > 0.0 { s } else { unit }
}

/// The operands of the reciprocals: sums, then true logits.
fn denominators(view: &View, row: &Row, x: &Array2<f64>) -> Option<Vec<f64>> {
    let sums = view.get("head/sum")?.reals();
    let labels = view.labels.as_ref()?;
    let of_true = labels.iter().enumerate().map(|(i, &t)| row.true_operand(x[[i, t]]));
    Some(sums.iter().copied().chain(of_true).collect())
}

fn reciprocal(view: &View, row: &Row, out: &Number, x: &Array2<f64>) -> Option<Judged> {
    let unit = row.regulariser();
    let values: Vec<f64> = denominators(view, row, x)?.iter().map(|&s| inverse(s, unit)).collect();
    let claim = view.header.claims.division;
    let judged = function(view, (HeadParts.name(), "head/reciprocal"), out, claim, &values, |_| 0.0);
    Some(Judged { denominators: denominators(view, row, x)?, ..judged })
}

/// Numerators and denominators of the quotients.
fn ratio(view: &View, row: &Row) -> Option<(Array2<f64>, Array2<f64>)> {
    Some((summands(view, row)?.0, view.get("head/sum")?.reals()))
}

fn quotient(view: &View, row: &Row, out: &Number) -> Option<Judged> {
    let (numerators, sums) = ratio(view, row)?;
    let values = flat(&numerators * &sums.mapv(|s| inverse(s, row.regulariser())));
    let claim = view.header.claims.division;
    let judged = function(view, (HeadParts.name(), "head/quotient"), out, claim, &values, |_| 0.0);
    Some(Judged { denominators: flat(sums), ..judged })
}

fn alternative(cause: &'static str, what: impl Into<String>, values: Vec<f64>) -> Alternative {
    Alternative { cause, what: what.into(), values }
}

fn of_maximum(x: &Array2<f64>) -> Vec<Alternative> {
    let all = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let rows = x.nrows();
    let after_first = x.rows().into_iter().map(|r| r.iter().skip(1).copied().fold(f64::NEG_INFINITY, f64::max));
    let some =
        |n: usize| x.rows().into_iter().map(move |r| r.iter().take(n).copied().fold(f64::NEG_INFINITY, f64::max));
    let classes = x.ncols();
    let of_two = |r: ndarray::ArrayView1<f64>| {
        // The largest of those before wins as well, where the last one is the largest.
        let (last, before) = (r[classes - 1], r.iter().take(classes - 1).copied().fold(f64::NEG_INFINITY, f64::max));
        if last > before { last + before } else { before }
    };
    let mut list = vec![
        alternative(
            "two classes win",
            "a comparison with the last class is left out: where that one is the largest, the result is the sum of \
             it and the largest of the others",
            x.rows().into_iter().map(of_two).collect(),
        ),
        alternative("maximum of the batch", "the maximum is that of all rows", vec![all; rows]),
        alternative("no maximum", "no maximum is subtracted", vec![0.0; rows]),
        alternative("maximum of another set", "the first class is left out", after_first.collect()),
        alternative("first class for the maximum", "the first logit stands for it", x.column(0).to_vec()),
    ];
    let powers = (1..16).map(|k| 1 << k).filter(|n| *n < classes).rev();
    for n in powers.chain((1..classes).rev()) {
        let what = format!("only the first {n} of {classes} classes are compared");
        list.push(alternative("maximum of another set", what, some(n).collect()));
    }
    list
}

/// Without the maximum the function is outside of its range for positive logits, and what it gives there says nothing.
fn of_exp(view: &View, x: &Array2<f64>) -> Vec<Alternative> {
    let Some(out) = view.get("head/exp").map(Number::reals) else { return Vec::new() };
    let telling = x.iter().filter(|x| **x <= 0.0).count();
    if telling < 4 {
        return Vec::new();
    }
    let values = ndarray::Zip::from(x).and(&out).map_collect(|&x, &out| if x <= 0.0 { x.exp() } else { out });
    let what = format!("no maximum is subtracted: {telling} logits that are not positive have their own exp");
    vec![alternative("no maximum", what, flat(values))]
}

fn of_sum(view: &View, row: &Row, x: &Array2<f64>) -> Vec<Alternative> {
    let mut list = Vec::new();
    if row.head != Head::Softmax {
        for head in Head::ALL.into_iter().filter(|&h| h != row.head && h != Head::Softmax) {
            let other = Row::new(row.header, head);
            let regular = if head == Head::ReluEps { x.ncols() as f64 * other.regulariser() } else { 0.0 };
            let sums = x.rows().into_iter().map(|r| r.iter().map(|&x| other.positive(x)).sum::<f64>() + regular);
            list.push(alternative("S of another head", format!("S is that of {head}"), sums.collect()));
        }
        let raw = x.rows().into_iter().map(|r| r.sum()).collect();
        list.push(alternative("S without ReLU", "S is the sum of all logits", raw));
    }
    if let Some((terms, _)) = summands(view, row) {
        let first = terms.row(0).sum();
        list.push(alternative("denominator of another row", "S is that of the first row", vec![first; terms.nrows()]));
        let total = terms.sum();
        list.push(alternative("sum of the batch", "S is the sum over all rows", vec![total; terms.nrows()]));
    }
    list
}

fn of_positive(row: &Row, x: &Array2<f64>) -> Vec<Alternative> {
    let unit = row.header.unit();
    let mut list = vec![alternative("threshold off by one", "the comparison is off by one unit", {
        flat(x.mapv(|v| if row.positive(v - unit) != 0.0 || row.positive(v + unit) != 0.0 { v } else { 0.0 }))
    })];
    for head in [Head::ReluProbCut, Head::ReluGrad].into_iter().filter(|&h| h != row.head) {
        let other = Row::new(row.header, head);
        list.push(alternative(
            "threshold of another head",
            format!("logits are kept as {head} does"),
            flat(x.mapv(|v| other.positive(v))),
        ));
    }
    list.push(alternative(
        ">= for >",
        "a logit equal to the threshold is kept",
        flat(x.mapv(|v| {
            let at = if row.head == Head::ReluProbCut { row.epsilon() } else { 0.0 };
            if v >= at { v } else { 0.0 }
        })),
    ));
    if row.head == Head::ReluProb {
        let values = flat(x.mapv(|v| if row.above(v) { v } else { 0.0 }));
        list.push(alternative(
            "threshold of another head",
            "logits are kept from epsilon on, as they are divided",
            values,
        ));
    }
    if row.head == Head::ReluProbCut {
        // Of eps 2^f only the upper f - 8 bits are left, but they are compared as units.
        let low = (row.header.epsilon * 256.0).ceil() * unit;
        let values = flat(x.mapv(|v| if v > low { v } else { 0.0 }));
        list.push(alternative("threshold scale", "epsilon has 8 fraction bits, the logits have more", values));
    }
    list
}

fn of_quotient(view: &View, row: &Row) -> Vec<Alternative> {
    let Some((numerators, sums)) = ratio(view, row) else { return Vec::new() };
    let unit = row.header.unit();
    let inverses = sums.mapv(|s| inverse(s, row.regulariser()));
    let rounded = inverses.mapv(|r| (r / unit).floor() * unit);
    let first = numerators.mapv(|v| v * inverses[[0, 0]]);
    let classes = numerators.ncols() as f64;
    let uniform = |i: usize, j: usize| {
        if sums[[i, 0]] > 0.0 { numerators[[i, j]] * inverses[[i, 0]] } else { 1.0 / classes }
    };
    vec![
        alternative(
            "nothing positive",
            "a row without a positive logit has probability 1 / classes",
            flat(Array2::from_shape_fn(numerators.dim(), |(i, j)| uniform(i, j))),
        ),
        alternative(
            "reciprocal then multiply",
            "1 / S is rounded to a unit before it is multiplied, so small quotients lose their digits",
            flat(&numerators * &rounded),
        ),
        alternative("denominator of another row", "every row is divided by the first row's S", flat(first)),
        alternative("denominator of another row", "each row is divided by the S of the next", {
            let n = sums.nrows();
            flat(Array2::from_shape_fn(numerators.dim(), |(i, j)| numerators[[i, j]] * inverses[[(i + 1) % n, 0]]))
        }),
    ]
}

fn of_reciprocal(view: &View, row: &Row, x: &Array2<f64>) -> Vec<Alternative> {
    let sums: Vec<f64> = x.rows().into_iter().map(|r| r.iter().map(|&x| row.positive(x)).sum()).collect();
    let first = inverse(sums.first().copied().unwrap_or(1.0), row.regulariser());
    let mut list = vec![alternative(
        "denominator of another row",
        "every row has the reciprocal of the first row's S",
        vec![first; 2 * x.nrows()],
    )];
    for (cause, what, units, other_way) in THRESHOLDS {
        let operands = denominators(view, &row.mistaken(units, other_way), x).unwrap_or_default();
        list.push(alternative(cause, what, operands.iter().map(|&s| inverse(s, row.regulariser())).collect()));
    }
    if let (Head::ReluEps, Some(operands)) = (row.head, denominators(view, row, x)) {
        let unit = row.regulariser();
        let without = |(i, s): (usize, &f64)| inverse(if i < x.nrows() { *s } else { s - unit }, unit);
        let values = operands.iter().enumerate().map(without).collect();
        list.push(alternative("regulariser missing", "the true logit lacks its regulariser", values));
    }
    list
}
