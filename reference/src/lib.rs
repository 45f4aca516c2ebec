//! The plaintext side of the differential tester: what is trained ([`spec`]), the same in real numbers
//! ([`f64`](mod@f64)), and as an executable specification of the fixed-point arithmetic ([`fixed`]).
//!
//! # Vocabulary
//! * *value*: a real number. *units*: the integer that stands for it, at scale 2^-f.
//! * *scale*: V has scale s if it stands for V / 2^s. *unreduced*: a product not yet truncated, scale 2f.
//! * *coin*: the random bit of one probabilistic truncation. *tape*: the coins of a run, by name.
//! * *headroom*: how far an operand is from the limit at which an operation stops being exact.
//!
//! Nothing here knows of shares or networks; `secure` takes from this crate only the vocabulary in [`spec`].

pub mod batches;
pub mod f64;
pub mod fixed;
pub use spec;
