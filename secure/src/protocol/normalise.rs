//! The power of two that brings a positive integer to 31 bits.
//!
//! computes   section 7 of the arithmetic: the bits t_j = [s >= 2^j], N, and u = s N with 2^30 <= u < 2^31
//! requires   2^lo <= s < 2^hi (s = 0 is treated as 1 if lo = 0)
//! cost       the comparison's rounds + 2 for the bits, 1 more for u; hi - lo - 1 comparisons an element (one more if
//!            lo = 0) ([`normalise_cost`], [`APPLY`])
//! reveals    nothing
//! source     Catrina and Saxena (FC 2010) ask for bits and a prefix-or; comparing with all powers of two in one batch
//!            is shallower

use super::compare::{sign, sign_cost};
use super::convert::{TO_RING, to_ring};
use super::multiply::{RESHARE, multiply};
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::party::Party;
use crate::share::Share;
use spec::BitRange;

/// The cost of [`normalise`] for K value bits, an element. The range holds more than one power of two.
pub const fn normalise_cost(value_bits: u32, range: BitRange) -> Cost {
    let comparisons = (range.hi - range.lo - 1) as u64 + range.has_zero() as u64;
    sign_cost(value_bits).then(TO_RING).times(comparisons)
}

/// The cost of [`Normalised::apply`], an element.
pub const APPLY: Cost = RESHARE;

/// A normalised column of positive integers.
pub struct Normalised {
    /// The power of two N with 2^30 <= s N < 2^31, (n, 1).
    pub scale: Share,
    /// The index of the highest bit, (n, 1).
    pub msb: Share,
    /// The bits \[s >= 1\], (n, 1), where the range holds 0.
    pub positive: Option<Share>,
    lo: u32,
}

/// Finds the power of two for each element of the column s, all in `range`.
///
/// # Errors
/// Those of the transport.
pub async fn normalise(p: &Party, s: &Share, range: BitRange) -> Result<Normalised> {
    let (n, BitRange { lo, hi }) = (s.len(), range);
    let thresholds: Vec<u32> = range.has_zero().then_some(0).into_iter().chain(lo + 1..hi).collect();
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
    let scale = faulty!(NormaliseFirst => scale.row_range(0, n.min(1)).broadcast(n).reshape(n, 1), scale);
    Ok(Normalised { scale, msb, positive, lo })
}

impl Normalised {
    /// The normalised column u = s N, and 2^30 where s = 0: (n, 1).
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn apply(&self, p: &Party, s: &Share) -> Result<Share> {
        let u = multiply(p, s, &self.scale).await?;
        match &self.positive {
            Some(t) if self.lo == 0 => faulty!(NormaliseZero => Ok(u), u.plus(&t.from_public(p.id, 1).shift_left(30))),
            _ => Ok(u),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, share, world};
    use spec::{FixedSpec, Rounding};

    /// Every power of two, its neighbours, and 0 where it may be; and no comparison more than the head of this file
    /// promises.
    #[test]
    fn every_highest_bit_with_as_many_comparisons_as_promised() {
        let fixed = FixedSpec::default();
        for (lo, hi) in [(0, 31), (16, 20), (5, 6), (16, 31)] {
            let ends = (lo..hi).flat_map(|k| [1 << k, (2 << k) - 1]);
            let s: Vec<i64> = ends.chain((lo == 0).then_some(0)).collect();
            let n = s.len();
            let x = share(n, 1, &s);
            let ([a, b, c], spent, _) = world(fixed, Rounding::Nearest, |p| {
                p.run(async {
                    let found = normalise(p, &x[p.id.index()], BitRange::new(lo, hi)).await?;
                    Ok([found.apply(p, &x[p.id.index()]).await?, found.msb])
                })
            });
            let opened = [0, 1].map(|k| open(&[a[k].clone(), b[k].clone(), c[k].clone()]));
            let normalised: Vec<i64> = s.iter().map(|&s| s.max(1) << (30 - s.max(1).ilog2())).collect();
            assert_eq!(opened[0], normalised, "{lo}..{hi}");
            assert_eq!(opened[1], s.iter().map(|&s| i64::from(s.max(1).ilog2())).collect::<Vec<_>>(), "{lo}..{hi}");

            // Blocks of bits are whole words; the last product is reshared.
            let compared = (hi - lo - 1 + u32::from(lo == 0)) as u64;
            let sign = sign_cost(fixed.value_bits);
            let bits = compared
                * (n.next_multiple_of(64) as u64 * sign.bits_per_element + n as u64 * TO_RING.bits_per_element);
            assert_eq!(spent.bytes * 8, bits + n as u64 * 192, "{lo}..{hi}");
            if compared > 0 {
                assert_eq!(spent.rounds, sign.rounds + TO_RING.rounds + 1, "{lo}..{hi}");
            }
        }
    }
}
