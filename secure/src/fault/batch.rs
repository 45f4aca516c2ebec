//! Wrong choices of the rows of a batch.

/// The rows whose images a step sees when the last batch of a run finds those of the batch before in its buffer.
pub fn stale<'a>(batches: &'a [Vec<u32>], rows: &'a Vec<u32>) -> &'a [u32] {
    match batches {
        [.., before, last] if std::ptr::eq(last, rows) => before,
        _ => rows,
    }
}
