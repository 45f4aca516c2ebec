//! The tile unit of the processor: detection, permission, and the AMX instructions.
//!
//! Stable Rust has neither AMX intrinsics nor the detection macro, hence inline assembly. A block of the product is one
//! piece of assembly that zeroes the tile registers it adds to and stores them, so no tile holds anything between two
//! pieces. Only the configuration, which no register operand stands for and no code of rustc's touches, lasts as long
//! as [`Amx`]. A self-test of every process comes before its use.
#![allow(unsafe_code)]

use super::{LimbSums, Tile, TileUnit};
use crate::kernel::zmm::{self, byte_transpose};
use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Proof that processor and operating system let this process use AMX: made by [`Permission::request`] only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permission(());

impl Permission {
    /// Asks for it, or says why it cannot be had.
    pub fn request() -> Result<Self, String> {
        detect().and_then(|()| permission()).map(Permission)
    }

    /// For tests whose signal handler carries the instructions out: only where they are illegal.
    #[cfg(test)]
    #[cfg(target_os = "linux")]
    pub fn trapped() -> Option<Self> {
        detect().is_err().then_some(Permission(()))
    }
}

fn detect() -> Result<(), String> {
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(0).eax < 7 || __cpuid_count(7, 0).edx & (TILE | INT8) != TILE | INT8 {
        return Err("the processor has no AMX int8 tiles".into());
    }
    if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi")) {
        return Err("AMX without AVX-512 VBMI is not supported".into());
    }
    // Tile configuration and tile data.
    const TILES: u64 = 3 << 17;
    // SAFETY: it is asked for only where OSXSAVE is.
    if __cpuid(1).ecx & OSXSAVE == 0 || unsafe { xcr0() } & TILES != TILES {
        return Err("the operating system does not save AMX tiles".into());
    }
    Ok(())
}

/// # Safety
/// The processor has OSXSAVE.
unsafe fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: with OSXSAVE the instruction exists; it only reads.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Linux gives tile data to a process that asks (5.16 and later).
#[cfg(target_os = "linux")]
fn permission() -> Result<(), String> {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: this system call takes two numbers and touches no memory of ours.
    unsafe {
        asm!("syscall", inout("rax") result, in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _, out("r11") _, options(nostack));
    }
    if result == 0 { Ok(()) } else { Err(format!("Linux refuses AMX tiles to this process (error {})", -result)) }
}

#[cfg(not(target_os = "linux"))]
fn permission() -> Result<(), String> {
    Err("AMX tiles are supported on Linux only".into())
}

/// Configured tile registers of this thread (hence neither `Send` nor `Sync`), released on drop.
pub(super) struct Amx(PhantomData<*mut ()>);

/// Palette 1, all eight registers 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Config([u8; 64]);

impl Amx {
    /// Configures the tile registers of this thread.
    pub fn begin(_: Permission) -> Self {
        let mut config = Config([0; 64]);
        config.0[0] = 1;
        for register in 0..8 {
            config.0[16 + 2 * register] = 64;
            config.0[48 + register] = 16;
        }
        // SAFETY: AMX is there and permitted, as the argument proves; 64 readable bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(readonly, nostack, preserves_flags)) };
        Amx(PhantomData)
    }
}

impl Drop for Amx {
    fn drop(&mut self) {
        // SAFETY: `self` exists, so AMX is there.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}

/// Loads limb `$i` of A.
macro_rules! load_a {
    ($i:tt) => {
        concat!("tileloadd tmm4, [{left} + {row}*1 + 1024*", $i, "]")
    };
}

/// Loads limb `$j` of B into register `$b` and adds its product with the limb of A to accumulator `$c`.
macro_rules! dot {
    ($c:tt, $j:tt, $b:tt) => {
        concat!("tileloadd tmm", $b, ", [{right} + {row}*1 + 1024*", $j, "]\n", "tdpbuud tmm", $c, ", tmm4, tmm", $b)
    };
}

/// Stores accumulator `$c` as the sum of weight `$s`.
macro_rules! store {
    ($s:tt, $c:tt) => {
        concat!("tilestored [{sums} + {row}*1 + 1024*", $s, "], tmm", $c)
    };
}

impl TileUnit for Amx {
    #[inline(always)]
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8] {
        // SAFETY: `self` exists, so `detect` has found the features.
        unsafe { split(values) }
    }

    /// Four weights s = i + j at a time, as there are four accumulators: 10 products of limbs for s < 4, then 26. A
    /// load takes half as long as a product and there are fewer than two a product, so the loads hide.
    fn limb_sums(&mut self, left: &[[Tile; 8]], right: &[[Tile; 8]], sums: &mut LimbSums) {
        assert!(left.len() == right.len() && !left.is_empty());
        // SAFETY: `self` exists, so the registers are configured as 16 rows of 64 bytes, with shapes that fit; at a
        // distance of 64 bytes a row, every load reads one `Tile` and every store writes one of the eight kilobytes of
        // `sums`. `left` and `right` advance by eight tiles for each of their `left.len()` >= 1 elements, in both
        // loops.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                load_a!(0), dot!(0, 0, 5), dot!(1, 1, 6), dot!(2, 2, 5), dot!(3, 3, 6),
                load_a!(1), dot!(1, 0, 5), dot!(2, 1, 6), dot!(3, 2, 5),
                load_a!(2), dot!(2, 0, 6), dot!(3, 1, 5),
                load_a!(3), dot!(3, 0, 6),
                "add {left}, 8192", "add {right}, 8192", "cmp {left}, {end}", "jne 2b",
                store!(0, 0), store!(1, 1), store!(2, 2), store!(3, 3),
                "sub {left}, {bytes}", "sub {right}, {bytes}",
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "3:",
                load_a!(0), dot!(0, 4, 5), dot!(1, 5, 6), dot!(2, 6, 5), dot!(3, 7, 6),
                load_a!(1), dot!(0, 3, 5), dot!(1, 4, 6), dot!(2, 5, 5), dot!(3, 6, 6),
                load_a!(2), dot!(0, 2, 5), dot!(1, 3, 6), dot!(2, 4, 5), dot!(3, 5, 6),
                load_a!(3), dot!(0, 1, 5), dot!(1, 2, 6), dot!(2, 3, 5), dot!(3, 4, 6),
                load_a!(4), dot!(0, 0, 5), dot!(1, 1, 6), dot!(2, 2, 5), dot!(3, 3, 6),
                load_a!(5), dot!(1, 0, 5), dot!(2, 1, 6), dot!(3, 2, 5),
                load_a!(6), dot!(2, 0, 6), dot!(3, 1, 5),
                load_a!(7), dot!(3, 0, 6),
                "add {left}, 8192", "add {right}, 8192", "cmp {left}, {end}", "jne 3b",
                store!(4, 0), store!(5, 1), store!(6, 2), store!(7, 3),
                left = inout(reg) left.as_ptr() => _,
                right = inout(reg) right.as_ptr() => _,
                end = in(reg) left.as_ptr_range().end,
                bytes = in(reg) size_of_val(left),
                sums = in(reg) sums,
                row = in(reg) 64_usize,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _,
                options(nostack),
            );
        }
    }
}

/// Byte limbs by one byte permutation a vector and an 8 × 8 transposition of words.
#[target_feature(enable = "avx512f,avx512vbmi")]
fn split(values: &[u64; 64]) -> [[u8; 64]; 8] {
    let transpose = zmm::load_bytes(&byte_transpose(0));
    let rows = std::array::from_fn(|k| _mm512_permutexvar_epi8(transpose, zmm::load(&values.as_chunks::<8>().0[k])));
    zmm::transpose(rows).map(|limb| zmm::unload_bytes(limb))
}

#[cfg(test)]
mod tests {
    use crate::kernel::amx::TileUnit;
    use crate::kernel::amx::emulated::Emulated;

    #[test]
    fn limbs_are_bytes() {
        if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi")) {
            println!("not tested: no AVX-512 VBMI");
            return;
        }
        let values = std::array::from_fn(|i| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // SAFETY: the features were just found.
        assert_eq!(unsafe { super::split(&values) }, Emulated.split(&values));
    }
}
