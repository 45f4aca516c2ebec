//! The sign of an ordinary value.
//!
//! computes   bit K - 1 of x mod 2^K (K value bits of the specification): \[x < 0\] for |x| < 2^(K-1)
//! requires   |x| < 2^(K-1) for the meaning; the bit itself is exact for every x
//! cost       2 + ceil(log2(ceil((K-1) / 4))) rounds, 5 for K = 32; bits an element: [`sign_cost`] (22 bytes for K = 32)
//! reveals    nothing
//! source     own; the view x = (x_0 + x_1) + x_2 with the two numbers known to different parties is ABY3's (Mohassel and Rindal, CCS 2018)

use super::adder::{carry, carry_cost};
use super::input::bits_from_party_0;
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::id::PartyId;
use crate::kernel::to_planes;
use crate::party::Party;
use crate::share::{BitShare, Share};
use futures_util::try_join;

/// Rounds and bits of [`sign`] for K value bits: the carry into bit K - 1, and bit K - 1 of party 0's number.
pub const fn sign_cost(value_bits: u32) -> Cost {
    let carry = carry_cost(value_bits - 1);
    Cost { rounds: carry.rounds, bits_per_element: carry.bits_per_element + 1 }
}

/// Bits `lo .. lo + bits` of `blocks` vectors of `len` values as planes; every block starts on a word.
pub(super) fn planes_of(values: &[u64], blocks: usize, len: usize, lo: u32, bits: u32) -> Words {
    let w = len.div_ceil(64);
    let mut planes = Words::unset(bits as usize * blocks * w);
    if blocks == 1 || len.is_multiple_of(64) {
        to_planes(values, lo, bits, &mut planes);
    } else {
        let mut padded = Words::zeros(blocks * w * 64);
        for (from, to) in values.chunks_exact(len).zip(padded.chunks_exact_mut(w * 64)) {
            to[..len].copy_from_slice(from);
        }
        to_planes(&padded, lo, bits, &mut planes);
    }
    planes
}

/// \[x < 0\], a block for each row of x.
///
/// # Errors
/// Those of the transport.
pub async fn sign(p: &Party, x: &Share) -> Result<BitShare> {
    let (blocks, len) = x.shape();
    let k = p.fixed.value_bits - u32::from(planted(Fault::SignWidth));
    let one_less = planted(Fault::SignOffByOne).then(|| x.clone().plus_public(p.id, -1));
    let planes = planes_of(&one_less.as_ref().unwrap_or(x).two_sided(p.id), blocks, len, 0, k);
    let (low, top) = planes.split_at(planes.len() / k as usize * (k as usize - 1));
    let my_top = if p.id == PartyId::P0 { top } else { &[] };
    let (mut sign, top_0) = try_join!(carry(p, low, k - 1, blocks, len), bits_from_party_0(p, my_top, blocks, len))?;
    sign.xor_assign(&top_0)?;
    // Bit K - 1 of x_2 is component 2 of its own sharing.
    let component_2 = match p.id {
        PartyId::P0 => return Ok(sign),
        _ if planted(Fault::SignTop) => return Ok(sign),
        PartyId::P1 => &mut sign.next,
        PartyId::P2 => &mut sign.own,
    };
    component_2.iter_mut().zip(top).for_each(|(s, t)| *s ^= t);
    Ok(sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::convert::{TO_RING, to_ring};
    use crate::testing::{open, share, world};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use spec::{FixedSpec, Rounding};

    #[test]
    fn the_sign_is_bit_k_minus_1_for_every_width_and_length() {
        for (value_bits, rows, len) in [(32, 1, 1), (32, 3, 65), (32, 2, 64), (20, 1, 200), (21, 4, 7), (29, 1, 130)] {
            let fixed = FixedSpec { fraction_bits: 16, value_bits };
            let mut rng = ChaCha12Rng::seed_from_u64(7);
            let mut v: Vec<i64> = (0..rows * len).map(|i| rng.random::<i64>() >> (i % 63)).collect();
            let limit = 1i64 << (value_bits - 1);
            for (x, edge) in v.iter_mut().zip([0, -1, 1, limit - 1, -limit, limit, -limit - 1, i64::MIN, i64::MAX]) {
                *x = edge;
            }
            let x = share(rows, len, &v);
            let (bits, spent, _) = world(fixed, Rounding::Nearest, |p| {
                p.run(async { to_ring(p, &sign(p, &x[p.id.index()]).await?).await })
            });
            let want: Vec<i64> = v.iter().map(|x| x >> (value_bits - 1) & 1).collect();
            assert_eq!(open(&bits), want, "{value_bits} {rows} x {len}");
            assert_eq!(spent.rounds, sign_cost(value_bits).rounds + TO_RING.rounds);
        }
    }

    #[test]
    fn the_cost_is_what_the_constants_say() {
        let x = share(1, 640, &[-3; 640]);
        let (_, spent, _) = world(FixedSpec::default(), Rounding::Nearest, |p| p.run(sign(p, &x[p.id.index()])));
        assert_eq!((spent.rounds, spent.bytes * 8), (5, sign_cost(32).bits_per_element * 640));
    }
}
