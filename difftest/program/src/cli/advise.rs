//! `difftest advise`: the range that every tensor uses, and the smallest number format in which the training works.

use super::training::Flags;
use super::{Verdict, print};
use crate::error::Error;
use difftest::advise;
use difftest::config::{self, Config, Length, Mode};
use difftest::output;
use difftest::report;
use std::path::PathBuf;

/// Flags of `difftest advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    training: Flags,
    /// Training steps in each format
    #[arg(long, default_value_t = 200)]
    steps: usize,
    /// Also write the advice as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs `difftest advise`.
///
/// # Errors
/// Bad flags, bad data, a side that cannot go on, a file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    // Flags first: a typing error should not wait for the data.
    args.training.spec(1, None)?;
    Length::Steps(args.steps).steps(1, 1)?;
    output::check_output(args.json.as_deref())?;
    let data = config::data(args.training.data.as_deref())?;
    let spec = args.training.spec(1, Some(&data))?;
    let config =
        Config { mode: Mode::Free, data: args.training.data, ..Config::new(spec, args.steps, args.training.seed) };
    let advice = advise::run(&config, &data)?;
    print(&advise::text(&advice))?;
    if let Some(path) = &args.json {
        output::write(path, report::json::stamped(&advice, Some(&data)).as_bytes())?;
    }
    Ok(Verdict::of(advice.holds()))
}
