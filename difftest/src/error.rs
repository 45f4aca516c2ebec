//! Causes that keep a run from its verdict. Every one prints as one line: cause and remedy.
//!
//! A variant holds its cause as data, so that a caller can match it. Errors of one part of the library are a type of
//! their own: settings ([`ConfigError`]), outputs ([`OutputError`]), files that are not as they should be
//! ([`Malformed`]), saved models ([`CheckpointError`]), and cells of the paper's evaluation ([`CellError`]). They stand
//! here and not beside the code that meets them, because [`Error`] wraps them and everything above uses [`Error`].

mod cells;
mod checkpoint;
mod config;
mod file;
mod keeping;
mod output;

pub use cells::CellError;
pub use checkpoint::{CheckpointCause, CheckpointError};
pub use config::ConfigError;
pub use file::{FileKind, Malformed};
pub use keeping::KeepingError;
pub use output::OutputError;

use crate::chance::Chance;
use std::path::{Path, PathBuf};

/// A cause that keeps a run from its verdict.
///
/// Everything here is bad input or a bad setting but [`Error::Protocol`], which is a failed check.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is beyond its limit, or settings contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An output cannot be written where it was asked for.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A file is not what it should be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A saved model cannot be used or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A run cannot be begun or resumed in a folder of states.
    #[error(transparent)]
    Keeping(#[from] KeepingError),
    /// Cells of the paper's evaluation do not fit what is asked of them.
    #[error(transparent)]
    Cells(#[from] CellError),
    /// The data set cannot be used.
    #[error(transparent)]
    Data(#[from] fixtures::DataError),
    /// The specification cannot be carried out.
    #[error(transparent)]
    Spec(#[from] reference::spec::SpecError),
    /// The kernel that was asked for does not exist or cannot run on this processor.
    #[error(transparent)]
    Kernel(#[from] secure::kernel::SelectError),
    /// The real side refused what it was given.
    #[error("real side: {0}")]
    Real(#[from] reference::f64::Error),
    /// The integer model refused what it was given, a recorded tape for instance.
    #[error("integer model: {0}")]
    Integer(#[from] reference::fixed::ModelError),
    /// The three parties cannot do what they were asked for.
    #[error("secure side: {0}")]
    Secure(#[source] secure::Error),
    /// The three parties did not finish a computation that they should: one is gone, or sends what it must not.
    #[error("FAIL protocol   {0}")]
    Protocol(#[source] secure::Error),
    /// The parties opened a tensor of another size than its shape.
    #[error("secure side: {what}: {cause}")]
    Opened {
        /// The tensor.
        what: String,
        /// The shape and the size that do not fit.
        #[source]
        cause: ndarray::ShapeError,
    },
    /// The parties of this process were chosen before.
    #[error("the parties of a process are chosen once; start another process for others")]
    PartiesChosen,
    /// The test set has no row.
    #[error("the test set is empty; name a data set with test images")]
    EmptyTestSet,
    /// The real side did not learn, so that nothing can be said of number formats.
    #[error(
        "the real side itself is at chance after {steps} steps (accuracy {:.2} %, {chance}, something learnt from \
         {:.1} % on), so no format can be judged by training; take more --steps or another --lr",
        100.0 * .accuracy, 100.0 * .chance.learnt()
    )]
    AtChance {
        /// Steps that were trained.
        steps: usize,
        /// Part of the test set that the real side gets right.
        accuracy: f64,
        /// Chance on that test set.
        chance: Chance,
    },
    /// No fault has this name.
    #[error("--fault {name} is no fault; choose one of {}", .known.join(", "))]
    UnknownFault {
        /// The name that was given.
        name: String,
        /// The names of all faults.
        known: Vec<&'static str>,
    },
    /// A result has no form in JSON.
    #[error("{what} cannot be written as JSON: {cause}")]
    Json {
        /// The result.
        what: String,
        /// The words of the JSON writer.
        #[source]
        cause: serde_json::Error,
    },
    /// A text file is longer than any of its kind.
    #[error("{}: is larger than {most} bytes; give a smaller file", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes that are read.
        most: u64,
    },
    /// A file could not be read or written.
    #[error("{path}: {cause}; {}", remedy(cause))]
    File {
        /// The file's name, or that of a stream.
        path: String,
        /// The words of the operating system.
        #[source]
        cause: std::io::Error,
    },
}

impl From<secure::Error> for Error {
    fn from(cause: secure::Error) -> Self {
        match cause {
            secure::Error::Misuse(_) => Error::Secure(cause),
            cause => Error::Protocol(cause),
        }
    }
}

impl Error {
    /// Names the file of an I/O error.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |cause| {
            // A temporary file's error names that file as well, which is nobody's concern.
            let cause = if cause.raw_os_error().is_none() { cause.kind().into() } else { cause };
            Error::File { path: path.display().to_string(), cause }
        }
    }

    /// Names the tensor whose size is not that of its shape.
    pub fn opened(what: impl Into<String>, cause: ndarray::ShapeError) -> Error {
        Error::Opened { what: what.into(), cause }
    }

    /// Names the result that has no form in JSON.
    pub fn json(what: impl Into<String>) -> impl FnOnce(serde_json::Error) -> Error {
        move |cause| Error::Json { what: what.into(), cause }
    }
}

/// The advice that belongs to an error of the operating system.
fn remedy(cause: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match cause.kind() {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "name one that you have the right to",
        ErrorKind::IsADirectory => "it is a folder; name a file",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or name a file elsewhere",
        ErrorKind::InvalidData => "it is not text in UTF-8; name a file of the right kind",
        _ => "name another file",
    }
}
