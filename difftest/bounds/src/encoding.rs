//! The error that the specification promises for every constant it encodes, computed from real numbers alone.
//!
//! All sides take the learning rate, the momentum, epsilon and log2 e from the same encoders, so a wrong encoder gives
//! no difference between the secure side and the integer model. A bound that took its slack from those encoders would
//! accept whatever they return. Here the slack of an encoding is what sections 1, 6 and 12 of the arithmetic promise,
//! derived from the real number and the number format; the encoder's result is only held against it. An encoding that
//! breaks its promise makes the run fail with the cause *encoding*, whatever the tensors look like.
//!
//! | constant | encoded as | promise |
//! | --- | --- | --- |
//! | learning rate / batch | c 2^-k | off by at most 1/1023 of it, or by 2^-31 where k = 30 is the limit |
//! | momentum | M 2^-(f+k) | off by at most half a unit of 2^-(f+k) |
//! | epsilon | E 2^-f | not below epsilon, and less than one unit above it |
//! | log2 e | EXP_LOG2E 2^-(31-f) | off by at most half a unit of 2^-(31-f) |

use reference::spec::{FixedSpec, SpecError, TrainSpec};
use serde::Serialize;

/// One constant: the real number, its encoding read back as a real, and how far apart they may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Encoding {
    /// The constant's name in reports.
    pub name: &'static str,
    /// The real number that is encoded.
    pub real: f64,
    /// The number that the encoded integer stands for.
    pub coded: f64,
    /// The encoding may be this much below the real number.
    pub below: f64,
    /// The encoding may be this much above the real number.
    pub above: f64,
}

impl Encoding {
    /// A constant that is rounded to the nearest: off by at most `promise` in either direction.
    fn nearest(name: &'static str, real: f64, coded: f64, promise: f64) -> Self {
        Encoding { name, real, coded, below: promise, above: promise }
    }

    /// Whether the encoding keeps its promise, but for the rounding of the f64 numbers that are compared here.
    pub fn kept(&self) -> bool {
        let rounding = 4.0 * f64::EPSILON * self.real.abs();
        let off = self.coded - self.real;
        off >= -self.below - rounding && off <= self.above + rounding
    }

    /// The encoded number moved, if it breaks its promise, to the nearest number that keeps it: what a bound may
    /// assume.
    pub fn promised(&self) -> f64 {
        self.coded.clamp(self.real - self.below, self.real + self.above)
    }

    /// The largest error that a bound may grant this encoding: its own error, and never more than was promised.
    pub fn slack(&self) -> f64 {
        (self.promised() - self.real).abs()
    }
}

/// The largest number of bits k by which a rate is scaled.
const MOST_RATE_BITS: f64 = 30.0;

/// The first integer that a scaled rate rounds to and must not: c < 2^10.
const RATE_LIMIT: f64 = 1023.5;

/// Learning rate / batch, section 12.
///
/// # Errors
/// A rate that cannot be encoded.
pub fn rate(spec: &TrainSpec) -> Result<Encoding, SpecError> {
    let units = spec.sgd.units(spec.fixed)?;
    let real = spec.sgd.learning_rate / spec.sgd.batch as f64;
    let coded = units.real_rate();
    // c >= 511.75 before it is rounded by half a unit, unless k is at its limit.
    let promise = (real / 1023.0).max(2f64.powi(-31));
    Ok(Encoding::nearest("learning rate / batch", real, coded, promise))
}

/// The momentum, section 12.
///
/// # Errors
/// A momentum or a rate that cannot be encoded.
pub fn momentum(spec: &TrainSpec) -> Result<Encoding, SpecError> {
    let units = spec.sgd.units(spec.fixed)?;
    let coded = units.real_momentum();
    let rate = spec.sgd.learning_rate / spec.sgd.batch as f64;
    // The k of the rate, one less where the logarithm leaves it in doubt.
    let bits = ((RATE_LIMIT / rate).log2() - 1e-9).floor().clamp(0.0, MOST_RATE_BITS);
    let promise = 2f64.powi(-(spec.fixed.fraction_bits as i32 + bits as i32 + 1));
    Ok(Encoding::nearest("momentum", spec.sgd.momentum, coded, promise))
}

/// The threshold epsilon, section 1: rounded up, so that 1 / epsilon stays a bound.
pub fn epsilon(spec: &TrainSpec) -> Encoding {
    let unit = 2f64.powi(-(spec.fixed.fraction_bits as i32));
    let coded = spec.epsilon_units() as f64 * unit;
    Encoding { name: "epsilon", real: spec.epsilon, coded, below: 0.0, above: unit }
}

/// log2 e, section 6.
pub fn log2_e(fixed: FixedSpec) -> Encoding {
    let unit = 2f64.powi(fixed.fraction_bits as i32 - 31);
    Encoding::nearest("log2 e", std::f64::consts::LOG2_E, fixed.exp_log2e() as f64 * unit, 0.5 * unit)
}

/// Every encoded constant of a run.
///
/// # Errors
/// A rate or momentum that cannot be encoded.
pub fn all(spec: &TrainSpec) -> Result<[Encoding; 4], SpecError> {
    Ok([rate(spec)?, momentum(spec)?, epsilon(spec), log2_e(spec.fixed)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reference::spec::{Head, NetworkSpec, Rounding, SgdSpec};

    fn spec(learning_rate: f64, momentum: f64, batch: usize, epsilon: f64, fraction_bits: u32) -> TrainSpec {
        TrainSpec {
            network: NetworkSpec::dense(4, 3, 2, 1),
            head: Head::ReluProb,
            epsilon,
            rounding: Rounding::Nearest,
            fixed: FixedSpec { fraction_bits, ..FixedSpec::default() },
            sgd: SgdSpec { learning_rate, momentum, batch, ..SgdSpec::default() },
        }
    }

    proptest! {
        #[test]
        fn every_encoding_of_the_specification_keeps_its_promise(
            rate in -20.0..8.0f64, momentum in 0.0..0.999f64, batch in 1..2048usize, epsilon in 0.001..0.999f64,
            fraction_bits in 4..=17u32,
        ) {
            let spec = spec(rate.exp2() * batch as f64, momentum, batch, epsilon, fraction_bits);
            prop_assume!(spec.sgd.units(spec.fixed).is_ok());
            for encoding in all(&spec).unwrap() {
                prop_assert!(encoding.kept(), "{encoding:?}");
                prop_assert!((encoding.promised() - encoding.coded).abs() <= 1e-15 * encoding.coded.abs());
            }
        }
    }

    #[test]
    fn rates_at_the_edges_of_the_encoding_keep_their_promise() {
        for k in 0..=30 {
            for rate in [511.75, 512.5, 1023.0, 1_023.499_999, 1023.5, 1.5, 0.5] {
                let spec = spec(rate * 2f64.powi(-k), 0.9, 1, 0.1, 16);
                for encoding in all(&spec).iter().flatten() {
                    assert!(encoding.kept(), "{rate} 2^-{k}: {encoding:?}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_encoder_is_seen_and_gains_no_slack() {
        let spec = spec(0.01, 0.9, 128, 0.1, 16);
        for factor in [2.0, 0.5, 1.002, 0.998] {
            for encoding in all(&spec).unwrap() {
                let wrong = Encoding { coded: factor * encoding.coded, ..encoding };
                assert!(!wrong.kept(), "{factor}: {wrong:?}");
                assert!(wrong.slack() <= wrong.below.max(wrong.above), "{factor}: {wrong:?}");
            }
        }
        let low = Encoding { coded: 0.1 - 2f64.powi(-17), ..epsilon(&spec) };
        assert!(!low.kept(), "epsilon is never rounded down");
    }

    #[test]
    fn what_is_promised_of_epsilon_and_log2_e() {
        for f in [8, 13, 16] {
            let [_, _, epsilon, log2_e] = all(&spec(0.5, 0.9, 16, 0.1, f)).unwrap();
            assert_eq!((epsilon.below, epsilon.above), (0.0, 2f64.powi(-(f as i32))));
            assert_eq!((log2_e.below, log2_e.above), (2f64.powi(f as i32 - 32), 2f64.powi(f as i32 - 32)));
        }
    }
}
