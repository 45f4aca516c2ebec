//! `difftest time`: secure against plaintext epochs.

use super::{Verdict, parse_head, parse_rounding, print};
use difftest::config::{self, Training};
use difftest::error::Error;
use difftest::output;
use difftest::timing::{Link, Timing, run as measure, text};
use indicatif::{ProgressBar, ProgressStyle};
use reference::spec::{Head, Rounding, SgdSpec};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Flags of `difftest time`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Epochs of both sides run in turn in this process, without checks. With two or more, the first warms up and is not counted.\n\
The projections add latency and bandwidth to the measured computation; nothing is sent over such a network."
)]
pub struct Args {
    /// softmax, relu-prob, relu-prob-cut, relu-grad or relu-eps
    #[arg(long, value_parser = parse_head, default_value = "softmax")]
    head: Head,
    /// Dense layers
    #[arg(long, default_value_t = 2)]
    layers: usize,
    /// ReLU units of each hidden layer
    #[arg(long, default_value_t = 128)]
    hidden: usize,
    /// prob or nearest
    #[arg(long, value_parser = parse_rounding, default_value = "prob")]
    rounding: Rounding,
    /// Epochs of each side
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Steps of an epoch, instead of all
    #[arg(long)]
    steps: Option<usize>,
    /// Rows of one training step
    #[arg(long, default_value_t = 128)]
    batch: usize,
    /// Seed of batches and initial weights
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Data set: a folder with the four IDX files of MNIST or their like [default: MNIST as shipped]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One-way latency of the projected local network, in milliseconds
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    lan_latency: f64,
    /// Bandwidth of the projected local network, in Mbit/s
    #[arg(long, default_value_t = 10_000.0, allow_negative_numbers = true)]
    lan_bandwidth: f64,
    /// One-way latency of the projected wide network, in milliseconds
    #[arg(long, default_value_t = 20.0, allow_negative_numbers = true)]
    wan_latency: f64,
    /// Bandwidth of the projected wide network, in Mbit/s
    #[arg(long, default_value_t = 1000.0, allow_negative_numbers = true)]
    wan_bandwidth: f64,
    /// Also write the measurements as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn link(name: &'static str, latency_ms: f64, megabits_per_second: f64) -> Result<(&'static str, Link), Error> {
    if !(latency_ms >= 0.0 && latency_ms.is_finite() && megabits_per_second > 0.0 && megabits_per_second.is_finite()) {
        return Err(Error::Usage(format!(
            "the {name} link has latency {latency_ms} ms and {megabits_per_second} Mbit/s; latency must be 0 or more, bandwidth above 0"
        )));
    }
    Ok((name, Link { latency_ms, megabits_per_second }))
}

/// Runs the measurement.
///
/// # Errors
/// Bad flags, bad data, a side that cannot go on, a report that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let &Args { head, layers, hidden, rounding, epochs, steps, seed, .. } = &args;
    for (name, value) in [("--epochs", Some(epochs)), ("--steps", steps)] {
        if let Some(v) = value.filter(|v| !(1..=1_000_000).contains(v)) {
            return Err(Error::Usage(format!("{name} is {v}; it must be 1 to 1000000")));
        }
    }
    let links =
        vec![link("LAN", args.lan_latency, args.lan_bandwidth)?, link("WAN", args.wan_latency, args.wan_bandwidth)?];
    let sgd = SgdSpec { batch: args.batch, ..SgdSpec::default() };
    let training = Training { head, layers, hidden, rounding, epsilon: 0.1, sgd };
    training.spec(784)?;
    output::check_output(args.json.as_deref())?;
    let data = config::data(args.data.as_deref())?;
    let timing = Timing { spec: training.spec(data.train.inputs())?, epochs, steps, seed, links };
    let bar = if std::io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{bar:40} epoch {pos}/{len}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(epochs as u64).with_style(style)
    } else {
        ProgressBar::hidden()
    };
    let measured = measure(&timing, &data, |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    print(&text(&measured))?;
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&measured).map_err(|e| Error::Usage(format!("report: {e}")))?;
        output::write(path, json.as_bytes())?;
    }
    Ok(Verdict::Holds)
}
