use spec::SpecError;

/// Why the model refuses a call. One line: what is wrong, and what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The specification itself.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An array of the wrong shape.
    #[error("{what} has shape {found:?}; it must be {expected:?}")]
    Shape {
        /// Which array.
        what: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape the specification asks for.
        expected: Vec<usize>,
    },
    /// A label outside the classes.
    #[error("label {label} of row {row} names no class; labels are 0 to {}", classes - 1)]
    Label {
        /// Row of the batch.
        row: usize,
        /// The label found there.
        label: usize,
        /// Class count.
        classes: usize,
    },
    /// A real that no ordinary value stands for.
    #[error(
        "{what}[{index}] is {}; with {fraction_bits} fraction bits magnitudes must be below {limit}",
        short(*value)
    )]
    Encode {
        /// Which tensor.
        what: String,
        /// Flat index.
        index: usize,
        /// The value.
        value: f64,
        /// f.
        fraction_bits: u32,
        /// 2^(K-1-f).
        limit: f64,
    },
    /// A probabilistic truncation without coins.
    #[error("tape: no entry for truncation {name}; record every truncation of the step")]
    MissingCoins {
        /// Name of the truncation.
        name: String,
    },
    /// Entries that no truncation asked for.
    #[error("tape: {left} entries for truncation {name} were not used; a tape holds one step")]
    ExtraCoins {
        /// Name of the first such truncation.
        name: String,
        /// How many entries it has left.
        left: usize,
    },
    /// An entry of the wrong length.
    #[error("tape: truncation {name} has {found} coins; it must have {expected}")]
    CoinCount {
        /// Name of the truncation.
        name: String,
        /// Coins on the tape.
        found: usize,
        /// Elements truncated, or 0 under nearest rounding.
        expected: usize,
    },
    /// Rounding up something that was already exact.
    #[error(
        "tape: truncation {name}, index {index}: a coin is set, but the operand is an exact multiple and must not move"
    )]
    CoinOnMultiple {
        /// Name of the truncation.
        name: String,
        /// Flat index.
        index: usize,
    },
    /// A wrap where the truncation is exact.
    #[error(
        "tape: truncation {name}, index {index}: a wrap of {wrap}, but the operand {operand} is in range and cannot \
         wrap"
    )]
    WrapInRange {
        /// Name of the truncation.
        name: String,
        /// Flat index.
        index: usize,
        /// e.
        wrap: i8,
        /// The ring value that was truncated.
        operand: i64,
    },
    /// A wrap that no protocol run can produce.
    #[error(
        "tape: truncation {name}, index {index}: wrap {wrap} is no wrap of one of {elements} elements; wraps are -1, \
         in increasing index"
    )]
    BadWrap {
        /// Name of the truncation.
        name: String,
        /// Flat index.
        index: usize,
        /// e.
        wrap: i8,
        /// Elements truncated.
        elements: usize,
    },
}

/// A value as it is written, without the hundreds of digits that a huge one has.
fn short(value: f64) -> String {
    if value.abs() < 1e16 { value.to_string() } else { format!("{value:e}") }
}
