use std::fmt;
use std::path::{Path, PathBuf};

/// The kinds of files that this library reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A trace of an engine, `.npz` or `.safetensors`.
    Trace,
    /// A step that `--save-step` or `--save-failure` wrote.
    Step,
    /// A recorded result of `fixtures/golden`.
    Golden,
    /// A finished cell of the paper's evaluation.
    Cell,
    /// A record of many cells, made by `difftest paper table`.
    Record,
}

impl FileKind {
    /// The way to a right file; for kinds that only the user can make right, the error itself says it.
    fn remedy(self) -> &'static str {
        match self {
            FileKind::Trace | FileKind::Step => "",
            FileKind::Golden => "; difftest fixtures generate writes it anew",
            FileKind::Cell => "; delete the file and run the cell again",
            FileKind::Record => "; write it with difftest paper table DIR --save FILE",
        }
    }
}

/// A file whose contents are not those of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The kind of file that was expected.
    pub kind: FileKind,
    /// The file; empty if the contents come from elsewhere.
    pub path: PathBuf,
    /// The fault of the contents, in words.
    pub what: String,
}

impl Malformed {
    /// Names the file, its kind and what is wrong with it.
    pub fn new(kind: FileKind, path: &Path, what: impl Into<String>) -> Self {
        Malformed { kind, path: path.into(), what: what.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.path.display())?;
        }
        write!(f, "{}{}", self.what, self.kind.remedy())
    }
}

impl std::error::Error for Malformed {}
