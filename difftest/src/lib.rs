//! Differential tester for secure training. One network is trained three times on identical batches: in real numbers
//! ([`reference::f64`](mod@reference::f64)), as an integer model of the fixed-point arithmetic ([`reference::fixed`]),
//! and by three parties on secret shares ([`secure`]). The last two must agree bit for bit; their distance to f64 must
//! keep a proven bound, element by element.
//!
//! # Vocabulary
//! * *value*: a real number; *units*: the integer that stands for it, at scale 2^-f; *error*: |fixed point - f64|, in
//!   reals unless units are named.
//! * *bound*: a proven limit of the error, for every outcome of the coins; *tightness*: bound / observed error.
//! * *coin*, *tape*: the random bit of one probabilistic truncation; those of a step, which the integer model replays.
//! * *ambiguous*: jumping with a comparison whose operand is within its bound of the threshold.
//!
//! # Map
//! * A run: [`config`], [`generate`] (batches and initial weights), [`side`] (the trait [`side::Side`]; `real`,
//!   `integer` and `secure` implement it), [`parties`] (where the three parties are), [`run`] (lock-step and free
//!   runs), [`trace`](mod@trace) (one step as a value, and its files), [`interrupt`] (a wish to end early).
//! * The judgement: [`bound`] (error bounds, computed along with the real side), [`compare`] (elements into verdicts),
//!   [`branch`] (elements that hang on a comparison), [`check`] (the named checks), [`experiment`] (the checks of coins
//!   and messages), [`statistics`], [`evaluation`] (accuracy) and [`chance`] (accuracy without learning).
//! * The explanation: [`explain`] (cause and origin of a difference, health of a training), [`failure`] (the text of
//!   one failure), [`report`], [`provenance`] (what made a report), [`count`] (counts in words).
//! * Other engines: [`foreign`] judges the steps that another engine wrote to a file.
//! * Files: [`golden`] (recorded results), [`checkpoint`] (trained models), [`keeping`] (runs that go on after an
//!   interruption), [`replay`] (one step again), [`input`] (files that people write), [`output`] (whole files or none).
//! * Other measurements: [`advise`] (number formats), [`functions`] (every function against its bound), [`timing`],
//!   [`paper`] (one paper's evaluation), and, with the feature `faults`, planted faults and what finds them.
//! * The ground: [`error`] (what ends a run without a verdict), [`terminal`] (text on its way to one), [`threads`].
//!
//! Values are never repaired before they are compared.
//!
//! # Features
//! * `html`: reports as HTML pages with plots. `mnist`: MNIST inside the library. `faults`: planted faults, never in a
//!   release.
//!
//! None is on by default, so that a test of an engine compiles neither plots nor data.
//!
//! # Example
//! ```
//! use difftest::{config::Config, run::lockstep, side::secure::Secure};
//! use fixtures::{Dataset, Split};
//! use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
//!
//! // Eight images of 2 x 2 pixels, two steps of four rows.
//! let images = (0..32).map(|pixel| pixel * 8).collect();
//! let split = Split { images, labels: vec![0, 1, 2, 3, 0, 1, 2, 3], height: 2, width: 2 };
//! let data = Dataset { train: split.clone(), test: split };
//! let spec = TrainSpec {
//!     network: NetworkSpec::dense(4, 3, 10, 2),
//!     head: Head::ReluGrad,
//!     epsilon: 0.1,
//!     rounding: Rounding::Probabilistic,
//!     fixed: FixedSpec::default(),
//!     sgd: SgdSpec { batch: 4, ..SgdSpec::default() },
//! };
//! let mut secure = Secure::start(spec.clone(), None, true)?;
//! let found = lockstep::run(&Config::new(spec, 2, 1), &data, &mut secure, |_, _| ())?;
//! for check in found.checks.iter().filter(|check| ["bit-exact", "error-bound"].contains(&check.name)) {
//!     assert!(check.passed, "{}: {}", check.name, check.summary);
//! }
//! # Ok::<(), difftest::error::Error>(())
//! ```

pub mod advise;
pub mod chance;
pub mod check;
pub mod checkpoint;
pub mod config;
pub mod count;
pub mod error;
pub mod evaluation;
pub mod experiment;
pub mod explain;
pub mod failure;
#[cfg(feature = "faults")]
pub mod faults;
pub mod foreign;
pub mod functions;
pub mod generate;
pub mod golden;
pub mod input;
pub mod interrupt;
pub mod keeping;
pub mod output;
pub mod paper;
pub mod parties;
pub mod provenance;
pub mod replay;
pub mod report;
pub mod run;
pub mod side;
pub mod terminal;
pub mod threads;
pub mod timing;
pub mod trace;

pub use ::bounds as bound;
pub use ::bounds::{branch, compare, statistics};
