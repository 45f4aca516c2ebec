//! Judges another engine from a [trace](crate::trace): it names the first difference, and whether that is rounding, an
//! approximation, a wrap-around or a fault.
//!
//! Every operation is recomputed from the values that the engine itself put into it, in exact integers where the
//! trace holds integers and in double
//! precision elsewhere. So an error is charged to the operation that makes it, and the bound is that of this
//! operation alone.
//!
//! * [`number`] and [`exact`]: tensors as integers at a scale or as reals, and exact sums of products;
//! * [`view`]: one step of a trace with its shapes checked;
//! * [`allowed`]: the bound of an operation, from the header's rounding;
//! * [`outcome`] and [`operation`]: what an operation answers; the operations, one a file, and the list of them;
//! * [`judged`]: the errors of one tensor against its bounds;
//! * [`coin`]: whether coins keep their probabilities;
//! * [`case`](mod@case) and [`cause`]: a failure to be explained; what explains a failure, one cause a file;
//! * [`end_to_end`]: a whole step against real numbers, with the propagated bound;
//! * [`verdict`]: rows, checks and the whole report;
//! * [`text`], `html` (with the feature of that name) and [`ci`]: the report for people, browsers and build servers.
//!
//! What the trace does not hold is not judged: its operation is OPEN, never PASS.

pub mod allowed;
pub mod case;
pub mod cause;
pub mod ci;
pub mod coin;
pub mod end_to_end;
pub mod exact;
#[cfg(feature = "html")]
pub mod html;
pub mod judged;
pub mod number;
pub mod operation;
pub mod outcome;
pub mod text;
pub mod verdict;
pub mod view;

#[cfg(test)]
pub(crate) mod testing;

pub use verdict::{Report, judge};
