//! Matrix operands as the engine has them: row-major ring matrices, read transposed while they are packed.

/// A matrix over Z_2^64 that a product reads, without a copy of its own: stored row-major, `rows × cols`, and perhaps
/// [transposed](Self::t), i.e. read as `cols × rows`.
///
/// Elements are ring units. The constructors panic where shapes do not fit: shapes come from the network specification,
/// never from a peer.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(super) data: &'a [u64],
    rows: usize,
    cols: usize,
    pub(super) transposed: bool,
}

impl<'a> View<'a> {
    /// The matrix `data`, `rows × cols`, row-major.
    pub fn new(data: &'a [u64], rows: usize, cols: usize) -> Self {
        assert_eq!(Some(data.len()), rows.checked_mul(cols), "a {rows} × {cols} view of {} elements", data.len());
        View { data, rows, cols, transposed: false }
    }

    /// The transposed matrix, a view of the same words.
    pub fn t(self) -> Self {
        View { transposed: !self.transposed, ..self }
    }

    /// (rows, columns) as the product sees them, i.e. after transposition.
    pub fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// Columns `from..to` of stored row `r`.
    #[inline(always)]
    pub(super) fn stored(&self, r: usize, from: usize, to: usize) -> &'a [u64] {
        &self.data[r * self.cols + from..r * self.cols + to]
    }

    /// Columns of the matrix as it is stored.
    pub(super) fn stored_cols(&self) -> usize {
        self.cols
    }

    /// Element (r, c) as the product sees it; for the tests' oracle.
    #[cfg(test)]
    pub(super) fn at(&self, r: usize, c: usize) -> u64 {
        let (r, c) = if self.transposed { (c, r) } else { (r, c) };
        self.data[r * self.cols + c]
    }
}
