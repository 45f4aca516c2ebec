//! Plain loops, compiled for the vectors that the selected kernel may use.
//!
//! The element-wise passes of the protocols are ordinary safe loops; built for the baseline processor they would use
//! 128-bit vectors without a 64-bit multiplication. A function defined in `wide_fn!` is compiled for wider ones as
//! well, and [`wide`] does the same for a closure of a line or two. The result is the same on every path.

#![allow(unsafe_code)]

use super::Kernel;

/// A loop to be compiled for several processors. `run` must be `#[inline(always)]`, or it is compiled for the baseline
/// only.
pub trait Pass {
    /// The result of the loop.
    type Output;
    /// Runs it.
    fn run(self) -> Self::Output;
}

/// Runs a pass, compiled for AVX-512 or AVX2 where the [selected](Kernel::selected) kernel has them.
#[inline(always)]
pub fn run_wide<P: Pass>(pass: P) -> P::Output {
    run_for(Kernel::selected(), pass)
}

/// Runs a pass, compiled for AVX-512 or AVX2 where the given kernel has them.
#[inline(always)]
pub(super) fn run_for<P: Pass>(kernel: Kernel, pass: P) -> P::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
        fn avx512<P: Pass>(pass: P) -> P::Output {
            pass.run()
        }
        #[target_feature(enable = "avx2")]
        fn avx2<P: Pass>(pass: P) -> P::Output {
            pass.run()
        }
        match kernel {
            // SAFETY: the features were just asked for.
            Kernel::Avx512 | Kernel::Ifma | Kernel::Amx if has_avx512() => return unsafe { avx512(pass) },
            // SAFETY: the feature was just asked for.
            Kernel::Avx2 if is_x86_feature_detected!("avx2") => return unsafe { avx2(pass) },
            _ => {}
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = kernel;
    pass.run()
}

/// Runs a short closure, compiled for wide vectors. The compiler inlines a closure of a line or two; a longer one it
/// leaves outside, built for the baseline processor: use `wide_fn!` for that.
#[inline(always)]
pub fn wide<R>(f: impl FnOnce() -> R) -> R {
    struct Closure<F>(F);
    impl<R, F: FnOnce() -> R> Pass for Closure<F> {
        type Output = R;
        #[inline(always)]
        fn run(self) -> R {
            self.0()
        }
    }
    run_wide(Closure(f))
}

/// Defines a function whose body is compiled for wide vectors.
macro_rules! wide_fn {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block
    ) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments, clippy::type_complexity)]
        $visibility fn $name($($argument: $type),*) $(-> $output)? {
            struct Arguments<T>(T);
            impl $crate::kernel::Pass for Arguments<($($type,)*)> {
                type Output = $crate::kernel::wide_fn!(@ $($output)?);
                #[inline(always)]
                fn run(self) -> Self::Output {
                    let ($($argument,)*) = self.0;
                    $body
                }
            }
            $crate::kernel::run_wide(Arguments(($($argument,)*)))
        }
    };
    (@) => { () };
    (@ $output:ty) => { $output };
}
pub(crate) use wide_fn;

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}
