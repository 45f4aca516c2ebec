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
//! * *truncate*: to divide by a power of two, with rounding. *sign*: the bit that says whether a value is below zero.
//!
//! Every file of [`protocol`] begins with what its protocol computes, requires, costs and reveals.
//!
//! # Threat model
//! One of the three parties may be curious: it follows the protocol and looks at everything it receives. It learns only
//! what is revealed on request, and with probabilistic rounding something of the coins, which [`protocol::truncate`]
//! states. Two parties together know everything. Sizes, batch order and hyper-parameters are public. Nothing protects
//! against a party that deviates from the protocol.
//!
//! # Map
//! From the bottom up:
//! * [`id`] names the parties, and [`step`] the steps that send messages.
//! * [`kernel`] computes on slices of words, whose memory comes from [`buffer`], and [`net`] moves words between
//!   neighbours; neither knows of shares.
//! * [`share`] holds the shares and [`prg`] the pseudorandom words that mask them; [`party`] is one party's view of a
//!   computation and its rounds, counted as [`cost`] and by [`clock`].
//! * [`protocol`] computes on shares, [`nn`] trains with the protocols; [`join`] runs many of them side by side.
//! * [`engine`] is the client: it deals secrets and asks for steps; [`engine::worker`] is a party at work. [`client`]
//!   puts together what the parties hand out, in the types of [`opened`].
//! * [`control`] and [`host`] let a party be a process of its own; [`testing`] and [`fault`] serve tests.
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
pub mod step;
pub mod testing;

pub use error::{Error, Result};
