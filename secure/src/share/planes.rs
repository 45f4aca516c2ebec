use crate::buffer::Words;
use crate::kernel::to_planes;
use std::ops::Range;

/// Bits of numbers that one party knows, as planes: plane k holds bit k of every number, 64 numbers a word. The numbers
/// are `blocks` vectors of `len`, and every vector begins on a word of its own in each plane, as in a
/// [`BitShare`](super::BitShare).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Planes {
    blocks: usize,
    len: usize,
    width: u32,
    words: Words,
}

impl Planes {
    /// The bits `bits` of `blocks` vectors of `len` values. Plane 0 is the lowest of them.
    pub fn of(values: &[u64], blocks: usize, len: usize, bits: Range<u32>) -> Self {
        debug_assert_eq!(values.len(), blocks * len);
        let (w, width) = (len.div_ceil(64), bits.end - bits.start);
        let mut words = Words::unset(width as usize * blocks * w);
        if blocks == 1 || len.is_multiple_of(64) {
            to_planes(values, bits.start, width, &mut words);
        } else {
            let mut padded = Words::zeros(blocks * w * 64);
            for (from, to) in values.chunks_exact(len).zip(padded.chunks_exact_mut(w * 64)) {
                to[..len].copy_from_slice(from);
            }
            to_planes(&padded, bits.start, width, &mut words);
        }
        Planes { blocks, len, width, words }
    }

    /// The number of vectors and the length of each.
    pub fn shape(&self) -> (usize, usize) {
        (self.blocks, self.len)
    }

    /// The number of planes.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The words of one plane.
    pub fn words(&self) -> usize {
        self.blocks * self.len.div_ceil(64)
    }

    /// The words of the planes `planes`, the lowest plane first.
    pub fn range(&self, planes: Range<u32>) -> &[u64] {
        let w = self.words();
        &self.words[planes.start as usize * w..planes.end as usize * w]
    }

    /// The words of plane k.
    pub fn plane(&self, k: u32) -> &[u64] {
        self.range(k..k + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_begins_on_a_word_and_every_plane_holds_one_bit() {
        for len in [1, 64, 65, 130] {
            let values: Vec<u64> = (0..3 * len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let planes = Planes::of(&values, 3, len, 5..12);
            assert_eq!((planes.shape(), planes.width(), planes.words()), ((3, len), 7, 3 * len.div_ceil(64)));
            for (i, value) in values.iter().enumerate() {
                let (block, at) = (i / len, i % len);
                for k in 0..7 {
                    let word = planes.plane(k)[block * len.div_ceil(64) + at / 64];
                    assert_eq!(word >> (at % 64) & 1, value >> (5 + k) & 1, "value {i} of vectors of {len}, plane {k}");
                }
            }
            assert_eq!(planes.range(2..4), [planes.plane(2), planes.plane(3)].concat());
        }
    }
}
