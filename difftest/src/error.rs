//! What keeps a run from reaching its verdict. One line each: cause and remedy.

/// Everything here ends in exit code 2 but [`Error::Protocol`], which ends in 1 as any failed check does.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag or an input that means nothing.
    #[error("{0}")]
    Usage(String),
    /// The data set.
    #[error(transparent)]
    Data(#[from] fixtures::DataError),
    /// The specification.
    #[error(transparent)]
    Spec(#[from] reference::spec::SpecError),
    /// The f64 side refused.
    #[error("f64 side: {0}")]
    Real(String),
    /// The integer model refused, a recorded tape for instance.
    #[error("integer model: {0}")]
    Integer(#[from] reference::fixed::ModelError),
    /// The three parties cannot do what they were asked for.
    #[error("secure side: {0}")]
    Secure(String),
    /// The three parties did not finish a computation that they should: one is gone, or says what it must not.
    #[error("FAIL protocol   {0}")]
    Protocol(String),
    /// A file could not be read or written.
    #[error("{path}: {cause}; {}", remedy(cause))]
    File {
        /// Which file.
        path: String,
        /// What the operating system says.
        cause: std::io::Error,
    },
}

impl Error {
    /// The exit code of a run that ends with it.
    pub fn code(&self) -> u8 {
        if matches!(self, Error::Protocol(_)) { 1 } else { 2 }
    }

    /// Names the file of an I/O error.
    pub fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        move |cause| {
            // A temporary file's error names that file as well, which is nobody's concern.
            let cause = if cause.raw_os_error().is_none() { cause.kind().into() } else { cause };
            Error::File { path: path.display().to_string(), cause }
        }
    }
}

/// What to do about it.
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
