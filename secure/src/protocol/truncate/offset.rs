//! The first summand of a truncated value, which party 0 knows.
//!
//! V + 2^62 = x0 - m is in [0, 2^63), so that the borrow of the subtraction can be read from the most significant bits
//! of x0 and m. Party 0 shifts its number and takes the shifted offset away again.

use crate::fault::faulty;
use crate::kernel::wide_fn;

/// The offset that makes every value that may be truncated non-negative.
pub const OFFSET: u64 = 1 << 62;

wide_fn! {
    /// z = (z >> s) - 2^(62-s) - r_0.
    pub fn shifted_0(z: &mut [u64], r_0: &[u64], shift: u32) {
        let shifted = |x0: u64| {
            faulty!(
                LocalTruncation => crate::fault::truncate::local(x0.wrapping_sub(OFFSET), shift),
                (x0 >> shift).wrapping_sub(OFFSET >> shift)
            )
        };
        z.iter_mut().zip(r_0).for_each(|(z, r_0)| *z = shifted(*z).wrapping_sub(*r_0));
    }
}
