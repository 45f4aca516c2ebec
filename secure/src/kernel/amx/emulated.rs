//! The tile unit in plain Rust, after the manual's pseudocode: lets the tests run layout and schedule on any processor.

use super::{Tile, TileUnit};

pub(in crate::kernel) struct Emulated {
    accumulators: [[[u32; 16]; 16]; 4],
    a: Tile,
    b: [Tile; 2],
}

impl Emulated {
    pub fn new() -> Self {
        // Registers start out as anything but zero.
        Emulated { accumulators: [[[77; 16]; 16]; 4], a: Tile([78; 1024]), b: [Tile([79; 1024]); 2] }
    }
}

impl TileUnit for Emulated {
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8] {
        std::array::from_fn(|limb| values.map(|v| v.to_le_bytes()[limb]))
    }

    fn clear(&mut self) {
        self.accumulators = [[[0; 16]; 16]; 4];
    }

    fn load_a(&mut self, tile: &Tile) {
        self.a = *tile;
    }

    fn load_b(&mut self, slot: usize, tile: &Tile) {
        self.b[slot] = *tile;
    }

    fn dot(&mut self, accumulator: usize, slot: usize) {
        let (a, b) = (self.a.0.as_chunks::<64>().0, self.b[slot].0.as_chunks::<64>().0);
        for (a, sums) in a.iter().zip(&mut self.accumulators[accumulator]) {
            for (k, a) in a.as_chunks::<4>().0.iter().enumerate() {
                for (n, sum) in sums.iter_mut().enumerate() {
                    for t in 0..4 {
                        // No wrap: the headroom of the kernel; the test profile would stop at an overflow.
                        *sum += u32::from(a[t]) * u32::from(b[k][4 * n + t]);
                    }
                }
            }
        }
    }

    fn store(&mut self, accumulator: usize, sums: &mut [[u32; 16]; 16]) {
        *sums = self.accumulators[accumulator];
    }
}
