//! The data that all cells train and are tested on.

use crate::chance::Chance;
use crate::generate;
use crate::side::Batch;
use fixtures::{Dataset, Split};
use ndarray::Array2;
use reference::spec::FixedSpec;
use sha2::{Digest, Sha256};

/// A data set, loaded once, with its test rows as one batch.
#[derive(Debug)]
pub struct Data {
    all: Dataset,
    test: Batch,
    classes: usize,
    digest: String,
}

impl Data {
    /// The first `rows` rows of both splits, or all of them.
    pub fn new(mut data: Dataset, rows: Option<usize>) -> Self {
        let (inputs, classes) = (data.train.inputs(), data.classes());
        let mut digest = Sha256::new();
        for split in [&mut data.train, &mut data.test] {
            let rows = rows.map_or(split.len(), |n| n.min(split.len()));
            split.images.truncate(rows * inputs);
            split.labels.truncate(rows);
            digest.update(&split.images);
            digest.update(&split.labels);
        }
        let test: Vec<u32> = (0..data.test.len() as u32).collect();
        Data {
            test: generate::rows(&data.test, &test, FixedSpec::default()),
            all: data,
            classes,
            digest: digest.finalize().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }

    /// Both splits, training and test set.
    pub fn all(&self) -> &Dataset {
        &self.all
    }

    /// The training rows.
    pub fn train(&self) -> &Split {
        &self.all.train
    }

    /// Width of the data.
    pub fn inputs(&self) -> usize {
        self.train().inputs()
    }

    /// Training rows and test rows.
    pub fn rows(&self) -> (usize, usize) {
        (self.train().len(), self.test.labels.len())
    }

    /// The test rows.
    pub fn test(&self) -> &Batch {
        &self.test
    }

    /// Pixels of the test rows, (rows, inputs), real.
    pub fn test_pixels(&self) -> &Array2<f64> {
        &self.test.reals
    }

    /// Classes that a network needs, by the labels of all rows of both splits.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The share of the test rows that a side gets right which has learnt nothing.
    pub fn chance(&self) -> Chance {
        Chance::of(self.test.labels.iter().copied())
    }

    /// SHA-256 of all pixels and labels.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}
