//! Element-wise products, and what makes shares of the additive parts of any product.
//!
//! computes   z = x y (element-wise or row by row), wrapping
//! requires   matching shapes
//! cost       1 round, 24 bytes a result element, all parties ([`RESHARE`]); the local parts alone cost nothing
//! reveals    nothing: every message is masked with a fresh sharing of zero
//! source     Araki et al., *High-throughput semi-honest secure three-party computation* (CCS 2016), with five
//!            products, not six:
//!
//! ```text
//! party 0 (x0, x1; y0, y1)   (x0 + x1)(y0 + y1)               covers 00 01 10 11
//! party 1 (x1, x2; y1, y2)   x1 y2 + x2 (y1 + y2)             covers 12 21 22
//! party 2 (x2, x0; y2, y0)   x0 y2 + x2 y0                    covers 02 20
//! ```
//!
//! Matrices make do with three and two products with bits (`matmul.rs`), which only pay for matrices.

use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::share::same_shape;
use crate::share::{Parts, Share};
use crate::step::Step;

/// The cost of [`reshare`], and with it of every product here, an element of the result.
pub const RESHARE: Cost = Cost { rounds: 1, bits_per_element: 3 * 64 };

/// The additive parts of the element-wise product. No message is sent.
///
/// # Errors
/// Shapes differ.
pub fn product_parts(p: &Party, x: &Share, y: &Share) -> Result<Parts> {
    same_shape("product", x.shape(), y.shape())?;
    let mut part = Words::unset(x.len());
    products(p.id, x, y, &mut part);
    Ok(Parts { rows: x.rows, cols: x.cols, part })
}

/// The additive parts of x y where y is a column vector that multiplies every column of x. No message is sent.
///
/// # Errors
/// Row counts differ or y has several columns.
pub fn product_by_row_parts(p: &Party, x: &Share, y: &Share) -> Result<Parts> {
    same_shape("product by row", (x.rows, 1), y.shape())?;
    let mut part = Words::unset(x.len());
    products_by_row(p.id, x, y, &mut part);
    Ok(Parts { rows: x.rows, cols: x.cols, part })
}

wide_fn! {
    fn products(id: PartyId, x: &Share, y: &Share, out: &mut [u64]) {
        let n = out.len();
        let (own, next, y_own, y_next) = (&x.own[..n], &x.next[..n], &y.own[..n], &y.next[..n]);
        (0..n).for_each(|i| out[i] = product(id, own[i], next[i], y_own[i], y_next[i]));
    }
}

wide_fn! {
    fn products_by_row(id: PartyId, x: &Share, y: &Share, out: &mut [u64]) {
        let cols = x.cols.max(1);
        let rows = out.chunks_exact_mut(cols).zip(x.own.chunks_exact(cols).zip(x.next.chunks_exact(cols)));
        for ((out, (own, next)), (&y_own, &y_next)) in rows.zip(y.own.iter().zip(&y.next)) {
            (0..cols).for_each(|i| out[i] = product(id, own[i], next[i], y_own, y_next));
        }
    }
}

/// This party's part of (a + b + ..)(c + d + ..), its components being a, b and c, d.
#[inline(always)]
fn product(id: PartyId, a: u64, b: u64, c: u64, d: u64) -> u64 {
    match id {
        PartyId::P0 => a.wrapping_add(b).wrapping_mul(c.wrapping_add(d)),
        PartyId::P1 => a.wrapping_mul(d).wrapping_add(b.wrapping_mul(c.wrapping_add(d))),
        PartyId::P2 => faulty!(CrossTerm => a.wrapping_mul(d), b.wrapping_mul(c).wrapping_add(a.wrapping_mul(d))),
    }
}

/// Turns additive parts into a replicated share. Party i keeps its masked part as component i and sends it to party
/// i - 1.
///
/// # Errors
/// Those of the transport.
pub async fn reshare(p: &Party, parts: Parts) -> Result<Share> {
    const STEP: Step = Step::Multiply;
    let Parts { rows, cols, part: mut own } = parts;
    let (i, t) = (p.id.index(), p.call_id());
    faulty!(ReshareUnmasked => (), p.stream((i + 1) % 3).add(t, 0, &mut own));
    faulty!(
        ReshareUnmasked => (),
        ReshareOneSided => if i != 2 { p.stream(i).sub(t, 0, &mut own) },
        p.stream(i).sub(t, 0, &mut own)
    );
    p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&own));
    let next = p.receive(STEP, [0, own.len()]).await.take(Neighbour::Next);
    Ok(Share::new(rows, cols, own, next))
}

/// The element-wise product of two matrices of one shape, wrapping.
///
/// # Errors
/// Shapes differ; those of the transport.
pub async fn multiply(p: &Party, x: &Share, y: &Share) -> Result<Share> {
    reshare(p, product_parts(p, x, y)?).await
}

/// Every row of x times its element of the column vector y, in the shape of x, wrapping.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn multiply_by_row(p: &Party, x: &Share, y: &Share) -> Result<Share> {
    reshare(p, product_by_row_parts(p, x, y)?).await
}

/// The inner product of every row of x with the row of y, (rows, 1). Only the sums are reshared.
///
/// # Errors
/// Shapes differ; those of the transport.
pub async fn dot_rows(p: &Party, x: &Share, y: &Share) -> Result<Share> {
    let products = product_parts(p, x, y)?;
    let part = products
        .part
        .chunks_exact(products.cols.max(1))
        .map(|row| row.iter().fold(0, |a: u64, &b| a.wrapping_add(b)))
        .collect();
    reshare(p, Parts { rows: products.rows, cols: 1, part }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, random, share, world};
    use spec::{FixedSpec, Rounding};

    #[test]
    fn products_wrap_as_the_ring_does() {
        let (a, b) = (random(99, 1), random(99, 2));
        let (x, y) = (share(9, 11, &a), share(9, 11, &b));
        let (z, spent, _) =
            world(FixedSpec::default(), Rounding::Nearest, |p| p.run(multiply(p, &x[p.id.index()], &y[p.id.index()])));
        assert_eq!(open(&z), a.iter().zip(&b).map(|(a, b)| a.wrapping_mul(*b)).collect::<Vec<_>>());
        assert_eq!((spent.rounds, spent.bytes * 8), (RESHARE.rounds, RESHARE.bits_per_element * 99));
        assert_eq!(spent.messages, 3);
    }
}
