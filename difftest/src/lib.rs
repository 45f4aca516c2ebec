//! Differential tester for secure training. One network is trained three times on identical batches: in real numbers
//! ([`reference::f64`](mod@reference::f64)), as an integer model of the fixed-point arithmetic ([`reference::fixed`]), and by three parties on secret shares
//! ([`secure`]). The last two must agree bit for bit; their distance to f64 must keep a proven bound, element by element.
//!
//! # Vocabulary
//! * *value*: a real number; *units*: the integer that stands for it, at scale 2^-f; *error*: |fixed point - f64|, in reals unless units are named.
//! * *bound*: a proven limit of the error, for every outcome of the coins; *tightness*: bound / observed error.
//! * *coin*, *tape*: the random bit of one probabilistic truncation; those of a step, which the integer model replays.
//! * *ambiguous*: jumping with a comparison whose operand is within its bound of the threshold.
//!
//! # Map
//! A [`config`] says what a run is; [`lockstep`] and [`freerun`] run the sides ([`model`]) on inputs from
//! [`generate`]; [`bound`] walks along with the f64 side; [`compare`] turns elements into verdicts ([`branch`]: the undecided ones);
//! [`check`] gathers them; [`report`] and [`failure`] tell; [`golden`] records; [`saved`] keeps trained models.
//!
//! Values are never repaired before they are compared.

pub mod advise;
pub mod bound;
pub mod branch;
pub mod budget;
pub mod check;
pub mod compare;
pub mod config;
pub mod error;
pub mod failure;
#[cfg(feature = "faults")]
pub mod faults;
pub mod freerun;
pub mod functions;
pub mod generate;
pub mod golden;
pub mod lockstep;
pub mod model;
pub mod operation;
pub mod paper;
pub mod replay;
pub mod report;
pub mod restart;
pub mod saved;
pub mod statistics;
pub mod timing;
pub mod watch;
