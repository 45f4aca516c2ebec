//! `difftest fixtures`: recorded results, written and checked.

use super::{Verdict, print};
use crate::error::{Error, FlagError};
use clap::Subcommand;
use difftest::{config, golden};
use std::path::{Path, PathBuf};

/// Flags of `difftest fixtures`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Folder of the recorded results [default: fixtures/golden here, or in the source tree the program was built from]
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Action {
    /// Run every head, rounding and depth, and record the results (accepts whatever changed)
    Generate,
    /// Run them again and name the first tensor and index that changed
    Verify,
}

/// The one that was named; else here if it is there, else where the sources are, if they still are there.
fn folder(dir: Option<PathBuf>, action: Action) -> Result<PathBuf, Error> {
    let (here, sources) = (Path::new("fixtures/golden"), Path::new(env!("CARGO_MANIFEST_DIR")));
    let sources = sources.join("../../fixtures/golden");
    let known = || [here, sources.as_path()].into_iter().find(|dir| dir.is_dir()).map(Path::to_owned);
    let new = || matches!(action, Action::Generate).then(|| here.into());
    dir.or_else(known).or_else(new).ok_or(FlagError::NoGoldens.into())
}

/// Runs `difftest fixtures`.
///
/// # Errors
/// A folder that cannot be read or written, or a file in it that is no recorded result.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let dir = folder(args.dir, args.action)?;
    let cases = golden::cases();
    let data = config::data(None)?;
    match args.action {
        Action::Generate => {
            std::fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
            for case in &cases {
                golden::generate(case, &data, &dir)?;
            }
            print(&format!("{} results recorded in {}\n", cases.len(), dir.display()))?;
            Ok(Verdict::Holds)
        }
        Action::Verify => {
            let mut changed = 0;
            for case in &cases {
                if let Some(difference) = golden::verify(case, &data, &dir)? {
                    changed += 1;
                    print(&format!("FAIL {}: {difference}\n", case.name()))?;
                }
            }
            let total = cases.len();
            print(&match changed {
                0 => format!("{total} of {total} recorded results are as they were\n"),
                n => format!(
                    "{n} of {total} changed; if that is meant: difftest fixtures generate --dir {}\n",
                    dir.display()
                ),
            })?;
            Ok(Verdict::of(changed == 0))
        }
    }
}
