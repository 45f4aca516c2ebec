//! Plain loops, compiled for the vectors that the selected kernel may use.
//!
//! The element-wise passes of the protocols are ordinary safe loops; built for the baseline processor they would use 128-bit vectors
//! without a 64-bit multiplication. [`wide`] runs a closure inside a function compiled for wider ones; the closure is inlined
//! there. The result is the same on every path.

#![allow(unsafe_code)]

use super::Kernel;

/// Runs `f`, compiled for AVX-512 or AVX2 where the [selected](Kernel::selected) kernel has them.
#[inline(always)]
pub fn wide<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
        fn avx512<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        #[target_feature(enable = "avx2")]
        fn avx2<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        match Kernel::selected() {
            // SAFETY: the features were just asked for.
            Kernel::Avx512 | Kernel::Amx if has_avx512() => return unsafe { avx512(f) },
            // SAFETY: a kernel is selected only where its features are.
            Kernel::Avx2 => return unsafe { avx2(f) },
            _ => {}
        }
    }
    f()
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}
