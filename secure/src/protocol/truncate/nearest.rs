//! Nearest rounding: an s-bit carry and 2 rounds, for a product 16 bytes more and no more rounds.
//!
//! Of a replicated value party 0 knows x0 = x_0 + x_1 and parties 1 and 2 know m = -x_2. A product in additive parts is
//! brought to that form in the first round of what follows, with r = stream 0 and r' = stream 1: party 0 has
//! x0 = z_0 + r + r' at once, and parties 1 and 2 exchange z_1 - r' and z_2 - r, so that both know
//! m = -(z_1 - r' + z_2 - r).
//!
//! The last bit of the formula in [`truncate`](super) is the carry out of m + (2^s - 1 - x0 mod 2^s). Party 0 shares
//! its three numbers, and parties 1 and 2 return what they can multiply. A doubled value is even, so x0 and m end in
//! the same bit, which carries nothing: the carry is as long as if the value were not doubled.

use super::offset::{OFFSET, shifted_0};
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::{Neighbour, PartyId};
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::prg::CallId;
use crate::protocol::adder::{carry_cost, carry_of};
use crate::protocol::convert::two_sided_bits;
use crate::share::{Planes, Share, zip};
use crate::step::Step;
use std::ops::Range;

const STEP: Step = Step::Truncate;

// Purposes of the streams within one call.
const R: u8 = 0;
const R_0: u8 = 4;
const RHO_1: u8 = 6;
const RHO_2: u8 = 7;
const C_0: u8 = 8;
const U_0: u8 = 9;
const R_1: u8 = 10;

/// The cost of the truncation of a replicated value with nearest rounding, an element: the carry and two rounds.
pub const fn nearest_cost(shift: u32) -> Cost {
    carry_cost(shift).then(Cost { rounds: 2, bits_per_element: 5 * 64 })
}

/// The cost of the truncation of a product with nearest rounding, an element.
pub const fn nearest_product_cost(shift: u32) -> Cost {
    nearest_cost(shift).beside(Cost { rounds: 1, bits_per_element: 2 * 64 })
}

/// The summands of a value in additive parts, as [`Share::two_sided`] gives those of a replicated one: at party 0
/// without waiting, at the others after one round.
pub async fn two_sided(p: &Party, mut z: Words) -> Result<Words> {
    let (n, t) = (z.len(), p.call_id());
    match p.id {
        PartyId::P0 => {
            faulty!(TruncateUnmasked => (), p.stream(0).add(t, R, &mut z));
            p.stream(1).add(t, R_1, &mut z);
        }
        PartyId::P1 => {
            p.stream(1).sub(t, R_1, &mut z);
            p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&z));
            zip(&mut z, &p.receive(STEP, [0, n]).await.from(Neighbour::Next), u64::wrapping_add);
        }
        PartyId::P2 => {
            faulty!(TruncateUnmasked => (), p.stream(0).sub(t, R, &mut z));
            p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&z));
            zip(&mut z, &p.receive(STEP, [n, 0]).await.from(Neighbour::Previous), u64::wrapping_add);
        }
    }
    Ok(z)
}

/// Truncates a matrix by `bits.end` bits, 1 <= `bits.end` <= 61, of which those below `bits.start` are known to be 0.
/// `sides` are its two summands, party 0's without waiting.
pub async fn nearest(
    p: &Party,
    (rows, cols): (usize, usize),
    sides: impl Future<Output = Result<Words>>,
    bits: Range<u32>,
    name: &str,
) -> Result<Share> {
    let (n, zeros, shift) = (rows * cols, bits.start, bits.end);
    let half = faulty!(HalfMissing => 0, 1 << (shift - 1));
    let offset = faulty!(TiesDown => OFFSET + half - (1 << zeros), OFFSET + half);
    // Party 0: x0. Parties 1 and 2: m.
    let mut known = Words::default();
    let planes = async {
        known = sides.await?;
        Ok(match p.id {
            PartyId::P0 => {
                known.iter_mut().for_each(|v| *v = v.wrapping_add(offset));
                Planes::of(&known.iter().map(|v| !v).collect::<Words>(), 1, n, bits)
            }
            _ => {
                known.iter_mut().for_each(|v| *v = v.wrapping_neg());
                Planes::of(&known, 1, n, bits)
            }
        })
    };
    let last = two_sided_bits(p, &carry_of(p, planes, (1, n), shift - zeros).await?);
    // Not before both parties know: they note in the same order.
    if p.id != PartyId::P2 {
        p.note_truncation(name, shift, &known);
    }
    // last = c + l - 2 c l, c at party 0, l at parties 1 and 2; borrow = u w.
    let (own, next) = match p.id {
        PartyId::P0 => nearest_0(p, known, &last, shift).await,
        PartyId::P1 => nearest_1(p, &known, &last, shift).await,
        PartyId::P2 => nearest_2(p, &known, &last, shift).await,
    };
    Ok(Share::new(rows, cols, own, next))
}

/// Party 0 shares c, u and the rest of what it knows, and receives the masked products of the others.
async fn nearest_0(p: &Party, x0: Words, c: &[u64], shift: u32) -> (Words, Words) {
    let (n, t) = (x0.len(), p.call_id());
    let c_0 = p.stream(0).words(t, C_0, n);
    let u_0 = p.stream(0).words(t, U_0, n);
    let mut own = p.stream(0).words(t, R_0, n);
    let mut next = x0;
    p.send(STEP, Neighbour::Next, |m| {
        m.extend(c.iter().zip(&c_0).map(|(c, mask)| c.wrapping_sub(*mask)));
        m.extend(next.iter().zip(&u_0).map(|(x0, mask)| (!x0 >> 63).wrapping_sub(*mask)));
        shifted_0(&mut next, &own, shift);
        zip(&mut next, c, u64::wrapping_sub);
        m.extend_from_slice(&next);
    });
    p.receive(STEP, [0, 0]).await;
    let received = p.receive(STEP, [n, n]).await;
    zip(&mut own, &received.from(Neighbour::Previous), u64::wrapping_add);
    zip(&mut next, &received.from(Neighbour::Next), u64::wrapping_add);
    (own, next)
}

/// Party 1 multiplies what it knows with its halves of c and u, which party 0 sends.
async fn nearest_1(p: &Party, m: &[u64], l: &[u64], shift: u32) -> (Words, Words) {
    let (n, t) = (m.len(), p.call_id());
    let message = p.receive(STEP, [3 * n, 0]).await.take(Neighbour::Previous);
    let (c_1, rest) = message.split_at(n);
    let (u_1, base) = rest.split_at(n);
    let (mut mine, component_2) = products(p, t, Held { m, l, c: c_1, u: u_1 }, shift, RHO_1);
    p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&mine));
    p.receive(STEP, [0, 0]).await;
    zip(&mut mine, base, u64::wrapping_add);
    (mine, component_2)
}

/// Party 2 does the same with the other halves, which stream 0 gives.
async fn nearest_2(p: &Party, m: &[u64], l: &[u64], shift: u32) -> (Words, Words) {
    let (n, t) = (m.len(), p.call_id());
    p.receive(STEP, [0, 0]).await;
    let (c_0, u_0) = (p.stream(0).words(t, C_0, n), p.stream(0).words(t, U_0, n));
    let (mut mine, component_2) = products(p, t, Held { m, l, c: &c_0, u: &u_0 }, shift, RHO_2);
    p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&mine));
    p.receive(STEP, [0, 0]).await;
    p.stream(0).add(t, R_0, &mut mine);
    (component_2, mine)
}

/// What party 1 or 2 multiplies in nearest rounding: m and the bits l that it knows, and its halves of c and u.
#[derive(Clone, Copy)]
struct Held<'a> {
    m: &'a [u64],
    l: &'a [u64],
    c: &'a [u64],
    u: &'a [u64],
}

/// 2 l c_j + 2^(64-s) w u_j under this party's mask, and component 2: -(m >> s) - l plus both masks.
fn products(p: &Party, t: CallId, held: Held<'_>, shift: u32, mask: u8) -> (Words, Words) {
    let n = held.m.len();
    let mut mine = Words::unset(n);
    let mut component_2 = p.stream(2).words(t, mask, n);
    chosen(&mut mine, held, 64 - shift, &component_2);
    p.stream(2).add(t, RHO_1 + RHO_2 - mask, &mut component_2);
    minus_known(&mut component_2, held.m, shift, held.l);
    (mine, component_2)
}

wide_fn! {
    /// out = 2 l c + 2^up w u - mask, the bits l and w = msb(m) being this party's own.
    fn chosen(out: &mut [u64], held: Held<'_>, up: u32, mask: &[u64]) {
        let n = out.len();
        let (m, l, c, u, mask) = (&held.m[..n], &held.l[..n], &held.c[..n], &held.u[..n], &mask[..n]);
        for i in 0..n {
            let w = faulty!(BorrowDropped => 0, (m[i] >> 63).wrapping_neg());
            out[i] = (l[i].wrapping_neg() & c[i] << 1).wrapping_add(w & u[i] << up).wrapping_sub(mask[i]);
        }
    }
}

wide_fn! {
    /// z -= (m >> s) + l.
    fn minus_known(z: &mut [u64], m: &[u64], shift: u32, l: &[u64]) {
        z.iter_mut().zip(m.iter().zip(l)).for_each(|(z, (m, l))| *z = z.wrapping_sub(m >> shift).wrapping_sub(*l));
    }
}
