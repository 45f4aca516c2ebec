use reference::fixed::ModelError;
use std::path::PathBuf;

/// An input of `difftest head` that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", .path.display())]
pub struct LogitsError {
    /// The file, or the name of the standard input.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub cause: LogitsCause,
}

/// The reason why an input of `difftest head` is refused.
#[derive(Debug, thiserror::Error)]
pub enum LogitsCause {
    /// A word stands for a number that JSON does not have.
    #[error("{0} is no JSON number; logits must be finite")]
    NotFinite(String),
    /// The text is not the JSON that is expected.
    #[error("{0}; expected {{\"logits\": [[..], ..], \"labels\": [..]}}")]
    Json(#[source] serde_json::Error),
    /// There is no row, or not one label for each row.
    #[error("{rows} rows of logits and {labels} labels; give one label a row, and at least one row")]
    Count {
        /// Rows of logits.
        rows: usize,
        /// Labels.
        labels: usize,
    },
    /// The rows have too few or too many logits.
    #[error("row 0 has {0} logits; a row has 2 to 4096")]
    Classes(usize),
    /// A row has another number of logits than the first.
    #[error("row {row} has {found} logits, row 0 has {classes}; all rows must have the same class count")]
    Row {
        /// The row.
        row: usize,
        /// Its logits.
        found: usize,
        /// The logits of row 0.
        classes: usize,
    },
    /// A label names no class.
    #[error("label {label} of row {row} names no class; with {classes} logits labels are 0 to {}", .classes - 1)]
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: i128,
        /// Classes.
        classes: usize,
    },
    /// A logit has no value in the fixed-point format.
    #[error("row {row}, class {class}: {cause}; --side real answers without the fixed-point sides")]
    Encode {
        /// The row.
        row: usize,
        /// The class.
        class: usize,
        /// The limit.
        #[source]
        cause: Box<ModelError>,
    },
}
