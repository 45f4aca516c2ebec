//! Runs of training steps on all sides, in lock-step or each side on its own.

pub mod free;
pub mod lockstep;
pub mod restart;
