//! Runs of training steps. A run is an iterator of [traces](crate::trace::Trace): in [lock-step](lockstep::Lockstep)
//! all sides start every step from the same opened parameters, in a [free](free::Free) run each goes on from its own.

pub mod distances;
pub mod free;
pub mod head;
pub mod lockstep;
pub mod record;
pub mod restart;
pub mod training;
