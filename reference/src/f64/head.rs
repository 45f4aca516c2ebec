//! The five heads in real numbers: gradient, loss and probabilities of a row of logits x with true class t.
//!
//! computes   the table of heads (`docs/design.md`, section 3): softmax; `relu-prob`, `relu-prob-cut`, `relu-grad`
//!            (Keller and Sun, arXiv 2011.11202, section 3 and their published code); `relu-eps` (Kanai et al., NeurIPS
//!            2018)
//! requires   nothing: any finite logits, +-f64::MAX included; a row with an infinity or NaN gives NaN throughout
//! error      a few roundings of the last place, also where 1/S - 1/x_t or p_t - 1 would cancel (below)
//!
//! Ties: softmax subtracts the maximum, which a tie does not change. Zero: \[x > 0\] is false at 0 and -0. Threshold: x
//! = eps counts as above for `relu-prob` and not for `relu-prob-cut`, compared exactly.
//!
//! *No cancellation.* With S = own + others, own the true class's term, the true class's gradient is
//! p_t - 1 = -others / S and 1/S - 1/x_t = -(others / S) / x_t. Both are products of numbers that are right to the last
//! place. It also makes |gradient| <= 1/eps exact: rounding is monotone, so fl(others / S) <= 1 and fl(q / x_t) <= fl(1
//! / eps) for x_t >= eps; and S >= x_i >= eps gives fl(1 / S) <= fl(1 / eps).
//!
//! *No overflow.* A sum that leaves f64 is taken again over terms multiplied by 2^-64: exact but for terms that are
//! then below 2^-1900 of the sum. x - max may overflow to -inf, whose exponential is the right 0.

use super::argmax::argmax;
use super::{Error, check_label, check_labels};
use ndarray::{Array2, Axis};
use spec::{Head, HeadPoint, TrainSpec};
use std::borrow::Cow;

/// The comparisons of one row, in the names of section 9 of the arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masks {
    /// m_i = \[x_i > 0\]: false at 0 and -0. `softmax` ignores it.
    pub positive: Vec<bool>,
    /// a_i: \[x_i >= eps\] for `relu-prob`, \[x_i > eps\] for `relu-prob-cut`, eps compared exactly as the real number
    /// it is. Other heads ignore it (false). An element above eps counts as positive, whatever `positive` says.
    pub above: Vec<bool>,
}

/// A head with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RealHead {
    /// The head whose formulas are computed.
    pub head: Head,
    /// Threshold of `relu-prob` and `relu-prob-cut`, a real in (0, 1).
    pub epsilon: f64,
    /// e of `relu-eps`, a positive real. Also what stands for a sum of 0 where its reciprocal is probed: one unit, as
    /// the fixed-point sides have it (arithmetic, section 7). No gradient of natural masks uses that reciprocal.
    pub regulariser: f64,
}

/// The denominator of a row, in two parts so that nothing cancels. Everything is multiplied by `scale`, which is 1
/// unless S overflows.
struct Sum {
    own: f64,
    others: f64,
    scale: f64,
}

impl Sum {
    /// Sums `term(i)` over `classes`; `own` is the class whose term is kept apart.
    fn of(classes: usize, own: usize, term: impl Fn(usize) -> f64) -> Self {
        let take = |scale: f64| {
            let others = (0..classes).filter(|&i| i != own).map(|i| term(i) * scale).sum();
            Sum { own: term(own) * scale, others, scale }
        };
        let sum = take(1.0);
        if sum.total().is_finite() { sum } else { take(2f64.powi(-64)) }
    }

    /// S times `scale`.
    fn total(&self) -> f64 {
        self.own + self.others
    }

    /// x / S.
    fn quotient(&self, x: f64) -> f64 {
        x * self.scale / self.total()
    }

    /// 1 - own / S.
    fn rest(&self) -> f64 {
        self.others / self.total()
    }

    /// 1 / S, where a sum that is not positive counts as `zero`.
    fn reciprocal(&self, zero: f64) -> f64 {
        if self.total() > 0.0 { self.scale / self.total() } else { 1.0 / zero }
    }

    /// -ln(own / S) = ln(1 + others / own), for own > 0 given unscaled.
    fn cross_entropy(&self, own: f64) -> f64 {
        let ratio = self.others / (own * self.scale);
        if ratio.is_finite() { ratio.ln_1p() } else { self.others.ln() - self.scale.ln() - own.ln() }
    }
}

impl RealHead {
    /// eps = 0.1, e = 1e-8: the values of the papers.
    pub const fn paper(head: Head) -> Self {
        RealHead { head, epsilon: 0.1, regulariser: 1e-8 }
    }

    /// The head of a training run: its eps as given, and e = 2^-f, so that it is the same function on all sides.
    pub fn of(spec: &TrainSpec) -> Self {
        let regulariser = 2f64.powi(-(spec.fixed.fraction_bits.min(1023) as i32));
        RealHead { head: spec.head, epsilon: spec.epsilon, regulariser }
    }

    /// Gradient with respect to the logits of one row: L elements, real.
    ///
    /// # Errors
    /// A label that names no class.
    pub fn gradient(&self, logits: &[f64], label: usize) -> Result<Vec<f64>, Error> {
        check_label(0, label, logits.len())?;
        let mut g = vec![0.0; logits.len()];
        self.natural(logits, label, &mut g);
        Ok(g)
    }

    /// The gradient's formula with every comparison decided by `masks` and not by the logits: what a row close to a
    /// threshold may legitimately give. With the row's own [`branches`](Self::branches) it is
    /// [`gradient`](Self::gradient), bit for bit. Masks that no rounding could produce (a class above eps with a
    /// negative logit) give what the formula gives.
    ///
    /// # Errors
    /// A label that names no class, or masks of another length than the row.
    pub fn gradient_with_masks(&self, logits: &[f64], label: usize, masks: &Masks) -> Result<Vec<f64>, Error> {
        check_label(0, label, logits.len())?;
        if masks.positive.len() != logits.len() || masks.above.len() != logits.len() {
            let (positive, above) = (masks.positive.len(), masks.above.len());
            return Err(Error::Masks { positive, above, classes: logits.len() });
        }
        let mut g = vec![0.0; logits.len()];
        self.forced(logits, label, |i| masks.positive[i], |i| masks.above[i], &mut g);
        Ok(g)
    }

    /// [`gradient`](Self::gradient) of each row, (batch, L).
    ///
    /// # Errors
    /// Labels that do not fit.
    pub fn batch_gradient(&self, logits: &Array2<f64>, labels: &[usize]) -> Result<Array2<f64>, Error> {
        check_labels(logits.dim(), labels)?;
        let mut g = Array2::zeros(logits.dim());
        self.batch_gradient_into(logits, labels, &mut g);
        Ok(g)
    }

    /// The same for labels that are known to fit.
    pub(super) fn batch_gradient_into(&self, logits: &Array2<f64>, labels: &[usize], g: &mut Array2<f64>) {
        let g = g.as_slice_mut().expect("gradients are allocated in standard layout");
        for ((x, g), &label) in logits.rows().into_iter().zip(g.chunks_exact_mut(logits.ncols().max(1))).zip(labels) {
            let x = x.to_slice().map_or_else(|| x.to_vec().into(), Cow::Borrowed);
            self.natural(&x, label, g);
        }
    }

    /// Probabilities of one row: L elements in \[0, 1\] with sum 1. Where no term is positive (all x <= 0;
    /// `relu-prob-cut`: none above eps), 1/L each.
    pub fn probabilities(&self, logits: &[f64]) -> Vec<f64> {
        let classes = logits.len();
        if !all_finite(logits) {
            return vec![f64::NAN; classes];
        }
        if classes == 0 {
            return Vec::new();
        }
        let term = self.terms(logits);
        let sum = Sum::of(classes, argmax(logits), &term);
        if sum.total() > 0.0 {
            (0..classes).map(|i| sum.quotient(term(i))).collect()
        } else {
            vec![1.0 / classes as f64; classes]
        }
    }

    /// Loss of one row, real (natural logarithm). `None`: no loss is known for `relu-grad`. Infinite, as a value:
    /// `relu-prob` where x_t <= 0, `relu-prob-cut` where x_t <= eps, and `softmax` only where max - x_t itself leaves
    /// f64.
    ///
    /// # Errors
    /// A label that names no class.
    pub fn loss(&self, logits: &[f64], label: usize) -> Result<Option<f64>, Error> {
        check_label(0, label, logits.len())?;
        if !self.head.has_loss() {
            return Ok(None);
        }
        if !all_finite(logits) {
            return Ok(Some(f64::NAN));
        }
        let term = self.terms(logits);
        Ok(Some(match self.head {
            // ln(sum) with the largest term, exp(0) = 1, kept apart: right also where the sum is close to 1.
            Head::Softmax => {
                let winner = argmax(logits);
                Sum::of(logits.len(), winner, &term).others.ln_1p() + (logits[winner] - logits[label])
            }
            _ if term(label) > 0.0 => Sum::of(logits.len(), label, &term).cross_entropy(term(label)),
            _ => f64::INFINITY,
        }))
    }

    /// Mean loss of a batch of logits (batch, L): `None` for `relu-grad`, infinite if one row's is.
    ///
    /// # Errors
    /// Labels that do not fit, or no row at all.
    pub fn mean_loss(&self, logits: &Array2<f64>, labels: &[usize]) -> Result<Option<f64>, Error> {
        check_labels(logits.dim(), labels)?;
        if labels.is_empty() {
            return Err(Error::Empty);
        }
        let mut sum = 0.0;
        for (row, &label) in logits.rows().into_iter().zip(labels) {
            match self.loss(&row.to_vec(), label)? {
                Some(loss) => sum += loss / labels.len() as f64,
                None => return Ok(None),
            }
        }
        Ok(Some(sum))
    }

    /// The intermediates of section 9 of the arithmetic that this head has, in real numbers, for labels that are known
    /// to fit. A sum beyond f64 is reported as infinite.
    pub(super) fn intermediates(&self, logits: &Array2<f64>, labels: &[usize]) -> Vec<(HeadPoint, Array2<f64>)> {
        let (batch, classes) = logits.dim();
        let rows: Vec<_> = logits.rows().into_iter().map(|row| row.to_vec()).collect();
        let sums: Vec<_> = rows.iter().zip(labels).map(|(x, &label)| Sum::of(classes, label, self.terms(x))).collect();
        let column = |values: Vec<f64>| Array2::from_shape_vec((values.len(), 1), values).expect("one column");
        let by_element =
            |value: &dyn Fn(usize, usize) -> f64| Array2::from_shape_fn((batch, classes), |(b, i)| value(b, i));

        let total = column(sums.iter().map(|s| s.total() / s.scale).collect());
        let quotient =
            || by_element(&|b, i| if sums[b].total() > 0.0 { sums[b].quotient(self.terms(&rows[b])(i)) } else { 0.0 });
        match self.head {
            Head::Softmax => vec![
                (
                    HeadPoint::Maximum,
                    logits.fold_axis(Axis(1), f64::NEG_INFINITY, |m, &x| m.max(x)).insert_axis(Axis(1)),
                ),
                (HeadPoint::Exp, by_element(&|b, i| self.terms(&rows[b])(i))),
                (HeadPoint::Sum, total),
                (HeadPoint::Quotient, quotient()),
            ],
            Head::ReluGrad => vec![
                (HeadPoint::Positive, by_element(&|b, i| self.terms(&rows[b])(i))),
                (HeadPoint::Sum, total),
                (HeadPoint::Quotient, quotient()),
            ],
            Head::ReluProb | Head::ReluProbCut | Head::ReluEps => {
                let of_sum = sums.iter().map(|s| s.reciprocal(self.regulariser));
                let of_true = rows.iter().zip(labels).map(|(x, &t)| match self.head {
                    Head::ReluEps => 1.0 / (x[t].max(0.0) + self.regulariser),
                    _ if self.is_above(x[t]) => 1.0 / x[t],
                    _ => 1.0,
                });
                let reciprocal = column(of_sum.chain(of_true).collect());
                let positive = by_element(&|b, i| match self.head {
                    Head::ReluProbCut => self.terms(&rows[b])(i),
                    _ => rows[b][i].max(0.0),
                });
                vec![(HeadPoint::Positive, positive), (HeadPoint::Sum, total), (HeadPoint::Reciprocal, reciprocal)]
            }
        }
    }

    /// What a row's denominator is the sum of.
    fn terms<'a>(&'a self, x: &'a [f64]) -> impl Fn(usize) -> f64 + 'a {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        move |i| self.term(x[i], max, self.is_positive(x[i]), self.is_above(x[i]))
    }

    fn term(&self, x: f64, max: f64, positive: bool, above: bool) -> f64 {
        let keep = |mask: bool| if mask { x } else { 0.0 };
        match self.head {
            Head::Softmax => (x - max).exp(),
            Head::ReluProb => keep(positive || above),
            Head::ReluProbCut => keep(above),
            Head::ReluGrad => keep(positive),
            Head::ReluEps => keep(positive) + self.regulariser,
        }
    }

    fn natural(&self, x: &[f64], label: usize, g: &mut [f64]) {
        self.forced(x, label, |i| self.is_positive(x[i]), |i| self.is_above(x[i]), g);
    }

    /// The gradient's one implementation.
    fn forced(
        &self,
        x: &[f64],
        label: usize,
        positive: impl Fn(usize) -> bool,
        above: impl Fn(usize) -> bool,
        g: &mut [f64],
    ) {
        if !all_finite(x) {
            return g.fill(f64::NAN);
        }
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = match self.head {
            // Exponentials are dear: each is taken once and kept in the result.
            Head::Softmax => {
                g.iter_mut().zip(x).for_each(|(g, &x)| *g = (x - max).exp());
                Sum::of(x.len(), label, |i| g[i])
            }
            _ => Sum::of(x.len(), label, |i| self.term(x[i], max, positive(i), above(i))),
        };
        // Subtracting from 0 keeps a gradient of 0 from being written -0.
        match self.head {
            Head::Softmax => {
                g.iter_mut().for_each(|g| *g = sum.quotient(*g));
                g[label] = 0.0 - sum.rest();
            }
            // Negative only under forced masks: the ratio is still that of a sum just above 0.
            Head::ReluGrad if sum.total() != 0.0 => {
                for i in 0..x.len() {
                    g[i] = if positive(i) { sum.quotient(x[i]) } else { 0.0 };
                }
                g[label] = 0.0 - sum.rest();
            }
            Head::ReluGrad => {
                g.fill(0.0);
                g[label] = -1.0;
            }
            Head::ReluProb | Head::ReluProbCut | Head::ReluEps => {
                let regular = self.head == Head::ReluEps;
                let (offset, otherwise) = if regular { (self.regulariser, 0.0) } else { (0.0, -1.0) };
                let active = |i| if regular { positive(i) } else { above(i) };
                let reciprocal = sum.reciprocal(self.regulariser);
                for i in 0..x.len() {
                    g[i] = if active(i) { reciprocal } else { 0.0 };
                }
                g[label] = if active(label) { 0.0 - sum.rest() / (x[label] + offset) } else { otherwise };
            }
        }
    }
}

fn all_finite(row: &[f64]) -> bool {
    row.iter().all(|x| x.is_finite())
}

#[cfg(test)]
mod tests;
