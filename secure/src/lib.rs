//! Semi-honest three-party training over Z_2^64.
//!
//! # Vocabulary
//! * *share*: x = x_0 + x_1 + x_2; party i holds components i and i + 1 mod 3 ([`share::Share`]). *part*: one of three additive
//!   summands, one a party ([`share::Parts`]).
//! * *factor*: what a party multiplies in a matrix product in place of its two components ([`share::Factor`]).
//! * *stream c*: pseudorandom words known to exactly the two parties that hold component c ([`prg`]).
//! * *two-sided*: a value as a + b, a known to party 0 and b to parties 1 and 2 ([`share::Share::two_sided`]).
//! * *reveal*, *truncate*, *sign*: as in the field; every protocol file states what it computes, requires, costs and reveals.
//!
//! # Threat model
//! One of the three parties may be curious: it follows the protocol and looks at everything it receives. It learns nothing but what
//! is revealed on request, and (with probabilistic rounding) what [`protocol::truncate`] says of the coins. Two parties together
//! know everything. Sizes, batch order and hyper-parameters are public. Nothing protects against a party that deviates.
//!
//! # Map
//! [`kernel`] (u64 slices) and [`net`] (words between neighbours) know nothing of shares; [`share`] is data; [`party`] is one
//! party's view and the rounds; [`protocol`] computes; [`nn`] trains; [`engine`] runs three parties in this process and [`client`] opens what they
//! hand out.

#![deny(unsafe_code)]

pub mod client;
pub mod clock;
#[cfg(test)]
mod conformance;
pub mod cost;
mod crew;
pub mod engine;
pub mod error;
pub mod fault;
pub mod join;
pub mod kernel;
#[cfg(test)]
mod masking;
pub mod net;
pub mod nn;
pub mod party;
pub mod prg;
pub mod protocol;
pub mod share;
pub mod testing;
pub mod words;

pub use error::{Error, Result};
