//! `difftest replay`: one recorded training step again, on all sides.

use super::{Verdict, print};
use crate::error::Error;
use difftest::check::Outcome;
use difftest::count::counted;
use difftest::output;
use difftest::replay::{self, shrink::shrink};
use difftest::side::secure::Secure;
use difftest::terminal::{line, quoted};
use difftest::trace::TraceFile;
use difftest::trace::step_file::StepFile;
use reference::spec::TrainSpec;
use std::fmt::Write;
use std::path::PathBuf;

/// Flags of `difftest replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A trace with a step of this project's arithmetic: written by --save-step, --save-failure or `export-trace`
    file: PathBuf,
    /// Which step of it, where it has several
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    /// Write the step on the fewest rows and classes that still fail, if it fails
    #[arg(long, value_name = "FILE")]
    shrink: Option<PathBuf>,
    /// Fix the three parties' randomness in order to repeat a run. INSECURE: the shares hide nothing, and the answer
    /// says so
    #[arg(long, value_name = "N")]
    insecure_seed: Option<u64>,
}

fn list(out: &mut String, title: &str, checks: &[Outcome]) {
    let _ = writeln!(out, "\n{title}");
    for check in checks {
        *out += &check.line();
    }
    for failure in checks.iter().filter_map(|c| c.failure.as_ref()) {
        let _ = writeln!(out, "{failure}");
    }
}

/// Runs `difftest replay`.
///
/// # Errors
/// A file that is no recorded step, a side that cannot go on, a file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    output::check_output(args.shrink.as_deref())?;
    args.shrink.as_deref().map_or(Ok(()), TraceFile::check_name)?;
    let mut file = StepFile::read(&args.file, args.step)?;
    let mut out = format!(
        "step {} of {}: {}, {} rounding, {}, {}\n",
        file.step,
        line(&file.command),
        file.spec.head,
        file.spec.rounding,
        counted(file.rows(), "row"),
        counted(file.classes(), "class")
    );
    if args.insecure_seed.is_some() {
        out.push_str("INSECURE: the parties' randomness comes from a seed; their shares hide nothing\n");
    }
    for failure in &file.failures {
        let _ = write!(out, "recorded because of\n{}", quoted(failure));
    }
    let mut start = |spec: &TrainSpec| Secure::start(spec.clone(), args.insecure_seed, true);
    let recorded = match replay::recorded(&file) {
        Ok(checks) => checks,
        // Coins that a wrong protocol drew need not fit the arithmetic: that is what the step was recorded for.
        Err(e) => vec![Outcome::new(
            "recorded coins",
            "refused by the integer model".into(),
            Some(line(&e.to_string()).into()),
        )],
    };
    let (fresh, _) = replay::fresh(&file, &mut start)?;
    list(&mut out, "integer model on the recorded coins, against real numbers", &recorded);
    list(&mut out, "three fresh parties, against integer model and real numbers", &fresh);
    print(&out)?;
    let failed = fresh.iter().any(|c| !c.passed);
    if let Some(path) = &args.shrink {
        let mut out = String::new();
        if failed {
            file.path.clone_from(path);
            let small = shrink(&file, &fresh, &mut start)?;
            small.write(path)?;
            let _ = writeln!(
                out,
                "\n{} of {} rows and {} of {} classes still fail: {}",
                small.rows(),
                file.rows(),
                small.classes(),
                file.classes(),
                path.display()
            );
        } else {
            let _ = writeln!(out, "\nnothing to shrink: fresh parties do not fail on this step");
        }
        print(&out)?;
    }
    Ok(Verdict::of(!failed && recorded.iter().all(|c| c.passed)))
}
