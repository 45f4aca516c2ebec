//! The trait of operations: what each is asked, and what it answers.

use super::judged::Judged;
use super::view::View;

/// The answer of an operation about one tensor of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The tensor was compared.
    Compared(Box<Judged>),
    /// The trace lacks something.
    Missing {
        /// The tensor that was to be judged.
        tensor: String,
        /// The tensors that the trace lacks.
        lacks: Vec<String>,
    },
}

impl Outcome {
    /// Of a comparison.
    pub fn compared(judged: Judged) -> Self {
        Outcome::Compared(Box::new(judged))
    }
}

/// Another value that an element would have under a mistake.
pub struct Alternative {
    /// The cause in the words of the report.
    pub cause: &'static str,
    /// The mistake, in words.
    pub what: String,
    /// The values that the operation gives with it, real and before rounding, row-major.
    pub values: Vec<f64>,
}

/// One operation of a training step, and how it is judged.
pub trait Operation: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// The subject of the judgement and its operands: one line for `difftest check --list`.
    fn what(&self) -> &'static str;

    /// Its tensors of one step.
    fn judge(&self, view: &View) -> Vec<Outcome>;

    /// The values that `tensor` would have under the mistakes that are particular to this operation.
    fn alternatives(&self, _view: &View, _tensor: &str) -> Vec<Alternative> {
        Vec::new()
    }
}
