//! Runs that can go on after they were interrupted (`--checkpoint`, `--resume`): every so many steps each party keeps
//! its own share state.
//!
//! The folder holds `run.json`, the name of the run and the command that it belongs to. Parties on this machine keep
//! their states beside it, party i in `party<i>`; those elsewhere in folders of their own. The file is no secret, and
//! holds no value of the run: where a run is is what the three parties agree on.

use crate::error::{Error, KeepingError};
use crate::{input, output};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the file.
const FORMAT: &str = "difftest-run 1";

/// Bytes of the largest file that is read: a command is much shorter.
const MOST_BYTES: u64 = 1 << 20;

/// How a run keeps its states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// The run's name at the parties: 32 hexadecimal digits.
    pub run: String,
    /// Steps between two states.
    pub every: usize,
    /// Whether to go on where the parties have last kept a state.
    pub resume: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    run: String,
    command: String,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("run.json")
}

impl Keeping {
    /// Begins a run in `folder`, which is made if it is not there, or with `resume` takes up the one that it holds.
    /// `command` is what must not change between the two: the run but for its length.
    ///
    /// # Errors A folder that holds a run where a new one should begin, or none or another one to be resumed; a file
    /// that cannot be written.
    pub fn open(folder: &Path, every: usize, resume: bool, command: &str) -> Result<Self, Error> {
        let path = file(folder);
        let found = match std::fs::File::open(&path) {
            Ok(file) => Some(input::text(file, &path, MOST_BYTES)?),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::file(&path)(e)),
        };
        let keeping = |run| Keeping { run, every, resume };
        let place = || folder.to_owned();
        match found {
            None if resume => Err(KeepingError::NoRun(place()).into()),
            None => {
                std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
                let run = format!("{:032x}", rand::random::<u128>());
                let file = File { format: FORMAT.into(), run: run.clone(), command: command.into() };
                let text = serde_json::to_string_pretty(&file)
                    .map_err(|cause| Error::Json { what: "the name of a run".into(), cause })?;
                output::write(&path, text.as_bytes())?;
                Ok(keeping(run))
            }
            Some(_) if !resume => Err(KeepingError::ARun(place()).into()),
            Some(text) => {
                let file: File = serde_json::from_str(&text).map_err(|_| KeepingError::File(path.clone()))?;
                let good = file.run.len() == 32 && file.run.bytes().all(|b| b.is_ascii_hexdigit());
                if file.format != FORMAT || !good {
                    return Err(KeepingError::File(path).into());
                }
                if file.command != command {
                    return Err(KeepingError::Another { folder: place(), command: file.command }.into());
                }
                Ok(keeping(file.run))
            }
        }
    }

    /// Whether a state is kept after `step` steps of `all`: not after the last, for then there is nothing to go on
    /// with.
    pub fn after(&self, step: usize, all: usize) -> bool {
        step < all && step.is_multiple_of(self.every)
    }

    /// Refuses to resume a run of `all` steps after `step` steps if that is not before its end.
    ///
    /// # Errors
    /// Both numbers.
    pub fn fits(&self, step: u64, all: usize) -> Result<usize, Error> {
        let before = usize::try_from(step).ok().filter(|step| *step < all);
        before.ok_or_else(|| KeepingError::Over(step).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_one_run_and_gives_it_back_to_the_same_command_only() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        let open = |resume, command| Keeping::open(&folder, 5, resume, command);
        let refused = |resume, command, what: &str| {
            let error = open(resume, command).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        refused(true, "difftest", "holds no run");
        let begun = open(false, "difftest").unwrap();
        refused(false, "difftest", "holds a run; go on with it by --resume");
        let resumed = open(true, "difftest").unwrap();
        assert_eq!((resumed.run.clone(), resumed.resume), (begun.run, true));
        refused(true, "difftest --layers 2", "holds another run; it is resumed by difftest");
        std::fs::write(file(&folder), " ".repeat(MOST_BYTES as usize + 1)).unwrap();
        refused(true, "difftest", "is larger than 1048576 bytes");
        std::fs::write(file(&folder), "{}").unwrap();
        refused(true, "difftest", "is no file of a run");
        let kept: Vec<_> = (1..=15).filter(|&s| resumed.after(s, 15)).collect();
        assert_eq!(kept, [5, 10]);
        assert_eq!(resumed.fits(10, 15).unwrap(), 10);
        assert!(resumed.fits(15, 15).is_err() && resumed.fits(u64::MAX, 15).is_err());
    }
}
