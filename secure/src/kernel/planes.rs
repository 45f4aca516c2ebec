//! Between 64-bit values and bit planes: a plane holds one bit of every value, 64 values a word.
//!
//! computes   bit i of word w of plane j = bit (lo_bit + j) of value 64 w + i; missing values of the last word are 0
//! source     H. S. Warren, *Hacker's Delight*, 2nd edition, section 7-3 (transposing a bit matrix by swapping blocks);
//!            `planes/gfni.rs` has its own

#[cfg(target_arch = "x86_64")]
mod gfni;

use super::Kernel;
use super::wide::{Pass, run_for};

/// Bits `lo_bit..lo_bit + bits` of `values` as bit planes: word w of plane j is `planes[j * words + w]`, words =
/// ceil(values / 64).
///
/// Panics if `lo_bit + bits > 64` or if `planes` does not have `bits * words` elements.
pub fn to_planes(values: &[u64], lo_bit: u32, bits: u32, planes: &mut [u64]) {
    Kernel::selected().to_planes(values, lo_bit, bits, planes);
}

/// One plane as values 0 and 1: `out[i]` = bit i mod 64 of `plane[i / 64]`.
///
/// Panics if `plane` does not have ceil(out / 64) words.
pub fn from_bits(plane: &[u64], out: &mut [u64]) {
    Kernel::selected().from_bits(plane, out);
}

impl Kernel {
    /// [`to_planes`] by this kernel.
    pub fn to_planes(self, values: &[u64], lo_bit: u32, bits: u32, planes: &mut [u64]) {
        let words = values.len().div_ceil(64);
        assert!(lo_bit <= 64 && bits <= 64 - lo_bit, "bits {lo_bit}..{lo_bit}+{bits} of 64-bit values");
        assert_eq!(planes.len(), bits as usize * words, "{bits} planes of {words} words");
        #[cfg(target_arch = "x86_64")]
        if let (Kernel::Avx512 | Kernel::Ifma | Kernel::Amx, Some(gfni)) = (self, gfni::Gfni::new()) {
            return gfni.to_planes(values, lo_bit, bits, planes);
        }
        run_for(self, ToPlanes { values, lo_bit, bits, planes });
    }

    /// [`from_bits`] by this kernel.
    pub fn from_bits(self, plane: &[u64], out: &mut [u64]) {
        assert_eq!(plane.len(), out.len().div_ceil(64), "one plane of {} values", out.len());
        #[cfg(target_arch = "x86_64")]
        if let (Kernel::Avx512 | Kernel::Ifma | Kernel::Amx, Some(gfni)) = (self, gfni::Gfni::new()) {
            return gfni.spread(plane, out);
        }
        run_for(self, FromBits { plane, out });
    }
}

struct ToPlanes<'a> {
    values: &'a [u64],
    lo_bit: u32,
    bits: u32,
    planes: &'a mut [u64],
}

impl Pass for ToPlanes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let words = self.values.len().div_ceil(64);
        for (w, values) in self.values.chunks(64).enumerate() {
            for from in (0..self.bits).step_by(32) {
                let block = transpose_32(values, self.lo_bit + from);
                for j in 0..32.min(self.bits - from) {
                    self.planes[(from + j) as usize * words + w] = block[j as usize];
                }
            }
        }
    }
}

struct FromBits<'a> {
    plane: &'a [u64],
    out: &'a mut [u64],
}

impl Pass for FromBits<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (word, out) in self.plane.iter().zip(self.out.chunks_mut(64)) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = (word >> i) & 1;
            }
        }
    }
}

/// Bits `shift..shift + 32` of up to 64 values, transposed: bit i of word j is bit `shift + j` of value i.
///
/// Values i and i + 32 share a word, so two 32 × 32 matrices are transposed by one pass of five steps.
#[inline(always)]
fn transpose_32(values: &[u64], shift: u32) -> [u64; 32] {
    let mut block = [0u64; 32];
    let low = &values[..values.len().min(32)];
    for (b, v) in block.iter_mut().zip(low) {
        *b = (v >> shift) & 0xffff_ffff;
    }
    for (b, v) in block.iter_mut().zip(&values[low.len()..]) {
        *b |= (v >> shift) << 32;
    }
    swap::<16>(&mut block, 0x0000_ffff_0000_ffff);
    swap::<8>(&mut block, 0x00ff_00ff_00ff_00ff);
    swap::<4>(&mut block, 0x0f0f_0f0f_0f0f_0f0f);
    swap::<2>(&mut block, 0x3333_3333_3333_3333);
    swap::<1>(&mut block, 0x5555_5555_5555_5555);
    block
}

/// Exchanges the off-diagonal blocks of size W: columns W.. of the upper rows with columns ..W of the lower ones.
#[inline(always)]
fn swap<const W: usize>(block: &mut [u64; 32], mask: u64) {
    for pair in block.chunks_exact_mut(2 * W) {
        let (upper, lower) = pair.split_at_mut(W);
        for (u, l) in upper.iter_mut().zip(lower) {
            let moved = ((*u >> W) ^ *l) & mask;
            *u ^= moved << W;
            *l ^= moved;
        }
    }
}
