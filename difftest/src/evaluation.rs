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

    /// The share of the test set that a side gets right which has learnt nothing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small;
    use crate::side::real::Real;
    use crate::side::{Batch, Step};
    use fixtures::Split;
    use reference::fixed::{Parameters, Tape};
    use reference::spec::{Head, Rounding};

    /// 2,345 rows, which are no whole number of pieces, of 4 x 4 pixels in ten classes.
    fn data() -> Dataset {
        let rows = 2345;
        let split = Split {
            images: (0..rows * 16).map(|k: usize| (k * 97 % 251) as u8).collect(),
            labels: (0..rows).map(|k| (k * 7 % 10) as u8).collect(),
            height: 4,
            width: 4,
        };
        Dataset { train: split.clone(), test: split }
    }

    /// A side that is right wherever the first pixel is below 100.
    struct Known;

    impl Side for Known {
        type Value = f64;
        fn name(&self) -> &'static str {
            "known"
        }
        fn load(&mut self, _: &Parameters) -> Result<(), Error> {
            Ok(())
        }
        fn step(&mut self, _: &Batch, _: Tape) -> Result<Step<f64>, Error> {
            unreachable!("it is not trained")
        }
        fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
            Ok(batch.reals.rows().into_iter().filter(|row| row[0] < 100.0 / 256.0).count())
        }
    }

    #[test]
    fn every_row_counts_once_whatever_the_pieces() {
        let data = data();
        let expected = (0..data.test.len()).filter(|&i| data.test.image(i)[0] < 100).count();
        let accuracy = Evaluation::of(&data, FixedSpec::default()).accuracy(&mut Known).unwrap();
        assert_eq!(accuracy, expected as f64 / 2345.0);
    }

    /// The network in real numbers, written again: from the bytes of the data set to the class, row by row.
    #[test]
    fn the_accuracy_of_a_network_is_that_of_its_formula_on_the_bytes() {
        let (data, config) = (data(), small(Head::Softmax, Rounding::Nearest));
        let start = generate::initial(&config.spec, 5).unwrap();
        let layers = start.decode(config.spec.fixed, &config.spec.sgd);
        let predicted = |i: usize| {
            let mut x: Vec<f64> = data.test.image(i).iter().map(|&p| f64::from(p) / 256.0).collect();
            for (l, layer) in layers.iter().enumerate() {
                let z = |o: usize| {
                    layer.bias[o] + x.iter().enumerate().map(|(k, v)| v * layer.weights[[k, o]]).sum::<f64>()
                };
                let last = l + 1 == layers.len();
                x = (0..layer.bias.len()).map(z).map(|v| if last { v } else { v.max(0.0) }).collect();
            }
            // Ties go to the lowest class.
            (0..x.len()).rev().max_by(|&a, &b| x[a].total_cmp(&x[b])).unwrap()
        };
        let right = (0..data.test.len()).filter(|&i| predicted(i) == usize::from(data.test.labels[i])).count();
        let mut real = Real::new(config.spec.clone(), &start).unwrap();
        let accuracy = Evaluation::of(&data, config.spec.fixed).accuracy(&mut real).unwrap();
        assert_eq!((accuracy * 2345.0).round() as usize, right);
    }
}
