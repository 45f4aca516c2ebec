use crate::fault::{Fault, planted};
use crate::{FixedSpec, Quantity, SpecError};
use serde::{Deserialize, Serialize};

/// Stochastic gradient descent with momentum: v <- momentum v - lr/batch dW, w <- w + v.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SgdSpec {
    /// Step size, a positive real.
    pub learning_rate: f64,
    /// In [0, 1).
    pub momentum: f64,
    /// Rows per step.
    pub batch: usize,
    /// Extra fractional bits of the velocity; 0 is the paper's behaviour. With nearest rounding at 0, velocities of up
    /// to 4 units (momentum 0.9) never decay.
    #[serde(default)]
    pub extra_velocity_bits: u32,
}

impl Default for SgdSpec {
    /// The paper's: 0.01, 0.9, 128.
    fn default() -> Self {
        SgdSpec { learning_rate: 0.01, momentum: 0.9, batch: 128, extra_velocity_bits: 0 }
    }
}

/// [`SgdSpec`] in units: section 12 of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SgdUnits {
    /// c: lr / batch = c 2^-k to within 2^-10 (relative) where k <= 30 allows it. 1 <= c < 2^10.
    pub rate: i64,
    /// The number k of bits by which the rate is scaled.
    pub rate_bits: u32,
    /// M = round(momentum 2^(f+k)).
    pub momentum: i64,
    /// s = f + k: what the update is truncated by.
    pub shift: u32,
    /// x: scale of a velocity is f + x.
    pub extra: u32,
}

impl SgdUnits {
    /// The encoded learning rate divided by the batch, as the real number that it stands for.
    pub fn real_rate(&self) -> f64 {
        self.rate as f64 * 2f64.powi(-(self.rate_bits as i32))
    }

    /// The encoded momentum, as the real number that it stands for.
    pub fn real_momentum(&self) -> f64 {
        self.momentum as f64 * 2f64.powi(-(self.shift as i32))
    }
}

impl SgdSpec {
    /// The largest k: keeps f + k <= 47.
    const MAX_RATE_BITS: i32 = 30;

    /// Encodes rate and momentum.
    ///
    /// k is the largest value <= 30 for which c = round(lr/batch 2^k) stays below 2^10, so c has 10 significant bits
    /// for every lr/batch from 2^-21 up to 2^9. For lr = 0.01 and batch 128 this is 655 * 2^-23: the paper's own
    /// encoding.
    ///
    /// # Errors
    /// A batch of 0 or beyond 2^20 rows, momentum outside [0, 1) or so near 1 that it rounds to it, more than 12 extra
    /// velocity bits, a rate that is not positive, rounds to 0, or is 1023.5 or more per row.
    pub fn units(&self, fixed: FixedSpec) -> Result<SgdUnits, SpecError> {
        if self.batch == 0 || self.batch > 1 << 20 {
            return Err(Quantity::Batch.refused(format!("batch is {}; it must be 1 to {}", self.batch, 1 << 20)));
        }
        if !(self.momentum >= 0.0 && self.momentum < 1.0) {
            return Err(Quantity::Momentum.refused(format!("momentum is {}; it must be in [0, 1)", self.momentum)));
        }
        if self.extra_velocity_bits > 12 {
            return Err(Quantity::VelocityBits
                .refused(format!("extra velocity bits is {}; it must be 0 to 12", self.extra_velocity_bits)));
        }
        let rate = match self.learning_rate / self.batch as f64 {
            rate if planted(Fault::RateDoubled) => 2.0 * rate,
            _ if planted(Fault::BatchDivisor) => self.learning_rate / (self.batch + 1) as f64,
            rate => rate,
        };
        let smallest = (0.5f64).powi(Self::MAX_RATE_BITS + 1) * self.batch as f64;
        if !rate.is_finite() || self.learning_rate <= 0.0 {
            return Err(Quantity::LearningRate
                .refused(format!("learning rate is {}; it must be a positive number", self.learning_rate)));
        }
        if self.learning_rate < smallest {
            return Err(Quantity::LearningRate.refused(format!(
                "learning rate {:e} rounds to 0 in fixed point; with batch {} the smallest is {smallest:e}",
                self.learning_rate, self.batch
            )));
        }
        let k = (0..=Self::MAX_RATE_BITS).rev().find(|&k| (rate * 2f64.powi(k)).round() < 1024.0);
        let Some(k) = k else {
            return Err(Quantity::LearningRate.refused(format!(
                "learning rate {} is too large: learning rate / batch must be below 1023.5",
                self.learning_rate
            )));
        };
        let shift = fixed.fraction_bits + k as u32;
        if shift == 0 {
            return Err(Quantity::FractionBits.refused("fraction bits 0 leave nothing to truncate"));
        }
        let real = if planted(Fault::MomentumHalved) { 0.5 * self.momentum } else { self.momentum };
        let momentum = (real * 2f64.powi(shift as i32)).round() as i64;
        if momentum == 1 << shift {
            return Err(Quantity::Momentum.refused(format!(
                "momentum {} rounds to 1 in fixed point; with this learning rate it must stay below 1 - 2^-{}",
                self.momentum,
                shift + 1
            )));
        }
        Ok(SgdUnits {
            rate: (rate * 2f64.powi(k)).round() as i64,
            rate_bits: k as u32,
            momentum,
            shift,
            extra: self.extra_velocity_bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn the_papers_rate_is_the_papers_encoding() {
        let u = SgdSpec::default().units(FixedSpec::default()).unwrap();
        assert_eq!((u.rate, u.rate_bits, u.shift), (655, 23, 39));
        assert_eq!(u.momentum, (0.9 * 2f64.powi(39)).round() as i64);
    }

    #[test]
    fn a_momentum_that_rounds_to_one_is_refused() {
        let sgd = |learning_rate, momentum| SgdSpec { learning_rate, momentum, batch: 1, ..SgdSpec::default() };
        let coarse = FixedSpec { fraction_bits: 4, value_bits: 24 };
        assert!(sgd(500.0, 0.99).units(coarse).unwrap_err().to_string().contains("must stay below 1 - 2^-6"));
        assert_eq!(sgd(500.0, 0.98).units(coarse).unwrap().momentum, 31);
        assert!(sgd(1.0, 0.999_999_99).units(FixedSpec::default()).unwrap_err().to_string().contains("rounds to 1"));
    }

    #[test]
    fn a_rate_that_rounds_to_zero_names_the_limit() {
        let spec = SgdSpec { learning_rate: 1e-12, ..SgdSpec::default() };
        assert!(spec.units(FixedSpec::default()).unwrap_err().to_string().contains("smallest is"));
    }

    #[test]
    fn every_usable_rate_keeps_ten_bits() {
        for lr in [1e-3, 0.005, 0.01, 0.3, 1.0, 17.0] {
            let u = SgdSpec { learning_rate: lr, ..SgdSpec::default() }.units(FixedSpec::default()).unwrap();
            let got = u.real_rate();
            assert!((got / (lr / 128.0) - 1.0).abs() <= 1.0 / 1022.0, "{lr}: {u:?}");
        }
    }
}
