//! Probabilistic truncation: 3 rounds, 24 bytes + s + 2 bits an element.
//!
//! The last bit of the formula in [`truncate`](super) is left out: the result is one higher with probability
//! (V' mod 2^s) / 2^s, as x0 is uniform. The product arrives in additive parts z_0 + z_1 + z_2:
//!
//! ```text
//! round 1   party 2 -> 1   z_2 - r      r = stream 0: x0 = z_0 + r + 2^62 at party 0,
//!                                                     m = -(z_1 + z_2 - r) at party 1
//!           party 2 -> 1   ab - g       a (stream 0), b (stream 2) random bits,
//!                                       g (stream 0) a random number of s bits
//!           party 0 -> 1   d = u ^ a    u = NOT msb(x0)
//! round 2   party 1 -> 0   e = w ^ b    w = msb(m)
//!           party 1 -> 0   y_1 - r_2    y_1 = 2^(64-s) (d e + d (1-2e) b + (1-2d)(1-2e) (ab - g)) - (m >> s)
//!                                       r_2 = stream 2
//! round 3   party 0 -> 1   y_0 - r_0 + (y_1 - r_2) = r_1
//!                                       y_0 = 2^(64-s) (e (1-2d) a + (1-2d)(1-2e) g) + (x0 >> s) - 2^(62-s)
//! ```
//!
//! u w = (d ^ a)(e ^ b) expands into the two brackets. The result's components are r_0, r_1, r_2.

use super::offset::{OFFSET, shifted_0};
use super::pack::{PIECE, pack, packed_words, unpack};
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::{Neighbour, PartyId};
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::prg::Draw;
#[cfg(feature = "faults")]
use crate::share::zip;
use crate::share::{Parts, Share};
use crate::step::Step;

const STEP: Step = Step::Truncate;

// Purposes of the streams within one call.
const R: u8 = 0;
const A: u8 = 1;
const B: u8 = 2;
const G: u8 = 3;
const R_0: u8 = 4;
const R_2: u8 = 5;

/// The cost of probabilistic truncation by `shift` bits, an element, of a replicated value and of a product alike.
pub const fn probabilistic_cost(shift: u32) -> Cost {
    Cost { rounds: 3, bits_per_element: 3 * 64 + 2 + shift as u64 }
}

/// Truncates the value that the additive parts stand for by `shift` bits, 1 <= shift <= 61.
pub async fn probabilistic(p: &Party, parts: Parts, shift: u32, name: &str) -> Result<Share> {
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
        faulty!(
            MaskLowBits => crate::fault::truncate::add_high_bits(z, shift, |r_k| r.fill(k * PIECE, r_k)),
            mask(&r, k * PIECE, z, Draw::add)
        );
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
                faulty!(LocalTruncation => zip(z, y_1, u64::wrapping_add), borrow_0(z, borrow, g, y_1));
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
        for (w, z) in z.chunks_mut(64).enumerate() {
            let (d, e, a) = (b.d[w], b.e[w], b.own[w]);
            let (g, y_1) = (&g[64 * w..][..z.len()], &y_1[64 * w..][..z.len()]);
            for k in 0..z.len() {
                let (d, e, a) = (d >> k & 1, e >> k & 1, a >> k & 1);
                let borrow = negate_if(d, (e & a).wrapping_add(negate_if(e, g[k])));
                z[k] = z[k].wrapping_add(borrow << up).wrapping_add(y_1[k]);
            }
        }
    }
}

async fn probabilistic_1(p: &Party, mut z: Words, shift: u32, name: &str) -> (Words, Words) {
    let (n, t) = (z.len(), p.call_id());
    let words = n.div_ceil(64);
    // Drawn before party 2's message is waited for.
    let b = p.stream(2).words(t, B, words);
    let r_2 = faulty!(ResultUnmasked => Words::zeros(n), p.stream(2).words(t, R_2, n));
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
                negated_sum_and_sign(z, z_2, e);
                if p.records() {
                    noted.extend_from_slice(z);
                }
                e.iter_mut().zip(&b[bits..]).for_each(|(e, b)| *e ^= b);
                let borrow = Borrow { d: &d[bits..], e, own: &b[bits..], shift };
                faulty!(
                    LocalTruncation => crate::fault::truncate::each_share(z, shift, &r_2[from..]),
                    borrow_1(z, borrow, corrections, &r_2[from..])
                );
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
        for (w, z) in z.chunks_mut(64).enumerate() {
            let (d, e, b) = (b.d[w], b.e[w], b.own[w]);
            let from = 64 * w;
            let (corrections, r_2) = (&corrections[from..][..z.len()], &r_2[from..][..z.len()]);
            for k in 0..z.len() {
                let (d, e, b) = (d >> k & 1, e >> k & 1, b >> k & 1);
                let corrected = negate_if(d ^ e, corrections[k]);
                let borrow = (d & e).wrapping_add(negate_if(e, d & b)).wrapping_add(corrected);
                let shifted = faulty!(BothFloored => crate::fault::truncate::ceiling(z[k], shift), z[k] >> shift);
                z[k] = (borrow << up).wrapping_sub(shifted).wrapping_sub(r_2[k]);
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
            let masked = &mut m[start..];
            faulty!(
                MaskLowBits => crate::fault::truncate::subtract_high_bits(masked, shift, |r_k| r.fill(k * PIECE, r_k)),
                mask(&r, k * PIECE, masked, Draw::sub)
            );
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
    faulty!(ResultUnmasked => own.fill(0));
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

/// Applies the mask r to a piece of z that begins at `at`: [`Draw::add`] at party 0, [`Draw::sub`] at party 2.
#[inline(always)]
fn mask<'r>(r: &Draw<'r>, at: usize, z: &mut [u64], apply: fn(&Draw<'r>, usize, &mut [u64])) {
    faulty!(
        TruncateUnmasked => (),
        PieceOffset => apply(r, 0, z),
        apply(r, at, z)
    );
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
