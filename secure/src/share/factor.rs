use super::{Share, pick};
use crate::party::PartyId;
use crate::words::Words;

/// A shared matrix that is only ever multiplied, as training data are. Party 0 multiplies the sum of its two components and keeps
/// nothing else: a sixth less memory over the three parties, and no addition in every product.
#[derive(Debug, Clone)]
pub struct Factor {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    pub(crate) own: Words,
    pub(crate) next: Option<Words>,
}

impl Factor {
    /// From a replicated share.
    pub fn new(id: PartyId, share: Share) -> Self {
        let Share { rows, cols, mut own, next } = share;
        if id == PartyId::P0 {
            own.iter_mut().zip(&next).for_each(|(a, b)| *a = a.wrapping_add(*b));
            return Factor { rows, cols, own, next: None };
        }
        Factor { rows, cols, own, next: Some(next) }
    }

    /// The rows with these (public) numbers: a batch.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        let pick = |component: &[u64]| pick(component, self.cols, rows);
        Factor { rows: rows.len(), cols: self.cols, own: pick(&self.own), next: self.next.as_deref().map(pick) }
    }
}
