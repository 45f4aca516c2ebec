//! Element by element: what the fixed-point side says against what f64 says, under the bound.

use crate::network::Bounded;
use ndarray::Array2;
use reference::spec::ProbePoint;
use serde::Serialize;

/// The verdict on one element. There is no variant for "close enough".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The integer stands for exactly the f64 value.
    Equal,
    /// Inside the bound.
    Within {
        /// Distance, real.
        error: f64,
        /// The bound, real.
        bound: f64,
    },
    /// It jumps with undecided comparisons and agrees with this outcome of them.
    Ambiguous {
        /// Which outcome, counted from 0.
        branch: usize,
        /// Distance of the nearest undecided operand from its threshold, real.
        distance: f64,
        /// Distance to the farthest branch, real.
        bound: f64,
    },
    /// Outside the bound, not a number, or in no branch.
    Outside {
        /// Distance, real.
        error: f64,
        /// The bound, real.
        bound: f64,
    },
}

/// One element that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Element {
    /// Row and column.
    pub index: (usize, usize),
    /// The real side's value.
    pub real: f64,
    /// Integer, at the tensor's scale.
    pub units: i64,
    /// |units 2^-scale - real|.
    pub error: f64,
    /// The bound it had to keep.
    pub bound: f64,
}

/// A tensor's comparison, over one step or, merged, over many. Errors are real; reports convert them to units of 2^-f.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The number of elements compared.
    pub elements: u64,
    /// Elements that agree exactly.
    pub equal: u64,
    /// Elements that jump with undecided comparisons and agree with one outcome.
    pub ambiguous: u64,
    /// Elements outside their bound.
    pub outside: u64,
    /// Largest error of the unambiguous elements.
    pub max_error: f64,
    /// The bound of the element with that error.
    pub bound_there: f64,
    /// Sum of the errors of the unambiguous elements.
    pub error_sum: f64,
    /// Largest bound of the unambiguous elements.
    pub max_bound: f64,
    /// Largest error / bound of one element: how near the bound came to failing.
    pub closest: f64,
    /// The first element outside, with its step.
    pub first_outside: Option<(usize, Element)>,
}

impl Comparison {
    /// Nothing compared yet.
    pub fn empty() -> Self {
        Comparison {
            elements: 0,
            equal: 0,
            ambiguous: 0,
            outside: 0,
            max_error: 0.0,
            bound_there: 0.0,
            error_sum: 0.0,
            max_bound: 0.0,
            closest: 0.0,
            first_outside: None,
        }
    }

    /// Mean error of the unambiguous elements.
    pub fn mean_error(&self) -> f64 {
        self.error_sum / (self.elements - self.ambiguous).max(1) as f64
    }

    /// Bound / observed at the element with the largest error; `None` where nothing differed.
    pub fn tightness(&self) -> Option<f64> {
        (self.max_error > 0.0).then(|| self.bound_there / self.max_error)
    }

    /// Adds one element's verdict.
    fn add(&mut self, verdict: Verdict) {
        self.elements += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Ambiguous { .. } => self.ambiguous += 1,
            Verdict::Within { error, bound } | Verdict::Outside { error, bound } => {
                self.outside += u64::from(matches!(verdict, Verdict::Outside { .. }));
                self.error_sum += error;
                self.max_bound = self.max_bound.max(bound);
                if error > self.max_error || error.is_nan() {
                    (self.max_error, self.bound_there) = (error, bound);
                }
                if bound > 0.0 {
                    self.closest = self.closest.max(error / bound);
                }
            }
        }
    }

    /// Adds a later step.
    pub fn merge(&mut self, later: Comparison) {
        self.elements += later.elements;
        self.equal += later.equal;
        self.ambiguous += later.ambiguous;
        self.outside += later.outside;
        if later.max_error > self.max_error || later.max_error.is_nan() {
            (self.max_error, self.bound_there) = (later.max_error, later.bound_there);
        }
        self.error_sum += later.error_sum;
        self.max_bound = self.max_bound.max(later.max_bound);
        self.closest = self.closest.max(later.closest);
        if self.first_outside.is_none() {
            self.first_outside = later.first_outside;
        }
    }
}

/// The real that units at `scale` stand for; exact below 2^53.
pub fn real(units: i64, scale: u32) -> f64 {
    units as f64 * 2f64.powi(-(scale as i32))
}

/// The verdict on every element, row-major.
pub fn verdicts(real_side: &Array2<f64>, units: &Array2<i64>, scale: u32, bounded: &Bounded) -> Vec<Verdict> {
    verdicts_of_reals(real_side, &units.mapv(|u| real(u, scale)), bounded)
}

/// The verdict on every element of a side whose values are given as reals, row-major.
pub fn verdicts_of_reals(real_side: &Array2<f64>, other: &Array2<f64>, bounded: &Bounded) -> Vec<Verdict> {
    let columns = other.ncols();
    let value = |flat: usize| other[[flat / columns, flat % columns]];
    let mut verdicts: Vec<_> = real_side
        .iter()
        .zip(other)
        .zip(&bounded.radius)
        .map(|((&r, &o), &bound)| {
            let error = (o - r).abs();
            if error == 0.0 {
                Verdict::Equal
            } else if error <= bound && bound.is_finite() {
                Verdict::Within { error, bound }
            } else {
                Verdict::Outside { error, bound }
            }
        })
        .collect();
    for ambiguity in &bounded.ambiguous {
        let branch = ambiguity.branch_of(value);
        for (&flat, &jumps) in ambiguity.elements.iter().zip(&ambiguity.jumps) {
            let at = [flat / columns, flat % columns];
            let bound = bounded.radius[at];
            match branch {
                Some(branch) if jumps => {
                    verdicts[flat] = Verdict::Ambiguous { branch, distance: ambiguity.distance, bound }
                }
                Some(_) => {}
                None => verdicts[flat] = Verdict::Outside { error: (value(flat) - real_side[at]).abs(), bound },
            }
        }
    }
    verdicts
}

/// Compares one tensor of `step`.
pub fn tensor(step: usize, real_side: &Array2<f64>, units: &Array2<i64>, scale: u32, bounded: &Bounded) -> Comparison {
    let mut comparison = Comparison::empty();
    for (flat, verdict) in verdicts(real_side, units, scale, bounded).into_iter().enumerate() {
        comparison.add(verdict);
        if let Verdict::Outside { error, bound } = verdict
            && comparison.first_outside.is_none()
        {
            let index = (flat / units.ncols(), flat % units.ncols());
            let at = [index.0, index.1];
            let element = Element { index, real: real_side[at], units: units[at], error, bound };
            comparison.first_outside = Some((step, element));
        }
    }
    comparison
}

/// The first difference between two tensors of units: row, column, left, right. A different shape differs at (0, 0).
pub fn first_difference(a: &Array2<i64>, b: &Array2<i64>) -> Option<((usize, usize), i64, i64)> {
    if a.dim() != b.dim() {
        return Some(((0, 0), a.len() as i64, b.len() as i64));
    }
    let differs = a.indexed_iter().zip(b).find(|((_, x), y)| x != y);
    differs.map(|((index, &x), &y)| (index, x, y))
}

/// In a tensor's own shape, how an index is written: `head_gradient[42, 3]`.
pub fn place(point: &ProbePoint, index: (usize, usize)) -> String {
    format!("{point}[{}, {}]", index.0, index.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch::{Ambiguity, Branch};
    use crate::interval::Interval;
    use ndarray::array;

    #[test]
    fn every_verdict_has_its_condition() {
        let bounded = Bounded {
            radius: array![[0.5, 0.5, 0.5, 9.0], [0.0, 0.0, 9.0, 9.0]],
            ambiguous: vec![
                Ambiguity {
                    elements: vec![3],
                    jumps: vec![true],
                    distance: 0.1,
                    branches: vec![Branch(vec![Interval::ZERO]), Branch(vec![Interval::around(8.0, 0.5)])],
                },
                Ambiguity {
                    elements: vec![6, 7],
                    jumps: vec![true, false],
                    distance: 0.1,
                    branches: vec![Branch(vec![Interval::ZERO; 2])],
                },
            ],
        };
        let reals = array![[1.0, 1.25, 1.75, 8.0], [0.0, f64::NAN, 0.0, 0.0]];
        let units = array![[1, 1, 1, 0], [0, 0, 0, 1]];
        let got = verdicts(&reals, &units, 0, &bounded);
        assert_eq!(got[0], Verdict::Equal);
        assert_eq!(got[1], Verdict::Within { error: 0.25, bound: 0.5 });
        assert_eq!(got[2], Verdict::Outside { error: 0.75, bound: 0.5 });
        assert_eq!(got[3], Verdict::Ambiguous { branch: 0, distance: 0.1, bound: 9.0 });
        assert_eq!(got[4], Verdict::Equal);
        assert!(matches!(got[5], Verdict::Outside { .. }), "NaN is never inside");
        assert!(matches!(got[6], Verdict::Outside { .. }), "the row fits no branch, although this element does");
        let c = tensor(4, &reals, &units, 0, &bounded);
        assert_eq!((c.elements, c.equal, c.ambiguous, c.outside), (8, 2, 1, 4));
        assert_eq!(c.first_outside.as_ref().map(|(s, e)| (*s, e.index)), Some((4, (0, 2))));
    }

    #[test]
    fn a_one_unit_difference_is_found_where_it_is() {
        let a = array![[1, 2], [3, 4]];
        let mut b = a.clone();
        assert_eq!(first_difference(&a, &b), None);
        b[[1, 0]] += 1;
        assert_eq!(first_difference(&a, &b), Some(((1, 0), 3, 4)));
    }

    /// Nothing hangs on a comparison.
    fn decided(radius: Array2<f64>) -> Bounded {
        Bounded { radius, ambiguous: Vec::new() }
    }

    #[test]
    fn a_bound_that_is_reached_holds_and_one_that_is_infinite_says_nothing() {
        let bounded = decided(array![[0.5, 0.5, f64::INFINITY, f64::NAN, 0.0]]);
        let got = verdicts_of_reals(&array![[1.0; 5]], &array![[1.5, 1.5f64.next_up(), 9.0, 1.5, 0.5]], &bounded);
        assert_eq!(got[0], Verdict::Within { error: 0.5, bound: 0.5 });
        assert!(got[1..].iter().all(|verdict| matches!(verdict, Verdict::Outside { .. })), "{got:?}");
    }

    #[test]
    fn what_is_kept_of_a_tensor_is_told_of_its_elements() {
        // Errors of 1, 3 and 0 under bounds of 4, 6 and 9; then a later step with an error of 2 under a bound of 2.
        let first = tensor(7, &array![[0.0, 0.0, 5.0]], &array![[1, -3, 5]], 0, &decided(array![[4.0, 6.0, 9.0]]));
        assert_eq!((first.max_error, first.bound_there, first.max_bound), (3.0, 6.0, 6.0));
        assert_eq!((first.error_sum, first.mean_error(), first.closest), (4.0, 4.0 / 3.0, 0.5));
        assert_eq!((first.tightness(), Comparison::empty().tightness()), (Some(2.0), None));
        let second = tensor(8, &array![[0.0]], &array![[2]], 0, &decided(array![[2.0]]));
        let (mut forwards, mut backwards) = (first.clone(), second.clone());
        forwards.merge(second);
        backwards.merge(first);
        assert_eq!(forwards, backwards);
        assert_eq!((forwards.elements, forwards.equal, forwards.ambiguous, forwards.outside), (4, 1, 0, 0));
        assert_eq!((forwards.max_error, forwards.bound_there, forwards.max_bound), (3.0, 6.0, 6.0));
        assert_eq!((forwards.error_sum, forwards.closest), (6.0, 1.0));
    }

    #[test]
    fn the_first_element_outside_stays_and_a_nan_is_the_largest_error() {
        let reals = array![[0.0, f64::NAN], [0.0, 0.0]];
        let mut all = tensor(1, &array![[0.0]], &array![[0]], 0, &decided(array![[0.0]]));
        all.merge(tensor(2, &reals, &array![[0, 0], [5, 9]], 1, &decided(Array2::from_elem((2, 2), 1.0))));
        all.merge(tensor(3, &array![[0.0]], &array![[9]], 0, &decided(array![[1.0]])));
        assert_eq!(all.outside, 4);
        let (step, element) = all.first_outside.as_ref().expect("four are outside");
        assert_eq!((*step, element.index, element.units), (2, (0, 1), 0));
        let row = tensor(4, &array![[0.0, 0.0], [1.0, 0.0]], &array![[0, 0], [5, 9]], 1, &decided(reals.mapv(|_| 1.0)));
        let element = row.first_outside.map(|(_, e)| e).expect("2.5 and 4.5 are outside");
        let expected = Element { index: (1, 0), real: 1.0, units: 5, error: 1.5, bound: 1.0 };
        assert_eq!(element, expected);
        let mut nan = tensor(5, &array![[0.0]], &array![[1]], 0, &decided(array![[2.0]]));
        nan.merge(tensor(6, &array![[f64::NAN]], &array![[1]], 0, &decided(array![[3.0]])));
        assert!(nan.max_error.is_nan() && nan.bound_there == 3.0, "{nan:?}");
    }

    #[test]
    fn what_is_ambiguous_counts_for_no_error() {
        let ambiguous = vec![Ambiguity {
            elements: vec![2],
            jumps: vec![true],
            distance: 0.25,
            branches: vec![Branch(vec![Interval::ZERO]), Branch(vec![Interval::point(8.0)])],
        }];
        let bounded = Bounded { radius: array![[1.0, 1.0], [9.0, 1.0]], ambiguous };
        let reals = array![[0.0, 0.0], [1.0, 0.0]];
        let found = verdicts(&reals, &array![[0, 1], [8, 0]], 0, &bounded);
        assert_eq!(found[2], Verdict::Ambiguous { branch: 1, distance: 0.25, bound: 9.0 });
        let c = tensor(0, &reals, &array![[0, 1], [8, 0]], 0, &bounded);
        assert_eq!((c.elements, c.equal, c.ambiguous, c.outside), (4, 2, 1, 0));
        assert_eq!((c.max_error, c.max_bound, c.mean_error()), (1.0, 1.0, 1.0 / 3.0));
        let neither = verdicts(&reals, &array![[0, 1], [7, 0]], 0, &bounded);
        assert_eq!(neither[2], Verdict::Outside { error: 6.0, bound: 9.0 }, "inside its bound, but in no branch");
    }

    #[test]
    fn tensors_of_other_shapes_differ() {
        assert_eq!(first_difference(&array![[1, 2]], &array![[1], [2]]), Some(((0, 0), 2, 2)));
        assert_eq!(place(&ProbePoint::Logits, (2, 5)), "logits[2, 5]");
    }

    /// Two elements hang on a comparison, of which the first jumps; the second keeps its own verdict where the row fits
    /// a branch, and neither does where it fits none.
    #[test]
    fn what_does_not_jump_is_judged_by_its_own_bound() {
        let of = |second: f64, units: [i64; 2]| {
            let branch = Branch(vec![Interval::point(8.0), Interval { lo: -9.0, hi: 9.0 }]);
            let ambiguous = vec![Ambiguity {
                elements: vec![0, 1],
                jumps: vec![true, false],
                distance: 0.25,
                branches: vec![branch],
            }];
            let bounded = Bounded { radius: array![[9.0, 0.5]], ambiguous };
            tensor(1, &array![[0.0, second]], &array![[units[0], units[1]]], 0, &bounded)
        };
        let within = of(1.5, [8, 1]);
        assert_eq!((within.ambiguous, within.outside), (1, 0));
        let outside = of(1.6, [8, 1]);
        assert_eq!(
            (outside.ambiguous, outside.outside, outside.first_outside.map(|f| f.1.index)),
            (1, 1, Some((0, 1)))
        );
        let neither = of(3.0, [7, 1]);
        assert_eq!((neither.ambiguous, neither.outside, neither.max_error), (0, 2, 7.0));
        let below = of(3.0, [-7, 1]).first_outside.expect("it fits no branch").1;
        assert_eq!((below.error, below.bound), (7.0, 9.0));
        let mut both = of(1.5, [8, 1]);
        both.merge(of(1.5, [8, 1]));
        assert_eq!((both.elements, both.ambiguous), (4, 2));
    }
}
