//! Error bounds of the fixed-point arithmetic against real numbers, and the comparison of tensors against them.
//!
//! A bound holds for **every** outcome of the rounding coins, for every input, as long as no range violation occurs
//! (the `range` check watches that). Nothing in here looks at the value that will be judged by it: the radius of a
//! tensor depends on the inputs of the operation that made it.
//!
//! # What is proven
//! Assume that both sides start from the same parameters, that nothing left its range up to this step, that f64 sums
//! and products keep [`rules::gamma`] and the platform's `exp` four half-ulps, and that the f64 head is right to the
//! last places. Then, for every outcome of the coins:
//! * an unambiguous element of a fixed-point tensor is within its radius of the f64 element;
//! * the elements of an ambiguity are, all together, inside one of its branches;
//! * a radius computed from an ambiguous tensor covers all of its branches, so later tensors need no case distinction:
//!   their elements are unambiguous, with a radius that may be as large as what the comparison decides.
//!
//! Not proven: that the branches taken in two tensors (a gradient and its reciprocal, say) belong to the same outcome;
//! each tensor is judged alone.
//!
//! * [`rules`]: what one elementary function of `docs/arithmetic.md` adds, by function and rounding, with the reason;
//! * [`encoding`]: the error that each encoded constant may have, whatever the encoder returns;
//! * [`interval`]: enclosures with outward rounding;
//! * [`head`]: enclosures of the heads, row by row, for either outcome of a comparison;
//! * [`network`]: the walk through one training step;
//! * [`statistical`]: beside this worst case, what holds but for one run in 2^40;
//! * [`branch`]: elements that hang on a comparison; [`compare`]: elements into verdicts; [`statistics`]: how likely
//!   observed coins and bits are;
//! * [`cause`]: a difference as a sum of parts that each have one cause; [`operation`]: which operation makes which
//!   tensor; [`sketch`]: how far two networks are apart, told from 128 numbers of each.

// Builds for tests optimise this crate and not those above it, and what is generic is compiled where it is called: what
// looks at every element takes slices and `dyn`.

pub mod branch;
#[cfg(test)]
mod by_hand;
pub mod cause;
pub mod compare;
pub mod encoding;
#[cfg(test)]
mod exact;
pub mod head;
pub mod interval;
pub mod network;
pub mod operation;
pub mod row;
pub mod rules;
pub mod sketch;
pub mod statistical;
pub mod statistics;
#[cfg(test)]
mod testing;

use ndarray::Array2;
use reference::spec::ProbePoint;
use std::collections::BTreeMap;

/// Probed tensors of one step: reals for the real side, units for the others.
pub type Tensors<T> = BTreeMap<ProbePoint, Array2<T>>;

/// The rows of one step, which all sides train on.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// (rows, inputs), scale f.
    pub units: Array2<i64>,
    /// (rows, inputs), the numbers that the units stand for, exactly.
    pub reals: Array2<f64>,
    /// Class of each row.
    pub labels: Vec<usize>,
}
