use crate::fault::{Fault, planted};
use crate::range::BitRange;
use crate::{Quantity, SpecError};
use serde::{Deserialize, Serialize};

/// How a truncation rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rounding {
    /// Up with probability equal to the fraction that is cut off: unbiased, error below one unit.
    #[serde(rename = "prob")]
    Probabilistic,
    /// To the nearest, ties up: error at most half a unit.
    #[serde(rename = "nearest")]
    Nearest,
}

impl Rounding {
    /// Both, in the order of the tables.
    pub const ALL: [Rounding; 2] = [Rounding::Probabilistic, Rounding::Nearest];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::Probabilistic => "prob",
            Rounding::Nearest => "nearest",
        }
    }
}

impl std::fmt::Display for Rounding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The number format: section 1 of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FixedSpec {
    /// f: a unit is 2^-f.
    pub fraction_bits: u32,
    /// K: ordinary values satisfy |V| < 2^(K-1) units.
    pub value_bits: u32,
}

impl Default for FixedSpec {
    /// The paper's format: f = 16, and values that fit 32 bits.
    fn default() -> Self {
        FixedSpec { fraction_bits: 16, value_bits: 32 }
    }
}

impl FixedSpec {
    /// Checks 4 <= f <= 17 and f + 5 <= K <= 32.
    ///
    /// # Errors
    /// Names the limit and why the 64-bit ring asks for it.
    pub fn validate(&self) -> Result<(), SpecError> {
        let (f, k) = (self.fraction_bits, self.value_bits);
        if !(4..=17).contains(&f) {
            return Err(Quantity::FractionBits.refused(format!(
                "fraction bits is {f}; it must be 4 to 17 (the exponential has 31 - f bits for log2(e), with fewer \
                 than 14 of them their rounding would cost several units)"
            )));
        }
        if k < f + 5 || k > 32 {
            return Err(Quantity::ValueBits.refused(format!(
                "value bits is {k}; it must be {} to 32 (exp needs -(f+1) ln 2 as an ordinary value; a product of \
                     two \
                 values must stay below 2^62)",
                f + 5
            )));
        }
        Ok(())
    }

    /// 1.0 in units.
    pub const fn one(&self) -> i64 {
        1 << self.fraction_bits
    }

    /// The first magnitude that is no longer ordinary, 2^(K-1) units.
    pub const fn limit(&self) -> i64 {
        1 << (self.value_bits - 1)
    }

    /// Pixel / 256 in units: exact for f >= 8, to the nearest (ties up) below.
    pub fn encode_pixel(&self, pixel: u8) -> i64 {
        let (p, f) = (i64::from(pixel), self.fraction_bits);
        if planted(Fault::PixelScale) {
            return (f64::from(pixel) / 255.0 * self.one() as f64).round() as i64;
        }
        if f >= 8 { p << (f - 8) } else { (p + (1 << (7 - f))) >> (8 - f) }
    }

    /// `ceil(v 2^f)`, for thresholds that must not fall below `v`.
    pub fn encode_up(&self, v: f64) -> i64 {
        (v * self.one() as f64).ceil() as i64
    }

    /// D of section 6: exp(-(D+1) 2^-f) rounds to zero.
    pub fn exp_cut(&self) -> i64 {
        (f64::from(self.fraction_bits + 1) * std::f64::consts::LN_2 * self.one() as f64).floor() as i64
    }

    /// round(log2(e) 2^(31-f)), scale 31 - f.
    pub fn exp_log2e(&self) -> i64 {
        let log2_e = if planted(Fault::Log2E) { 1.44 } else { std::f64::consts::LOG2_E };
        (log2_e * f64::from(1u32 << (31 - self.fraction_bits))).round() as i64
    }

    /// The range of the sum of `classes` exponentials, in units, section 7. `None` if it does not fit the value width;
    /// the [full range](Self::full_range) must be used instead.
    pub fn exp_sum_range(&self, classes: usize) -> Option<BitRange> {
        let hi = self.fraction_bits + (usize::BITS - classes.leading_zeros());
        (hi < self.value_bits).then_some(BitRange::new(self.fraction_bits, hi))
    }

    /// The range of any ordinary value that is not negative, in units, section 7.
    pub const fn full_range(&self) -> BitRange {
        BitRange::new(0, self.value_bits - 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn thresholds_are_encoded_upwards() {
        let fixed = FixedSpec::default();
        assert_eq!(fixed.encode_up(0.1), 6554);
        assert_eq!(fixed.encode_up(0.5), 32768, "what can be represented stays");
        assert_eq!(fixed.encode_up(0.5 + 1e-9), 32769, "the least excess counts");
        assert_eq!(fixed.encode_up(6553.4 / 65536.0), 6554, "to the nearest would be 6553");
    }

    #[test]
    fn formats_are_refused_at_their_limits() {
        let ok = |fraction_bits, value_bits| FixedSpec { fraction_bits, value_bits }.validate().is_ok();
        assert_eq!([3, 4, 17, 18].map(|f| ok(f, 32)), [false, true, true, false]);
        for f in [4, 16, 17] {
            assert_eq!([f + 4, f + 5, 32, 33].map(|k| ok(f, k)), [false, true, true, false], "f = {f}");
        }
    }

    #[test]
    fn a_sum_of_exponentials_lies_in_its_range_or_the_range_is_refused() {
        let fixed = FixedSpec { fraction_bits: 16, value_bits: 21 };
        assert_eq!(fixed.exp_sum_range(2), Some(BitRange::new(16, 18)));
        assert_eq!(
            fixed.exp_sum_range(15),
            Some(BitRange::new(16, 20)),
            "15 * 2^16 < 2^20 <= the largest ordinary value"
        );
        assert_eq!(fixed.exp_sum_range(16), None, "16 * 2^16 = 2^20 is no ordinary value");
        for classes in 1..4096usize {
            let BitRange { lo, hi } = FixedSpec::default().exp_sum_range(classes).unwrap();
            let most = (classes as i64) << 16;
            assert!((1 << lo) <= most && most < 1 << hi && most >= 1 << (hi - 1), "{classes}: 2^{lo}..2^{hi}");
        }
    }
}
