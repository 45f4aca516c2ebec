//! The integer model: an executable specification of the fixed-point arithmetic, computed in the open.
//!
//! One file an idea, named after the sections of the [arithmetic](spec). Every operation takes an [`Arithmetic`]
//! (number format, rounding, coins, monitor), works on flat row-major slices of units, and wraps exactly as Z_2^64
//! does, so the model follows a run even while it diverges. [`Model`] puts them together into training steps.
//!
//! Operands of truncations and comparisons are written as exact `i128` expressions: the ring value is their low 64
//! bits, and the [`Monitor`] sees the number that was meant, not the one it wrapped to.
//!
//! | file | section | what |
//! | --- | --- | --- |
//! | [`truncate`] | 2 | division by 2^s under both roundings |
//! | [`tape`] | 2 | where the coins come from |
//! | [`compare`] | 3, 5 | sign, thresholds, argmax, maximum |
//! | [`dense`] | 4, 11 | matrix products, forward and backward |
//! | [`exponential`] | 6 | exp(d), d <= 0 |
//! | [`normalise`] | 7 | power-of-two scaling to 31 bits |
//! | [`divide`] | 8 | inverse, quotient, reciprocal |
//! | [`heads`] | 9 | the five heads: gradient, probabilities, loss |
//! | [`logarithm`] | 10 | log(s), s > 0 |
//! | [`sgd`] | 12 | weight update |
//! | [`monitor`] | 1 | range violations |
//! | [`parameters`] | 1 | encoding and decoding |

pub mod compare;
pub mod dense;
pub mod divide;
mod error;
pub mod exponential;
pub mod heads;
pub mod logarithm;
mod model;
pub mod monitor;
pub mod normalise;
pub mod parameters;
pub mod sgd;
pub mod tape;
pub mod truncate;

pub use error::ModelError;
pub use heads::HeadUnits;
pub use model::{HeadGradient, Model};
pub use monitor::{Monitor, Violation};
pub use parameters::{LayerUnits, LayerValues, Parameters};
pub use tape::{Coins, Replayed, Rounded, Tape};
pub use truncate::Unreduced;

use ndarray::Array2;
use spec::{FixedSpec, ProbePoint, Rounding};

/// The surroundings of an operation: the number format, the rounding, the coins to use, and the monitor that watches
/// ranges.
#[derive(Debug)]
pub struct Arithmetic<'a> {
    /// f and K.
    pub fixed: FixedSpec,
    /// Of every truncation.
    pub rounding: Rounding,
    /// Where truncations take their coins from.
    pub coins: &'a mut Coins,
    /// Where operations report what left its range.
    pub monitor: &'a mut Monitor,
}

/// Receives the tensors of a step as they are computed.
pub type Probe<'a> = &'a mut dyn FnMut(ProbePoint, &Array2<i64>);

#[cfg(test)]
pub(crate) mod testing;
