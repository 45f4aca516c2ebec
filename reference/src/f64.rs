//! Training in real numbers (IEEE double precision): what the fixed-point sides are measured against.
//!
//! * `head`: the five gradients, their losses and probabilities; `branch`: their comparisons, and how close each is to
//!   turning.
//! * `dense`: one layer forward and backward; `network`: a stack of them; `sgd`: one training step with every tensor
//!   probed.
//! * `product`: the matrix product that all of it spends its time in.
//!
//! Import it as `use reference::f64 as real`, so that the primitive type keeps its name.
//!
//! The result of everything here is a function of its arguments alone: the number of threads changes no bit. Nothing
//! panics on bad shapes, labels or numbers. What is not finite stays visible: a hidden unit hands a NaN on, and a row
//! of logits with an infinity or a NaN gets NaN as gradient, probabilities and loss.
//!
//! Source: Keller and Sun, *Effectiveness of MPC-friendly Softmax Replacement* (arXiv 2011.11202), section 3.

mod argmax;
mod branch;
mod dense;
mod head;
mod network;
mod product;
mod scratch;
mod sgd;

pub use argmax::argmax;
pub use branch::Branches;
pub use dense::Layer;
pub use head::{Masks, RealHead};
pub use network::Network;

use spec::SpecError;

/// The caller's mistake, in one line: what does not fit, and what would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A tensor has another shape than the network or the specification asks for.
    #[error("{what} is {}x{}; it must be {}x{}", .found.0, .found.1, .expected.0, .expected.1)]
    Shape {
        /// The tensor, with its layer.
        what: String,
        /// (rows, columns) given.
        found: (usize, usize),
        /// (rows, columns) needed.
        expected: (usize, usize),
    },
    /// A row without its label, or a label without its row.
    #[error("{rows} rows but {labels} labels; give one label for each row")]
    LabelCount {
        /// Rows given.
        rows: usize,
        /// Labels given.
        labels: usize,
    },
    /// A label names no class.
    #[error("label {label} of row {row} names no class; with {classes} classes a label is below {classes}")]
    Label {
        /// Row, from 0.
        row: usize,
        /// The label given.
        label: usize,
        /// L.
        classes: usize,
    },
    /// Masks with another number of elements than the row.
    #[error("masks have {positive} and {above} elements; the row has {classes} logits, give as many of each")]
    Masks {
        /// Elements of `positive`.
        positive: usize,
        /// Elements of `above`.
        above: usize,
        /// L.
        classes: usize,
    },
    /// The mean of nothing was asked for.
    #[error("the batch is empty; give at least one row")]
    Empty,
    /// The specification itself is out of its limits.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// One label for each row of logits of shape (batch, L), each naming a class.
fn check_labels((rows, classes): (usize, usize), labels: &[usize]) -> Result<(), Error> {
    if rows != labels.len() {
        return Err(Error::LabelCount { rows, labels: labels.len() });
    }
    labels.iter().enumerate().try_for_each(|(row, &label)| check_label(row, label, classes))
}

fn check_label(row: usize, label: usize, classes: usize) -> Result<(), Error> {
    if label < classes { Ok(()) } else { Err(Error::Label { row, label, classes }) }
}
