//! The comparisons inside a head: how each one goes, and how far each logit is from where it turns.
//!
//! A rounding error below that distance cannot change the result's branch. For an element that is closer,
//! [`RealHead::gradient_with_masks`] gives the gradient on the other side.

use super::argmax::argmax;
use super::head::{Masks, RealHead};
use spec::Head;

/// The masks of one row with each logit's signed distance (real) to every threshold that the head has. Distances are
/// differences of logits, so they can be infinite for logits near the end of the f64 range.
///
/// The fixed-point sides encode eps rounding up: their threshold lies up to one unit above. Give that value as
/// [`RealHead::epsilon`] to measure against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Branches {
    /// How the comparisons go.
    pub masks: Masks,
    /// x_i - 0. `None` for `softmax`.
    pub zero: Option<Vec<f64>>,
    /// x_i - eps. `None` for the heads without the threshold.
    pub epsilon: Option<Vec<f64>>,
    /// For the winner: its lead over the second (0: a tie, infinite: no second). For any other logit: x_i - maximum, at
    /// most 0. It decides predictions; no gradient jumps there.
    pub tie: Vec<f64>,
    /// The largest logit, ties to the lowest index.
    pub winner: usize,
}

impl RealHead {
    /// m_i.
    pub(super) fn is_positive(&self, x: f64) -> bool {
        x > 0.0
    }

    /// a_i.
    pub(super) fn is_above(&self, x: f64) -> bool {
        match self.head {
            Head::ReluProb => x >= self.epsilon,
            Head::ReluProbCut => x > self.epsilon,
            Head::Softmax | Head::ReluGrad | Head::ReluEps => false,
        }
    }

    /// The comparisons of one row of logits (L elements, real).
    pub fn branches(&self, logits: &[f64]) -> Branches {
        let distance = |threshold: f64| logits.iter().map(|&x| x - threshold).collect::<Vec<_>>();
        let winner = argmax(logits);
        let best = logits.get(winner).copied().unwrap_or(f64::NEG_INFINITY);
        let others = logits.iter().enumerate().filter(|&(i, _)| i != winner);
        let second = others.map(|(_, &x)| x).fold(f64::NEG_INFINITY, f64::max);
        let tie = (0..logits.len()).map(|i| if i == winner { best - second } else { logits[i] - best }).collect();
        Branches {
            masks: Masks {
                positive: logits.iter().map(|&x| self.is_positive(x)).collect(),
                above: logits.iter().map(|&x| self.is_above(x)).collect(),
            },
            zero: (self.head != Head::Softmax).then(|| distance(0.0)),
            epsilon: matches!(self.head, Head::ReluProb | Head::ReluProbCut).then(|| distance(self.epsilon)),
            tie,
            winner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_compared_exactly() {
        let eps = 0.1f64;
        let row = [eps.next_down(), eps, eps.next_up(), 0.0, -0.0, 5e-324];
        let masks = |head| RealHead::paper(head).branches(&row).masks;
        assert_eq!(masks(Head::ReluProb).above, [false, true, true, false, false, false]);
        assert_eq!(masks(Head::ReluProbCut).above, [false, false, true, false, false, false]);
        assert_eq!(masks(Head::ReluEps).above, [false; 6]);
        for head in Head::ALL {
            assert_eq!(masks(head).positive, [true, true, true, false, false, true]);
        }
    }

    #[test]
    fn distances_are_to_the_thresholds_the_head_has() {
        let row = [0.5, -1.0, 0.5, 0.25];
        for head in Head::ALL {
            let b = RealHead::paper(head).branches(&row);
            assert_eq!(b.tie, [0.0, -1.5, 0.0, -0.25], "a tie has distance 0 on both sides");
            assert_eq!(b.winner, 0, "ties go to the lowest index");
            assert_eq!(b.zero.is_some(), head != Head::Softmax);
            assert_eq!(b.epsilon.is_some(), matches!(head, Head::ReluProb | Head::ReluProbCut));
            if let Some(epsilon) = b.epsilon {
                assert_eq!(epsilon, [0.4, -1.1, 0.4, 0.15]);
            }
        }
    }

    #[test]
    fn degenerate_rows_have_branches_too() {
        let head = RealHead::paper(Head::ReluProb);
        assert_eq!(head.branches(&[]).tie, Vec::<f64>::new());
        assert_eq!(head.branches(&[3.0]).tie, [f64::INFINITY]);
        assert_eq!(head.branches(&[1e308, -1e308]).tie, [f64::INFINITY, f64::NEG_INFINITY]);
    }
}
