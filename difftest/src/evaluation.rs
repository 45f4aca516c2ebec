//! Accuracy on the test set.

use crate::chance::Chance;
use crate::error::Error;
use crate::generate;
use crate::side::{Batch, Side};
use fixtures::Dataset;
use reference::spec::{FixedSpec, TrainSpec};

/// The test set, taken in pieces that keep memory small.
pub struct Evaluation<'a> {
    data: &'a Dataset,
    fixed: FixedSpec,
}

impl<'a> Evaluation<'a> {
    /// Rows at a time, where classes are so few that all pairs of them can be compared in so many rows at once.
    const ROWS: usize = 1000;

    fn rows(&self) -> usize {
        let pairs = (self.data.classes() as u64).pow(2);
        Self::ROWS.min((TrainSpec::MOST_PAIRS / pairs) as usize).max(1)
    }

    /// The test set of `data`.
    pub fn of(data: &'a Dataset, fixed: FixedSpec) -> Self {
        Evaluation { data, fixed }
    }

    fn pieces(&self) -> impl Iterator<Item = Batch> {
        let rows: Vec<u32> = (0..self.data.test.len() as u32).collect();
        let pieces: Vec<Vec<u32>> = rows.chunks(self.rows()).map(<[u32]>::to_vec).collect();
        pieces.into_iter().map(|rows| generate::rows(&self.data.test, &rows, self.fixed))
    }

    /// What a side that has learnt nothing gets right.
    pub fn chance(&self) -> Chance {
        Chance::of(self.data.test.labels.iter().map(|&l| l.into()))
    }

    /// The part of it that a side classifies correctly.
    ///
    /// # Errors
    /// The side's own.
    pub fn accuracy<S: Side>(&self, side: &mut S) -> Result<f64, Error> {
        let mut correct = 0;
        for batch in self.pieces() {
            correct += side.correct(&batch)?;
        }
        Ok(correct as f64 / self.data.test.len() as f64)
    }

    /// The first piece.
    pub fn sample(&self) -> Option<Batch> {
        self.pieces().next()
    }
}
