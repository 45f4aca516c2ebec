//! Means and medians with their standard errors.

use crate::statistics::median;

/// Binomial standard error of an accuracy (0 to 1) on `rows` rows.
pub fn binomial_error(accuracy: f64, rows: usize) -> f64 {
    (accuracy * (1.0 - accuracy) / rows.max(1) as f64).sqrt()
}

/// Median and its standard error from the median deviation, as if the undisturbed values were normal (0 for a single
/// value).
pub fn median_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let middle = median(values)?;
    let deviation = median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())?;
    // 1.4826: a normal's standard deviation over its median deviation; sqrt(pi / 2): its median's error over its
    // mean's.
    let one = 1.4826 * (std::f64::consts::PI / 2.0).sqrt();
    Some((middle, one * deviation / (values.len() as f64).sqrt()))
}

/// Mean and its standard error (0 for a single value).
pub fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_of_a_mean() {
        let (middle, error) = median_and_error(&[6.0, 5.0, 200.0, 5.5, 7.0]).unwrap();
        assert!(middle == 6.0 && error < 1.0, "one disturbed epoch moves neither: {middle} ± {error}");
        assert_eq!((median_and_error(&[]), median_and_error(&[3.0])), (None, Some((3.0, 0.0))));
        assert_eq!(mean_and_error(&[]), None);
        assert_eq!(mean_and_error(&[3.0]), Some((3.0, 0.0)));
        assert_eq!(mean_and_error(&[1.0, 3.0]), Some((2.0, 1.0)));
    }
}
