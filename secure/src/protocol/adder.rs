//! Addition of a number that party 0 knows and one that parties 1 and 2 know, in bit planes.
//!
//! computes   [`carry`]: the carry out of a + b, a and b of `width` bits; [`low_sum`]: all bits of a + b mod 2^width,
//!            width <= 5
//! requires   a as planes at party 0, b as planes at parties 1 and 2; 64 values a word
//! cost       [`carry_cost`]: 2 + ceil(log2(chunks)) rounds with chunks = ceil(width / 4); [`low_sum_cost`]: 2 rounds
//! reveals    nothing
//! source     own: the first four levels of a carry tree in two rounds, by two-server retrieval (Chor et al., *Private
//!            information retrieval*, J. ACM 1998); the rest is the usual tree
//!
//! # The first four levels
//!
//! Cut a and b into chunks of four bits. Of every chunk the tree needs G = [a' + b' >= 16] and P = [a' + b' = 15].
//! Parties 1 and 2 both know b', so both can write down the table of G (and P) over the 16 values that a' may have;
//! party 0 knows which entry it is. Party 0 splits the indicator of a' into two vectors of bits, q for party 1 (stream
//! 1, not sent) and q' = indicator xor q for party 2; either alone is uniform. The two inner products with the
//! table xor to the entry. Parties 1 and 2 mask their answers with streams they share and send them to party 0, which
//! makes the three components of the result: party 2's masked answer (0), party 1's masked answer (1), the masks (2).
//! The entry of a' = 0 is known to parties 1 and 2 and goes into component 2, so the vectors have 15 bits.

use super::boolean::and;
use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::prg::CallId;
use crate::share::{BitShare, Planes};
use crate::step::Step;
use futures_util::try_join;
use std::borrow::Borrow;

const STEP: Step = Step::Adder;
const CHUNK: u32 = 4;

// Purposes of the streams within one call.
const QUERY: u8 = 0;
const MASK_1: u8 = 1;
const MASK_2: u8 = 2;

/// The cost of [`carry`] of two numbers of `width` bits, an element.
pub const fn carry_cost(width: u32) -> Cost {
    let mut rounds = 2;
    let mut bits = 0;
    let chunks = width.div_ceil(CHUNK) as u64;
    let mut chunk = 0;
    while chunk < chunks {
        bits += (1 << chunk_bits(width, chunk as u32)) - 1;
        chunk += 1;
    }
    bits += 2 * (2 * chunks - 1);
    let mut n = chunks;
    while n > 1 {
        rounds += 1;
        bits += 3 * (2 * (n / 2) - 1);
        n = n.div_ceil(2);
    }
    Cost { rounds, bits_per_element: bits }
}

/// The cost of [`low_sum`] of two numbers of `width` <= 5 bits, an element.
pub const fn low_sum_cost(width: u32) -> Cost {
    Cost { rounds: 2, bits_per_element: (1 << width) - 1 + 2 * width as u64 }
}

const fn chunk_bits(width: u32, chunk: u32) -> u32 {
    let left = width - CHUNK * chunk;
    if left < CHUNK { left } else { CHUNK }
}

/// The carry out of a + b, of which the lowest `width` planes count: a at party 0, b at parties 1 and 2.
///
/// # Errors
/// Those of the transport.
pub async fn carry(p: &Party, planes: &Planes, width: u32) -> Result<BitShare> {
    carry_of(p, async { Ok(planes) }, planes.shape(), width).await
}

/// The [`carry`] of planes of the given shape, (blocks, len), that parties 1 and 2 may learn in its first round, in
/// which they only receive. Party 0 has its own without waiting.
///
/// # Errors
/// Those of the transport and of `planes`.
pub async fn carry_of<B: Borrow<Planes>>(
    p: &Party,
    planes: impl Future<Output = Result<B>>,
    (blocks, len): (usize, usize),
    width: u32,
) -> Result<BitShare> {
    let chunks = Chunks { width, words: blocks * len.div_ceil(64) };
    let t = p.call_id();
    let (query, planes) = if p.id == PartyId::P0 {
        let planes = planes.await?;
        (query(p, t, chunks.query_words(), |query| chunks.indicate(planes.borrow(), query)).await?, planes)
    } else {
        try_join!(query(p, t, chunks.query_words(), |_| ()), planes)?
    };
    let planes = planes.borrow();
    debug_assert!(planes.shape() == (blocks, len) && (1..=planes.width()).contains(&width));
    let inner = |answers: &mut [u64], zero_entry: &mut [u64]| chunks.answer(planes, &query, answers, zero_entry);
    let (own, next) = answer(p, t, chunks.answer_words(), inner).await?;

    let (n, m) = (chunks.count(), 2 * chunks.count() - 1);
    let flat = BitShare { blocks: m, len: 64 * chunks.words, own, next };
    let carry = up_the_tree(p, flat.gather(0..n), flat.gather(n..m)).await?;
    Ok(BitShare { blocks, len, own: carry.own, next: carry.next })
}

/// How two numbers of `width` bits are cut into chunks of four, with `words` words in a plane.
#[derive(Clone, Copy)]
struct Chunks {
    width: u32,
    words: usize,
}

impl Chunks {
    fn count(self) -> usize {
        self.width.div_ceil(CHUNK) as usize
    }

    /// Bits of chunk `j`.
    fn bits(self, j: usize) -> u32 {
        chunk_bits(self.width, j as u32)
    }

    /// The words of chunk `j` among the `planes` of a number.
    fn of(self, planes: &Planes, j: usize) -> &[u64] {
        let start = CHUNK * j as u32;
        planes.range(start..start + self.bits(j))
    }

    /// Words of chunk `j`'s part of the query: a plane for each value but 0.
    fn part(self, j: usize) -> usize {
        ((1 << self.bits(j)) - 1) * self.words
    }

    /// Words of the whole query.
    fn query_words(self) -> usize {
        (0..self.count()).map(|j| self.part(j)).sum()
    }

    /// Words of an answer: G of every chunk, then P of every chunk but the lowest, whose P nobody needs.
    fn answer_words(self) -> usize {
        (2 * self.count() - 1) * self.words
    }

    /// Party 0: writes the indicators of all chunks into `query`.
    fn indicate(self, planes: &Planes, query: &mut [u64]) {
        let mut rest = query;
        for j in 0..self.count() {
            let part;
            (part, rest) = std::mem::take(&mut rest).split_at_mut(self.part(j));
            indicators(self.of(planes, j), self.bits(j), self.words, part);
        }
    }

    /// Parties 1 and 2: writes the inner products of `query` with all tables into `answers`, and the tables' entries
    /// for a' = 0 into `zero_entry`, which holds zeros: G has none.
    fn answer(self, planes: &Planes, query: &[u64], answers: &mut [u64], zero_entry: &mut [u64]) {
        let (n, w) = (self.count(), self.words);
        let (g, props) = answers.split_at_mut(n * w);
        let zero_props = &mut zero_entry[n * w..];
        let mut rest = query;
        for j in 0..n {
            let part;
            (part, rest) = rest.split_at(self.part(j));
            let g = &mut g[j * w..(j + 1) * w];
            let prop = j.checked_sub(1).map(|k| k * w..(k + 1) * w);
            let prop = prop.map(|at| (&mut props[at.clone()], &mut zero_props[at]));
            chunk_answers(self.bits(j), part, self.of(planes, j), g, prop);
        }
    }
}

/// The carry out of the highest chunk, from G of every chunk and P of every chunk but the lowest: props[j - 1] belongs
/// to chunk j. Every level of the tree takes one round and halves the number of chunks.
async fn up_the_tree(p: &Party, mut g: BitShare, mut props: BitShare) -> Result<BitShare> {
    while g.blocks > 1 {
        let pairs = g.blocks / 2;
        let high = |i: usize| 2 * i + 1;
        let left = props.gather((0..pairs).map(|i| high(i) - 1).chain((1..pairs).map(|i| high(i) - 1)));
        let right = g.gather((0..pairs).map(|i| 2 * i)).append(&props.gather((1..pairs).map(|i| 2 * i - 1)));
        let both = and(p, &left, &right).await?;
        let mut g_up = g.gather((0..pairs).map(high));
        let carried = both.gather(0..pairs);
        faulty!(LostCarry => if g.blocks != 2 { g_up.xor_assign(&carried)? }, g_up.xor_assign(&carried)?);
        let mut props_up = both.gather(pairs..2 * pairs - 1);
        if g.blocks % 2 == 1 {
            g_up = g_up.append(&g.gather([g.blocks - 1]));
            props_up = props_up.append(&props.gather([props.blocks - 1]));
        }
        (g, props) = (g_up, props_up);
    }
    Ok(g)
}

/// The bits of a + b mod 2^width, one block a bit, lowest first, of one vector of up to five planes: a at party 0, b at
/// parties 1 and 2.
///
/// # Errors
/// Those of the transport.
pub async fn low_sum(p: &Party, planes: &Planes) -> Result<BitShare> {
    let ((blocks, len), w, width) = (planes.shape(), planes.words(), planes.width());
    let (bits, planes) = (width as usize, planes.range(0..width));
    debug_assert!(blocks == 1 && (1..=5).contains(&width));
    let entries = (1usize << width) - 1;
    let t = p.call_id();
    let query = query(p, t, entries * w, |query| indicators(planes, width, w, query)).await?;
    let (own, next) = answer(p, t, bits * w, |answers, zero_entry| {
        zero_entry.copy_from_slice(planes);
        for i in 0..w {
            for v in 1..=entries {
                let q = query[(v - 1) * w + i];
                let mut carry = 0u64;
                for k in 0..bits {
                    let b = planes[k * w + i];
                    let bit = if v >> k & 1 == 1 { !0 } else { 0 };
                    // The table's entry for v, less the entry for 0, which is b itself.
                    answers[k * w + i] ^= q & (bit ^ carry);
                    carry = faulty!(SumCarry => b & bit, (b & bit) | (carry & (b | bit)));
                }
            }
        }
    })
    .await?;
    Ok(BitShare { blocks: bits, len, own, next })
}

/// Round 1: parties 1 and 2 get their vectors; party 0 gets nothing.
async fn query(p: &Party, t: CallId, words: usize, indicator: impl FnOnce(&mut [u64])) -> Result<Words> {
    Ok(match p.id {
        PartyId::P0 => {
            p.send(STEP, Neighbour::Previous, |m| {
                let start = m.len();
                m.resize(start + words);
                indicator(&mut m[start..]);
                faulty!(AdderUnmasked => (), p.stream(1).xor(t, QUERY, &mut m[start..]));
            });
            p.receive(STEP, [0, 0]).await;
            Words::default()
        }
        PartyId::P1 => {
            p.receive(STEP, [0, 0]).await;
            faulty!(AdderUnmasked => Words::zeros(words), p.stream(1).words(t, QUERY, words))
        }
        PartyId::P2 => p.receive(STEP, [0, words]).await.take(Neighbour::Next),
    })
}

/// Round 2: parties 1 and 2 answer. `inner(answers, zero_entry)` xors the inner products into `answers` and the table's
/// entries for a' = 0 into `zero_entry`. The result is this party's two components.
async fn answer(
    p: &Party,
    t: CallId,
    words: usize,
    inner: impl FnOnce(&mut [u64], &mut [u64]),
) -> Result<(Words, Words)> {
    Ok(if p.id == PartyId::P0 {
        let received = p.receive(STEP, [words, words]).await;
        (Words::from(&*received.from(Neighbour::Previous)), Words::from(&*received.from(Neighbour::Next)))
    } else {
        let (mut mine, mut masks) = (Words::zeros(words), Words::zeros(words));
        inner(&mut mine, &mut masks);
        let (my_mask, to) = match p.id {
            PartyId::P1 => (MASK_1, Neighbour::Previous),
            _ => (MASK_2, Neighbour::Next),
        };
        let mask = p.stream(2).words(t, faulty!(AnswerMask => MASK_1, my_mask), words);
        mine.iter_mut().zip(&mask).for_each(|(a, m)| *a ^= m);
        let other_mask = MASK_1 + MASK_2 - my_mask;
        faulty!(AnswerMask => (), add_masks(p, t, &mut masks, &mask, other_mask));
        p.send(STEP, to, |m| m.extend_from_slice(&mine));
        p.receive(STEP, [0, 0]).await;
        if p.id == PartyId::P1 { (mine, masks) } else { (masks, mine) }
    })
}

/// Component 2 of the result: the entries for a' = 0 under both parties' masks.
fn add_masks(p: &Party, t: CallId, zero_entry: &mut [u64], mask: &[u64], other_mask: u8) {
    zero_entry.iter_mut().zip(mask).for_each(|(z, m)| *z ^= m);
    p.stream(2).xor(t, other_mask, zero_entry);
}

wide_fn! {
    /// out[(v-1) w + i] = bits in which the value of the `c` planes is v, v = 1 .. 2^c - 1.
    fn indicators(planes: &[u64], c: u32, w: usize, out: &mut [u64]) {
        for i in 0..w {
            let all = one_hot(planes, c, w, i);
            for v in 1..1usize << c {
                out[(v - 1) * w + i] = all[v];
            }
        }
    }
}

/// Word i of the indicators of all 2^c values, c <= 5.
#[inline(always)]
fn one_hot(planes: &[u64], c: u32, w: usize, i: usize) -> [u64; 32] {
    let mut all = [0u64; 32];
    all[0] = !0;
    for k in 0..c as usize {
        let bit = planes[k * w + i];
        for v in 0..1usize << k {
            all[v | 1 << k] = all[v] & bit;
            all[v] &= !bit;
        }
    }
    all
}

wide_fn! {
    /// Inner products of one chunk's query with the tables of G and P over a' = 1 .. 2^c - 1, each entry less the entry
    /// for a' = 0. `prop`: where P goes, and its entry for a' = 0.
    fn chunk_answers(c: u32, q: &[u64], planes: &[u64], g: &mut [u64], prop: Option<(&mut [u64], &mut [u64])>) {
        match c {
            4 => answers_of::<4>(q, planes, g, prop),
            3 => answers_of::<3>(q, planes, g, prop),
            2 => answers_of::<2>(q, planes, g, prop),
            _ => answers_of::<1>(q, planes, g, prop),
        }
    }
}

#[inline(always)]
fn answers_of<const C: u32>(q: &[u64], planes: &[u64], g: &mut [u64], mut prop: Option<(&mut [u64], &mut [u64])>) {
    let w = g.len();
    let top = (1usize << C) - 1;
    for i in 0..w {
        let is = one_hot(planes, C, w, i);
        let (mut at_least, mut g_word, mut p_word, mut q_all) = (0, 0, 0, 0);
        for v in 1..=top {
            let query = q[(v - 1) * w + i];
            at_least |= is[top + 1 - v]; // b' >= 2^c - v
            g_word ^= query & at_least;
            p_word ^= query & is[top - v];
            q_all ^= query;
        }
        g[i] = g_word;
        if let Some((answers, zero_entry)) = prop.as_mut() {
            answers[i] = p_word ^ (q_all & is[top]);
            zero_entry[i] = is[top];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::convert::to_ring;
    use crate::testing::{open, world};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use spec::{FixedSpec, Rounding};

    fn planes(v: &[u64], bits: u32) -> Planes {
        Planes::of(v, 1, v.len(), 0..bits)
    }

    fn carries(a: &[u64], b: &[u64], width: u32) -> Vec<i64> {
        let (bits, spent, _) = world(FixedSpec::default(), Rounding::Nearest, |p| {
            let known = if p.id == PartyId::P0 { a } else { b };
            p.run(async { to_ring(p, &carry(p, &planes(known, width), width).await?).await })
        });
        assert_eq!(spent.rounds, carry_cost(width).rounds + 2);
        open(&bits)
    }

    #[test]
    fn every_pair_of_short_numbers() {
        for width in 1..=5u32 {
            let n = 1u64 << width;
            let (a, b): (Vec<u64>, Vec<u64>) = (0..n * n).map(|i| (i / n, i % n)).unzip();
            let want: Vec<i64> = a.iter().zip(&b).map(|(a, b)| i64::from(a + b >= n)).collect();
            assert_eq!(carries(&a, &b, width), want, "width {width}");
            let (sum, spent, _) = world(FixedSpec::default(), Rounding::Nearest, |p| {
                let known = if p.id == PartyId::P0 { &a } else { &b };
                p.run(async { to_ring(p, &low_sum(p, &planes(known, width)).await?).await })
            });
            assert_eq!(spent.rounds, low_sum_cost(width).rounds + 2);
            let bit = |k: u32, i: usize| i64::from(((a[i] + b[i]) >> k & 1) as u8);
            let want: Vec<i64> =
                (0..width).flat_map(|k| (0..a.len()).map(move |i| (k, i))).map(|(k, i)| bit(k, i)).collect();
            assert_eq!(open(&sum), want, "width {width}");
        }
    }

    /// Bits by hand: the query has 2^c - 1 bits a chunk of c, an answer one bit for each G and each P but the lowest,
    /// from two parties.
    #[test]
    fn the_cost_is_what_the_constants_say() {
        const N: usize = 128;
        let bits_of = |bits: u64, rounds: u64| Cost { rounds, bits_per_element: bits };
        for (width, cost) in [(1, bits_of(1 + 2, 2)), (4, bits_of(15 + 2, 2)), (7, bits_of(15 + 7 + 6 + 3, 3))] {
            assert_eq!(carry_cost(width), cost, "width {width}");
        }
        assert_eq!(low_sum_cost(5), bits_of(31 + 10, 2));
        for width in 1..=63u32 {
            let planes = planes(&[0; N], width);
            let spent = |program: &(dyn Fn(&Party) -> Result<BitShare> + Sync)| {
                let (_, spent, _) = world(FixedSpec::default(), Rounding::Nearest, program);
                (spent.rounds, spent.bytes * 8 / N as u64)
            };
            let cost = carry_cost(width);
            let found = spent(&|p| p.run(carry(p, &planes, width)));
            assert_eq!(found, (cost.rounds, cost.bits_per_element), "carry, width {width}");
            if width <= 5 {
                let cost = low_sum_cost(width);
                let found = spent(&|p| p.run(low_sum(p, &planes)));
                assert_eq!(found, (cost.rounds, cost.bits_per_element), "low_sum, width {width}");
            }
        }
    }

    #[test]
    fn long_numbers_and_long_carries() {
        let mut rng = ChaCha12Rng::seed_from_u64(5);
        for width in [6u32, 8, 15, 16, 17, 31, 32, 39, 61, 63] {
            let mask = (1u64 << width) - 1;
            let mut a: Vec<u64> = (0..130).map(|_| rng.random::<u64>() & mask).collect();
            let mut b: Vec<u64> = (0..130).map(|_| rng.random::<u64>() & mask).collect();
            for i in 0..60 {
                // a + b = 2^width - 1 + {0, 1}: the carry runs through every chunk or stops just short.
                b[i] = mask - a[i] + u64::from(i % 2 == 1 && a[i] > 0);
            }
            (a[60], b[60], a[61], b[61]) = (0, 0, mask, mask);
            let want: Vec<i64> = a.iter().zip(&b).map(|(a, b)| i64::from(a + b > mask)).collect();
            assert_eq!(carries(&a, &b, width), want, "width {width}");
        }
    }
}
