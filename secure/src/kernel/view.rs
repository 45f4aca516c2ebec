//! Matrix operands as the engine has them: row-major ring matrices, read transposed or summed while they are packed.

/// A matrix over Z_2^64 that a product reads, without a copy of its own: stored row-major, `rows × cols`, optionally
///
/// * [transposed](Self::t): read as `cols × rows`;
/// * [summed](Self::plus): a second slice of the same shape is added (wrapping) to every element read, so that (A_0 + A_1) B costs no pass of
///   its own over A.
///
/// Elements are ring units. The constructors panic where shapes do not fit: shapes come from the network specification, never from a peer.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(super) data: &'a [u64],
    pub(super) plus: Option<&'a [u64]>,
    rows: usize,
    cols: usize,
    pub(super) transposed: bool,
}

impl<'a> View<'a> {
    /// The matrix `data`, `rows × cols`, row-major.
    pub fn new(data: &'a [u64], rows: usize, cols: usize) -> Self {
        assert_eq!(Some(data.len()), rows.checked_mul(cols), "a {rows} × {cols} view of {} elements", data.len());
        View { data, plus: None, rows, cols, transposed: false }
    }

    /// The same view with `other`, laid out as the first slice, added to every element (wrapping).
    pub fn plus(self, other: &'a [u64]) -> Self {
        assert_eq!(self.data.len(), other.len(), "the two slices of a sum differ in length");
        assert!(self.plus.is_none(), "a view sums at most two slices");
        View { plus: Some(other), ..self }
    }

    /// The transpose.
    pub fn t(self) -> Self {
        View { transposed: !self.transposed, ..self }
    }

    /// (rows, columns) as the product sees them, i.e. after transposition.
    pub fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// Columns `from..to` of stored row `r`, and the slice to be added to them.
    #[inline(always)]
    pub(super) fn stored(&self, r: usize, from: usize, to: usize) -> (&'a [u64], Option<&'a [u64]>) {
        let range = r * self.cols + from..r * self.cols + to;
        (&self.data[range.clone()], self.plus.map(|p| &p[range]))
    }

    /// Whether the elements lie in memory as they are, so that they can be read in place.
    pub(super) fn is_plain(&self) -> bool {
        self.plus.is_none()
    }

    /// Columns of the matrix as it is stored.
    pub(super) fn stored_cols(&self) -> usize {
        self.cols
    }

    /// Element (r, c) as the product sees it; for the tests' oracle.
    #[cfg(test)]
    pub(super) fn at(&self, r: usize, c: usize) -> u64 {
        let (r, c) = if self.transposed { (c, r) } else { (r, c) };
        let (data, plus) = self.stored(r, c, c + 1);
        data[0].wrapping_add(plus.map_or(0, |p| p[0]))
    }
}
