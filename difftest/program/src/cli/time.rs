//! `difftest time`: secure epochs against epochs in real numbers.

use super::training::Flags;
use super::{Verdict, print};
use crate::error::{Error, FlagError};
use difftest::config;
use difftest::output;
use difftest::report;
use difftest::timing::{CLEAN_EPOCHS, Link, Timing, file_name, run as measure, text};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Dense layers of the network that is timed if none are named.
const LAYERS: usize = 2;

/// Flags of `difftest time`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Epochs of both sides run in turn in this process, without checks. With two or more, the first warms \
        up and is not counted.\n\
A run is called clean if five or more epochs count and other work on the machine took no more than a tenth of a core; \
else quote processor time only.\n\
`taskset -c 0 difftest time` measures one core. SECURE_KERNEL chooses the matrix kernel.\n\
The projections add latency and bandwidth to the measured computation; nothing is sent over such a network. The \
estimate counts a latency for each message of the longest chain, the bound one for each round."
)]
pub struct Args {
    #[command(flatten)]
    training: Flags,
    /// Epochs of each side
    #[arg(long, default_value_t = CLEAN_EPOCHS + 1)]
    epochs: usize,
    /// Steps of an epoch, instead of all
    #[arg(long)]
    steps: Option<usize>,
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
    /// Also write them to a file in this folder, named after date, machine and training
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

fn link(name: &'static str, latency_ms: f64, megabits_per_second: f64) -> Result<(&'static str, Link), Error> {
    if !(latency_ms >= 0.0 && latency_ms.is_finite() && megabits_per_second > 0.0 && megabits_per_second.is_finite()) {
        return Err(FlagError::Link { name, latency_ms, megabits_per_second }.into());
    }
    Ok((name, Link { latency_ms, megabits_per_second }))
}

/// Runs the measurement.
///
/// # Errors
/// Bad flags, bad data, a side that cannot go on, a report that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let &Args { epochs, steps, .. } = &args;
    for (flag, value) in [("--epochs", Some(epochs)), ("--steps", steps)] {
        if let Some(v) = value.filter(|v| !(1..=1_000_000).contains(v)) {
            return Err(FlagError::Range { flag, value: v.to_string(), range: "1 to 1000000".into() }.into());
        }
    }
    let links =
        vec![link("LAN", args.lan_latency, args.lan_bandwidth)?, link("WAN", args.wan_latency, args.wan_bandwidth)?];
    args.training.spec(LAYERS, None)?;
    output::check_output(args.json.as_deref())?;
    output::check_output(args.save.as_ref().map(|folder| folder.join("measurement.json")).as_deref())?;
    let data = config::data(args.training.data.as_deref())?;
    let spec = args.training.spec(LAYERS, Some(&data))?;
    let timing = Timing { spec, epochs, steps, seed: args.training.seed, links };
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
    let json = report::json::stamped(&measured, Some(&data));
    let saved = args.save.map(|folder| folder.join(file_name(&measured)));
    for path in args.json.iter().chain(&saved) {
        output::write(path, json.as_bytes())?;
    }
    Ok(Verdict::Holds)
}
