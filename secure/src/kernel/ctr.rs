//! Bulk pseudorandom words: AES-128 in counter mode, written to a slice or combined with what it holds.
//!
//! computes   word 2 j and 2 j + 1 of a run = low and high 64 bits of AES_k(first + j), block and counter
//!            little-endian, j = 0, 1, ...
//! cost       a run of n words consumes ceil(n / 2) counters: with an odd n the last high half is skipped, never used
//!            later
//! AES on x86-64 by the processor's instructions, as wide as the kernel's vectors (`ctr/vectors.rs`), else by the
//!            crate `aes`, which finds the AES instructions of 64-bit ARM at run time
//! source     FIPS 197 (the cipher), NIST SP 800-38A section 6.5 (counter mode; here the counter is little-endian)

#[cfg(target_arch = "x86_64")]
mod vectors;

use super::Kernel;
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// An expanded AES-128 key. Two parties with the same key and position read the same words, whatever their processors.
#[derive(Clone)]
pub struct CtrKey {
    cipher: Aes128,
    #[cfg(target_arch = "x86_64")]
    vectors: Option<vectors::Schedule>,
}

impl std::fmt::Debug for CtrKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CtrKey(secret)")
    }
}

/// What happens to the words of the stream.
#[derive(Clone, Copy, Debug)]
enum Combine {
    Set,
    Add,
    Sub,
    Xor,
}

impl CtrKey {
    /// The key schedule for the [selected](Kernel::selected) kernel.
    pub fn new(key: [u8; 16]) -> Self {
        Self::for_kernel(Kernel::selected(), key)
    }

    /// The key schedule for a given kernel; the words are the same for all.
    pub fn for_kernel(kernel: Kernel, key: [u8; 16]) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = kernel;
        CtrKey {
            cipher: Aes128::new(&Array::from(key)),
            #[cfg(target_arch = "x86_64")]
            vectors: widths(kernel).iter().find_map(|&width| vectors::Schedule::new(key, width)),
        }
    }

    /// `out[i] = stream word i`, from block counter `first` on (counters are mod 2^128).
    pub fn fill(&self, first: u128, out: &mut [u64]) {
        self.run(first, out, Combine::Set);
    }

    /// `out[i] += stream word i`, wrapping.
    pub fn add_fill(&self, first: u128, out: &mut [u64]) {
        self.run(first, out, Combine::Add);
    }

    /// `out[i] -= stream word i`, wrapping.
    pub fn sub_fill(&self, first: u128, out: &mut [u64]) {
        self.run(first, out, Combine::Sub);
    }

    /// `out[i] ^= stream word i`.
    pub fn xor_fill(&self, first: u128, out: &mut [u64]) {
        self.run(first, out, Combine::Xor);
    }

    fn run(&self, first: u128, out: &mut [u64], combine: Combine) {
        #[cfg(target_arch = "x86_64")]
        if let Some(vectors) = &self.vectors {
            return vectors.run(first, out, combine);
        }
        // The cipher crate works on up to 64 blocks at once; what is left over it takes one by one.
        const BLOCKS: usize = 64;
        let mut counter = first;
        for out in out.chunks_mut(2 * BLOCKS) {
            let mut blocks = [Array::from([0u8; 16]); BLOCKS];
            let blocks = &mut blocks[..out.len().div_ceil(2)];
            for block in blocks.iter_mut() {
                *block = Array::from(counter.to_le_bytes());
                counter = counter.wrapping_add(1);
            }
            self.cipher.encrypt_blocks(blocks);
            let mut words = [0; 2 * BLOCKS];
            for (words, block) in words.as_chunks_mut::<2>().0.iter_mut().zip(blocks.iter()) {
                let block = u128::from_le_bytes((*block).into());
                *words = [block as u64, (block >> 64) as u64];
            }
            for (out, word) in out.iter_mut().zip(words) {
                *out = combine.apply(*out, word);
            }
        }
    }
}

/// The widths that suit a kernel, best first. The portable kernel has none: the others are tested against it.
#[cfg(target_arch = "x86_64")]
fn widths(kernel: Kernel) -> &'static [vectors::Width] {
    match kernel {
        Kernel::Avx512 | Kernel::Ifma | Kernel::Amx => &vectors::Width::ALL,
        Kernel::Avx2 => &vectors::Width::ALL[1..],
        Kernel::Portable | Kernel::Neon => &[],
    }
}

impl Combine {
    #[inline(always)]
    fn apply(self, old: u64, word: u64) -> u64 {
        match self {
            Combine::Set => word,
            Combine::Add => old.wrapping_add(word),
            Combine::Sub => old.wrapping_sub(word),
            Combine::Xor => old ^ word,
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::vectors::{Schedule, Width};
    use super::*;

    /// Every width that this processor has, whatever its kernel would choose: the words of the crate's cipher.
    #[test]
    fn every_width_has_the_same_words() {
        let key = std::array::from_fn(|i| 7 * i as u8);
        for schedule in Width::ALL.into_iter().filter_map(|width| Schedule::new(key, width)) {
            for (first, n) in [(5, 1), (0, 15), (1 << 64, 16), ((7 << 64) - 3, 130), (u128::MAX - 9, 257)] {
                for combine in [Combine::Set, Combine::Add, Combine::Sub, Combine::Xor] {
                    let (mut got, mut want) = (vec![7; n], vec![7; n]);
                    schedule.run(first, &mut got, combine);
                    CtrKey::for_kernel(Kernel::Portable, key).run(first, &mut want, combine);
                    assert_eq!(got, want, "{schedule:?} {n} words from {first}, {combine:?}");
                }
            }
        }
    }
}
