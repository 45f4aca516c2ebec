//! `difftest faults`: plants faults in the secure side and shows what finds them.

use super::Verdict;
#[cfg(feature = "faults")]
use super::print;
use crate::error::Error;
#[cfg(feature = "faults")]
use difftest::faults::{self, Row};
use std::path::PathBuf;

/// Flags of `difftest faults`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Plant only this fault
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Lock-step training steps that ordinary training may take to notice
    #[arg(long, default_value_t = 20, value_name = "N")]
    steps: usize,
    /// Plant nothing: N clean runs with different seeds, heads, depths, widths, class counts, batches, formats, data
    /// and roundings, in which nothing may be found; of a training that the integer model alone takes out of its
    /// number format, `range` has to say so
    #[arg(long, value_name = "N", conflicts_with = "fault")]
    clean: Option<u64>,
    /// Seed of the first clean run
    #[arg(long, value_name = "SEED", requires = "clean", default_value_t = 0)]
    first: u64,
    /// Also write the matrix as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs `difftest faults`.
///
/// # Errors
/// A build without the feature; a name that is no fault; a report that cannot be written.
#[cfg(not(feature = "faults"))]
pub fn run(_: Args) -> Result<Verdict, Error> {
    Err(crate::error::FlagError::NoFaults(" -- faults").into())
}

/// Runs `difftest faults`.
///
/// # Errors
/// A name that is no fault; a report that cannot be written.
#[cfg(feature = "faults")]
pub fn run(args: Args) -> Result<Verdict, Error> {
    use difftest::error::ConfigError;
    use difftest::faults::catalogue::AnyFault;
    use difftest::{output, report};

    if args.steps == 0 {
        return Err(ConfigError::Nothing { flag: "--steps", of: "a training" }.into());
    }
    // A planted fault may make a party panic; the matrix says so, once.
    std::panic::set_hook(Box::new(|_| ()));
    if let Some(runs) = args.clean {
        return clean(args.first, runs);
    }
    let chosen = match &args.fault {
        None => AnyFault::all(),
        Some(name) => vec![faults::named(name)?],
    };
    print(&format!(
        "{:<26} {:<19} {:<19} {:<14} {:<14} {:<15} {}\n",
        "fault", "planted at", "named", "cause", "named", "found by", "training alone"
    ))?;
    // A reader that has gone away ends the output, not the run.
    let shown = |row: &Row| drop(print(&line(row, args.fault.is_some())));
    let matrix = faults::matrix(&chosen, args.steps, shown)?;
    let n = matrix.faults.len();
    print(&format!(
        "{} of {n} found; {} of {n} with the right place and cause; {} of {n} by lock-step training alone within {} \
         steps\n",
        matrix.detected,
        matrix.explained,
        matrix.faults.iter().filter(|r| r.training.is_some()).count(),
        args.steps
    ))?;
    if let Some(path) = &args.json {
        output::write(path, report::json::stamped(&matrix, None).as_bytes())?;
    }
    Ok(Verdict::of(matrix.detected == n))
}

/// Clean runs: whatever is found in them is a false alarm, unless the run leaves its number format; `range` has to find
/// that.
#[cfg(feature = "faults")]
fn clean(first: u64, runs: u64) -> Result<Verdict, Error> {
    use difftest::faults::clean::{Forecast, Tally};
    let (start, mut tally) = (std::time::Instant::now(), Tally::default());
    for seed in first..first.saturating_add(runs) {
        let clean = faults::clean(seed)?;
        tally.count(&clean);
        let said = match (&clean.wrong, &clean.range) {
            (Some(f), _) if clean.forecast == Forecast::Outside && f.check == "range" => ("MISS", f),
            (Some(f), _) => ("FALSE ALARM", f),
            (None, Some(range)) => ("out of range", range),
            (None, None) => continue,
        };
        print(&format!("{}  seed {seed}: {} at {}: {}\n", said.0, said.1.check, said.1.place, said.1.detail))?;
    }
    print(&format!("{tally}, {:.0} s\n", start.elapsed().as_secs_f64()))?;
    Ok(Verdict::of(tally.wrong == 0))
}

/// A row of the matrix, with description and finding if they are asked for.
#[cfg(feature = "faults")]
fn line(row: &Row, explain: bool) -> String {
    let named = row.finding.as_ref();
    let training = row.training.as_ref().map_or("-".to_owned(), |t| {
        t.step.map_or_else(|| t.check.to_owned(), |step| format!("{}, step {step}", t.check))
    });
    let line = format!(
        "{:<26} {:<19} {:<19} {:<14} {:<14} {:<15} {training}\n",
        row.fault,
        row.planted_at,
        named.map_or("-", |f| f.place),
        row.planted_cause,
        named.map_or("-", |f| f.cause),
        named.map_or("NOT FOUND", |f| f.check),
    );
    match named.filter(|_| explain) {
        Some(f) => format!("{line}  {}\n  {}\n", row.description, f.detail),
        None => line,
    }
}
