//! Counter mode by the AES instructions of x86-64, in vectors of one, two or four blocks.
//!
//! `aesenc` takes 3 to 4 cycles and starts once or twice a cycle, so eight independent vectors keep the unit busy.
//! Masks are added or subtracted while they are still in registers. The three widths are one body, [`counter_mode`].
#![allow(unsafe_code)]

use super::Combine;
use std::arch::x86_64::*;

/// Vectors in flight.
const VECTORS: usize = 8;

/// The eleven round keys in memory, lowest first.
type Keys = [[u8; 16]; 11];

/// The round keys, and the proof that this processor has what the width needs: made by [`Schedule::new`] only.
#[derive(Clone)]
pub(super) struct Schedule {
    keys: Keys,
    width: Width,
}

/// Blocks of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// AES-NI.
    One,
    /// VAES on 256-bit vectors.
    Two,
    /// VAES on 512-bit vectors.
    Four,
}

impl Width {
    /// All widths, widest first.
    pub const ALL: [Width; 3] = [Width::Four, Width::Two, Width::One];

    fn is_available(self) -> bool {
        let vaes = is_x86_feature_detected!("vaes");
        is_x86_feature_detected!("aes")
            && match self {
                Width::One => true,
                Width::Two => vaes && is_x86_feature_detected!("avx2"),
                Width::Four => vaes && is_x86_feature_detected!("avx512f"),
            }
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} (key secret)", self.width)
    }
}

impl Schedule {
    /// The key schedule for vectors of the given width, if this processor has them.
    pub fn new(key: [u8; 16], width: Width) -> Option<Self> {
        // SAFETY: every width asks for AES.
        width.is_available().then(|| Schedule { keys: unsafe { expand(key) }, width })
    }

    pub fn run(&self, first: u128, out: &mut [u64], combine: Combine) {
        // The vector counter has no carry between its halves: a run that crosses a multiple of 2^64 is cut there.
        let before_carry = (1u128 << 64) - (first as u64 as u128);
        let cut = usize::try_from(before_carry * 2).unwrap_or(usize::MAX).min(out.len());
        let (now, later) = out.split_at_mut(cut);
        // SAFETY: `self` exists, so the features of its width do.
        unsafe {
            match self.width {
                Width::One => one::run(&self.keys, first, now, combine),
                Width::Two => two::run(&self.keys, first, now, combine),
                Width::Four => four::run(&self.keys, first, now, combine),
            }
        }
        if !later.is_empty() {
            self.run(first.wrapping_add(before_carry), later, combine);
        }
    }
}

/// A module with `run(keys, first, out, combine)` for one width: its features, its vector of `$blocks` blocks, its
/// instructions, and the vector of counters `low`, `low + 1`, ... below the common `high`.
macro_rules! counter_mode {
    (
        $name:ident, $features:literal, $vector:ty, $blocks:literal,
        broadcast $broadcast:expr, counters |$high:ident, $low:ident| $counters:expr,
        aes $enc:ident $last:ident, combine $xor:ident $add:ident $sub:ident, memory $load:ident $store:ident
    ) => {
        mod $name {
            use super::*;

            const WORDS: usize = 2 * $blocks * VECTORS;

            #[target_feature(enable = $features)]
            pub(super) fn run(keys: &Keys, first: u128, out: &mut [u64], combine: Combine) {
                // One loop for each: a test inside the loop would be one for every vector.
                match combine {
                    Combine::Set => steps(keys, first, out, combine, |_, word| word),
                    Combine::Add => steps(keys, first, out, combine, |old, word| $add(old, word)),
                    Combine::Sub => steps(keys, first, out, combine, |old, word| $sub(old, word)),
                    Combine::Xor => steps(keys, first, out, combine, |old, word| $xor(old, word)),
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn steps(
                keys: &Keys,
                first: u128,
                out: &mut [u64],
                combine: Combine,
                apply: impl Fn($vector, $vector) -> $vector + Copy,
            ) {
                let keys = keys.map(|key| {
                    let key = u128::from_le_bytes(key);
                    $broadcast(_mm_set_epi64x((key >> 64) as i64, key as i64))
                });
                let (high, mut low) = ((first >> 64) as i64, first as u64);
                let (whole, tail) = out.as_chunks_mut::<WORDS>();
                for out in whole {
                    step(&keys, high, low, out, apply);
                    low = low.wrapping_add(($blocks * VECTORS) as u64);
                }
                if !tail.is_empty() {
                    let mut words = [0; WORDS];
                    step(&keys, high, low, &mut words, |_, word| word);
                    for (out, word) in tail.iter_mut().zip(words) {
                        *out = combine.apply(*out, word);
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn step(
                keys: &[$vector; 11],
                $high: i64,
                low: u64,
                out: &mut [u64; WORDS],
                apply: impl Fn($vector, $vector) -> $vector,
            ) {
                let mut state: [$vector; VECTORS] = std::array::from_fn(|v| {
                    let $low = |i: usize| low.wrapping_add(($blocks * v + i) as u64) as i64;
                    $xor($counters, keys[0])
                });
                for key in &keys[1..10] {
                    for s in &mut state {
                        *s = $enc(*s, *key);
                    }
                }
                for (s, out) in state.iter().zip(out.as_chunks_mut::<{ 2 * $blocks }>().0) {
                    let word = $last(*s, keys[10]);
                    let place = out.as_mut_ptr();
                    // SAFETY: `out` has as many words as the vector.
                    unsafe { $store(place.cast(), apply($load(place.cast()), word)) }
                }
            }
        }
    };
}

counter_mode!(
    one, "sse2,aes", __m128i, 1,
    broadcast |key| key, counters |high, low| _mm_set_epi64x(high, low(0)),
    aes _mm_aesenc_si128 _mm_aesenclast_si128, combine _mm_xor_si128 _mm_add_epi64 _mm_sub_epi64,
    memory _mm_loadu_si128 _mm_storeu_si128
);
counter_mode!(
    two, "avx2,aes,vaes", __m256i, 2,
    broadcast _mm256_broadcastsi128_si256, counters |high, low| _mm256_set_epi64x(high, low(1), high, low(0)),
    aes _mm256_aesenc_epi128 _mm256_aesenclast_epi128, combine _mm256_xor_si256 _mm256_add_epi64 _mm256_sub_epi64,
    memory _mm256_loadu_si256 _mm256_storeu_si256
);
counter_mode!(
    four, "avx512f,aes,vaes", __m512i, 4,
    broadcast _mm512_broadcast_i32x4,
    counters |high, low| _mm512_set_epi64(high, low(3), high, low(2), high, low(1), high, low(0)),
    aes _mm512_aesenc_epi128 _mm512_aesenclast_epi128, combine _mm512_xor_si512 _mm512_add_epi64 _mm512_sub_epi64,
    memory _mm512_loadu_si512 _mm512_storeu_si512
);

/// FIPS 197 section 5.2, by `aeskeygenassist`.
#[target_feature(enable = "aes")]
fn expand(key: [u8; 16]) -> Keys {
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
