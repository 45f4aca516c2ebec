//! Where a positive integer lies, told by two powers of two.

/// The integers from 2^lo up to, but not including, 2^hi. Where lo = 0 the range includes 0, which counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitRange {
    /// The lower power: every integer is at least 2^lo.
    pub lo: u32,
    /// The upper power: every integer is below 2^hi.
    pub hi: u32,
}

impl BitRange {
    /// The integers of `lo + 1` to `hi` bits.
    pub const fn new(lo: u32, hi: u32) -> Self {
        BitRange { lo, hi }
    }

    /// Whether 0 belongs to the range.
    pub const fn has_zero(self) -> bool {
        self.lo == 0
    }
}
