//! The specification of a training: head, rounding, network, optimiser, and the constants of the fixed-point
//! arithmetic.
//!
//! Nothing here knows how a step is computed: the plaintext sides and the secure engine read it, and share nothing
//! else.
//!
//! ```
//! use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
//!
//! let spec = TrainSpec {
//!     network: NetworkSpec::dense(784, 128, 10, 2),
//!     head: Head::ReluProb,
//!     epsilon: 0.1,
//!     rounding: Rounding::Probabilistic,
//!     fixed: FixedSpec::default(),
//!     sgd: SgdSpec::default(),
//! };
//! spec.validate()?;
//! assert_eq!(spec.network.shape(2), (128, 10));
//! assert_eq!(spec.epsilon_units(), 6554); // 0.1 in units of 2^-16, rounded up
//! # Ok::<(), spec::SpecError>(())
//! ```
//!
#![doc = include_str!("../docs/arithmetic.md")]

pub mod cases;
pub mod constants;
mod error;
pub mod fault;
mod fixed;
mod head;
mod layer;
mod network;
mod probe;
mod range;
mod sgd;

pub use error::{Quantity, SpecError};
pub use fixed::{FixedSpec, Rounding};
pub use head::Head;
pub use layer::{LAYER_NAMES, Layer};
pub use network::NetworkSpec;
pub use probe::{HeadPoint, ParameterPoints, ProbePoint};
pub use range::BitRange;
pub use sgd::{SgdSpec, SgdUnits};

use fault::{Fault, planted};
use serde::{Deserialize, Serialize};

/// Everything that decides a training run but the data, the initial weights and the coins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainSpec {
    /// Layer widths and class count.
    pub network: NetworkSpec,
    /// The output head, i.e. the gradient with respect to the logits.
    pub head: Head,
    /// The threshold of `relu-prob` and `relu-prob-cut`, a real in (0, 1). Other heads ignore it.
    pub epsilon: f64,
    /// Rounding of every truncation.
    pub rounding: Rounding,
    /// Fraction bits and value width.
    pub fixed: FixedSpec,
    /// Learning rate, momentum, batch size.
    pub sgd: SgdSpec,
}

impl TrainSpec {
    /// Numbers of a batch in all layers that a step on all sides holds in about 16 GiB.
    const MOST_NUMBERS: u64 = 1 << 25;

    /// Batch times classes squared: comparisons that softmax's maximum holds in about 16 GiB.
    pub const MOST_PAIRS: u64 = 1 << 22;

    /// Checks every limit.
    ///
    /// # Errors
    /// The first limit that is broken, named with its value.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.validate_real()?;
        let f = self.fixed.fraction_bits;
        if matches!(self.head, Head::ReluProb | Head::ReluProbCut) && self.epsilon * (self.fixed.one() as f64) < 1.0 {
            return Err(Quantity::Epsilon.refused(format!(
                "epsilon is {}; with {f} fraction bits it must be at least one unit, {}",
                self.epsilon,
                1.0 / self.fixed.one() as f64
            )));
        }
        self.sgd.units(self.fixed)?;
        let numbers = self.sgd.batch as u64 * self.network.widths.iter().map(|&w| w as u64).sum::<u64>();
        if numbers > Self::MOST_NUMBERS {
            return Err(Quantity::Numbers.refused(format!(
                "a batch of {} rows has {numbers} numbers in all layers; it may have {}: take fewer rows",
                self.sgd.batch,
                Self::MOST_NUMBERS
            )));
        }
        let classes = self.network.classes() as u64;
        let pairs = self.sgd.batch as u64 * classes * classes;
        if self.head == Head::Softmax && pairs > Self::MOST_PAIRS {
            return Err(Quantity::Pairs.refused(format!(
                "softmax compares every two classes: {} rows of {classes} are too many; rows times classes squared \
                     may \
                 be {}",
                self.sgd.batch,
                Self::MOST_PAIRS
            )));
        }
        Ok(())
    }

    /// Checks the limits that real numbers have as well.
    ///
    /// # Errors
    /// The first limit that is broken, named with its value.
    pub fn validate_real(&self) -> Result<(), SpecError> {
        self.network.validate()?;
        self.fixed.validate()?;
        if !(self.epsilon > 0.0 && self.epsilon < 1.0) {
            return Err(Quantity::Epsilon.refused(format!("epsilon is {}; it must be inside (0, 1)", self.epsilon)));
        }
        Ok(())
    }

    /// eps in units, rounded up so that 1/eps stays a bound.
    pub fn epsilon_units(&self) -> i64 {
        let epsilon = if planted(Fault::EpsilonDoubled) { 2.0 * self.epsilon } else { self.epsilon };
        self.fixed.encode_up(epsilon)
    }
}
