//! The five heads: gradient with respect to the logits, probabilities and loss.
//!
//! computes   section 9, on x of shape (batch, classes), scale f, and labels; results at scale f
//! requires   ordinary logits and sums; [`Head::Softmax`]: logits within 2^(K-1) of each other
//! error      that of the quotient or reciprocal used ([`super::divide`]), and of exp for softmax; comparisons are
//!            exact
//! source     arithmetic, section 9; Keller and Sun (arXiv 2011.11202), section 3; Kanai et al. (NeurIPS 2018)

use super::compare::{above, argmax, at_least, maximum};
use super::dense::matrix;
use super::divide::{quotient, reciprocal};
use super::exponential::exp;
use super::logarithm::log;
use super::{Arithmetic, ModelError, Probe};
use ndarray::Array2;
use spec::{BitRange, Head, HeadPoint, ProbePoint};

/// The results of a head on a batch, in units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadUnits {
    /// p, (batch, classes), scale f.
    pub probabilities: Array2<i64>,
    /// Of each row, scale f; an inner `None` is an infinite loss, an outer one a head without a loss.
    pub loss: Option<Vec<Option<i64>>>,
    /// G, (batch, classes), scale f.
    pub gradient: Array2<i64>,
}

/// Logits and labels of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    logits: &'a [i64],
    labels: &'a [usize],
    classes: usize,
}

impl<'a> Rows<'a> {
    /// The logits, row by row.
    pub fn logits(&self) -> &'a [i64] {
        self.logits
    }

    /// Logits of a row.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Checks shape and labels.
    ///
    /// # Errors
    /// Rows without a label, or a label that names no class.
    pub fn new(logits: &'a Array2<i64>, labels: &'a [usize]) -> Result<Self, ModelError> {
        let (rows, classes) = logits.dim();
        let shape = || ModelError::Shape {
            what: "logits".into(),
            found: vec![rows, classes],
            expected: vec![labels.len(), classes.max(2)],
        };
        if rows != labels.len() || classes < 2 {
            return Err(shape());
        }
        if let Some(row) = labels.iter().position(|&label| label >= classes) {
            return Err(ModelError::Label { row, label: labels[row], classes });
        }
        Ok(Rows { logits: logits.as_slice().ok_or_else(shape)?, labels, classes })
    }

    /// sum_i y_i v_i of each row.
    fn at_label(&self, v: &[i64]) -> Vec<i64> {
        v.chunks_exact(self.classes).zip(self.labels).map(|(row, &label)| row[label]).collect()
    }

    /// Sum of each row.
    pub fn sums(&self, v: &[i64]) -> Vec<i64> {
        v.chunks_exact(self.classes).map(|row| row.iter().fold(0, |sum: i64, v| sum.wrapping_add(*v))).collect()
    }

    /// `element(flat index, row, y)` everywhere.
    pub fn map(&self, element: impl Fn(usize, usize, i64) -> i64) -> Vec<i64> {
        let at = |i| {
            let row = i / self.classes;
            element(i, row, (self.labels[row] == i % self.classes).into())
        };
        (0..self.logits.len()).map(at).collect()
    }

    fn table(&self, v: Vec<i64>) -> Array2<i64> {
        matrix(self.labels.len(), self.classes, v)
    }
}

/// A gradient, and what probabilities and loss need of the way there. All flat, scale f.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gradient {
    /// G, (batch, classes).
    pub gradient: Vec<i64>,
    /// n_i of the probabilities, (batch, classes).
    pub numerators: Vec<i64>,
    /// S, or T for `relu-eps`, of each row.
    pub sums: Vec<i64>,
    /// The probabilities, where the gradient already has them (softmax).
    pub probabilities: Option<Vec<i64>>,
    /// The term of the true logit in the loss.
    pub truth: Truth,
}

/// The term that a loss subtracts from log S, for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// No loss is known.
    NoLoss,
    /// This value itself: softmax's d_t.
    Value(Vec<i64>),
    /// The logarithm of `operand`; the loss is infinite where `finite` is 0, and `operand` is 0 there.
    Logarithm {
        /// z, or the true logit's numerator.
        operand: Vec<i64>,
        /// A bit a row.
        finite: Vec<i64>,
    },
}

/// The gradient of `head`; `epsilon` is E in units, ignored by heads without a threshold.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn gradient(a: &mut Arithmetic, head: Head, epsilon: i64, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    match head {
        Head::Softmax => softmax(a, x, probe),
        Head::ReluProb => relu_prob(a, epsilon, x, probe),
        Head::ReluProbCut => relu_prob_cut(a, epsilon, x, probe),
        Head::ReluGrad => relu_grad(a, x, probe),
        Head::ReluEps => relu_eps(a, x, probe),
    }
}

/// p - y with p = exp(x - max) / S.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn softmax(a: &mut Arithmetic, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    let indicators = argmax(a, "head/argmax", x.logits, x.classes);
    let max = maximum(x.logits, &indicators, x.classes);
    let d = x.map(|i, row, _| x.logits[i].wrapping_sub(max[row]));
    let v = exp(a, &d)?;
    let sums = x.sums(&v);
    let (p, _) = quotient(a, "head/divide", &v, &sums, sum_range(a, Head::Softmax, x.classes))?;
    show(probe, HeadPoint::Maximum, 1, &max);
    show(probe, HeadPoint::Exp, x.classes, &v);
    show(probe, HeadPoint::Sum, 1, &sums);
    show(probe, HeadPoint::Quotient, x.classes, &p);
    let one = a.fixed.one();
    Ok(Gradient {
        gradient: x.map(|i, _, y| p[i].wrapping_sub(y * one)),
        numerators: v,
        sums,
        probabilities: Some(p),
        truth: Truth::Value(x.at_label(&d)),
    })
}

/// ReLU(x) / S - y.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn relu_grad(a: &mut Arithmetic, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    let (_, r) = relu(a, x);
    let sums = x.sums(&r);
    let (q, _) = quotient(a, "head/divide", &r, &sums, a.fixed.full_range())?;
    show(probe, HeadPoint::Positive, x.classes, &r);
    show(probe, HeadPoint::Sum, 1, &sums);
    show(probe, HeadPoint::Quotient, x.classes, &q);
    let one = a.fixed.one();
    let gradient = x.map(|i, _, y| q[i].wrapping_sub(y * one));
    Ok(Gradient { gradient, numerators: r, sums, probabilities: None, truth: Truth::NoLoss })
}

/// The paper's formula: a = `[x >= E]`, S over all ReLU.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn relu_prob(a: &mut Arithmetic, epsilon: i64, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    let (m, r) = relu(a, x);
    let active = at_least(a, "head/threshold", x.logits, epsilon);
    let gradient = thresholded(a, x, &active, x.sums(&r), &r, probe)?;
    let truth = Truth::Logarithm { operand: x.at_label(&r), finite: x.at_label(&m) };
    Ok(Gradient { numerators: r, truth, ..gradient })
}

/// The paper's code: a = `[x > E]`, S over the logits where a = 1.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn relu_prob_cut(a: &mut Arithmetic, epsilon: i64, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    let active = above(a, "head/threshold", x.logits, epsilon);
    let r: Vec<i64> = active.iter().zip(x.logits).map(|(a, x)| a * x).collect();
    let gradient = thresholded(a, x, &active, x.sums(&r), &r, probe)?;
    let truth = Truth::Logarithm { operand: x.at_label(&r), finite: x.at_label(&active) };
    Ok(Gradient { numerators: r, truth, ..gradient })
}

/// The regularised ratio, its regulariser one unit.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn relu_eps(a: &mut Arithmetic, x: Rows, probe: Probe) -> Result<Gradient, ModelError> {
    let (m, r) = relu(a, x);
    let sums: Vec<i64> = x.sums(&r).iter().map(|s| s.wrapping_add(x.classes as i64)).collect();
    let z: Vec<i64> = x.at_label(&r).iter().map(|r| r.wrapping_add(1)).collect();
    let (over_sum, over_z) = reciprocals(a, &sums, &z, &r, x.classes, probe)?;
    let gradient = x.map(|i, row, y| (m[i] * over_sum[row]).wrapping_sub(y * m[i] * over_z[row]));
    let numerators = r.iter().map(|r| r.wrapping_add(1)).collect();
    let truth = Truth::Logarithm { finite: vec![1; z.len()], operand: z };
    Ok(Gradient { gradient, numerators, sums, probabilities: None, truth })
}

/// (m, r) with m = `[x > 0]`, r = m x.
fn relu(a: &mut Arithmetic, x: Rows) -> (Vec<i64>, Vec<i64>) {
    let m = above(a, "head/relu", x.logits, 0);
    let r = m.iter().zip(x.logits).map(|(m, x)| m * x).collect();
    (m, r)
}

/// What `relu-prob` and `relu-prob-cut` share once a and S are known.
fn thresholded(
    a: &mut Arithmetic,
    x: Rows,
    active: &[i64],
    sums: Vec<i64>,
    r: &[i64],
    probe: Probe,
) -> Result<Gradient, ModelError> {
    let one = a.fixed.one();
    let (truth, x_t) = (x.at_label(active), x.at_label(x.logits));
    let z: Vec<i64> = truth.iter().zip(x_t).map(|(a, x)| (a * x.wrapping_sub(one)).wrapping_add(one)).collect();
    let (over_sum, over_z) = reciprocals(a, &sums, &z, r, x.classes, probe)?;
    let gradient = x.map(|i, row, y| {
        let h = y * active[i];
        (active[i] * over_sum[row]).wrapping_sub(h * over_z[row]).wrapping_sub((y - h) * one)
    });
    Ok(Gradient { gradient, numerators: vec![], sums, probabilities: None, truth: Truth::NoLoss })
}

/// (R_S, R_z): one call, the sums of all rows first.
fn reciprocals(
    a: &mut Arithmetic,
    sums: &[i64],
    z: &[i64],
    r: &[i64],
    classes: usize,
    probe: Probe,
) -> Result<(Vec<i64>, Vec<i64>), ModelError> {
    let mut over_sum = reciprocal(a, "head/divide", &[sums, z].concat(), a.fixed.full_range())?;
    show(probe, HeadPoint::Positive, classes, r);
    show(probe, HeadPoint::Sum, 1, sums);
    show(probe, HeadPoint::Reciprocal, 1, &over_sum);
    let over_z = over_sum.split_off(sums.len());
    Ok((over_sum, over_z))
}

/// The range of S that normalisation is told.
fn sum_range(a: &Arithmetic, head: Head, classes: usize) -> BitRange {
    match head {
        Head::Softmax => a.fixed.exp_sum_range(classes).unwrap_or(a.fixed.full_range()),
        _ => a.fixed.full_range(),
    }
}

fn show(probe: Probe, point: HeadPoint, columns: usize, v: &[i64]) {
    probe(ProbePoint::Head(point), &matrix(v.len() / columns, columns, v.to_vec()));
}

/// Gradient, probabilities ("head/probability") and loss ("loss") of a batch.
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn evaluate(a: &mut Arithmetic, head: Head, epsilon: i64, x: Rows, probe: Probe) -> Result<HeadUnits, ModelError> {
    let g = gradient(a, head, epsilon, x, probe)?;
    let range = sum_range(a, head, x.classes);
    let probabilities = match g.probabilities {
        Some(p) => p,
        None => {
            let (p, n) = quotient(a, "head/probability", &g.numerators, &g.sums, range)?;
            let classes = x.classes as i64;
            let uniform = (a.fixed.one() + classes / 2) / classes;
            x.map(|i, row, _| p[i].wrapping_add(n.empty[row] * uniform))
        }
    };
    let batch = x.labels.len();
    let loss = match g.truth {
        Truth::NoLoss => None,
        Truth::Value(d) => {
            let log_sum = log(a, &g.sums, range)?;
            Some(log_sum.iter().zip(d).map(|(s, d)| Some(s.wrapping_sub(d))).collect())
        }
        Truth::Logarithm { operand, finite } => {
            let logs = log(a, &[g.sums, operand].concat(), range)?;
            let (sums, truths) = logs.split_at(batch);
            let row = |i: usize| (finite[i] == 1).then(|| sums[i].wrapping_sub(truths[i]));
            Some((0..batch).map(row).collect())
        }
    };
    Ok(HeadUnits { probabilities: x.table(probabilities), loss, gradient: x.table(g.gradient) })
}

#[cfg(test)]
mod tests;
