//! The cause of every difference of a step that was traced. How it is told: [`bounds::cause`].

pub use bounds::cause::{Budget, Cause, Sums, TensorBudget};

use crate::trace::Trace;
use bounds::cause::{Rows, step};
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
    let batch = &trace.batch;
    let rows = Rows { units: &batch.units, reals: &batch.reals, labels: &batch.labels };
    step(&trace.spec, &start.values, rows, sides, &trace.violations, &wanted)
}
