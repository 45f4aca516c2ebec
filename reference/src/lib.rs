//! The plaintext sides of the differential tester: the specification of a training ([`spec`]), training in real numbers
//! ([`f64`](mod@f64)), and training in integers ([`fixed`]), the executable specification of the fixed-point
//! arithmetic.
//!
//! # Vocabulary
//! * *value*: a real number. *units*: the integer that stands for it, at scale 2^-f.
//! * *scale*: V has scale s if it stands for V / 2^s. *unreduced*: a product not yet truncated, scale 2f.
//! * *coin*: the random bit of one probabilistic truncation. *tape*: the coins of a run, by name.
//! * *headroom*: how far an operand is from the limit at which an operation stops being exact.
//!
//! Nothing here knows of shares or of messages. The secure engine does not depend on this crate; both depend on
//! [`spec`], a crate of its own.
//!
//! ```
//! use reference::f64::RealHead;
//! use reference::fixed::{Coins, Model, Tape};
//! use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
//!
//! let spec = TrainSpec {
//!     network: NetworkSpec::dense(1, 1, 3, 1),
//!     head: Head::Softmax,
//!     epsilon: 0.1,
//!     rounding: Rounding::Nearest,
//!     fixed: FixedSpec::default(),
//!     sgd: SgdSpec::default(),
//! };
//! // One row of logits in both arithmetics; nearest rounding needs no coins.
//! let real = RealHead::of(&spec).gradient(&[1.0, 0.0, -1.0], 0)?;
//! let mut coins = Coins::Tape(Tape::default());
//! let integer = Model::new(spec)?.head(&ndarray::array![[65536, 0, -65536]], &[0], &mut coins)?;
//! for (units, real) in integer.gradient.iter().zip(real) {
//!     assert!((*units as f64 / 65536.0 - real).abs() < 1e-3);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod batches;
pub mod f64;
pub mod fixed;
pub use spec;
