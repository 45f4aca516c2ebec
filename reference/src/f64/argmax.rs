//! The largest element of a row, which is the predicted class.

/// Index of the largest element, ties to the lowest index. A NaN is never the largest; 0 if there is nothing else.
pub fn argmax(row: &[f64]) -> usize {
    largest(row.iter().copied())
}

/// As [`argmax`], of an iterator.
pub(super) fn largest(row: impl Iterator<Item = f64>) -> usize {
    let start = (0, f64::NEG_INFINITY);
    row.enumerate().fold(start, |best, (i, x)| if x > best.1 { (i, x) } else { best }).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_ties_and_nan() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax(&[-0.0, 0.0]), 0);
        assert_eq!(argmax(&[f64::NAN, -1e308, f64::NAN]), 1);
        assert_eq!(argmax(&[f64::NAN; 3]), 0);
        assert_eq!(argmax(&[]), 0);
    }
}
