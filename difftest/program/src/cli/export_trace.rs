//! `difftest export-trace`: steps of the secure engine as a trace.

use super::Verdict;
use super::training::Flags;
use crate::error::Error;
use difftest::config;
use difftest::error::ConfigError;
use difftest::output;
use difftest::run::record;
use difftest::trace::TraceFile;
use std::path::PathBuf;

/// Flags of `difftest export-trace`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write: .npz or .safetensors
    #[arg(required_unless_present = "matrix")]
    out: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Training steps
    #[arg(long, default_value_t = 2)]
    steps: usize,
    /// Instead of training: one step on logits and hidden units at, above and below every threshold, with ties and
    /// rows without a positive logit
    #[arg(long)]
    corners: bool,
    /// Fix the parties' randomness, INSECURE: to write the same trace again
    #[arg(long, value_name = "N")]
    insecure_seed: Option<u64>,
    /// Plant this fault first (only in a build with the feature `faults`)
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Write no trace: plant every fault, judge each from its traces alone, and print the table of
    /// docs/check-faults.md (same feature)
    #[arg(long, conflicts_with_all = ["fault", "corners"])]
    matrix: bool,
}

/// Runs `difftest export-trace`.
///
/// # Errors
/// A run that cannot be, a fault that cannot be planted, a file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    if args.matrix {
        return matrix();
    }
    let Some(out) = &args.out else { return Ok(Verdict::Holds) };
    output::check_output(Some(out))?;
    TraceFile::check_name(out)?;
    let _planted = args.fault.as_deref().map(plant).transpose()?;
    trace(&args)?.write(out)?;
    Ok(Verdict::Holds)
}

fn trace(args: &Args) -> Result<TraceFile, Error> {
    let untrained = args.flags.spec(1, None)?;
    if args.corners {
        return Ok(record::corners(untrained.head, untrained.rounding)?);
    }
    if args.steps == 0 {
        return Err(ConfigError::Nothing { flag: "--steps", of: "a trace" }.into());
    }
    let data = config::data(args.flags.data.as_deref())?;
    let spec = args.flags.spec(1, Some(&data))?;
    Ok(record::training(&spec, &data.train, args.steps, args.flags.seed, args.insecure_seed)?)
}

#[cfg(not(feature = "faults"))]
fn plant(_: &str) -> Result<(), Error> {
    Err(crate::error::FlagError::NoFaults("").into())
}

#[cfg(feature = "faults")]
fn plant(name: &str) -> Result<difftest::faults::Planted, Error> {
    Ok(difftest::faults::Planted::named(name)?)
}

#[cfg(not(feature = "faults"))]
fn matrix() -> Result<Verdict, Error> {
    plant("").map(|()| Verdict::Holds)
}

#[cfg(feature = "faults")]
fn matrix() -> Result<Verdict, Error> {
    // A planted fault may make a party panic; the table says so.
    std::panic::set_hook(Box::new(|_| ()));
    let rows = difftest::faults::from_file::matrix()?;
    super::print(&difftest::faults::from_file::table(&rows))?;
    Ok(Verdict::of(rows.iter().all(|r| r.holds())))
}
