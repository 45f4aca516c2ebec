//! Sums of products without rounding: 128-bit integers where all operands are integers, double precision with a
//! running error elsewhere.

use super::number::Number;
use crate::bound::rules::gamma;
use ndarray::Array2;

/// Values that an operation should give before it truncates.
#[derive(Debug, Clone, PartialEq)]
pub enum Exact {
    /// Integers that stand for multiples of 2^-scale, exact. Beyond 2^127 they saturate.
    Integer {
        /// Row-major.
        v: Vec<i128>,
        /// Scale in bits.
        scale: u32,
    },
    /// Reals with a bound of the error of computing and storing them.
    Real {
        /// Row-major.
        v: Vec<f64>,
        /// Largest distance from the exact value, real.
        slack: Vec<f64>,
    },
}

/// The exact results of an operation, and what their rounding in floating point is measured by.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Rows and columns.
    pub dim: (usize, usize),
    /// The exact results.
    pub exact: Exact,
    /// The sum of the magnitudes of the terms, real; empty for integers.
    pub magnitude: Vec<f64>,
    /// The number of terms of a sum.
    pub terms: usize,
}

impl Expected {
    /// Results that are integers, of one term each.
    pub fn integers(dim: (usize, usize), v: Vec<i128>, scale: u32) -> Self {
        Expected { dim, exact: Exact::Integer { v, scale }, magnitude: Vec::new(), terms: 1 }
    }

    /// Results that are reals, with the magnitudes of the terms they were summed from and the relative error of what
    /// went in.
    pub fn reals(dim: (usize, usize), v: Vec<f64>, magnitude: Vec<f64>, terms: usize, relative: f64) -> Self {
        let g = gamma(terms + 4) + relative;
        let slack = magnitude.iter().map(|m| m * g).collect();
        Expected { dim, exact: Exact::Real { v, slack }, magnitude, terms }
    }

    /// The results as reals.
    pub fn to_reals(&self) -> Vec<f64> {
        match &self.exact {
            Exact::Integer { v, scale } => {
                let unit = 2f64.powi(-(*scale as i32));
                v.iter().map(|&v| v as f64 * unit).collect()
            }
            Exact::Real { v, .. } => v.clone(),
        }
    }

    /// The results with the sign of `max(0, .)`.
    pub fn relu(mut self) -> Self {
        match &mut self.exact {
            Exact::Integer { v, .. } => v.iter_mut().for_each(|v| *v = (*v).max(0)),
            Exact::Real { v, .. } => v.iter_mut().for_each(|v| *v = v.max(0.0)),
        }
        self
    }

    /// The results where `keep` is true, exactly 0 elsewhere.
    pub fn masked(mut self, keep: &Array2<bool>) -> Self {
        for (i, _) in keep.iter().enumerate().filter(|(_, k)| !**k) {
            match &mut self.exact {
                Exact::Integer { v, .. } => v[i] = 0,
                Exact::Real { v, slack } => (v[i], slack[i]) = (0.0, 0.0),
            }
            if let Some(m) = self.magnitude.get_mut(i) {
                *m = 0.0;
            }
        }
        self
    }
}

/// X W, with the bias added to each row.
///
/// # Panics
/// If the inner dimensions differ: the caller has checked the shapes.
pub fn product(x: &Number, w: &Number, bias: Option<&Number>) -> Expected {
    let dim = (x.dim().0, w.dim().1);
    let terms = x.dim().1 + usize::from(bias.is_some());
    if let (Number::Units { v: x, scale: sx }, Number::Units { v: w, scale: sw }) = (x, w)
        && let Some(bias) = integer_bias(bias, sx + sw)
    {
        let v = integer_product(x, w, &bias);
        return Expected { terms, ..Expected::integers(dim, v, sx + sw) };
    }
    let (xr, wr) = (x.reals(), w.reals());
    let mut v = xr.dot(&wr);
    let mut magnitude = xr.mapv(f64::abs).dot(&wr.mapv(f64::abs));
    let mut relative = x.half_ulp() + w.half_ulp();
    if let Some(bias) = bias {
        let b = bias.reals();
        v += &b.row(0);
        magnitude += &b.row(0).mapv(f64::abs);
        relative += bias.half_ulp();
    }
    Expected::reals(dim, v.into_raw_vec_and_offset().0, magnitude.into_raw_vec_and_offset().0, terms, relative)
}

/// The bias at the scale of products: empty without one, `None` if it is not made of integers or does not fit.
fn integer_bias(bias: Option<&Number>, scale: u32) -> Option<Vec<i128>> {
    match bias {
        None => Some(Vec::new()),
        Some(Number::Units { v, scale: own }) if *own <= scale && scale - own <= 60 => {
            Some(v.iter().map(|&b| i128::from(b) << (scale - own)).collect())
        }
        Some(_) => None,
    }
}

fn integer_product(x: &Array2<i64>, w: &Array2<i64>, bias: &[i128]) -> Vec<i128> {
    let ((rows, inner), columns) = (x.dim(), w.ncols());
    assert_eq!(inner, w.nrows(), "inner dimensions of a matrix product");
    let largest = |v: &Array2<i64>| v.iter().fold(0, |m, v| m.max(v.unsigned_abs())) as f64;
    let offset = bias.iter().fold(0, |m, b| m.max(b.unsigned_abs())) as f64;
    let narrow = inner as f64 * largest(x) * largest(w) + offset < 2f64.powi(62);
    let mut out = vec![0i128; rows * columns];
    let mut sums = vec![0i64; columns];
    for (x, out) in x.rows().into_iter().zip(out.chunks_mut(columns.max(1))) {
        if narrow {
            sums.fill(0);
            sums.iter_mut().zip(bias).for_each(|(s, &b)| *s = b as i64);
            for (&x, w) in x.iter().zip(w.rows()).filter(|(x, _)| **x != 0) {
                sums.iter_mut().zip(w).for_each(|(s, &w)| *s += x * w);
            }
            out.iter_mut().zip(&sums).for_each(|(o, &s)| *o = s.into());
        } else {
            out.iter_mut().zip(bias).for_each(|(o, &b)| *o = b);
            for (&x, w) in x.iter().zip(w.rows()) {
                let term = |w: i64| i128::from(x) * i128::from(w);
                out.iter_mut().zip(w).for_each(|(o, &w)| *o = o.saturating_add(term(w)));
            }
        }
    }
    out
}

/// The sum of each column, (1, columns).
pub fn column_sums(x: &Number) -> Expected {
    let (rows, columns) = x.dim();
    match x {
        Number::Units { v, scale } => {
            let sums = v.columns().into_iter().map(|c| c.iter().map(|&v| i128::from(v)).sum()).collect();
            Expected { terms: rows, ..Expected::integers((1, columns), sums, *scale) }
        }
        Number::Reals { v, half_ulp } => {
            let sum = |f: fn(f64) -> f64| v.columns().into_iter().map(|c| c.iter().map(|&v| f(v)).sum()).collect();
            Expected::reals((1, columns), sum(|v| v), sum(f64::abs), rows, *half_ulp)
        }
    }
}

/// A real constant as an integer times 2^-scale, exactly; `None` if it needs more than 62 bits or a scale beyond 100.
fn dyadic(c: f64) -> Option<(i128, u32)> {
    (0..=100)
        .map(|s| (c * 2f64.powi(s), s as u32))
        .find(|(v, _)| v.fract() == 0.0)
        .and_then(|(v, s)| (v.abs() < 2f64.powi(62)).then_some((v as i128, s)))
}

/// a X + b Y for constants a and b. Exact in integers if both constants are given exactly, with few bits.
pub fn combination(a: f64, x: &Number, b: f64, y: &Number) -> Expected {
    let dim = x.dim();
    if let (Number::Units { v: xv, scale: sx }, Number::Units { v: yv, scale: sy }) = (x, y)
        && let (Some((a, sa)), Some((b, sb))) = (dyadic(a), dyadic(b))
    {
        let scale = (sx + sa).max(sy + sb);
        let (up_x, up_y) = (scale - sx - sa, scale - sy - sb);
        let bits = |c: i128, v: &Array2<i64>, up: u32| {
            let largest = v.iter().fold(0, |m, v| m.max(v.unsigned_abs()));
            (128 - c.unsigned_abs().leading_zeros()) + (64 - largest.leading_zeros()) + up
        };
        if bits(a, xv, up_x) < 126 && bits(b, yv, up_y) < 126 {
            let term = |c: i128, v: i64, up: u32| (c * i128::from(v)) << up;
            let v = xv.iter().zip(yv).map(|(&x, &y)| term(a, x, up_x) + term(b, y, up_y)).collect();
            return Expected { terms: 2, ..Expected::integers(dim, v, scale) };
        }
    }
    let (xr, yr) = (x.reals(), y.reals());
    let v = xr.iter().zip(&yr).map(|(x, y)| a * x + b * y).collect();
    let magnitude = xr.iter().zip(&yr).map(|(x, y)| (a * x).abs() + (b * y).abs()).collect();
    Expected::reals(dim, v, magnitude, 2, x.half_ulp() + y.half_ulp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn integers_and_reals_agree_and_large_ones_do_not_wrap() {
        let units = |v, scale| Number::Units { v, scale };
        let (x, w) = (units(array![[3, -2], [0, 5]], 4), units(array![[7, 1], [2, -9]], 4));
        let b = units(array![[1, -1]], 4);
        let exact = product(&x, &w, Some(&b));
        assert_eq!(exact.exact, Exact::Integer { v: vec![17 + 16, 21 - 16, 10 + 16, -45 - 16], scale: 8 });
        let real = |n: &Number| Number::Reals { v: n.reals(), half_ulp: 0.0 };
        assert_eq!(product(&real(&x), &real(&w), Some(&real(&b))).to_reals(), exact.to_reals());
        let big = units(array![[i64::MAX]], 0);
        let Exact::Integer { v, .. } = product(&big, &big, None).exact else { panic!("integers") };
        assert_eq!(v[0], i128::from(i64::MAX) * i128::from(i64::MAX));
    }

    #[test]
    fn constants_of_few_bits_stay_exact() {
        let x = Number::Units { v: array![[1000, -3]], scale: 16 };
        let y = Number::Units { v: array![[5, 1 << 40]], scale: 32 };
        let Exact::Integer { v, scale } = combination(0.75, &x, -655.0 * 2f64.powi(-23), &y).exact else {
            panic!("integers")
        };
        assert_eq!(scale, 55);
        assert_eq!(v, [(3000i128 << 37) - 5 * 655, (-9i128 << 37) - (655i128 << 40)]);
        assert!(matches!(combination(0.9, &x, 0.1, &y).exact, Exact::Integer { .. }), "0.9 is 53 bits");
        let wide = Number::Units { v: array![[i64::MAX, 1]], scale: 16 };
        assert!(matches!(combination(0.9, &wide, 1e-20, &y).exact, Exact::Real { .. }));
    }

    /// The largest sum that 64 bits hold for sure, and the first that goes through 128.
    #[test]
    fn narrow_and_wide_sums_are_the_same() {
        let units = |v, scale| Number::Units { v, scale };
        for large in [(1i64 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, 1 << 40] {
            let x = units(array![[large, -large, large, 7], [0, 1, 0, -large]], 3);
            let w = units(array![[large, 1], [-large, 2], [large, -3], [1, large]], 5);
            let b = units(array![[1, -2]], 2);
            let l = i128::from(large);
            let v = vec![3 * l * l + 7 + 64, l - 2 * l - 3 * l + 7 * l - 128, -2 * l + 64, 2 - l * l - 128];
            assert_eq!(product(&x, &w, Some(&b)), Expected { terms: 5, ..Expected::integers((2, 2), v, 8) });
        }
        // A bias is brought to the scale of products by 60 bits and no more; one of finer scale is no integer there.
        let one = |scale| units(array![[1]], scale);
        let integer = |product: Expected| matches!(product.exact, Exact::Integer { .. });
        assert!(integer(product(&one(30), &one(30), Some(&one(0)))));
        assert!(!integer(product(&one(31), &one(30), Some(&one(0)))));
        assert!(
            integer(product(&one(1), &one(1), Some(&one(2)))) && !integer(product(&one(1), &one(1), Some(&one(3))))
        );
    }

    #[test]
    fn reals_have_the_slack_of_their_terms_and_of_what_went_in() {
        let real = |v, half_ulp| Number::Reals { v, half_ulp };
        let (x, w) = (real(array![[3.0, -2.0]], 1e-3), real(array![[0.5], [4.0]], 2e-3));
        let of = |expected: &Expected| match &expected.exact {
            Exact::Real { v, slack } => (v.clone(), slack.clone(), expected.magnitude.clone(), expected.terms),
            Exact::Integer { .. } => panic!("reals"),
        };
        let slack = |terms: usize, relative: f64, magnitude: f64| magnitude * (gamma(terms + 4) + relative);
        let plain = product(&x, &w, None);
        assert_eq!(of(&plain), (vec![-6.5], vec![slack(2, 1e-3 + 2e-3, 9.5)], vec![9.5], 2));
        let biased = product(&x, &w, Some(&real(array![[-1.0]], 4e-3)));
        assert_eq!(of(&biased), (vec![-7.5], vec![slack(3, 1e-3 + 2e-3 + 4e-3, 10.5)], vec![10.5], 3));
        let sums = column_sums(&real(array![[1.0, 2.0], [-3.0, 5.0]], 1e-3));
        assert_eq!(of(&sums), (vec![-2.0, 7.0], vec![slack(2, 1e-3, 4.0), slack(2, 1e-3, 7.0)], vec![4.0, 7.0], 2));
        let sum = combination(0.5, &x, -3.0, &x);
        assert_eq!(of(&sum), (vec![-7.5, 5.0], vec![slack(2, 2e-3, 10.5), slack(2, 2e-3, 7.0)], vec![10.5, 7.0], 2));
        let (v, slack, magnitude, _) = of(&sum.clone().masked(&array![[true, false]]));
        assert_eq!((v, slack[1], magnitude), (vec![-7.5, 0.0], 0.0, vec![10.5, 0.0]));
        assert_eq!(of(&sum.relu()).0, [0.0, 5.0]);
        let units = Number::Units { v: array![[1, -2], [3, 4]], scale: 5 };
        let sums = column_sums(&units);
        assert_eq!(sums, Expected { terms: 2, ..Expected::integers((1, 2), vec![4, 2], 5) });
        assert_eq!(sums.masked(&array![[false, true]]).exact, Exact::Integer { v: vec![0, 2], scale: 5 });
    }

    #[test]
    fn a_constant_of_62_bits_and_100_places_is_exact_and_no_longer_one() {
        assert_eq!(dyadic(-0.75), Some((-3, 2)));
        assert_eq!(dyadic(2f64.powi(61)), Some((1 << 61, 0)));
        assert_eq!(dyadic(2f64.powi(62)), None);
        assert_eq!((dyadic(2f64.powi(-100)), dyadic(2f64.powi(-101))), (Some((1, 100)), None));
    }
}
