//! What is trained: heads, rounding, network, optimiser, and the constants of the fixed-point arithmetic.
//!
//! This is the only module that the secure engine takes from this crate.
#![doc = include_str!("../docs/arithmetic.md")]

pub mod constants;
mod fixed;
mod head;
mod network;
mod probe;
mod sgd;

pub use fixed::{FixedSpec, Rounding};
pub use head::Head;
pub use network::NetworkSpec;
pub use probe::{HeadPoint, ProbePoint};
pub use sgd::{SgdSpec, SgdUnits};

use serde::{Deserialize, Serialize};

/// A specification that cannot be carried out. One line: what is wrong, and the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

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
    /// Checks every limit.
    ///
    /// # Errors
    /// The first limit that is broken, named with its value.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.network.validate()?;
        self.fixed.validate()?;
        if !(self.epsilon > 0.0 && self.epsilon < 1.0) {
            return Err(SpecError(format!("epsilon is {}; it must be inside (0, 1)", self.epsilon)));
        }
        self.sgd.units(self.fixed)?;
        Ok(())
    }

    /// eps in units, rounded up so that 1/eps stays a bound.
    pub fn epsilon_units(&self) -> i64 {
        self.fixed.encode_up(self.epsilon)
    }
}
