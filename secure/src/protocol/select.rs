//! A bit times a ring element, without turning the bit into a ring element first.
//!
//! computes   b x (element-wise), or for every column the sum over the rows of b x; and the bit itself as a ring
//!            element if asked
//! requires   a block of b for each row of x
//! cost       2 rounds; 40 bytes an element, 56 with the bit ([`SELECT`], [`SELECT_WITH_BIT`]); summed: 16 an element
//!            and 24 a sum ([`select_sum_cost`])
//! reveals    nothing
//! source     own; compare ABY3 section 5.4 (oblivious transfer, more bytes)
//!
//! Write b = c xor m with c known to party 0 and m to parties 1 and 2, and x = a + x_2 with a = x_0 + x_1 known to
//! party 0. Then
//!
//! ```text
//! b x = c a  +  m Y  +  m x_2  +  c (1 - 2m) x_2,      Y = (1 - 2c) a
//! ```
//!
//! Party 0 shares c = c_0 + c_1 and Y = Y_0 + Y_1 (index 0: stream 0, known to party 2; index 1: sent to party 1). Then
//! every term is known to somebody: c a to party 0; m Y_1 + m x_2 + c_1 (1 - 2m) x_2 to party 1; m Y_0 + c_0 (1 - 2m)
//! x_2 to party 2. The three parts are reshared. The bit is finished as in [`convert`](super::convert) in the same
//! round.

use super::convert::{HalfBit, finish_bit, two_sided_bits};
use super::multiply::reshare;
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::share::{BitShare, Parts, Share};
use crate::step::Step;
use futures_util::try_join;

/// The cost of [`select`], an element.
pub const SELECT: Cost = Cost { rounds: 2, bits_per_element: 5 * 64 };
/// The cost of [`select_with_bit`], an element.
pub const SELECT_WITH_BIT: Cost = Cost { rounds: 2, bits_per_element: 7 * 64 };

/// The cost of [`select_sum`] over `rows` rows, a sum.
pub const fn select_sum_cost(rows: u64) -> Cost {
    Cost { rounds: 2, bits_per_element: (2 * rows + 3) * 64 }
}

const STEP: Step = Step::Select;
const C_0: u8 = 0;
const Y_0: u8 = 1;

/// The product b x, element by element, in the shape of x.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn select(p: &Party, b: &BitShare, x: &Share) -> Result<Share> {
    let (products, _) = parts(p, b, x).await?;
    reshare(p, products).await
}

/// The bit b and the product b x, both as ring elements in the shape of x.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn select_with_bit(p: &Party, b: &BitShare, x: &Share) -> Result<(Share, Share)> {
    let (products, half) = parts(p, b, x).await?;
    try_join!(finish_bit(p, STEP, b, half), reshare(p, products))
}

/// The sum of b x over the rows (blocks): (1, cols).
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn select_sum(p: &Party, b: &BitShare, x: &Share) -> Result<Share> {
    let (products, _) = parts(p, b, x).await?;
    let mut part = Words::zeros(products.cols);
    for row in products.part.chunks_exact(products.cols.max(1)) {
        part.iter_mut().zip(row).for_each(|(s, v)| *s = s.wrapping_add(*v));
    }
    reshare(p, Parts { rows: 1, cols: products.cols, part }).await
}

async fn parts(p: &Party, b: &BitShare, x: &Share) -> Result<(Parts, HalfBit)> {
    if (b.blocks, b.len) != x.shape() {
        return Err(Error::misuse(format!("select: {} blocks of {} bits for {:?}", b.blocks, b.len, x.shape())));
    }
    let known = two_sided_bits(p, b);
    let (n, t) = (x.len(), p.call_id());
    let (part, c) = match p.id {
        PartyId::P0 => {
            let c_0 = p.stream(0).words(t, C_0, n);
            let c_1: Words = known.iter().zip(&c_0).map(|(c, m)| c.wrapping_sub(*m)).collect();
            let mut y_1 = Words::zeros(n);
            faulty!(SelectUnmasked => (), p.stream(0).sub(t, Y_0, &mut y_1));
            let mut part = Words::unset(n);
            choose(&known, x, &mut part, &mut y_1);
            p.send(STEP, Neighbour::Next, |m| {
                m.extend_from_slice(&c_1);
                m.extend_from_slice(faulty!(MessageShort => &y_1[1..], &y_1));
            });
            p.receive(STEP, [0, 0]).await;
            (part, c_1)
        }
        PartyId::P1 => {
            let received = p.receive(STEP, [2 * n, 0]).await;
            let message = received.from(Neighbour::Previous);
            let (c_1, y_1) = message.split_at(n);
            let y_1 = y_1.iter().zip(&x.next).map(|(y, x)| y.wrapping_add(*x)).collect::<Words>();
            let part = terms(&known, c_1, &y_1, &x.next);
            (part, c_1.into())
        }
        PartyId::P2 => {
            p.receive(STEP, [0, 0]).await;
            let c_0 = p.stream(0).words(t, C_0, n);
            let y_0 = faulty!(SelectUnmasked => Words::zeros(n), p.stream(0).words(t, Y_0, n));
            let part = terms(&known, &c_0, &y_0, &x.own);
            (part, c_0)
        }
    };
    Ok((Parts { rows: x.rows, cols: x.cols, part }, HalfBit { known, c }))
}

wide_fn! {
    /// Party 0's side for its bits c and a = x_0 + x_1: part = c a, y += a - 2 c a.
    fn choose(known: &[u64], x: &Share, part: &mut [u64], y: &mut [u64]) {
        let n = known.len();
        let (own, next, part, y) = (&x.own[..n], &x.next[..n], &mut part[..n], &mut y[..n]);
        for i in 0..n {
            let a = own[i].wrapping_add(next[i]);
            part[i] = known[i].wrapping_neg() & a;
            y[i] = y[i].wrapping_add(a).wrapping_sub(part[i] << 1);
        }
    }
}

wide_fn! {
    /// m y + c (1 - 2m) x_2 for the bits m.
    fn terms(m: &[u64], c: &[u64], y: &[u64], x_2: &[u64]) -> Words {
        m.iter()
            .zip(c)
            .zip(y.iter().zip(x_2))
            .map(|((m, c), (y, x_2))| {
                let mask = m.wrapping_neg();
                let signed = faulty!(SelectSign => *x_2, (x_2 ^ mask).wrapping_sub(mask)); // (1 - 2m) x_2
                (mask & y).wrapping_add(c.wrapping_mul(signed))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::compare::sign;
    use crate::testing::{open, share, world};
    use spec::{FixedSpec, Rounding};

    #[test]
    fn a_bit_times_a_value_and_the_sum_over_rows() {
        let v: Vec<i64> = (-100..100).map(|i| i * 1_000_003).collect();
        let x = share(4, 50, &v);
        let ([a, b, c], ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let x = &x[p.id.index()];
            p.run(async {
                let negative = sign(p, x).await?;
                let before = p.spent();
                let (bit, product) = select_with_bit(p, &negative, x).await?;
                assert_eq!(p.spent().since(&before).rounds, SELECT_WITH_BIT.rounds);
                let sum = select_sum(p, &negative, x).await?;
                Ok([bit, product, sum, select(p, &negative, x).await?])
            })
        });
        let opened: Vec<Vec<i64>> = (0..4).map(|k| open(&[a[k].clone(), b[k].clone(), c[k].clone()])).collect();
        let chosen: Vec<i64> = v.iter().map(|&x| x.min(0)).collect();
        assert_eq!(opened[0], v.iter().map(|&x| i64::from(x < 0)).collect::<Vec<_>>());
        assert_eq!(opened[1], chosen);
        assert_eq!(opened[2], (0..50).map(|k| (0..4).map(|r| chosen[50 * r + k]).sum()).collect::<Vec<i64>>());
        assert_eq!(opened[3], chosen);
    }
}
