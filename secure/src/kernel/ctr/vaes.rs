//! Counter mode in 512-bit vectors: 4 blocks a vector, 8 vectors in flight.
//!
//! `vaesenc` takes 4 cycles and starts every cycle, so 8 independent vectors keep the unit busy. Masks are added or
//! subtracted while they are still in registers.
#![allow(unsafe_code)]

use super::Combine;
use std::arch::x86_64::*;

/// The eleven round keys, and the proof that this CPU has AVX-512 F, AES and VAES: made by [`Schedule::new`] only.
#[derive(Clone)]
pub(super) struct Schedule([[u8; 16]; 11]);

/// Blocks and words of a full step.
const BLOCKS: u64 = 32;
const WORDS: usize = 64;

impl Schedule {
    pub fn new(key: [u8; 16]) -> Option<Self> {
        let available =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("aes") && is_x86_feature_detected!("vaes");
        // SAFETY: the features are there.
        available.then(|| Schedule(unsafe { expand(key) }))
    }

    pub fn run(&self, first: u128, out: &mut [u64], combine: Combine) {
        // The vector counter has no carry between its halves: a run that crosses a multiple of 2^64 is cut there.
        let before_carry = (1u128 << 64) - (first as u64 as u128);
        let cut = usize::try_from(before_carry * 2).unwrap_or(usize::MAX).min(out.len());
        let (now, later) = out.split_at_mut(cut);
        // SAFETY: `self` exists, so the features do.
        unsafe { self.vectors(first, now, combine) };
        if !later.is_empty() {
            self.run(first.wrapping_add(before_carry), later, combine);
        }
    }

    #[target_feature(enable = "avx512f,aes,vaes")]
    fn vectors(&self, first: u128, out: &mut [u64], combine: Combine) {
        let keys = self.0.map(|key| {
            let key = u128::from_le_bytes(key);
            _mm512_broadcast_i32x4(_mm_set_epi64x((key >> 64) as i64, key as i64))
        });
        let (high, mut low) = ((first >> 64) as i64, first as u64);
        let (whole, tail) = out.as_chunks_mut::<WORDS>();
        for out in whole {
            step(&keys, high, low, out, combine);
            low = low.wrapping_add(BLOCKS);
        }
        if !tail.is_empty() {
            let mut words = [0; WORDS];
            step(&keys, high, low, &mut words, Combine::Set);
            for (out, word) in tail.iter_mut().zip(words) {
                *out = combine.apply(*out, word);
            }
        }
    }
}

#[target_feature(enable = "avx512f,aes,vaes")]
#[inline]
fn step(keys: &[__m512i; 11], high: i64, low: u64, out: &mut [u64; WORDS], combine: Combine) {
    let mut state: [__m512i; 8] = std::array::from_fn(|v| {
        let [a, b, c, d] = std::array::from_fn(|i| low.wrapping_add((4 * v + i) as u64) as i64);
        _mm512_xor_si512(_mm512_set_epi64(high, d, high, c, high, b, high, a), keys[0])
    });
    for key in &keys[1..10] {
        for s in &mut state {
            *s = _mm512_aesenc_epi128(*s, *key);
        }
    }
    for (s, out) in state.iter().zip(out.as_chunks_mut::<8>().0) {
        let word = _mm512_aesenclast_epi128(*s, keys[10]);
        let place = out.as_mut_ptr().cast();
        // SAFETY: `out` is eight words, the size of the vector.
        unsafe {
            let old = _mm512_loadu_si512(place);
            let new = match combine {
                Combine::Set => word,
                Combine::Add => _mm512_add_epi64(old, word),
                Combine::Sub => _mm512_sub_epi64(old, word),
                Combine::Xor => _mm512_xor_si512(old, word),
            };
            _mm512_storeu_si512(place.cast(), new);
        }
    }
}

/// FIPS 197 section 5.2, by `aeskeygenassist`.
#[target_feature(enable = "aes")]
fn expand(key: [u8; 16]) -> [[u8; 16]; 11] {
    let key = u128::from_le_bytes(key);
    let mut keys = [_mm_set_epi64x((key >> 64) as i64, key as i64); 11];
    macro_rules! round {
        ($($i:literal: $constant:literal),*) => {$(
            let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$constant>(keys[$i - 1]));
            let mut k = keys[$i - 1];
            for _ in 0..3 {
                k = _mm_xor_si128(_mm_slli_si128::<4>(k), keys[$i - 1]);
            }
            keys[$i] = _mm_xor_si128(k, assist);
        )*};
    }
    round!(1: 0x01, 2: 0x02, 3: 0x04, 4: 0x08, 5: 0x10, 6: 0x20, 7: 0x40, 8: 0x80, 9: 0x1b, 10: 0x36);
    // SAFETY: both are sixteen bytes.
    keys.map(|key| unsafe { std::mem::transmute::<__m128i, [u8; 16]>(key) })
}
