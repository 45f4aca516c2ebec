use crate::buffer::Words;
use crate::error::{Error, Result};
use crate::id::PartyId;

/// One party's replicated exclusive-or share of `blocks` vectors of `len` bits, 64 a word. Every block starts on a word
/// of its own; the bits beyond `len` in a block's last word mean nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitShare {
    /// The number of vectors.
    pub blocks: usize,
    /// The number of bits in each vector.
    pub len: usize,
    /// Component i at party i.
    pub own: Words,
    /// Component i + 1 at party i.
    pub next: Words,
}

impl BitShare {
    /// The number of words of one block.
    pub fn words(&self) -> usize {
        self.len.div_ceil(64)
    }

    /// The exclusive or with another share of the same shape, in place.
    ///
    /// # Errors
    /// Shapes differ.
    pub fn xor_assign(&mut self, other: &BitShare) -> Result<()> {
        if (self.blocks, self.len) != (other.blocks, other.len) {
            return Err(Error::misuse("exclusive or of bit vectors of different shapes"));
        }
        self.own.iter_mut().zip(&other.own).for_each(|(a, b)| *a ^= b);
        self.next.iter_mut().zip(&other.next).for_each(|(a, b)| *a ^= b);
        Ok(())
    }

    /// The complement: component 0 is flipped.
    #[must_use]
    pub fn not(mut self, id: PartyId) -> Self {
        match id {
            PartyId::P0 => self.own.iter_mut().for_each(|w| *w = !*w),
            PartyId::P1 => {}
            PartyId::P2 => self.next.iter_mut().for_each(|w| *w = !*w),
        }
        self
    }

    /// The blocks with these numbers, in this order.
    #[must_use]
    pub fn gather(&self, blocks: impl IntoIterator<Item = usize>) -> BitShare {
        let w = self.words();
        debug_assert_eq!((self.own.len(), self.next.len()), (self.blocks * w, self.blocks * w));
        let blocks = blocks.into_iter();
        let room = || Words::with_capacity(blocks.size_hint().0 * w);
        let mut out = BitShare { blocks: 0, len: self.len, own: room(), next: room() };
        for b in blocks {
            out.own.extend_from_slice(&self.own[b * w..(b + 1) * w]);
            out.next.extend_from_slice(&self.next[b * w..(b + 1) * w]);
            out.blocks += 1;
        }
        out
    }

    /// The blocks of `self`, then those of `other`.
    #[must_use]
    pub fn append(mut self, other: &BitShare) -> BitShare {
        debug_assert_eq!(self.len, other.len);
        self.own.extend_from_slice(&other.own);
        self.next.extend_from_slice(&other.next);
        self.blocks += other.blocks;
        self
    }
}
