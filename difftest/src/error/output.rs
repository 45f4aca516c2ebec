use std::path::PathBuf;

/// An output that cannot be written where it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The name is `-`, which other programs take for the standard output.
    #[error("-: an output is a file; name one (/dev/stdout is the standard output)")]
    Dash,
    /// The name is that of a folder.
    #[error("{}: is a folder; name a file", .0.display())]
    Folder(PathBuf),
    /// The folder of the file does not exist.
    #[error("{}: there is no folder {}; make it, or name another file", .path.display(), .folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder in which it would be.
        folder: PathBuf,
    },
    /// Two outputs have the same file.
    #[error("{}: two outputs would go to this file; give each its own", .0.display())]
    Twice(PathBuf),
    /// A trace is asked for in a file of JSON.
    #[error("{}: a trace is no JSON; name it .npz or .safetensors", .0.display())]
    NoJson(PathBuf),
    /// A link leads to itself.
    #[error("{}: is a link that leads to itself; name a file", .0.display())]
    Circle(PathBuf),
}
