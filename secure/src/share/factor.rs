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

    /// Makes room for `more` rows, of `all` that are to come in the end: where there is none, for eight times as many
    /// rows as are here with them, so that a factor that grows moves a few times, and never for more than `all`.
    pub fn make_room(&mut self, more: usize, all: usize) {
        let needed = self.rows + more;
        if !self.words.has_room(more * self.cols) {
            let room = needed.saturating_mul(8).min(all).max(needed);
            let mut grown = Words::with_capacity(room * self.cols);
            grown.extend_from_slice(&self.words);
            self.words = grown;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows come one by one; each time memory is made it is for eight times what is here, at the end for no more than
    /// all.
    #[test]
    fn room_follows_the_rows_that_come() {
        const COLS: usize = 3;
        let all = 400_000;
        let mut factor = Factor::with_capacity(PartyId::P1, 0, COLS);
        let (mut moves, mut want) = (Vec::new(), Vec::new());
        for row in 0..all {
            let before = factor.words.as_ptr();
            factor.make_room(1, all);
            if factor.words.as_ptr() != before {
                moves.push(factor.rows);
            }
            let words = |k: u64| (0..COLS as u64).map(|j| 10 * row as u64 + j + k).collect::<Words>();
            factor.extend(&Share::new(1, COLS, words(0), words(7))).unwrap();
            want.extend_from_slice(&Factor::new(PartyId::P1, &Share::new(1, COLS, words(0), words(7))).words);
        }
        assert!(moves.len() <= 8, "{moves:?}");
        assert_eq!((factor.rows, &factor.words[..]), (all, &want[..]));
        assert!(!factor.words.has_room(1), "a data set that is too large for the pool has no room to spare");
    }

    /// Where there is room for what comes, or for none to spare, and rows of another width.
    #[test]
    fn room_is_made_where_there_is_too_little() {
        const COLS: usize = 1 << 19;
        let mut factor = Factor::with_capacity(PartyId::P1, 3, COLS);
        assert!(factor.words.has_room(3 * COLS) && !factor.words.has_room(4 * COLS));
        let before = factor.words.as_ptr();
        factor.make_room(3, 100);
        assert_eq!(factor.words.as_ptr(), before);
        factor.make_room(4, 5);
        assert!(factor.words.has_room(5 * COLS) && !factor.words.has_room(6 * COLS));
        let wide = Share::zeros(1, COLS + 1);
        let error = factor.extend(&wide).unwrap_err().to_string();
        assert_eq!(error, "extend: shapes (0, 524288) and (0, 524289) differ");
        assert_eq!(factor.rows, 0);
    }
}
