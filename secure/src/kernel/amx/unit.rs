//! The tile unit of the processor: detection, permission, and the AMX instructions.
//!
//! Stable Rust has neither AMX intrinsics nor the detection macro, hence inline assembly. The tile registers must keep
//! their contents from one block of assembly to the next. Rust promises nothing of the kind (a block may find undefined values in registers that are
//! not its inputs); it holds because no code that rustc generates touches them and the operating system saves them over interrupts and thread switches, and
//! the self-test that every process runs before it uses this kernel would show where it did not.
#![allow(unsafe_code)]

use super::{Tile, TileUnit};
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

macro_rules! tile_load {
    ($register:tt, $tile:expr) => {
        // SAFETY: `self` exists, so the registers are configured as 16 rows of 64 bytes; with step 64 this reads one `Tile`.
        unsafe {
            asm!(concat!("tileloadd ", $register, ", [{} + {}*1]"), in(reg) $tile, in(reg) 64_usize,
                out($register) _, options(readonly, nostack, preserves_flags))
        }
    };
}

macro_rules! tile_dot {
    ($c:tt, $b:tt) => {
        // SAFETY: `self` exists, so the registers are configured, with shapes that fit.
        unsafe {
            asm!(concat!("tdpbuud ", $c, ", tmm4, ", $b), out($c) _, options(nomem, nostack, preserves_flags))
        }
    };
}

macro_rules! tile_store {
    ($c:tt, $sums:expr) => {
        // SAFETY: `self` exists, so the registers are configured as 16 rows of 64 bytes: the kilobyte of `sums`.
        unsafe {
            asm!(concat!("tilestored [{} + {}*1], ", $c), in(reg) $sums, in(reg) 64_usize,
                options(nostack, preserves_flags))
        }
    };
}

impl TileUnit for Amx {
    #[inline(always)]
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8] {
        // SAFETY: `self` exists, so `detect` has found the features.
        unsafe { split(values) }
    }

    #[inline(always)]
    fn clear(&mut self) {
        // SAFETY: `self` exists, so the registers are configured.
        unsafe {
            asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, options(nomem, nostack, preserves_flags))
        }
    }

    #[inline(always)]
    fn load_a(&mut self, tile: &Tile) {
        tile_load!("tmm4", tile)
    }

    #[inline(always)]
    fn load_b(&mut self, slot: usize, tile: &Tile) {
        match slot {
            0 => tile_load!("tmm5", tile),
            _ => tile_load!("tmm6", tile),
        }
    }

    #[inline(always)]
    fn dot(&mut self, accumulator: usize, slot: usize) {
        match (accumulator, slot) {
            (0, 0) => tile_dot!("tmm0", "tmm5"),
            (0, _) => tile_dot!("tmm0", "tmm6"),
            (1, 0) => tile_dot!("tmm1", "tmm5"),
            (1, _) => tile_dot!("tmm1", "tmm6"),
            (2, 0) => tile_dot!("tmm2", "tmm5"),
            (2, _) => tile_dot!("tmm2", "tmm6"),
            (_, 0) => tile_dot!("tmm3", "tmm5"),
            (_, _) => tile_dot!("tmm3", "tmm6"),
        }
    }

    #[inline(always)]
    fn store(&mut self, accumulator: usize, sums: &mut [[u32; 16]; 16]) {
        match accumulator {
            0 => tile_store!("tmm0", sums),
            1 => tile_store!("tmm1", sums),
            2 => tile_store!("tmm2", sums),
            _ => tile_store!("tmm3", sums),
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
        assert_eq!(unsafe { super::split(&values) }, Emulated::new().split(&values));
    }
}
