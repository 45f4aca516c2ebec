//! Causes for which a command ends without a verdict, and the exit code of each. Nowhere else is an exit code chosen
//! for an error.

mod flag;
mod logits;
mod parties;

pub use flag::FlagError;
pub use logits::{LogitsCause, LogitsError};
pub use parties::{PartiesError, SettingsCause, SettingsError};

use difftest::error::Error as RunError;
use std::path::{Path, PathBuf};

/// A cause for which a command ends without a verdict.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library cannot run what was asked for, or its parties did not finish.
    #[error(transparent)]
    Run(RunError),
    /// The parties did not finish a run of which they keep states.
    #[error("{0}; the same command with --resume goes on where all three have last kept a state")]
    Resumable(#[source] RunError),
    /// Flags are beyond their limits or contradict each other.
    #[error(transparent)]
    Flag(#[from] FlagError),
    /// The input of `difftest head` is not what it should be.
    #[error(transparent)]
    Logits(#[from] LogitsError),
    /// A file that names the parties is not what it should be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Parties cannot be started or asked.
    #[error(transparent)]
    Parties(#[from] PartiesError),
    /// A document cannot take the table of `difftest paper table --update`.
    #[error("{}: {cause}", .path.display())]
    Document {
        /// The document.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: Box<RunError>,
    },
}

impl<E: Into<RunError>> From<E> for Error {
    fn from(cause: E) -> Self {
        Error::Run(cause.into())
    }
}

/// Exit code of bad usage, bad input, and a machine that cannot do what was asked.
pub const BAD_INPUT: u8 = 2;

/// Exit code of a check that failed or could not be made.
pub const FAILED_CHECK: u8 = 1;

impl Error {
    /// The exit code of a command that ends so. Parties that do not finish fail as a check does; everything else is bad
    /// input.
    pub fn code(&self) -> u8 {
        match self {
            Error::Run(cause) | Error::Resumable(cause) => code_of(cause),
            Error::Flag(_) | Error::Logits(_) | Error::Settings(_) | Error::Parties(_) | Error::Document { .. } => {
                BAD_INPUT
            }
        }
    }

    /// Names the file of an I/O error.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let named = RunError::file(path);
        move |cause| Error::Run(named(cause))
    }
}

/// The exit code for an error of the library. Every variant is named, so that a new one cannot be forgotten.
fn code_of(cause: &RunError) -> u8 {
    match cause {
        RunError::Protocol(_) => FAILED_CHECK,
        RunError::Config(_)
        | RunError::Output(_)
        | RunError::Malformed(_)
        | RunError::Checkpoint(_)
        | RunError::Keeping(_)
        | RunError::Cells(_)
        | RunError::Data(_)
        | RunError::Spec(_)
        | RunError::Kernel(_)
        | RunError::Real(_)
        | RunError::Integer(_)
        | RunError::Secure(_)
        | RunError::Opened { .. }
        | RunError::PartiesChosen
        | RunError::EmptyTestSet
        | RunError::AtChance { .. }
        | RunError::UnknownFault { .. }
        | RunError::Json { .. }
        | RunError::TooLarge { .. }
        | RunError::File { .. } => BAD_INPUT,
    }
}

#[cfg(test)]
mod tests;
