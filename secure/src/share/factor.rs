use super::{Share, pick, same_shape};
use crate::buffer::Words;
use crate::error::Result;
use crate::id::PartyId;
use crate::kernel::wide_fn;

/// The left operand of matrix products as a party multiplies it (`protocol/matmul.rs`): one matrix of words, made from
/// the two components of a share. Training data, which are only ever multiplied, are kept in this form: half the memory
/// of a share.
#[derive(Debug, Clone)]
pub struct Factor {
    /// The party that holds the factor.
    pub id: PartyId,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    pub(crate) words: Words,
}

impl Factor {
    /// Makes the factor of a replicated share.
    pub fn new(id: PartyId, share: &Share) -> Self {
        let (rows, cols) = share.shape();
        let (far, middle) = share.far_and_middle(id);
        let mut words = Words::unset(far.len());
        left_words(id, far, middle, &mut words);
        Factor { id, rows, cols, words }
    }

    /// An empty factor with room for `rows` rows.
    pub fn with_capacity(id: PartyId, rows: usize, cols: usize) -> Self {
        Factor { id, rows: 0, cols, words: Words::with_capacity(rows * cols) }
    }

    /// Appends the rows of a share of the same party.
    ///
    /// # Errors
    /// Widths differ.
    pub fn extend(&mut self, share: &Share) -> Result<()> {
        same_shape("extend", (0, self.cols), (0, share.cols))?;
        self.words.extend_from_slice(&Factor::new(self.id, share).words);
        self.rows += share.rows;
        Ok(())
    }

    /// The rows with these (public) numbers: a batch.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        Factor { rows: rows.len(), words: pick(&self.words, self.cols, rows), ..*self }
    }
}

wide_fn! {
    fn left_words(id: PartyId, far: &[u64], middle: &[u64], out: &mut [u64]) {
        let pairs = out.iter_mut().zip(far.iter().zip(middle));
        match id {
            PartyId::P0 => pairs.for_each(|(out, (&a, &b))| *out = a.wrapping_sub(b)),
            _ => pairs.for_each(|(out, (&a, &b))| *out = (a << 1).wrapping_add(b)),
        }
    }
}
