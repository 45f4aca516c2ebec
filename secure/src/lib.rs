//! Semi-honest three-party training over Z_2^64.
//!
//! # Vocabulary
//! * *share*: x = x_0 + x_1 + x_2; party i holds components i and i + 1 mod 3 ([`share::Share`]). *part*: one of three
//!   additive summands, one a party ([`share::Parts`]).
//! * *factor*: what a party multiplies in a matrix product in place of its two components ([`share::Factor`]).
//! * *stream c*: pseudorandom words known to exactly the two parties that hold component c ([`prg`]).
//! * *two-sided*: a value as a + b, a known to party 0 and b to parties 1 and 2 ([`share::Share::two_sided`]).
//! * *open*: the parties hand their shares to the client, who adds them up. *reveal*: the parties open a value to one
//!   another.
//! * *truncate*, *sign*: as in the field; every protocol file states what it computes, requires, costs and reveals.
//!
//! # Threat model
//! One of the three parties may be curious: it follows the protocol and looks at everything it receives. It learns
//! nothing but what is revealed on request, and (with probabilistic rounding) what [`protocol::truncate`] says of the
//! coins. Two parties together know everything. Sizes, batch order and hyper-parameters are public. Nothing protects
//! against a party that deviates.
//!
//! # Map
//! [`id`] says who is who. [`kernel`] (u64 slices) and [`net`] (words between neighbours) know nothing of shares;
//! [`share`] is data; [`party`] is one party's view and the rounds; [`protocol`] computes; [`nn`] trains. [`engine`] is
//! the client and [`engine::worker`] a party at work; [`client`] opens what the parties hand out, as [`opened`] names
//! it.
//!
//! ```
//! use secure::engine::{Engine, EngineConfig};
//! use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
//!
//! let spec = TrainSpec {
//!     network: NetworkSpec::dense(1, 1, 3, 1),
//!     head: Head::Softmax,
//!     epsilon: 0.1,
//!     rounding: Rounding::Probabilistic,
//!     fixed: FixedSpec::default(),
//!     sgd: SgdSpec::default(),
//! };
//! // The head of one row of logits (units of 2^-16) with label 0, computed on shares.
//! let report = Engine::start(EngineConfig::new(spec))?.head(&[65536, 0, -65536], 3, &[0])?;
//! let sum: i64 = report.probabilities.iter().sum();
//! assert!((sum - 65536).abs() < 16, "probabilities add up to 1: {sum}");
//! assert_eq!(report.gradient[0], report.probabilities[0] - 65536);
//! # Ok::<(), secure::Error>(())
//! ```

#![deny(unsafe_code)]

pub mod buffer;
pub mod client;
pub mod clock;
#[cfg(test)]
mod conformance;
pub mod control;
pub mod cost;
pub mod engine;
pub mod error;
pub mod fault;
pub mod host;
pub mod id;
pub mod join;
pub mod kernel;
#[cfg(test)]
mod masking;
pub mod net;
pub mod nn;
pub mod opened;
pub mod party;
mod pool;
pub mod prg;
pub mod protocol;
pub mod share;
pub mod testing;

pub use error::{Error, Result};
