//! Small AVX-512 helpers shared by the kernels that use it.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Eight words as a vector.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(words: &[u64; 8]) -> __m512i {
    // SAFETY: 64 readable bytes; the instruction needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Sixty-four bytes as a vector.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load_bytes(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: as above.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// A vector as eight words.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn unload(vector: __m512i) -> [u64; 8] {
    let mut words = [0; 8];
    // SAFETY: 64 writable bytes; the instruction needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

/// A vector as sixty-four bytes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn unload_bytes(vector: __m512i) -> [u8; 64] {
    let mut bytes = [0; 64];
    // SAFETY: as above.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) };
    bytes
}

/// Byte 8 b + i of the result is byte 8 i + b of the source: the transposition of an 8 × 8 matrix of bytes; `flip`
/// reverses i.
pub(super) const fn byte_transpose(flip: usize) -> [u8; 64] {
    let mut index = [0; 64];
    let mut at = 0;
    while at < 64 {
        index[at] = (8 * ((at % 8) ^ flip) + at / 8) as u8;
        at += 1;
    }
    index
}

/// Word i of vector j of the result is word j of vector i of the argument.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs of words, then pairs of 128-bit lanes, then of 256-bit halves.
    let pair = |i: usize| {
        let (a, b) = (rows[2 * i], rows[2 * i + 1]);
        [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)]
    };
    let pairs: [[__m512i; 2]; 4] = [pair(0), pair(1), pair(2), pair(3)];
    let mut out = rows;
    for odd in 0..2 {
        // Lane l of pairs[i] holds words (2 i, 2 i + 1) of column 2 l + odd.
        let [a, b, c, d] = pairs.map(|p| p[odd]);
        let (ab_even, ab_odd) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
        let (cd_even, cd_odd) = (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xdd>(c, d));
        out[odd] = _mm512_shuffle_i64x2::<0x88>(ab_even, cd_even);
        out[4 + odd] = _mm512_shuffle_i64x2::<0xdd>(ab_even, cd_even);
        out[2 + odd] = _mm512_shuffle_i64x2::<0x88>(ab_odd, cd_odd);
        out[6 + odd] = _mm512_shuffle_i64x2::<0xdd>(ab_odd, cd_odd);
    }
    out
}
