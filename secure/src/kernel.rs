//! The hot loops of three-party training, on plain `u64` slices: matrix products over Z_2^64, bit planes,
//! pseudorandom words.
//!
//! Everything here is exact, so every kernel gives the same bits; which one runs is chosen once, at run time, from what
//! the processor has, or by the variable `SECURE_KERNEL=portable|neon|avx2|avx512|ifma|amx`. Each kernel that needs
//! `unsafe` is one file behind a safe function. The kernels know nothing of sharing, fixed point or threads of a
//! protocol.
//!
//! | file | what |
//! | --- | --- |
//! | [`View`] (`view.rs`) | an operand, transposed on the fly |
//! | `blocked.rs` | packing and cache blocks, common to the vector kernels |
//! | `portable.rs`, `avx2.rs`, `avx512.rs`, `ifma.rs`, `neon.rs` | one register tile each |
//! | `amx.rs`, `amx/unit.rs` | byte limbs on int8 tiles; the tile instructions |
//! | `planes.rs`, `planes/gfni.rs` | 64-bit values to bit planes and back |
//! | `ctr.rs`, `ctr/vectors.rs` | AES-128 in counter mode, fused with +, - and xor |

mod blocked;
mod ctr;
mod planes;
mod portable;
mod view;
mod wide;

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod zmm;

pub use ctr::CtrKey;
pub use planes::{from_bits, to_planes};
pub use view::View;
pub(crate) use wide::wide_fn;
pub use wide::{Pass, run_wide, wide};

use blocked::Plan;
use std::sync::OnceLock;

/// An implementation of the hot loops, named after the instructions of its matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust, any processor.
    Portable,
    /// 128-bit vectors of 64-bit ARM, 64-bit products from 32-bit ones.
    Neon,
    /// 256-bit vectors, 64-bit products from 32-bit ones.
    Avx2,
    /// 512-bit vectors with `vpmullq`; bit planes and AES in 512-bit vectors as well.
    Avx512,
    /// As `Avx512`, but with 52-bit multiply-accumulates in the matrix product, for processors where `vpmullq` is three
    /// operations.
    Ifma,
    /// Int8 tiles on byte limbs; everything else, and products too thin for the tiles, as `Avx512`.
    Amx,
}

/// Why the kernel that `SECURE_KERNEL` asks for cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No kernel of that name.
    #[error(
        "SECURE_KERNEL={0:?} is not a kernel: use one of {names}, or unset it",
        names = Kernel::ALL.map(Kernel::name).join(", ")
    )]
    Unknown(String),
    /// This machine cannot run it.
    #[error(
        "SECURE_KERNEL={name} cannot run here: {why}; unset it to use {best}",
        name = .0.name(), best = Kernel::best().name(), why = .1
    )]
    Unavailable(Kernel, String),
}

impl Kernel {
    /// Every kernel, slowest first, but for [`Ifma`](Self::Ifma), which is slower than `Avx512` on AMD's processors.
    pub const ALL: [Kernel; 6] =
        [Kernel::Portable, Kernel::Neon, Kernel::Avx2, Kernel::Avx512, Kernel::Ifma, Kernel::Amx];

    /// The name that `SECURE_KERNEL` takes and reports print.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Neon => "neon",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Ifma => "ifma",
            Kernel::Amx => "amx",
        }
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        self.why_not().is_none()
    }

    /// The reason why this machine cannot run it; `None` if it can.
    pub fn why_not(self) -> Option<String> {
        match self {
            Kernel::Portable => None,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => avx2::Avx2::new().is_none().then(|| "the processor has no AVX2".into()),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => avx512::Avx512::new().is_none().then(|| "the processor has no AVX-512 F and DQ".into()),
            // Its other loops are those of `Avx512`.
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => Kernel::Avx512
                .why_not()
                .or_else(|| ifma::Ifma::new().is_none().then(|| "the processor has no AVX-512 IFMA and VNNI".into())),
            // Its thin products run on the AVX-512 tile.
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => Kernel::Avx512.why_not().or_else(amx::why_not),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 | Kernel::Ifma | Kernel::Amx => Some("it needs an x86-64 processor".into()),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::Neon => neon::Neon::new().is_none().then(|| "the processor has no NEON".into()),
            #[cfg(not(all(target_arch = "aarch64", target_endian = "little")))]
            Kernel::Neon => Some("it needs a 64-bit ARM processor".into()),
        }
    }

    /// The fastest kernel of this machine: the last of [`ALL`](Self::ALL) that is available, [`Ifma`](Self::Ifma) on
    /// Intel's processors only.
    pub fn best() -> Kernel {
        let pays = |kernel: &Kernel| *kernel != Kernel::Ifma || ifma_pays();
        Self::ALL.into_iter().rev().filter(pays).find(|k| k.is_available()).unwrap_or(Kernel::Portable)
    }

    /// The kernel to use: what `SECURE_KERNEL` names, else the fastest. To be called once at start, so that a wrong
    /// name is an error there; the variable is read once per process.
    pub fn select() -> Result<Kernel, SelectError> {
        static CHOICE: OnceLock<Result<Kernel, SelectError>> = OnceLock::new();
        CHOICE
            .get_or_init(|| match std::env::var_os("SECURE_KERNEL") {
                None => Ok(Self::best()),
                Some(name) => Self::by_name(&name.to_string_lossy()),
            })
            .clone()
    }

    /// The kernel of [`select`](Self::select).
    ///
    /// # Panics
    /// With the text of its error: whoever starts a program asks before.
    pub fn selected() -> Kernel {
        Self::select().unwrap_or_else(|e| panic!("{e}"))
    }

    /// The kernel of that name, if this machine can run it.
    pub fn by_name(name: &str) -> Result<Kernel, SelectError> {
        let kernel =
            Self::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| SelectError::Unknown(name.into()))?;
        kernel.why_not().map_or(Ok(kernel), |why| Err(SelectError::Unavailable(kernel, why)))
    }

    /// `out = A · B`, or `out += A · B` if `accumulate`, over Z_2^64 (everything wraps): A is m × k, B is k × n, `out`
    /// is m × n row-major.
    ///
    /// Panics if the shapes do not fit or if the kernel is not available: both are faults of the caller, not of any
    /// input.
    pub fn matmul(self, a: View, b: View, out: &mut [u64], accumulate: bool) {
        self.matmul_in(1, a, b, out, accumulate);
    }

    /// Multiplies in up to `pieces` pieces, for the threads of the rayon pool that it is called in. The result does not
    /// depend on their number.
    pub fn matmul_in(self, pieces: usize, a: View, b: View, out: &mut [u64], accumulate: bool) {
        let ((m, k), (depth, n)) = (a.shape(), b.shape());
        assert_eq!(k, depth, "a {m} × {k} matrix cannot be multiplied by a {depth} × {n} one");
        assert_eq!(
            Some(out.len()),
            m.checked_mul(n),
            "the product is {m} × {n}, the output has {} elements",
            out.len()
        );
        if m == 0 || n == 0 {
            return;
        }
        if k == 0 {
            if !accumulate {
                out.fill(0);
            }
            return;
        }
        // Below this size a piece costs more than it saves.
        const WORTH_A_PIECE: usize = 1 << 19;
        let plan = Plan { accumulate, pieces: pieces.min(m * k * n / WORTH_A_PIECE).max(1) };
        match self {
            Kernel::Portable => blocked::product(portable::Portable, a, b, out, plan),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => avx2::Avx2::new().expect("AVX2 is not available").product(a, b, out, plan),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => ifma::Ifma::new().expect("AVX-512 IFMA is not available").product(a, b, out, plan),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx if !is_thin(b.shape()) => amx::run(a, b, out, plan),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 | Kernel::Amx => {
                avx512::Avx512::new().expect("AVX-512 is not available").product(a, b, out, plan)
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::Neon => neon::Neon::new().expect("NEON is not available").product(a, b, out, plan),
            #[allow(
                unreachable_patterns,
                reason = "which kernels are left depends on the processor that this is built for"
            )]
            _ => panic!("{} is not available", self.name()),
        }
    }
}

fn ifma_pays() -> bool {
    #[cfg(target_arch = "x86_64")]
    return ifma::Ifma::pays();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Whether more than half of a tile's 64 depths would be padding.
#[cfg(target_arch = "x86_64")]
fn is_thin((depth, _): (usize, usize)) -> bool {
    depth < 32
}

#[cfg(test)]
mod tests;
