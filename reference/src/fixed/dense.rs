//! Dense layers: matrix products in the ring, forward and backward.
//!
//! computes   Z = trunc(X W + (b << f), f), X' = `[Z > 0]` Z; dW = X^T G, db = column sums of G, G' = M trunc(G W^T, f)
//! requires   unreduced dot products below 2^61, Z ordinary
//! error      one truncation an element of Z and of G'; dW and db are exact
//! source     arithmetic, sections 4 and 11

use super::truncate::{PRODUCT_LIMIT, UNREDUCED_LIMIT, trunc_doubled};
use super::{Arithmetic, ModelError, Unreduced, compare};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// X W + (b << f) modulo 2^64, flat (rows of X, columns of W), with the exact value of elements that wrapped.
///
/// # Panics
/// If the inner dimensions differ.
pub fn product(x: ArrayView2<i64>, w: ArrayView2<i64>, bias: Option<(&Array1<i64>, u32)>) -> Unreduced {
    let ((_, inner), columns) = (x.dim(), w.ncols());
    assert_eq!(inner, w.nrows(), "inner dimensions of a matrix product");
    let (x, w) = (x.as_standard_layout(), w.as_standard_layout());
    let (x, w) = (x.as_slice().unwrap_or(&[]), w.as_slice().unwrap_or(&[]));
    let first: Vec<i64> = match bias {
        Some((b, f)) => b.iter().map(|b| b.wrapping_mul(1 << f)).collect(),
        None => vec![0; columns],
    };
    let rows = x.len().checked_div(inner).unwrap_or(0);
    let mut ring = Vec::with_capacity(rows * columns);
    for x in x.chunks_exact(inner.max(1)) {
        let start = ring.len();
        ring.extend_from_slice(&first);
        let z = &mut ring[start..];
        for (&x, w) in x.iter().zip(w.chunks_exact(columns.max(1))) {
            // Four of five pixels, and most of a trained hidden layer, are 0.
            if x != 0 {
                z.iter_mut().zip(w).for_each(|(z, w)| *z = z.wrapping_add(x.wrapping_mul(*w)));
            }
        }
    }
    // Enough for nearly every product to know that nothing wrapped: no term and no bias is larger than these.
    let largest = |v: &[i64]| v.iter().fold(0, |m, v| m.max(v.unsigned_abs())) as f64;
    let offset = bias.map_or(0.0, |(b, f)| largest(b.as_slice().unwrap_or(&first)) * 2f64.powi(f as i32));
    if inner as f64 * largest(x) * largest(w) + offset < UNREDUCED_LIMIT as f64 {
        return Unreduced::with_exact(ring, vec![]);
    }
    let exact = |index: usize| {
        let (x, column) = (&x[index / columns * inner..][..inner], index % columns);
        let start = bias.map_or(0, |(b, f)| i128::from(b[column]) << f);
        let terms = x.iter().zip(w[column..].iter().step_by(columns)).map(|(&x, &w)| i128::from(x) * i128::from(w));
        // Partial sums beyond 128 bits occur only long after values left their range; they count as largest.
        terms.into_iter().try_fold(start, i128::checked_add).unwrap_or(i128::MAX)
    };
    let beyond = (0..ring.len()).map(|i| (i, exact(i))).filter(|(_, v)| i64::try_from(*v).is_err()).collect();
    Unreduced::with_exact(ring, beyond)
}

/// Z of layer `l` (counted from 1): "layer{l}/forward".
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn forward(
    a: &mut Arithmetic,
    l: usize,
    x: &Array2<i64>,
    w: &Array2<i64>,
    b: &Array1<i64>,
) -> Result<Array2<i64>, ModelError> {
    let f = a.fixed.fraction_bits;
    let z = trunc_doubled(a, &format!("layer{l}/forward"), &product(x.view(), w.view(), Some((b, f))), f)?;
    Ok(matrix(x.nrows(), w.ncols(), z))
}

/// (M, M Z) with M = `[Z > 0]` of hidden layer `l`.
pub fn relu(a: &mut Arithmetic, l: usize, z: &Array2<i64>) -> (Array2<i64>, Array2<i64>) {
    let mask = compare::above(a, &format!("layer{l}/relu"), z.as_slice().unwrap_or(&[]), 0);
    let mask = matrix(z.nrows(), z.ncols(), mask);
    let active = ndarray::Zip::from(&mask).and(z).map_collect(|m, z| m * z);
    (mask, active)
}

/// (dW at scale 2f, unreduced, modulo 2^63 in [-2^62, 2^62); db at scale f) of layer `l` from its input X and the
/// gradient G of its output.
pub fn weight_gradients(a: &mut Arithmetic, l: usize, x: &Array2<i64>, g: &Array2<i64>) -> (Array2<i64>, Array1<i64>) {
    let dw = product(x.t(), g.view(), None);
    a.monitor.unreduced(&format!("layer{l}/dW"), &dw, PRODUCT_LIMIT, 0);
    let db = g.fold_axis(Axis(0), 0i64, |sum, g| sum.wrapping_add(*g));
    a.monitor.magnitude(&format!("layer{l}/db"), &db, a.fixed.limit());
    let dw = dw.into_ring().into_iter().map(|v| v << 1 >> 1).collect();
    (matrix(x.ncols(), g.ncols(), dw), db)
}

/// G of hidden layer `l` - 1, from the gradient G of layer `l`'s output, its weights, and the mask of layer `l` - 1:
/// "layer{l}/backward".
///
/// # Errors
/// Those of [`super::truncate::trunc`].
pub fn backward(
    a: &mut Arithmetic,
    l: usize,
    g: &Array2<i64>,
    w: &Array2<i64>,
    mask: &Array2<i64>,
) -> Result<Array2<i64>, ModelError> {
    let back = trunc_doubled(a, &format!("layer{l}/backward"), &product(g.view(), w.t(), None), a.fixed.fraction_bits)?;
    let mut back = matrix(g.nrows(), w.nrows(), back);
    back.zip_mut_with(mask, |g, m| *g *= m);
    a.monitor.magnitude(&format!("layer{}/activation_gradient", l - 1), &back, a.fixed.limit());
    Ok(back)
}

/// Row-major values as a matrix.
pub(super) fn matrix(rows: usize, columns: usize, values: Vec<i64>) -> Array2<i64> {
    Array2::from_shape_vec((rows, columns), values).expect("one value an element by construction")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::World;
    use proptest::prelude::*;
    use spec::Rounding::Nearest;

    fn naive(x: &Array2<i64>, w: &Array2<i64>, b: &Array1<i64>) -> Vec<i128> {
        let mut z = vec![];
        for i in 0..x.nrows() {
            for j in 0..w.ncols() {
                let dot: i128 = (0..x.ncols()).map(|k| i128::from(x[[i, k]]) * i128::from(w[[k, j]])).sum();
                z.push(dot + (i128::from(b[j]) << 16));
            }
        }
        z
    }

    proptest! {
        #[test]
        fn a_product_is_the_exact_one_modulo_2_64(
            (n, k, m) in (0usize..5, 1usize..6, 1usize..6),
            bits in 1u32..62,
            seed in prop::collection::vec(any::<i64>(), 65),
        ) {
            let at = |base: usize, i: usize| seed[(base + i) % seed.len()] >> (63 - bits);
            let x = matrix(n, k, (0..n * k).map(|i| at(0, i)).collect());
            let w = matrix(k, m, (0..k * m).map(|i| at(25, i)).collect());
            let b = Array1::from_iter((0..m).map(|i| at(55, i)));
            let exact = naive(&x, &w, &b);
            prop_assert_eq!(product(x.view(), w.view(), Some((&b, 16))), Unreduced::new(exact));
            let zero = Array1::zeros(m);
            let transposed = product(w.t(), x.t(), None);
            let expected = matrix(n, m, naive(&x, &w, &zero).iter().map(|&v| v as i64).collect());
            let expected: Vec<i64> = expected.t().iter().copied().collect();
            prop_assert_eq!(transposed.ring(), &expected[..]);
        }
    }

    #[test]
    fn a_sum_that_wraps_back_into_range_is_still_a_violation() {
        let mut world = World::new(Nearest);
        let (x, w, b) = (matrix(1, 2, vec![1 << 34; 2]), matrix(2, 1, vec![1 << 29; 2]), Array1::zeros(1));
        let z = forward(&mut world.arithmetic(), 3, &x, &w, &b).unwrap();
        assert_eq!(world.monitor.violations()[0].operand, 1 << 64);
        assert_eq!((z[[0, 0]], world.monitor.violations()[0].operation.as_str()), (0, "layer3/forward"));
    }

    #[test]
    fn the_mask_is_open_at_zero() {
        let mut world = World::new(Nearest);
        let (mask, active) = relu(&mut world.arithmetic(), 1, &matrix(1, 4, vec![-5, 0, 1, 1 << 31]));
        assert_eq!((mask.into_raw_vec_and_offset().0, active[[0, 2]]), (vec![0, 0, 1, 1], 1));
        assert_eq!(world.monitor.counts()["layer1/relu"], 1, "2^31 is not ordinary");
    }
}
