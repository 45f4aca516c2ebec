//! Twice the matrix product, with one product of words a party.
//!
//! computes   2 x y mod 2^64 as additive parts ([`Doubled`]): x y mod 2^63. Truncation, which follows every matrix
//!            product, divides it by one bit more
//! requires   inner dimensions that agree; |x y| < 2^61 for the truncation (section 1 of the arithmetic)
//! cost       local: 0 rounds, 0 bytes
//! reveals    nothing: each party computes on the components that it holds. No branch and no address depends on them
//! source     R. Cramer, I. Damgård, Y. Ishai, *Share conversion, pseudorandom secret-sharing and applications to
//!            secure computation* (TCC 2005), whose local conversion to Shamir's shares leaves one product a party over
//!            a field; its double over Z_2^64 is ours
//!
//! The nine terms x_i y_j are to be covered once each. Party i holds components i and j = i + 1 of both operands, so it
//! covers x_i y_j and x_j y_i and, with weights v and w of its choice, x_i y_i and x_j y_j. The two parties that can
//! cover a term x_i y_i share it: their weights add up to 1. One product is enough for weights with v w = 1, and the
//! next party's v is then 1 - w = 1 - 1/v, a map that is back after three parties wherever it starts. From v = 2,
//!
//! ```text
//! x y  =  (2 x1 + x2)(2 y1 + y2) / 2  +  (2 x0 + x2)(2 y0 + y2) / 2  -  (x0 - x1)(y0 - y1)
//! ```
//!
//! Something is halved whatever v is, as v and 1 - v cannot both be odd. The double has integer weights:
//!
//! ```text
//! party 1 (x1, x2; y1, y2)   (2 x1 + x2)(2 y1 + y2)
//! party 2 (x2, x0; y2, y0)   (2 x0 + x2)(2 y0 + y2)
//! party 0 (x0, x1; y0, y1)   (x1 - x0) 2 (y0 - y1)
//! ```
//!
//! It costs one bit of headroom. Summing before multiplying takes five products (`multiply.rs`), or six party by party.

use crate::buffer::Words;
use crate::clock::Phase;
use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::id::PartyId;
use crate::kernel::{Kernel, View, wide_fn};
use crate::party::Party;
use crate::share::{Doubled, Factor, Parts, Share};

/// A shared matrix as a product reads it.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    share: &'a Share,
    transposed: bool,
}

impl Matrix<'_> {
    /// The transpose, without a copy.
    #[must_use]
    pub fn t(self) -> Self {
        Matrix { transposed: !self.transposed, ..self }
    }

    /// The shape (rows, columns) as the product sees it.
    pub fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.share.cols, self.share.rows) } else { self.share.shape() }
    }
}

impl<'a> From<&'a Share> for Matrix<'a> {
    fn from(share: &'a Share) -> Self {
        Matrix { share, transposed: false }
    }
}

/// The left operand of a product: a share, or a [`Factor`] made of it before.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    held: Held<'a>,
    transposed: bool,
}

#[derive(Clone, Copy)]
enum Held<'a> {
    Share(&'a Share),
    Factor(&'a Factor),
}

impl Left<'_> {
    /// The transpose, without a copy.
    #[must_use]
    pub fn t(self) -> Self {
        Left { transposed: !self.transposed, ..self }
    }

    /// The shape (rows, columns) as the product sees it.
    pub fn shape(&self) -> (usize, usize) {
        let (rows, cols) = match self.held {
            Held::Share(share) => share.shape(),
            Held::Factor(factor) => (factor.rows, factor.cols),
        };
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }
}

impl<'a> From<&'a Share> for Left<'a> {
    fn from(share: &'a Share) -> Self {
        Left { held: Held::Share(share), transposed: false }
    }
}

impl<'a> From<Matrix<'a>> for Left<'a> {
    fn from(Matrix { share, transposed }: Matrix<'a>) -> Self {
        Left { held: Held::Share(share), transposed }
    }
}

impl<'a> From<&'a Factor> for Left<'a> {
    fn from(factor: &'a Factor) -> Self {
        Left { held: Held::Factor(factor), transposed: false }
    }
}

/// The additive parts of twice the matrix product x y, (rows of x, columns of y). No message is sent.
///
/// # Errors
/// Inner dimensions differ.
pub fn matmul_parts<'x, 'y>(p: &Party, x: impl Into<Left<'x>>, y: impl Into<Matrix<'y>>) -> Result<Doubled> {
    let (x, y): (Left, Matrix) = (x.into(), y.into());
    let ((rows, inner), (inner_y, cols)) = (x.shape(), y.shape());
    if inner != inner_y {
        return Err(Error::misuse(format!("matrix product: inner dimensions {inner} and {inner_y} differ")));
    }
    p.mark(Phase::Other);
    let made;
    let left = match x.held {
        Held::Factor(factor) => factor,
        Held::Share(share) => {
            made = Factor::new(p.id, share);
            &made
        }
    };
    let (far, middle) = y.share.far_and_middle(p.id);
    let mut right = Words::unset(y.share.len());
    right_words(p.id, far, middle, &mut right);
    let left = view(&left.words, (left.rows, left.cols), x.transposed);
    let mut part = Words::unset(rows * cols);
    let right = view(&right, y.share.shape(), y.transposed);
    Kernel::selected().matmul_in(p.pieces, left, right, &mut part, false);
    p.mark(Phase::MatrixProducts);
    Ok(Doubled(Parts { rows, cols, part }))
}

fn view(words: &[u64], (rows, cols): (usize, usize), transposed: bool) -> View<'_> {
    let view = View::new(words, rows, cols);
    if transposed { view.t() } else { view }
}

wide_fn! {
    /// The words by which the left operand ([`Factor`]) is multiplied.
    fn right_words(id: PartyId, far: &[u64], middle: &[u64], out: &mut [u64]) {
        let pairs = out.iter_mut().zip(far.iter().zip(middle));
        let doubled = faulty!(
            DifferenceOnce => u32::from(id != PartyId::P0),
            WeightForgotten => u32::from(id != PartyId::P2),
            1
        );
        match id {
            PartyId::P0 => pairs.for_each(|(out, (&a, &b))| *out = b.wrapping_sub(a) << doubled),
            _ => pairs.for_each(|(out, (&a, &b))| *out = (a << doubled).wrapping_add(b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::multiply::reshare;
    use crate::testing::{open, random, share, world};
    use spec::{FixedSpec, Rounding};

    #[test]
    fn matrix_products_transposed_and_gathered() {
        let (m, k, n) = (5, 7, 3);
        let (a, b) = (random(9 * k, 3), random(k * n, 4));
        let rows = [8u32, 0, 3, 3, 1];
        let (x, y) = (share(9, k, &a), share(k, n, &b));
        let batch = |p: &Party| Factor::new(p.id, &x[p.id.index()]).gather(&rows);
        let share_of = |p: &Party| x[p.id.index()].gather(&rows);
        let (z, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let (x, y) = (batch(p), &y[p.id.index()]);
            let product = matmul_parts(p, &x, y)?;
            let same = matmul_parts(p, &share_of(p), y)?;
            let transposed = matmul_parts(p, Matrix::from(y).t(), Matrix::from(&share_of(p)).t())?;
            p.run(async {
                let product = reshare(p, product.0).await?;
                let twice = product.clone().plus(&product)?;
                twice.minus(&reshare(p, same.0).await?)?.minus(&reshare(p, transposed.0).await?.transpose())
            })
        });
        assert_eq!(open(&z), vec![0; m * n]);
        let (z, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let parts = matmul_parts(p, &batch(p), &y[p.id.index()])?;
            p.run(reshare(p, parts.0))
        });
        let want = |i: usize, j: usize| {
            (0..k).fold(0i64, |s, q| s.wrapping_add(a[rows[i] as usize * k + q].wrapping_mul(b[q * n + j]))) << 1
        };
        assert_eq!(open(&z), (0..m * n).map(|e| want(e / n, e % n)).collect::<Vec<_>>());
    }

    #[test]
    fn a_factor_made_in_parts_and_read_transposed() {
        let (m, k, n) = (130, 70, 3);
        let (a, b) = (random(m * k, 5), random(m * n, 6));
        let (x, y) = (share(m, k, &a), share(m, n, &b));
        let (z, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let mut kept = Factor::with_capacity(p.id, m, k);
            for (from, to) in [(0, 67), (67, m)] {
                kept.extend(&x[p.id.index()].row_range(from, to))?;
            }
            let parts = matmul_parts(p, Left::from(&kept).t(), &y[p.id.index()])?;
            p.run(reshare(p, parts.0))
        });
        let want =
            |i: usize, j: usize| (0..m).fold(0i64, |s, q| s.wrapping_add(a[q * k + i].wrapping_mul(b[q * n + j]))) << 1;
        assert_eq!(open(&z), (0..k * n).map(|e| want(e / n, e % n)).collect::<Vec<_>>());
    }

    #[test]
    fn inner_dimensions_that_differ_are_refused() {
        let (x, y) = (share(2, 3, &[1; 6]), share(2, 3, &[1; 6]));
        let (refused, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let (x, y) = (&x[p.id.index()], &y[p.id.index()]);
            assert_eq!(matmul_parts(p, x, Matrix::from(y).t())?.0.part.len(), 4);
            Ok(matmul_parts(p, x, y).err())
        });
        let text = "matrix product: inner dimensions 3 and 2 differ";
        assert_eq!(refused, [(); 3].map(|()| Some(Error::misuse(text))));
    }
}
