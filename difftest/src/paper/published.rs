//! The paper's published code, where it differs from the paper's formulas.
//!
//! Source: the repository csiro-mlai/mnist-mpc, whose first release builds MP-SPDZ at commit 15d179a1 (November 2020);
//! `Compiler/ml.py` there. Since July 2021 it builds commit 99c0549e, whose limit is 1.2 instead of
//! [1.1](crate::run::restart::OF_CHANCE); the rest of what is described here is unchanged there.
//!
//! *Restarts.* Training starts at rate 0.01. After an epoch with a batch loss above 100, or fewer test rows right than
//! 1.1 / classes of them, the rate is halved and training starts again from other weights; the epoch counts towards
//! those of the table ([`Run`]). The code computes no loss for relu-grad.
//!
//! *relu-grad.* ReLU(x) times the reciprocal of their sum S, where the formula divides each by S ([`relu_grad`]). The
//! reciprocal is rounded to 2^-16, so that the gradient of a logit has a relative error of up to S 2^-17 or, with
//! probabilistic rounding, S 2^-16, which grows with the logits. S = 0 has no case of its own.

use super::cell::{Cell, Epoch};
use reference::fixed::compare::above;
use reference::fixed::divide::reciprocal;
use reference::fixed::heads::{Gradient, Rows, Truth};
use reference::fixed::truncate::trunc;
use reference::fixed::{Arithmetic, ModelError, Probe, Unreduced};

/// ReLU(x) (1 / S) - y, the reciprocal first. Where S = 0 each product is 0, whatever the reciprocal is.
///
/// # Errors
/// Those of [`trunc`].
pub fn relu_grad(a: &mut Arithmetic, x: Rows, _probe: Probe) -> Result<Gradient, ModelError> {
    let logits = x.logits();
    let r: Vec<i64> = above(a, "head/relu", logits, 0).iter().zip(logits).map(|(m, x)| m * x).collect();
    let sums = x.sums(&r);
    let inverse = reciprocal(a, "head/divide", &sums, a.fixed.full_range())?;
    let product = |(i, &r): (usize, &i64)| i128::from(r) * i128::from(inverse[i / x.classes()]);
    let products = Unreduced::new(r.iter().enumerate().map(product));
    let p = trunc(a, "head/product", &products, a.fixed.fraction_bits)?;
    let one = a.fixed.one();
    let gradient = x.map(|i, _, y| p[i].wrapping_sub(y * one));
    Ok(Gradient { gradient, numerators: r, sums, probabilities: None, truth: Truth::NoLoss })
}

/// A cell's attempts as one run of the published code, which counts the epochs of failed rates.
///
/// Attempts here start from the same weights, the code's from new ones. The integer side ends an attempt at the first
/// operand out of range, in an epoch which counts as a whole one.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<'a> {
    /// Each epoch with its rate.
    pub epochs: Vec<(f64, &'a Epoch)>,
    /// Whether the attempt that the last epoch belongs to goes on.
    pub goes_on: bool,
}

impl<'a> Run<'a> {
    /// The first `epochs` epochs of a cell; `None` if its attempts are fewer than that and yet another rate was left to
    /// try.
    pub fn new(cell: &'a Cell, epochs: usize) -> Option<Self> {
        let of = |a: &'a super::cell::Attempt| a.epochs.iter().map(|e| (a.learning_rate, e));
        let all: Vec<_> = cell.attempts.iter().flat_map(of).collect();
        let mut ends = 0;
        let mut goes_on = false;
        for attempt in &cell.attempts {
            ends += attempt.epochs.len();
            // The last epoch may be the one that ends the attempt.
            if ends >= epochs {
                goes_on = ends > epochs || attempt.ended.is_none();
                break;
            }
        }
        (all.len() >= epochs).then(|| Run { epochs: all.into_iter().take(epochs).collect(), goes_on })
    }

    /// Test accuracy (0 to 1) and rate after so many epochs, from 1.
    pub fn accuracy(&self, cell: &Cell, epoch: usize) -> Option<(f64, f64)> {
        let (rate, e) = self.epochs.get(epoch.checked_sub(1)?)?;
        Some((*rate, e.accuracy(&cell.setup)))
    }

    /// Rates that were given up.
    pub fn restarts(&self) -> usize {
        let changes = self.epochs.windows(2).filter(|w| w[0].0 != w[1].0).count();
        changes + usize::from(!self.goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::*;
    use ndarray::Array2;
    use reference::fixed::{Coins, Monitor, heads};
    use reference::spec::{FixedSpec, Rounding};

    fn gradients(logits: &Array2<i64>, labels: &[usize]) -> [Vec<i64>; 2] {
        let rows = Rows::new(logits, labels).unwrap();
        [relu_grad, heads::relu_grad].map(|head| {
            let (mut coins, mut monitor) = (Coins::seeded(1), Monitor::default());
            let mut a = Arithmetic {
                fixed: FixedSpec::default(),
                rounding: Rounding::Nearest,
                coins: &mut coins,
                monitor: &mut monitor,
            };
            let gradient = head(&mut a, rows, &mut |_, _| ()).unwrap().gradient;
            assert_eq!(monitor.total(), 0);
            gradient
        })
    }

    #[test]
    fn the_reciprocal_loses_what_the_quotient_keeps() {
        let one = 65_536;
        // S = 1.5: both are right to a unit or two.
        let small = Array2::from_shape_vec((1, 3), vec![one, one / 2, -one]).unwrap();
        let [code, formula] = gradients(&small, &[0]);
        assert!(code.iter().zip(&formula).all(|(a, b)| (a - b).abs() <= 2), "{code:?} {formula:?}");
        // S = 12288: its reciprocal, 5.33 units, is rounded to 5.
        let large = Array2::from_shape_vec((1, 3), vec![8192 * one, 4096 * one, -one]).unwrap();
        let [code, formula] = gradients(&large, &[0]);
        assert_eq!(code, [8192 * 5 - one, 4096 * 5, 0]);
        assert_eq!(formula, [2 * one / 3 + 1 - one, one / 3, 0]);
    }

    #[test]
    fn a_row_without_a_positive_logit_is_minus_y_without_a_case_of_its_own() {
        let none = Array2::from_shape_vec((1, 3), vec![-5, 0, -65_536]).unwrap();
        let [code, formula] = gradients(&none, &[1]);
        assert_eq!((&code, &code), (&formula, &vec![0, -65_536, 0]));
    }

    #[test]
    fn failed_rates_use_up_epochs() {
        let mut one = cell("integer-relu-grad-l2-prob-s1-e4", &[0.8, 0.1]);
        let mut second = cell("integer-relu-grad-l2-prob-s1-e4", &[0.7, 0.75, 0.8, 0.85]).attempts.remove(0);
        second.learning_rate = 0.005;
        one.attempts.push(second);
        let run = Run::new(&one, 4).unwrap();
        let told: Vec<_> = (1..=4).filter_map(|e| run.accuracy(&one, e)).collect();
        assert_eq!(told, [(0.01, 0.8), (0.01, 0.1), (0.005, 0.7), (0.005, 0.75)]);
        assert_eq!((run.restarts(), run.goes_on), (1, true));
        assert_eq!(Run::new(&one, 2).map(|r| (r.restarts(), r.goes_on)), Some((1, false)));
        assert_eq!(Run::new(&one, 7), None);
    }
}
