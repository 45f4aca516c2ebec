//! The flags that say what is trained and on what, shared by the commands that train one network.

use super::{parse_head, parse_rounding};
use difftest::config::Training;
use difftest::error::Error;
use fixtures::Dataset;
use reference::spec::{FixedSpec, Head, Rounding, SgdSpec, TrainSpec};
use std::path::PathBuf;

/// Flags of a training: the network, its head and rounding, the optimiser, and the data.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// Output head: softmax, relu-prob, relu-prob-cut, relu-grad or relu-eps
    #[arg(long, value_parser = parse_head, default_value = "softmax")]
    head: Head,
    /// Dense layers [default: 1, for `difftest time` 2]
    #[arg(long)]
    layers: Option<usize>,
    /// ReLU units of each hidden layer
    #[arg(long, default_value_t = 128)]
    hidden: usize,
    /// Rounding of every truncation: prob (unbiased, random) or nearest
    #[arg(long, value_parser = parse_rounding, default_value = "prob")]
    rounding: Rounding,
    /// Threshold of relu-prob and relu-prob-cut, between 0 and 1
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    epsilon: f64,
    /// Rows of one training step
    #[arg(long, default_value_t = 128)]
    pub batch: usize,
    /// Learning rate
    #[arg(long, default_value_t = 0.01, allow_negative_numbers = true)]
    lr: f64,
    /// Momentum, from 0 to below 1
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    momentum: f64,
    /// Extra fractional bits of the velocities; 0 is the paper's behaviour, in which nearest rounding keeps small
    /// velocities from decaying
    #[arg(long, default_value_t = 0)]
    velocity_bits: u32,
    /// Fraction bits f, 4 to 17: a unit is 2^-f
    #[arg(long, default_value_t = 16)]
    fraction_bits: u32,
    /// Value bits K, f + 5 to 32: values stay below 2^(K-1) units
    #[arg(long, default_value_t = 32)]
    value_bits: u32,
    /// Seed of batches and initial weights, and of the integer model's coins where it draws its own
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Data set: a folder with the four IDX files of MNIST or their like, raw or gzip [default: MNIST as shipped]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl Flags {
    /// The specification that the flags ask for, with so many `layers` if none are named: for the data set, or until it
    /// is known for the one that ships with the program, or for any that was named.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn spec(&self, layers: usize, data: Option<&Dataset>) -> Result<TrainSpec, Error> {
        let &Flags { head, hidden, rounding, epsilon, fraction_bits, value_bits, .. } = self;
        let sgd = SgdSpec {
            learning_rate: self.lr,
            momentum: self.momentum,
            batch: self.batch,
            extra_velocity_bits: self.velocity_bits,
        };
        let layers = self.layers.unwrap_or(layers);
        let training = Training { head, layers, hidden, rounding, epsilon, sgd };
        let fixed = FixedSpec { fraction_bits, value_bits };
        match data {
            Some(data) => training.spec_for(data, fixed),
            None if self.data.is_none() => training.spec_for_shipped(fixed),
            None => training.spec_for_any(fixed),
        }
    }
}
