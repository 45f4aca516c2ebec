//! Numbers of less than 64 bits on their way from party to party, packed in whole words.
//!
//! A vector travels in pieces of [`PIECE`] numbers, each packed by itself, so that sender and receiver work on what is
//! in the first-level cache.

use crate::buffer::Words;
use crate::kernel::wide_fn;

/// Elements that are worked on at once, in the first-level cache; a multiple of 64.
pub const PIECE: usize = 1024;

/// Words of `n` packed numbers of `width` bits, piece by piece. A piece that is not a multiple of 64 is not packed: its
/// last words would hold few bits, and messages are judged by their words.
pub fn packed_words(n: usize, width: u32) -> usize {
    let (pieces, rest) = (n / PIECE, n % PIECE);
    let packed = |n: usize| n / 64 * width as usize;
    pieces * packed(PIECE) + if rest.is_multiple_of(64) { packed(rest) } else { rest }
}

wide_fn! {
    /// Appends the lowest `width` bits of every value of a piece, in lanes of the powers of two that make up the width:
    /// the lowest in the widest.
    pub fn pack(values: &[u64], width: u32, out: &mut Words) {
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
    pub fn unpack(words: &[u64], width: u32, out: &mut [u64]) {
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
