//! Bit planes with byte permutations and GFNI: 8 planes of a word of 64 values by two permutations and one 8 × 8 bit
//! transposition.
//!
//! The 64 values, shifted by `lo_bit`, are transposed as an 8 × 8 matrix of 8-byte groups: vector b then holds byte b
//! of all values, in order. `vgf2p8affineqb` of a constant by these 8-byte groups transposes each as an 8 × 8 bit
//! matrix; a last permutation gathers byte t of the 8 groups: the word of plane 8 b + t.
#![allow(unsafe_code)]

use crate::kernel::zmm::{byte_transpose, load, load_bytes, transpose, unload};
use std::arch::x86_64::*;

/// Proof that this CPU has AVX-512 F, BW, VBMI and GFNI: made by [`Gfni::new`] only.
#[derive(Clone, Copy)]
pub(super) struct Gfni(());

impl Gfni {
    pub fn new() -> Option<Self> {
        let available = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("gfni");
        available.then_some(Gfni(()))
    }

    /// As [`Kernel::to_planes`](super::Kernel::to_planes), which has checked the lengths.
    pub fn to_planes(self, values: &[u64], lo_bit: u32, bits: u32, planes: &mut [u64]) {
        if bits > 0 {
            // SAFETY: `self` exists, so the features do.
            unsafe { to_planes(values, lo_bit, bits, planes) }
        }
    }

    /// As [`Kernel::from_bits`](super::Kernel::from_bits), which has checked the lengths.
    pub fn spread(self, plane: &[u64], out: &mut [u64]) {
        // SAFETY: `self` exists, so the features do.
        unsafe { from_bits(plane, out) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn to_planes(values: &[u64], lo_bit: u32, bits: u32, planes: &mut [u64]) {
    let words = values.len().div_ceil(64);
    let shift = _mm_cvtsi32_si128(lo_bit as i32);
    // The bit transposition counts the bytes of its matrix from the top, so they are put in reverse.
    let (reversed, straight) = (load_bytes(&byte_transpose(7)), load_bytes(&byte_transpose(0)));
    let unit = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    // Eight words of every plane are collected, then stored as one cache line: planes lie a power of two apart more
    // often than not, and single words would evict each other.
    let mut lines = [[0u64; 8]; 64];
    for (group, values) in values.chunks(512).enumerate() {
        for (w, values) in values.chunks(64).enumerate() {
            let mut block = [0; 64];
            let block: &[u64; 64] = values.try_into().unwrap_or_else(|_| {
                block[..values.len()].copy_from_slice(values);
                &block
            });
            let rows = std::array::from_fn(|k| {
                let values = _mm512_srl_epi64(load(&block.as_chunks::<8>().0[k]), shift);
                _mm512_permutexvar_epi8(reversed, values)
            });
            let bytes = transpose(rows);
            for (byte, lines) in bytes.iter().zip(lines.as_chunks_mut::<8>().0).take(bits.div_ceil(8) as usize) {
                let groups = _mm512_gf2p8affine_epi64_epi8::<0>(unit, *byte);
                for (line, word) in lines.iter_mut().zip(unload(_mm512_permutexvar_epi8(straight, groups))) {
                    line[w] = word;
                }
            }
        }
        let filled = values.len().div_ceil(64);
        for (plane, line) in planes.chunks_exact_mut(words).zip(&lines) {
            plane[8 * group..][..filled].copy_from_slice(&line[..filled]);
        }
    }
}

#[target_feature(enable = "avx512f")]
fn from_bits(plane: &[u64], out: &mut [u64]) {
    let (whole, tail) = out.as_chunks_mut::<8>();
    let bytes = plane.iter().flat_map(|word| word.to_le_bytes());
    let mut bits = bytes.map(|byte| unload(_mm512_maskz_set1_epi64(byte, 1)));
    for (out, bits) in whole.iter_mut().zip(&mut bits) {
        *out = bits;
    }
    if let Some(bits) = bits.next() {
        tail.copy_from_slice(&bits[..tail.len()]);
    }
}
