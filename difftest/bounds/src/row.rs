//! One row of a head: the elements that each of its tensors has for this row.

use reference::spec::{HeadPoint, ProbePoint};

/// One row of a head's tensors. A head has those of its own points only (section 9 of the arithmetic).
#[derive(Debug, Clone, PartialEq)]
pub struct HeadRow<T> {
    /// G, one element a class.
    pub gradient: Vec<T>,
    /// The intermediates, by point.
    parts: Vec<(HeadPoint, Vec<T>)>,
}

impl<T> HeadRow<T> {
    /// A row of gradient and intermediates.
    pub fn new(gradient: Vec<T>, parts: impl Into<Vec<(HeadPoint, Vec<T>)>>) -> Self {
        HeadRow { gradient, parts: parts.into() }
    }

    /// The row's elements of one tensor; none where the head has no such tensor. Of the reciprocals these are that of S
    /// and that of z.
    pub fn of(&self, point: &ProbePoint) -> &[T] {
        match point {
            ProbePoint::HeadGradient => &self.gradient,
            ProbePoint::Head(point) => self.parts.iter().find(|(p, _)| p == point).map_or(&[], |(_, v)| v),
            _ => &[],
        }
    }
}

/// Whether a tensor is one of the head's.
pub fn of_head(point: &ProbePoint) -> bool {
    matches!(point, ProbePoint::Head(_) | ProbePoint::HeadGradient)
}

/// The place, (row, column), of element `k` of batch row `row` in its tensor. Reciprocals of S fill the first half of
/// their tensor, those of z the second.
pub fn place(point: &ProbePoint, batch: usize, row: usize, k: usize) -> (usize, usize) {
    if *point == ProbePoint::Head(HeadPoint::Reciprocal) { (k * batch + row, 0) } else { (row, k) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_knows_the_tensors_of_its_head_only() {
        let row = HeadRow::new(vec![1, 2], [(HeadPoint::Sum, vec![7]), (HeadPoint::Reciprocal, vec![8, 9])]);
        assert_eq!(row.of(&ProbePoint::HeadGradient), [1, 2]);
        assert_eq!(row.of(&ProbePoint::Head(HeadPoint::Reciprocal)), [8, 9]);
        assert!(row.of(&ProbePoint::Head(HeadPoint::Exp)).is_empty() && row.of(&ProbePoint::Logits).is_empty());
    }

    #[test]
    fn reciprocals_of_sums_come_before_those_of_true_logits() {
        let reciprocal = ProbePoint::Head(HeadPoint::Reciprocal);
        assert_eq!([place(&reciprocal, 5, 3, 0), place(&reciprocal, 5, 3, 1)], [(3, 0), (8, 0)]);
        assert_eq!(place(&ProbePoint::HeadGradient, 5, 3, 1), (3, 1));
    }
}
