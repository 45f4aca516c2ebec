//! Truncation: division by 2^s with probabilistic or nearest rounding, without failure.
//!
//! computes   probabilistic: floor(V / 2^s) + c, P[c = 1] = (V mod 2^s) / 2^s exactly; nearest: floor((V + 2^(s-1)) / 2^s)
//! requires   -2^62 <= V < 2^62 (nearest: V + 2^(s-1) in that range), 1 <= s <= 61. Outside, the result may be low by 2^(64-s).
//!            Of matrix products the double is known and divided by one bit more: half the range, s <= 60 ([`truncate_doubled`])
//! cost       probabilistic, fused with a product: 3 rounds, 24 bytes + s + 2 bits an element ([`probabilistic_cost`]);
//!            nearest: an s-bit carry and 2 rounds ([`nearest_cost`]), 16 bytes more and no more rounds for a product
//! error      probabilistic: in (-1, 1) units, mean 0; nearest: at most 1/2 unit
//! reveals    nothing by its messages; the probabilistic coin depends on what single parties know (see "The coin")
//! source     own variant of the two-party truncation with a helper; compare Dalskov, Escudero and Keller, *Secure evaluation of
//!            quantized neural networks* (PETS 2020)
//!
//! # Shape of the value
//!
//! V' = V + 2^62 (nearest: + 2^(s-1)) is in [0, 2^63) and is brought into the form x0 - m mod 2^64, x0 known to party 0. Then
//!
//! ```text
//! floor(V' / 2^s) = (x0 >> s) - (m >> s) + [x0 < m] 2^(64-s) - [x0 mod 2^s < m mod 2^s]
//! ```
//!
//! and because V' < 2^63, x0 < m exactly if msb(m) = 1 and msb(x0) = 0. So the borrow costs one AND of two privately known bits, and
//! only its lowest s bits count (it is multiplied by 2^(64-s)).
//!
//! # Probabilistic
//!
//! The last bit of the formula is simply left out: the result is one higher with probability (V' mod 2^s) / 2^s, as x0 is uniform.
//! The product arrives in additive parts z_0 + z_1 + z_2:
//!
//! ```text
//! round 1   party 2 -> 1   z_2 - r            r = stream 0: x0 = z_0 + r + 2^62 at party 0, m = -(z_1 + z_2 - r) at party 1
//!           party 2 -> 1   ab - g             a (stream 0), b (stream 2) random bits, g (stream 0) a random number of s bits
//!           party 0 -> 1   d = u ^ a          u = NOT msb(x0)
//! round 2   party 1 -> 0   e = w ^ b          w = msb(m)
//!           party 1 -> 0   y_1 - r_2          y_1 = -(m >> s) + 2^(64-s) (d e + d (1-2e) b + (1-2d)(1-2e) (ab - g)), r_2 = stream 2
//! round 3   party 0 -> 1   y_0 - r_0 + (y_1 - r_2) = r_1    y_0 = (x0 >> s) - 2^(62-s) + 2^(64-s) (e (1-2d) a + (1-2d)(1-2e) g)
//! ```
//!
//! u w = (d ^ a)(e ^ b) expands into the two brackets. The result's components are r_0, r_1, r_2.
//!
//! # The coin
//!
//! c = [q < V mod 2^s] with q = x0 mod 2^s. Party 0 knows q; party 1 knows m, and with it q as a function of V; party 2 knows x0 as well where the operand is
//! a replicated value ([`truncate`]), for it then holds z_0 and r. So this is not "V / 2^s, rounded by a coin that nobody knows" but the
//! following ideal functionality, its leakage included:
//!
//! ```text
//! draw x0 uniform in Z_2^64; give x0 to party 0 (and to party 2 on a replicated value) and m = x0 - V' to party 1
//! share y = ceil((V - q) / 2^s)
//! ```
//!
//! All messages can be simulated from it, and x0 or m alone says nothing of V. But whoever knows q and sees y opened, or a value that depends on y, weights
//! for instance, learns more of V than y tells: 2^s values, all equally likely, instead of a triangle over 2^(s+1), 0.72 bit an element; k
//! truncations of one V, all opened, leave about 2^s / k values. That is the known caveat of probabilistic truncation. Li et al. (USENIX Security
//! 2023) showed that protocols of its kind do not realise the functionality with a secret coin, Santos et al. (eprint 2024/1127) repair the proof with a functionality
//! that has such a leak, and issue 1494 of MP-SPDZ discusses what it means in practice. Nearest rounding has no coin.
//!
//! # Nearest
//!
//! Of a replicated value party 0 knows x0 = x_0 + x_1 and parties 1 and 2 know m = -x_2. A product in additive parts is brought to that form in the first round
//! of what follows, with r = stream 0, r' = stream 1: party 0 has x0 = z_0 + r + r' at once, and parties 1 and 2 exchange z_1 - r' and z_2 - r, so
//! that both know m = -(z_1 - r' + z_2 - r). The last bit is the carry out of
//! m + (2^s - 1 - x0 mod 2^s); party 0 shares its three numbers, and parties 1 and 2 return what they can multiply. A doubled value is even, so
//! x0 and m end in the same bit, which carries nothing: the carry is as long as if it were not doubled.

use super::adder::{carry_cost, carry_of};
use super::compare::planes_of;
use super::convert::two_sided_bits;
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::prg::{CallId, Draw};
use crate::share::{Doubled, Parts, Share, zip};
use spec::Rounding;

const STEP: &str = "truncate";
const OFFSET: u64 = 1 << 62;

/// Cost of [`truncate_product`] with probabilistic rounding; [`truncate_doubled`] costs as much as one bit more.
pub const fn probabilistic_cost(shift: u32) -> Cost {
    Cost { rounds: 3, bits_per_element: 3 * 64 + 2 + shift as u64 }
}

/// Cost of [`truncate`] with nearest rounding.
pub const fn nearest_cost(shift: u32) -> Cost {
    let carry = carry_cost(shift);
    Cost { rounds: carry.rounds + 2, bits_per_element: carry.bits_per_element + 5 * 64 }
}

/// Cost of [`truncate_product`] and of [`truncate_doubled`] with nearest rounding.
pub const fn nearest_product_cost(shift: u32) -> Cost {
    let nearest = nearest_cost(shift);
    Cost { bits_per_element: nearest.bits_per_element + 2 * 64, ..nearest }
}

/// Truncates an unreduced product, given by its additive parts, by `shift` bits. `name` is the truncation's name in the
/// arithmetic specification.
///
/// # Errors
/// A shift outside 1..=61; those of the transport.
pub async fn truncate_product(p: &Party, parts: Parts, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    truncate_parts(p, parts, 0, shift, name.as_ref()).await
}

/// Truncates a matrix product, given by the additive parts of its double, by `shift` bits.
///
/// # Errors
/// A shift outside 1..=60; those of the transport.
pub async fn truncate_doubled(p: &Party, parts: Doubled, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    truncate_parts(p, parts.0, 1, shift, name.as_ref()).await
}

/// Truncates 2^`up` V by `up` bits more.
async fn truncate_parts(p: &Party, parts: Parts, up: u32, shift: u32, name: &str) -> Result<Share> {
    check(shift, up)?;
    match p.rounding {
        Rounding::Probabilistic => probabilistic(p, parts, shift + up, name).await,
        Rounding::Nearest => {
            let shape = (parts.rows, parts.cols);
            nearest(p, shape, two_sided(p, parts.part), up, shift + up, name).await
        }
    }
}

/// Truncates a replicated value by `shift` bits.
///
/// # Errors
/// A shift outside 1..=61; those of the transport.
pub async fn truncate(p: &Party, x: &Share, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    check(shift, 0)?;
    match p.rounding {
        Rounding::Probabilistic => probabilistic(p, x.parts(), shift, name.as_ref()).await,
        Rounding::Nearest => {
            let known = async { Ok(x.two_sided(p.id)) };
            nearest(p, x.shape(), known, 0, shift, name.as_ref()).await
        }
    }
}

fn check(shift: u32, up: u32) -> Result<()> {
    let most = 61 - up;
    if (1..=most).contains(&shift) {
        return Ok(());
    }
    Err(Error::misuse(format!("truncation by {shift} bits; the ring allows 1 to {most}")))
}

// Purposes of the streams within one call.
const R: u8 = 0;
const A: u8 = 1;
const B: u8 = 2;
const G: u8 = 3;
const R_0: u8 = 4;
const R_2: u8 = 5;
const RHO_1: u8 = 6;
const RHO_2: u8 = 7;
const C_0: u8 = 8;
const U_0: u8 = 9;
const R_1: u8 = 10;

/// Elements that are worked on at once, in the first-level cache; a multiple of 64.
const PIECE: usize = 1024;

async fn probabilistic(p: &Party, parts: Parts, shift: u32, name: &str) -> Result<Share> {
    let Parts { rows, cols, part: z } = parts;
    let (own, next) = match p.id {
        PartyId::P0 => probabilistic_0(p, z, shift, name).await,
        PartyId::P1 => probabilistic_1(p, z, shift, name).await,
        PartyId::P2 => probabilistic_2(p, z, shift).await,
    };
    Ok(Share::new(rows, cols, own, next))
}

async fn probabilistic_0(p: &Party, mut z: Words, shift: u32, name: &str) -> (Words, Words) {
    let (n, t) = (z.len(), p.call_id());
    let words = n.div_ceil(64);
    let (r, g_draw, r_0_draw) = (p.stream(0).draw(t, R), p.stream(0).draw(t, G), p.stream(0).draw(t, R_0));
    let a = p.stream(0).words(t, A, words);
    let mut d = Words::unset(words);
    for (k, (z, d)) in z.chunks_mut(PIECE).zip(d.chunks_mut(PIECE / 64)).enumerate() {
        mask(&r, k * PIECE, z, shift, true);
        offset_and_sign(z, d);
    }
    d.iter_mut().zip(&a).for_each(|(d, a)| *d = !*d ^ a);
    p.note_truncation(name, shift, &z);
    p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&d));
    p.receive(STEP, [0, 0]).await;

    // All that does not depend on party 1 is done before its message is waited for.
    let mut r_0 = Words::unset(n);
    for (k, (z, r_0)) in z.chunks_mut(PIECE).zip(r_0.chunks_mut(PIECE)).enumerate() {
        r_0_draw.fill(k * PIECE, r_0);
        shifted_0(z, r_0, shift);
    }
    {
        let received = p.receive(STEP, [0, words + n]).await;
        let message = received.from(Neighbour::Next);
        let (e, y_1) = message.split_at(words);
        p.send(STEP, Neighbour::Next, |m| {
            m.reserve(n);
            let mut g = [0; PIECE];
            for (k, (z, y_1)) in z.chunks_mut(PIECE).zip(y_1.chunks(PIECE)).enumerate() {
                let (g, bits) = (&mut g[..z.len()], k * PIECE / 64);
                g_draw.fill(k * PIECE, g);
                let borrow = Borrow { d: &d[bits..], e: &e[bits..], own: &a[bits..], shift };
                borrow_0(z, borrow, g, y_1);
                m.extend_from_slice(z);
            }
        });
    }
    p.receive(STEP, [0, 0]).await;
    (r_0, z)
}

wide_fn! {
    /// z += 2^62; the most significant bits.
    fn offset_and_sign(z: &mut [u64], bits: &mut [u64]) {
        z.iter_mut().for_each(|v| *v = v.wrapping_add(OFFSET));
        msb_words(z, bits);
    }
}

wide_fn! {
    /// z = (z >> s) - 2^(62-s) - r_0.
    fn shifted_0(z: &mut [u64], r_0: &[u64], shift: u32) {
        let shifted = |z: u64| {
            if planted(Fault::LocalTruncation) {
                return (z.wrapping_sub(OFFSET) as i64 >> shift) as u64;
            }
            (z >> shift).wrapping_sub(OFFSET >> shift)
        };
        z.iter_mut().zip(r_0).for_each(|(z, r_0)| *z = shifted(*z).wrapping_sub(*r_0));
    }
}

/// What the borrow is made of: the masked bits that parties 0 and 1 exchanged and the mask of one's own, 64 a word.
#[derive(Clone, Copy)]
struct Borrow<'a> {
    d: &'a [u64],
    e: &'a [u64],
    own: &'a [u64],
    shift: u32,
}

wide_fn! {
    /// z += 2^(64-s) (1-2d)(e a + (1-2e) g) + y_1.
    fn borrow_0(z: &mut [u64], b: Borrow<'_>, g: &[u64], y_1: &[u64]) {
        let up = 64 - b.shift;
        let kept = if planted(Fault::LocalTruncation) { 0 } else { u64::MAX };
        for (w, z) in z.chunks_mut(64).enumerate() {
            let (d, e, a) = (b.d[w], b.e[w], b.own[w]);
            let (g, y_1) = (&g[64 * w..][..z.len()], &y_1[64 * w..][..z.len()]);
            for k in 0..z.len() {
                let (d, e, a) = (d >> k & 1, e >> k & 1, a >> k & 1);
                let borrow = negate_if(d, (e & a).wrapping_add(negate_if(e, g[k])));
                z[k] = z[k].wrapping_add(borrow << up & kept).wrapping_add(y_1[k]);
            }
        }
    }
}

async fn probabilistic_1(p: &Party, mut z: Words, shift: u32, name: &str) -> (Words, Words) {
    let (n, t) = (z.len(), p.call_id());
    let words = n.div_ceil(64);
    // Drawn before party 2's message is waited for.
    let b = p.stream(2).words(t, B, words);
    let mut r_2 = p.stream(2).words(t, R_2, n);
    if planted(Fault::ResultUnmasked) {
        r_2.fill(0);
    }
    {
        let received = p.receive(STEP, [words, n + packed_words(n, shift)]).await;
        let d = received.from(Neighbour::Previous);
        let from_2 = received.from(Neighbour::Next);
        let (z_2, ab) = from_2.split_at(n);
        let mut noted = Words::default();
        p.send(STEP, Neighbour::Previous, |m| {
            m.reserve(words + n);
            let start = m.len();
            m.resize(start + words);
            let mut corrections = [0; PIECE];
            for (k, (z, z_2)) in z.chunks_mut(PIECE).zip(z_2.chunks(PIECE)).enumerate() {
                let (from, bits) = (k * PIECE, k * PIECE / 64);
                let corrections = &mut corrections[..z.len()];
                let e = &mut m[start + bits..start + bits + z.len().div_ceil(64)];
                unpack(&ab[k * PIECE / 64 * shift as usize..], shift, &mut *corrections);
                negated_sum_and_sign(&mut *z, z_2, &mut *e);
                if p.records() {
                    noted.extend_from_slice(z);
                }
                e.iter_mut().zip(&b[bits..]).for_each(|(e, b)| *e ^= b);
                let borrow = Borrow { d: &d[bits..], e, own: &b[bits..], shift };
                borrow_1(&mut *z, borrow, corrections, &r_2[from..]);
                m.extend_from_slice(z);
            }
        });
        p.note_truncation(name, shift, &noted);
    }
    p.receive(STEP, [0, 0]).await;
    drop(z);
    (p.receive(STEP, [n, 0]).await.take(Neighbour::Previous), r_2)
}

wide_fn! {
    /// z = -(z + z_2) = m; the most significant bits.
    fn negated_sum_and_sign(z: &mut [u64], z_2: &[u64], bits: &mut [u64]) {
        z.iter_mut().zip(z_2).for_each(|(z, z_2)| *z = z.wrapping_add(*z_2).wrapping_neg());
        msb_words(z, bits);
    }
}

wide_fn! {
    /// z = 2^(64-s) (d e + d (1-2e) b + (1-2d)(1-2e) (ab - g)) - (z >> s) - r_2.
    fn borrow_1(z: &mut [u64], b: Borrow<'_>, corrections: &[u64], r_2: &[u64]) {
        let (shift, up) = (b.shift, 64 - b.shift);
        let r_2 = &r_2[..z.len()];
        if planted(Fault::LocalTruncation) {
            z.iter_mut().zip(r_2).for_each(|(z, r)| *z = 0u64.wrapping_sub((*z as i64 >> shift) as u64).wrapping_sub(*r));
            return;
        }
        let floored = planted(Fault::BothFloored);
        for (w, z) in z.chunks_mut(64).enumerate() {
            let (d, e, b) = (b.d[w], b.e[w], b.own[w]);
            let from = 64 * w;
            let (corrections, r_2) = (&corrections[from..][..z.len()], &r_2[from..][..z.len()]);
            for k in 0..z.len() {
                let (d, e, b) = (d >> k & 1, e >> k & 1, b >> k & 1);
                let corrected = negate_if(d ^ e, corrections[k]);
                let borrow = (d & e).wrapping_add(negate_if(e, d & b)).wrapping_add(corrected);
                let up_too = u64::from(floored && z[k] << up != 0);
                z[k] = (borrow << up).wrapping_sub(z[k] >> shift).wrapping_sub(up_too).wrapping_sub(r_2[k]);
            }
        }
    }
}

async fn probabilistic_2(p: &Party, z: Words, shift: u32) -> (Words, Words) {
    let (n, t) = (z.len(), p.call_id());
    let words = n.div_ceil(64);
    let (r, g) = (p.stream(0).draw(t, R), p.stream(0).draw(t, G));
    let (a, b) = (p.stream(0).words(t, A, words), p.stream(2).words(t, B, words));
    p.send(STEP, Neighbour::Previous, |m| {
        m.reserve(n + packed_words(n, shift));
        for (k, z) in z.chunks(PIECE).enumerate() {
            let start = m.len();
            m.extend_from_slice(z);
            mask(&r, k * PIECE, &mut m[start..], shift, false);
        }
        let mut ab = [0; PIECE];
        for from in (0..n).step_by(PIECE) {
            let ab = &mut ab[..PIECE.min(n - from)];
            g.fill(from, ab);
            corrections(&mut *ab, &a[from / 64..], &b[from / 64..]);
            pack(ab, shift, m);
        }
    });
    p.receive(STEP, [0, 0]).await;
    p.receive(STEP, [0, 0]).await;
    p.receive(STEP, [0, 0]).await;
    let mut own = z;
    p.stream(2).draw(t, R_2).fill(0, &mut own);
    if planted(Fault::ResultUnmasked) {
        own.fill(0);
    }
    (own, p.stream(0).words(t, R_0, n))
}

wide_fn! {
    /// g = ab - g.
    fn corrections(g: &mut [u64], a: &[u64], b: &[u64]) {
        for (w, g) in g.chunks_mut(64).enumerate() {
            let both = a[w] & b[w];
            g.iter_mut().enumerate().for_each(|(k, v)| *v = (both >> k & 1).wrapping_sub(*v));
        }
    }
}

/// A value in additive parts as [`Share::two_sided`] gives a replicated one: at party 0 without waiting, at the others after one round.
async fn two_sided(p: &Party, mut z: Words) -> Result<Words> {
    let (n, t) = (z.len(), p.call_id());
    match p.id {
        PartyId::P0 => {
            p.stream(0).add(t, R, &mut z);
            p.stream(1).add(t, R_1, &mut z);
            return Ok(z);
        }
        PartyId::P1 => {
            p.stream(1).sub(t, R_1, &mut z);
            p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&z));
            zip(&mut z, &p.receive(STEP, [0, n]).await.from(Neighbour::Next), u64::wrapping_add);
        }
        PartyId::P2 => {
            if !planted(Fault::TruncateUnmasked) {
                p.stream(0).sub(t, R, &mut z);
            }
            p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&z));
            zip(&mut z, &p.receive(STEP, [n, 0]).await.from(Neighbour::Previous), u64::wrapping_add);
        }
    }
    Ok(z)
}

/// `sides`: the value's two summands, party 0's without waiting. Its lowest `zeros` bits are known to be 0.
async fn nearest(
    p: &Party,
    (rows, cols): (usize, usize),
    sides: impl Future<Output = Result<Words>>,
    zeros: u32,
    shift: u32,
    name: &str,
) -> Result<Share> {
    let (n, width) = (rows * cols, shift - zeros);
    let half = if planted(Fault::HalfMissing) { 0 } else { 1 << (shift - 1) };
    let offset = OFFSET + half - (u64::from(planted(Fault::TiesDown)) << zeros);
    // Party 0: x0. Parties 1 and 2: m.
    let mut known = Words::default();
    let planes = async {
        known = sides.await?;
        Ok(match p.id {
            PartyId::P0 => {
                known.iter_mut().for_each(|v| *v = v.wrapping_add(offset));
                planes_of(&known.iter().map(|v| !v).collect::<Words>(), 1, n, zeros, width)
            }
            _ => {
                known.iter_mut().for_each(|v| *v = v.wrapping_neg());
                planes_of(&known, 1, n, zeros, width)
            }
        })
    };
    let last = two_sided_bits(p, &carry_of(p, planes, width, 1, n).await?);
    // Not before both parties know: they note in the same order.
    if p.id != PartyId::P2 {
        p.note_truncation(name, shift, &known);
    }

    let t = p.call_id();
    // last = c + l - 2 c l, c at party 0, l at parties 1 and 2; borrow = u w. Party 0 shares c, u and the rest of what it knows.
    let (own, next) = match p.id {
        PartyId::P0 => {
            let c_0 = p.stream(0).words(t, C_0, n);
            let u_0 = p.stream(0).words(t, U_0, n);
            let mut own = p.stream(0).words(t, R_0, n);
            let mut next = known;
            p.send(STEP, Neighbour::Next, |m| {
                m.extend(last.iter().zip(&c_0).map(|(c, mask)| c.wrapping_sub(*mask)));
                m.extend(next.iter().zip(&u_0).map(|(x0, mask)| (!x0 >> 63).wrapping_sub(*mask)));
                shifted_0(&mut next, &own, shift);
                zip(&mut next, &last, u64::wrapping_sub);
                m.extend_from_slice(&next);
            });
            p.receive(STEP, [0, 0]).await;
            let received = p.receive(STEP, [n, n]).await;
            zip(&mut own, &received.from(Neighbour::Previous), u64::wrapping_add);
            zip(&mut next, &received.from(Neighbour::Next), u64::wrapping_add);
            (own, next)
        }
        PartyId::P1 => {
            let message = p.receive(STEP, [3 * n, 0]).await.take(Neighbour::Previous);
            let (c_1, rest) = message.split_at(n);
            let (u_1, base) = rest.split_at(n);
            let held = Held { m: &known, l: &last, c: c_1, u: u_1 };
            let (mut mine, component_2) = nearest_products(p, t, held, shift, RHO_1);
            p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&mine));
            p.receive(STEP, [0, 0]).await;
            zip(&mut mine, base, u64::wrapping_add);
            (mine, component_2)
        }
        PartyId::P2 => {
            p.receive(STEP, [0, 0]).await;
            let (c_0, u_0) = (p.stream(0).words(t, C_0, n), p.stream(0).words(t, U_0, n));
            let held = Held { m: &known, l: &last, c: &c_0, u: &u_0 };
            let (mut mine, component_2) = nearest_products(p, t, held, shift, RHO_2);
            p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&mine));
            p.receive(STEP, [0, 0]).await;
            p.stream(0).add(t, R_0, &mut mine);
            (component_2, mine)
        }
    };
    Ok(Share::new(rows, cols, own, next))
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
fn nearest_products(p: &Party, t: CallId, held: Held<'_>, shift: u32, mask: u8) -> (Words, Words) {
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
        let kept = if planted(Fault::BorrowDropped) { 0 } else { u64::MAX };
        for i in 0..n {
            let w = (m[i] >> 63).wrapping_neg() & kept;
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

/// Adds the mask r to a piece of z, or takes it away.
#[inline(always)]
fn mask(r: &Draw<'_>, at: usize, z: &mut [u64], shift: u32, add: bool) {
    if planted(Fault::MaskLowBits) {
        let mut words = Words::unset(z.len());
        r.fill(at, &mut words);
        let sign = if add { 1 } else { u64::MAX };
        z.iter_mut().zip(&words).for_each(|(z, r)| *z = z.wrapping_add((r >> shift << shift).wrapping_mul(sign)));
    } else if !planted(Fault::TruncateUnmasked) {
        if add { r.add(at, z) } else { r.sub(at, z) }
    }
}

/// -v if the bit is 1.
#[inline(always)]
fn negate_if(bit: u64, v: u64) -> u64 {
    let mask = bit.wrapping_neg();
    (v ^ mask).wrapping_sub(mask)
}

/// The most significant bits, 64 a word.
#[inline(always)]
fn msb_words(values: &[u64], out: &mut [u64]) {
    for (w, c) in out.iter_mut().zip(values.chunks(64)) {
        *w = c.iter().enumerate().fold(0, |w, (k, v)| w | (v >> 63) << k);
    }
}

/// Words of `n` packed numbers of `width` bits, piece by piece. A piece that is not a multiple of 64 is not packed: its last words would hold few bits,
/// and messages are judged by their words.
fn packed_words(n: usize, width: u32) -> usize {
    let (pieces, rest) = (n / PIECE, n % PIECE);
    let packed = |n: usize| n / 64 * width as usize;
    pieces * packed(PIECE) + if rest.is_multiple_of(64) { packed(rest) } else { rest }
}

wide_fn! {
    /// Appends the lowest `width` bits of every value of a piece, in lanes of the powers of two that make up the width: the lowest in the widest.
    fn pack(values: &[u64], width: u32, out: &mut Words) {
        if !values.len().is_multiple_of(64) {
            return out.extend_from_slice(values);
        }
        #[inline(always)]
        fn lane<const IN_A_WORD: usize>(values: &[u64], from: &mut u32, width: u32, out: &mut Words) {
            let bits = 64 / IN_A_WORD as u32;
            if width & bits == 0 {
                return;
            }
            let at = std::mem::replace(from, *from + bits);
            let kept = (1 << bits) - 1;
            let word = |c: &[u64]| c.iter().enumerate().fold(0, |w, (k, v)| w | (v >> at & kept) << (k as u32 * bits));
            out.extend(values.as_chunks::<IN_A_WORD>().0.iter().map(|c| word(c)));
        }
        let mut from = 0;
        lane::<2>(values, &mut from, width, out);
        lane::<4>(values, &mut from, width, out);
        lane::<8>(values, &mut from, width, out);
        lane::<16>(values, &mut from, width, out);
        lane::<32>(values, &mut from, width, out);
        lane::<64>(values, &mut from, width, out);
    }
}

wide_fn! {
    /// A piece that [`pack`] wrote, of which the lowest `width` bits mean something; `words` may go on behind it.
    fn unpack(words: &[u64], width: u32, out: &mut [u64]) {
        if !out.len().is_multiple_of(64) {
            return out.copy_from_slice(&words[..out.len()]);
        }
        #[inline(always)]
        fn lane<const IN_A_WORD: usize>(words: &mut &[u64], from: &mut u32, width: u32, out: &mut [u64]) {
            let bits = 64 / IN_A_WORD as u32;
            if width & bits == 0 {
                return;
            }
            let at = std::mem::replace(from, *from + bits);
            let kept = (1 << bits) - 1;
            let (mine, rest) = words.split_at(out.len() / IN_A_WORD);
            *words = rest;
            for (word, out) in mine.iter().zip(out.chunks_mut(IN_A_WORD)) {
                out.iter_mut().enumerate().for_each(|(k, v)| *v |= (word >> (k as u32 * bits) & kept) << at);
            }
        }
        out.fill(0);
        let (mut words, mut from) = (words, 0);
        lane::<2>(&mut words, &mut from, width, out);
        lane::<4>(&mut words, &mut from, width, out);
        lane::<8>(&mut words, &mut from, width, out);
        lane::<16>(&mut words, &mut from, width, out);
        lane::<32>(&mut words, &mut from, width, out);
        lane::<64>(&mut words, &mut from, width, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, share, world};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use spec::FixedSpec;

    /// Boundary values first, both signs, then exact multiples and ties, then random ones of every size.
    fn operands(shift: u32) -> Vec<i64> {
        let mut v: Vec<i64> = vec![0];
        for m in [1, 2, 1 << 16, 1 << 31, 1 << 46, 1 << 61, (1 << 62) - (1 << (shift - 1)) - 1] {
            v.extend([m, -m, m - 1, 1 - m]);
        }
        for k in [-5i64, -1, 0, 1, 7] {
            let multiple = k << shift;
            let half = 1i64 << (shift - 1);
            v.extend([multiple, multiple + half, multiple + half - 1, multiple - 1, multiple + 1]);
        }
        let mut rng = ChaCha12Rng::seed_from_u64(u64::from(shift));
        v.extend((0..500).map(|i| rng.random::<i64>() >> (2 + i % 60)));
        v.retain(|x| i128::from(*x).abs() < (1 << 62) - (1i128 << (shift - 1)));
        v
    }

    #[test]
    fn nearest_is_exact_for_every_shift() {
        for shift in [1, 2, 3, 4, 5, 11, 16, 17, 27, 39, 44, 50, 60] {
            let v = operands(shift);
            let x = share(v.len(), 1, &v);
            let (y, spent, _) =
                world(FixedSpec::default(), Rounding::Nearest, |p| p.run(truncate(p, &x[p.id.index()], shift, "t")));
            let want: Vec<i64> =
                v.iter().map(|x| ((i128::from(*x) + (1i128 << (shift - 1))) >> shift) as i64).collect();
            assert_eq!(open(&y), want, "shift {shift}");
            assert_eq!(spent.rounds, nearest_cost(shift).rounds, "shift {shift}");
        }
    }

    #[test]
    fn probabilistic_gives_the_floor_plus_the_recorded_coin() {
        for shift in [1, 2, 11, 16, 29, 32, 39, 44, 60] {
            let v = operands(shift);
            let x = share(v.len(), 1, &v);
            let (y, spent, records) = world(FixedSpec::default(), Rounding::Probabilistic, |p| {
                p.run(truncate(p, &x[p.id.index()], shift, "t"))
            });
            assert_eq!(spent.rounds, probabilistic_cost(shift).rounds);
            let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
            let low = |v: u64| v & ((1 << shift) - 1);
            for (i, y) in open(&y).into_iter().enumerate() {
                let coin = i64::from(low(x0[i]) < low(m[i]));
                assert_eq!(y, (v[i] >> shift) + coin, "{} >> {shift}", v[i]);
                assert!(coin == 0 || low(v[i] as u64) != 0, "an exact multiple never moves");
            }
        }
    }

    /// Around the length of a piece and the widths of packed words, replicated and as a product: floor plus the recorded coin.
    #[test]
    fn long_vectors_are_truncated_element_by_element() {
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        for n in [PIECE - 1, PIECE, PIECE + 1, PIECE + 63, 2 * PIECE + 63] {
            let v: Vec<i64> = (0..n).map(|i| rng.random::<i64>() >> (2 + i % 50)).collect();
            let x = share(1, n, &v);
            for shift in [1, 15, 16, 17, 31, 32, 33, 39, 61] {
                for product in [false, true] {
                    let (y, _, records) = world(FixedSpec::default(), Rounding::Probabilistic, |p| {
                        let x = &x[p.id.index()];
                        p.run(async {
                            match product {
                                true => truncate_product(p, x.parts(), shift, "t").await,
                                false => truncate(p, x, shift, "t").await,
                            }
                        })
                    });
                    let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
                    let low = |v: u64| v & ((1 << shift) - 1);
                    let want: Vec<i64> = (0..n).map(|i| (v[i] >> shift) + i64::from(low(x0[i]) < low(m[i]))).collect();
                    assert_eq!(open(&y), want, "{n} elements, shift {shift}");
                }
                let (y, ..) = world(FixedSpec::default(), Rounding::Nearest, |p| {
                    p.run(truncate(p, &x[p.id.index()], shift, "t"))
                });
                let half = 1i128 << (shift - 1);
                let want: Vec<i64> = v.iter().map(|&v| ((i128::from(v) + half) >> shift) as i64).collect();
                let inside = |v: &i64| i128::from(*v) + half < 1 << 62;
                let all = open(&y).into_iter().zip(want).zip(&v).filter(|(_, v)| inside(v));
                all.for_each(|((y, want), v)| assert_eq!(y, want, "{v} >> {shift}, nearest, {n} elements"));
            }
        }
    }

    /// Half the range, both edges, exactly as undoubled: the value itself and, under probabilistic rounding, the recorded coin.
    #[test]
    fn a_doubled_value_is_truncated_as_the_value_itself() {
        for shift in [1, 2, 16, 39, 60] {
            let half = 1i128 << (shift - 1);
            let mut v: Vec<i64> = operands(shift).into_iter().map(|v| v >> 1).collect();
            v.retain(|&v| i128::from(v) + half < 1 << 61);
            v.extend([-(1 << 61), ((1i128 << 61) - half - 1) as i64]);
            let x = share(v.len(), 1, &v);
            for rounding in Rounding::ALL {
                let (y, spent, records) = world(FixedSpec::default(), rounding, |p| {
                    p.run(truncate_doubled(p, x[p.id.index()].parts().into(), shift, "t"))
                });
                let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
                let low = |v: u64| v & ((2 << shift) - 1);
                let want = |i: usize| match rounding {
                    Rounding::Probabilistic => (v[i] >> shift) + i64::from(low(x0[i]) < low(m[i])),
                    Rounding::Nearest => ((i128::from(v[i]) + half) >> shift) as i64,
                };
                assert_eq!(open(&y), (0..v.len()).map(want).collect::<Vec<_>>(), "{rounding}, shift {shift}");
                let cost = match rounding {
                    Rounding::Probabilistic => probabilistic_cost(shift + 1),
                    Rounding::Nearest => nearest_product_cost(shift),
                };
                assert_eq!(spent.rounds, cost.rounds, "{rounding}, shift {shift}");
            }
        }
    }

    #[test]
    fn the_cost_is_what_the_constants_say() {
        for (rounding, cost) in
            [(Rounding::Probabilistic, probabilistic_cost(16)), (Rounding::Nearest, nearest_product_cost(16))]
        {
            let n = 640;
            let x = share(n, 1, &vec![12345; n]);
            let (_, spent, _) =
                world(FixedSpec::default(), rounding, |p| p.run(truncate_product(p, x[p.id.index()].parts(), 16, "t")));
            assert_eq!((spent.rounds, spent.bytes * 8), (cost.rounds, cost.bits_per_element * n as u64), "{rounding}");
        }
    }

    #[test]
    fn numbers_are_packed_into_as_many_bits_as_they_have() {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        for width in 1..=61 {
            for n in [1, 7, 64, 65, PIECE - 1, PIECE] {
                let values: Vec<u64> = (0..n).map(|_| rng.random()).collect();
                let mut packed = Words::default();
                pack(&values, width, &mut packed);
                assert_eq!(packed.len(), packed_words(n, width), "{n} of {width} bits");
                assert!(n % 64 > 0 || packed.len() * 64 == n * width as usize, "{n} of {width} bits");
                let mut back = vec![u64::MAX; n];
                unpack(&packed, width, &mut back);
                let low = |all: &[u64]| all.iter().map(|v| v & ((1 << width) - 1)).collect::<Vec<_>>();
                assert_eq!(low(&back), low(&values), "{n} of {width} bits");
            }
        }
        assert_eq!(packed_words(2 * PIECE + 65, 17), 32 * 17 + 65);
    }

    #[test]
    fn a_shift_that_the_ring_does_not_allow_is_refused() {
        let x = share(1, 2, &[3 << 16, -5]);
        for rounding in Rounding::ALL {
            for shift in [0, 62, 64] {
                let (refused, ..) = world(FixedSpec::default(), rounding, |p| {
                    let x = &x[p.id.index()];
                    let product = p.run(truncate_product(p, x.parts(), shift, "t"));
                    let doubled = p.run(truncate_doubled(p, x.parts().into(), shift.clamp(0, 61), "t"));
                    Ok([product, doubled, p.run(truncate(p, x, shift, "t"))].iter().all(Result::is_err))
                });
                assert_eq!(refused, [true; 3], "{rounding}, shift {shift}");
            }
        }
    }

    /// ln n!, by Stirling's series: relative error below 1e-16 for n >= 30.
    fn ln_factorial(n: f64) -> f64 {
        if n < 30.0 {
            return (2..=n as u64).map(|k| (k as f64).ln()).sum();
        }
        let r = 1.0 / n;
        n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + r / 12.0 - r.powi(3) / 360.0 + r.powi(5) / 1260.0
    }

    /// P(X as far out as k on its side) for X binomial (n, p): the exact tail, summed from k outwards.
    fn binomial_tail(n: u64, k: u64, p: f64) -> f64 {
        let (n_f, k_f) = (n as f64, k as f64);
        let choose = ln_factorial(n_f) - ln_factorial(k_f) - ln_factorial(n_f - k_f);
        let mut term = (choose + k_f * p.ln() + (n_f - k_f) * (-p).ln_1p()).exp();
        let odds = p / (1.0 - p);
        let (mut sum, mut i) = (0.0, k_f);
        let upwards = k_f >= n_f * p;
        while term > 0.0 && term > sum * 1e-18 {
            sum += term;
            term *= if upwards { (n_f - i) / (i + 1.0) * odds } else { i / (n_f - i + 1.0) / odds };
            i += if upwards { 1.0 } else { -1.0 };
        }
        sum
    }

    #[test]
    fn the_binomial_tail_is_exact_where_it_can_be_counted() {
        // Of the 1024 outcomes of ten fair coins, 176 have three heads or fewer.
        assert!((binomial_tail(10, 3, 0.5) - 176.0 / 1024.0).abs() < 1e-12);
        assert!((binomial_tail(10, 7, 0.5) - 176.0 / 1024.0).abs() < 1e-12);
        assert!((binomial_tail(10, 0, 0.25) - 0.75f64.powi(10)).abs() < 1e-12);
    }

    /// 2^22 truncations at each magnitude: floor or floor + 1 only, and the number of those that round up has an exact binomial tail
    /// above 2^-40.
    #[test]
    fn four_million_truncations_never_fail_and_round_up_as_often_as_they_should() {
        const N: usize = 1 << 18;
        for value in [3i64 << 14, -(1 << 30) + 77, (1 << 46) + 12345, -(1 << 46) - 1, (1 << 61) + 54321, -(1 << 61) + 3]
        {
            let v = vec![value; N];
            let fraction = (value & 0xffff) as f64 / 65536.0;
            let mut up = 0usize;
            for _ in 0..16 {
                let x = share(N, 1, &v);
                let (y, ..) = world(FixedSpec::default(), Rounding::Probabilistic, |p| {
                    p.run(truncate(p, &x[p.id.index()], 16, "t"))
                });
                for y in open(&y) {
                    let c = y - (value >> 16);
                    assert!(c == 0 || c == 1, "{value}: {y}");
                    up += c as usize;
                }
            }
            let tail = binomial_tail(16 * N as u64, up as u64, fraction);
            assert!(
                tail > 2f64.powi(-40),
                "{value}: {up} of {} rounded up, expected {fraction}: tail {tail:e}",
                16 * N
            );
        }
    }
}
