//! The power of two that brings a positive integer to 31 bits.
//!
//! computes   sections 7 of the arithmetic: the bits t_j = [s >= 2^j], N, and u = s N with 2^30 <= u < 2^31
//! requires   2^lo <= s < 2^hi (s = 0 is treated as 1 if lo = 0)
//! cost       the comparison's rounds + 2 for the bits, 1 more for u; hi - lo - 1 comparisons an element (one more if lo = 0)
//! reveals    nothing
//! source     Catrina and Saxena (FC 2010) ask for bits and a prefix-or; comparing with all powers of two in one batch is shallower

use super::compare::sign;
use super::convert::to_ring;
use super::multiply::multiply;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::party::Party;
use crate::share::Share;

/// A normalised column of positive integers.
pub struct Normalised {
    /// N, (n, 1).
    pub scale: Share,
    /// The index of the highest bit, (n, 1).
    pub msb: Share,
    /// [s >= 1], (n, 1); only where lo = 0.
    pub positive: Option<Share>,
    lo: u32,
}

/// The power of two for each element of the column s.
///
/// # Errors
/// Those of the transport.
pub async fn normalise(p: &Party, s: &Share, (lo, hi): (u32, u32)) -> Result<Normalised> {
    let n = s.len();
    let thresholds: Vec<u32> = (lo == 0).then_some(0).into_iter().chain(lo + 1..hi).collect();
    let mut less = Share::zeros(0, n);
    for &j in &thresholds {
        less = less.stack(&s.clone().reshape(1, n).plus_public(p.id, -(1 << j)))?;
    }
    // t_j = 1 - sign(s - 2^j), a row for each threshold.
    let at_least = to_ring(p, &sign(p, &less).await?.not(p.id)).await?;
    let row = |k: usize| at_least.row_range(k, k + 1).reshape(n, 1);
    let mut scale = Share::zeros(n, 1).plus_public(p.id, 1 << (30 - lo));
    let mut msb = Share::zeros(n, 1).plus_public(p.id, i64::from(lo));
    let mut positive = None;
    for (k, &j) in thresholds.iter().enumerate() {
        if j == lo {
            positive = Some(row(k));
        } else {
            scale.sub_assign(&row(k).shift_left(30 - j))?;
            msb.add_assign(&row(k))?;
        }
    }
    if planted(Fault::NormaliseFirst) && n > 0 {
        scale = scale.row_range(0, 1).broadcast(n).reshape(n, 1);
    }
    Ok(Normalised { scale, msb, positive, lo })
}

impl Normalised {
    /// u = s N, and 2^30 where s = 0.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn apply(&self, p: &Party, s: &Share) -> Result<Share> {
        let u = multiply(p, s, &self.scale).await?;
        match &self.positive {
            Some(t) if self.lo == 0 && !planted(Fault::NormaliseZero) => u.plus(&t.from_public(p.id, 1).shift_left(30)),
            _ => Ok(u),
        }
    }
}
