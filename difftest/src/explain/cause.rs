//! The cause of every difference of a step that was traced. How it is told: [`crate::bound::cause`].

pub use crate::bound::cause::{Budget, Cause, Sums, TensorBudget};

use crate::bound::cause::step;
use crate::trace::Trace;
use reference::spec::{ProbePoint, SpecError};

/// The budget of a step in which all sides started from the same parameters; empty for any other.
///
/// # Errors
/// The optimiser's constants cannot be encoded.
///
/// # Panics
/// If a tensor is missing or has another shape than the specification says: the caller's mistake.
pub fn of(trace: &Trace, wanted: impl Fn(&ProbePoint) -> bool + Sync) -> Result<Budget, SpecError> {
    // What differs from a model with other coins has no cause of its own.
    let Some(start) = trace.start.as_ref().filter(|_| !trace.blind) else { return Ok(Budget::new()) };
    let sides = (&trace.real.tensors, &trace.integer.tensors, &trace.tested.tensors);
    step(&trace.spec, &start.values, &trace.batch, sides, &trace.violations, &wanted)
}
