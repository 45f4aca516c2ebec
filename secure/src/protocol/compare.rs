//! The sign of an ordinary value.
//!
//! computes   bit K - 1 of x mod 2^K (K value bits of the specification): \[x < 0\] for |x| < 2^(K-1)
//! requires   |x| < 2^(K-1) for the meaning; the bit itself is exact for every x
//! cost       2 + ceil(log2(ceil((K-1) / 4))) rounds, 5 for K = 32; bits an element: [`sign_cost`] (22 bytes for K =
//!            32)
//! reveals    nothing
//! source     own; the view x = (x_0 + x_1) + x_2 with the two numbers known to different parties is ABY3's (Mohassel
//!            and Rindal, CCS 2018)

use super::adder::{carry, carry_cost};
use super::input::{BITS_FROM_PARTY_0, bits_from_party_0};
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::PartyId;
use crate::party::Party;
use crate::share::{BitShare, Planes, Share};
use futures_util::try_join;

/// Rounds and bits of [`sign`] for K value bits: the carry into bit K - 1, and bit K - 1 of party 0's number.
pub const fn sign_cost(value_bits: u32) -> Cost {
    carry_cost(value_bits - 1).beside(BITS_FROM_PARTY_0)
}

/// The bits \[x < 0\], a block for each row of x.
///
/// # Errors
/// Those of the transport.
pub async fn sign(p: &Party, x: &Share) -> Result<BitShare> {
    let (blocks, len) = x.shape();
    let k = faulty!(SignWidth => p.fixed.value_bits - 1, p.fixed.value_bits);
    let known = faulty!(SignOffByOne => x.clone().plus_public(p.id, -1).two_sided(p.id), x.two_sided(p.id));
    let planes = Planes::of(&known, blocks, len, 0..k);
    let top = planes.plane(k - 1);
    let my_top = if p.id == PartyId::P0 { top } else { &[] };
    let (mut sign, top_0) = try_join!(carry(p, &planes, k - 1), bits_from_party_0(p, my_top, blocks, len))?;
    sign.xor_assign(&top_0)?;
    // Bit K - 1 of x_2 is component 2 of its own sharing.
    let component_2 = match p.id {
        PartyId::P0 => return Ok(sign),
        PartyId::P1 => &mut sign.next,
        PartyId::P2 => &mut sign.own,
    };
    faulty!(SignTop => (), component_2.iter_mut().zip(top).for_each(|(s, t)| *s ^= t));
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
