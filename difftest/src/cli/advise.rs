//! `difftest advise`: the range that every tensor uses, and the smallest number format in which the training works.

use super::{Verdict, parse_head, parse_rounding, print};
use crate::advise;
use crate::config::{self, Config, Length, Mode, Training};
use crate::error::Error;
use crate::report;
use reference::spec::{Head, Rounding, SgdSpec};
use std::path::PathBuf;

/// Flags of `difftest advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output head: softmax, relu-prob, relu-prob-cut, relu-grad or relu-eps
    #[arg(long, value_parser = parse_head, default_value = "softmax")]
    head: Head,
    /// Dense layers
    #[arg(long, default_value_t = 1)]
    layers: usize,
    /// ReLU units of each hidden layer
    #[arg(long, default_value_t = 128)]
    hidden: usize,
    /// Rounding of every truncation: prob (unbiased, random) or nearest
    #[arg(long, value_parser = parse_rounding, default_value = "prob")]
    rounding: Rounding,
    /// Threshold of relu-prob and relu-prob-cut, between 0 and 1
    #[arg(long, default_value_t = 0.1)]
    epsilon: f64,
    /// Rows of one training step
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Training steps in each format
    #[arg(long, default_value_t = 200)]
    steps: usize,
    /// Learning rate
    #[arg(long, default_value_t = 0.01)]
    lr: f64,
    /// Momentum, from 0 to below 1
    #[arg(long, default_value_t = 0.9)]
    momentum: f64,
    /// Extra fractional bits of the velocities
    #[arg(long, default_value_t = 0)]
    velocity_bits: u32,
    /// Seed of batches, initial weights and the integer model's coins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Data set: a folder with the four IDX files of MNIST or their like, raw or gzip [default: MNIST as shipped]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also write the advice as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs `difftest advise`.
///
/// # Errors
/// Bad flags, bad data, a side that cannot go on, a file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let sgd = SgdSpec {
        learning_rate: args.lr,
        momentum: args.momentum,
        batch: args.batch,
        extra_velocity_bits: args.velocity_bits,
    };
    let Args { head, layers, hidden, rounding, epsilon, .. } = args;
    let training = Training { head, layers, hidden, rounding, epsilon, sgd };
    // Flags first: a typing error should not wait for the data.
    training.spec(784)?;
    Length::Steps(args.steps).steps(1, 1)?;
    let data = config::data(args.data.as_deref())?;
    let config = Config {
        spec: training.spec(data.train.inputs())?,
        mode: Mode::Free,
        steps: args.steps,
        seed: args.seed,
        insecure_seed: None,
        data: args.data,
        only_step: None,
        only_probe: None,
        loaded: None,
    };
    let advice = advise::run(&config, &data)?;
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&advice).expect("strings, numbers and lists always have a JSON form");
        report::write(path, json.as_bytes())?;
    }
    print(&advise::text(&advice))?;
    Ok(Verdict::of(advice.holds()))
}
