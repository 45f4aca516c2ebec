//! Bits to ring elements.
//!
//! computes   the bit as the integer 0 or 1 in Z_2^64
//! cost       2 rounds, 24 bytes an element, all parties ([`TO_RING`])
//! reveals    nothing
//! source     own; uses, as ABY3 does, that party 0 knows c = b_0 xor b_1 and parties 1 and 2 know m = b_2
//!
//! b = c + m - 2 c m. Party 0 shares c = c_0 + c_1 (c_0 = stream 0, c_1 sent to party 1); then party 1 knows 2 m c_1
//! and party 2 knows 2 m c_0, and both send it to party 0 under masks r_1, r_2 from stream 2:
//!
//! ```text
//! component 0 (parties 2, 0)   c_0 - (2 m c_0 + r_2)
//! component 1 (parties 0, 1)   c_1 - (2 m c_1 + r_1)
//! component 2 (parties 1, 2)   m + r_1 + r_2
//! ```

use super::input::from_party_0;
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::kernel::{from_bits, wide_fn};
use crate::party::Party;
use crate::share::{BitShare, Share};
use crate::step::Step;

/// The cost of [`to_ring`], a bit.
pub const TO_RING: Cost = Cost { rounds: 2, bits_per_element: 3 * 64 };

const R_1: u8 = 0;
const R_2: u8 = 1;

/// The bits of `blocks` packed vectors as 0 / 1 words.
pub(super) fn unpack(words: &[u64], blocks: usize, len: usize) -> Words {
    let w = len.div_ceil(64);
    let mut out = Words::unset(blocks * len);
    if w > 0 {
        for (block, out) in words.chunks_exact(w).zip(out.chunks_exact_mut(len)) {
            from_bits(block, out);
        }
    }
    out
}

/// What a party knows of the bits: party 0 gets c = b_0 xor b_1, parties 1 and 2 get m = b_2, as 0 / 1 words.
pub(super) fn two_sided_bits(p: &Party, b: &BitShare) -> Words {
    match p.id {
        PartyId::P0 => {
            let c: Words = b.own.iter().zip(&b.next).map(|(x, y)| x ^ y).collect();
            unpack(&c, b.blocks, b.len)
        }
        PartyId::P1 => unpack(&b.next, b.blocks, b.len),
        PartyId::P2 => unpack(&b.own, b.blocks, b.len),
    }
}

/// A bit halfway: party 0 knows c and c_1, parties 1 and 2 know m and their c_j.
pub(super) struct HalfBit {
    /// c at party 0, m at parties 1 and 2.
    pub known: Words,
    /// c_1 at parties 0 and 1, c_0 at party 2.
    pub c: Words,
}

/// The bits as ring elements 0 and 1, (blocks, len).
///
/// # Errors
/// Those of the transport.
pub async fn to_ring(p: &Party, b: &BitShare) -> Result<Share> {
    let known = two_sided_bits(p, b);
    let c = from_party_0(p, if p.id == PartyId::P0 { &known } else { &[] }, known.len()).await?;
    let c = if p.id == PartyId::P1 { c.own } else { c.next };
    let bits = finish_bit(p, Step::BitToRing, b, HalfBit { known, c }).await?;
    Ok(faulty!(BitScaled => bits.scale(p.fixed.one()), bits))
}

/// The second round.
pub(super) async fn finish_bit(p: &Party, step: Step, b: &BitShare, half: HalfBit) -> Result<Share> {
    let HalfBit { known, mut c } = half;
    let (n, t) = (known.len(), p.call_id());
    let (own, next) = if p.id == PartyId::P0 {
        let received = p.receive(step, [n, n]).await;
        let (from_2, from_1) = (received.from(Neighbour::Previous), received.from(Neighbour::Next));
        let own = (0..n).map(|i| known[i].wrapping_sub(c[i]).wrapping_sub(from_2[i])).collect();
        let next = (0..n).map(|i| c[i].wrapping_sub(from_1[i])).collect();
        (own, next)
    } else {
        let (mine, to) = if p.id == PartyId::P1 { (R_1, Neighbour::Previous) } else { (R_2, Neighbour::Next) };
        let mut product = p.stream(2).words(t, mine, n);
        let mut component_2 = product.clone();
        p.stream(2).add(t, R_1 + R_2 - mine, &mut component_2);
        faulty!(BitUnmasked => (product, component_2) = (Words::zeros(n), Words::zeros(n)));
        halves(&known, &mut c, &mut product, &mut component_2);
        faulty!(Replicas => component_2.iter_mut().for_each(|c| *c = c.wrapping_add(p.id.index() as u64 & 1)));
        p.send(step, to, |m| m.extend_from_slice(&product));
        p.receive(step, [0, 0]).await;
        if p.id == PartyId::P1 { (c, component_2) } else { (component_2, c) }
    };
    Ok(Share::new(b.blocks, b.len, own, next))
}

wide_fn! {
    /// Of a bit m and this party's half of c: product += 2 m c, c -= product, component 2 += m.
    fn halves(known: &[u64], c: &mut [u64], product: &mut [u64], component_2: &mut [u64]) {
        for (((m, c), product), component_2) in known.iter().zip(c).zip(product).zip(component_2) {
            *product = product.wrapping_add(faulty!(BitNotBit => 0, 2 * m).wrapping_mul(*c));
            *c = c.wrapping_sub(*product);
            *component_2 = component_2.wrapping_add(*m);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_blocks_unpack_to_nothing() {
        assert!(unpack(&[], 3, 0).is_empty());
        assert_eq!(*unpack(&[1, 0, 2, 0], 2, 65), [&[1][..], &[0; 64], &[0, 1], &[0; 63]].concat());
    }
}
