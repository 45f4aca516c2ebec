use super::{Share, pick, same_shape};
use crate::buffer::Words;
use crate::error::Result;
use crate::id::PartyId;
use crate::kernel::{Bits, lowest_bits, wide_fn};

/// The left operand of matrix products as a party multiplies it (`protocol/matmul.rs`): one matrix of words and, at parties 1 and 2, one of bits, made
/// from the two components of a share. What is only ever multiplied, as training data are, is kept in this form: half the memory of a share.
#[derive(Debug, Clone)]
pub struct Factor {
    /// Whose it is.
    pub id: PartyId,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    pub(crate) words: Words,
    pub(crate) bits: Option<Words>,
}

impl Factor {
    /// From a replicated share.
    pub fn new(id: PartyId, share: &Share) -> Self {
        let (rows, cols) = share.shape();
        let (far, middle) = share.far_and_middle(id);
        let mut words = Words::unset(far.len());
        left_words(id, far, middle, &mut words);
        let bits = (id != PartyId::P0).then(|| {
            let mut bits = Words::unset(rows * Bits::words_for(cols));
            lowest_bits(middle, cols, &mut bits);
            bits
        });
        Factor { id, rows, cols, words, bits }
    }

    /// No rows yet, with room for `rows`.
    pub fn with_capacity(id: PartyId, rows: usize, cols: usize) -> Self {
        let bits = (id != PartyId::P0).then(|| Words::with_capacity(rows * Bits::words_for(cols)));
        Factor { id, rows: 0, cols, words: Words::with_capacity(rows * cols), bits }
    }

    /// Appends the rows of a share of the same party.
    ///
    /// # Errors
    /// Widths differ.
    pub fn extend(&mut self, share: &Share) -> Result<()> {
        same_shape("extend", (0, self.cols), (0, share.cols))?;
        let more = Factor::new(self.id, share);
        self.words.extend_from_slice(&more.words);
        if let (Some(bits), Some(more)) = (&mut self.bits, &more.bits) {
            bits.extend_from_slice(more);
        }
        self.rows += more.rows;
        Ok(())
    }

    /// The rows with these (public) numbers: a batch.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        let bits = self.bits.as_ref().map(|bits| pick(bits, Bits::words_for(self.cols), rows));
        Factor { rows: rows.len(), words: pick(&self.words, self.cols, rows), bits, ..*self }
    }
}

wide_fn! {
    fn left_words(id: PartyId, far: &[u64], middle: &[u64], out: &mut [u64]) {
        let pairs = out.iter_mut().zip(far.iter().zip(middle));
        match id {
            PartyId::P0 => pairs.for_each(|(out, (&a, &b))| *out = a.wrapping_sub(b)),
            _ => pairs.for_each(|(out, (&a, &b))| *out = a.wrapping_add(b >> 1)),
        }
    }
}
