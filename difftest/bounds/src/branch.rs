//! Undecided comparisons: elements whose value depends on a comparison within its bound of the threshold.
//!
//! The fixed-point side may legitimately decide such a comparison the other way. It must then agree, in all elements
//! that depend on it together, with one of the branches; anything else is outside. Only an element whose real value
//! *jumps* at the threshold is called ambiguous; the others pass it continuously, and are judged by their bound like
//! any other.

use crate::interval::Interval;

/// The values, real, that the elements of an [`Ambiguity`] may have if the comparisons turn out one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch(pub Vec<Interval>);

/// Elements of one tensor that depend on the same undecided comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct Ambiguity {
    /// Flat indices, in the order of every branch's intervals.
    pub elements: Vec<usize>,
    /// For each element whether it jumps: only these are ambiguous.
    pub jumps: Vec<bool>,
    /// Distance of the nearest undecided operand from its threshold, real.
    pub distance: f64,
    /// One branch for each outcome of the comparisons.
    pub branches: Vec<Branch>,
}

impl Ambiguity {
    /// The first branch that all values are inside of.
    pub fn branch_of(&self, value: impl Fn(usize) -> f64) -> Option<usize> {
        self.branches
            .iter()
            .position(|b| self.elements.iter().zip(&b.0).all(|(&e, interval)| interval.contains(value(e))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_must_agree_on_one_branch_together() {
        let branches = vec![
            Branch(vec![Interval::ZERO, Interval::point(-1.0)]),
            Branch(vec![Interval::around(2.0, 0.1), Interval::around(0.5, 0.1)]),
        ];
        let ambiguity = Ambiguity { elements: vec![3, 7], jumps: vec![true; 2], distance: 0.0, branches };
        let of = |a: f64, b: f64| ambiguity.branch_of(move |e| if e == 3 { a } else { b });
        assert_eq!(of(0.0, -1.0), Some(0));
        assert_eq!(of(2.05, 0.45), Some(1));
        assert_eq!(of(0.0, 0.5), None, "half of one branch and half of the other is no branch");
    }
}
