use super::Error;
use std::path::PathBuf;

/// A saved model that cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// One of the four files of the save is not as it should be.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: CheckpointCause,
    },
    /// The save is whole, but one of its files could not be given its last name.
    #[error(
        "{cause} (the save is whole and {} can be loaded, with {} as it is called now)",
        .model.display(), .kept.display()
    )]
    NotRenamed {
        /// The real side's file.
        model: PathBuf,
        /// The name under which the other file is now.
        kept: PathBuf,
        /// The reason.
        #[source]
        cause: Box<Error>,
    },
}

/// The reason why a file of a saved model cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointCause {
    /// The tensors have no safetensors form.
    #[error("{0}")]
    Unwritable(#[source] safetensors::SafeTensorError),
    /// The file is no whole safetensors file.
    #[error("damaged, or no safetensors file ({0}); write it again with --save-model")]
    Damaged(#[source] safetensors::SafeTensorError),
    /// A field of the metadata is another than this run needs.
    #[error("its {name} is {found}, this run needs {needed}")]
    Field {
        /// The field.
        name: &'static str,
        /// Its value, or "missing".
        found: String,
        /// The value for this run.
        needed: String,
    },
    /// The file is of another save than the real side's.
    #[error(
        "it belongs to another save than {} ({found} against {needed}); keep the four files of a save together",
        .model.display()
    )]
    OtherSave {
        /// The real side's file.
        model: PathBuf,
        /// The save that this file belongs to.
        found: String,
        /// The save that the real side's file belongs to.
        needed: String,
    },
    /// The number of trained steps is no number.
    #[error("its steps is {0:?}, no number")]
    Steps(String),
    /// The file has another number of tensors than the network.
    #[error("it has {found} tensors, this network has {needed}")]
    Count {
        /// Tensors in the file.
        found: usize,
        /// Tensors of the network.
        needed: usize,
    },
    /// A tensor of the network is not in the file.
    #[error("there is no tensor {0} in it")]
    NoTensor(String),
    /// A tensor has another type or shape than in this network.
    #[error("{name} is {found}, it should be {needed}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its type and shape.
        found: String,
        /// The type and shape in this network.
        needed: String,
    },
    /// A weight or velocity is not finite.
    #[error("{0} has a number that is not finite; this training diverged, load an earlier model")]
    NotFinite(String),
    /// Two copies of a share component differ.
    #[error("{0}; one of the three share files was altered, load another save")]
    Altered(String),
}

impl CheckpointCause {
    /// Names the file.
    pub fn of(self, path: impl Into<PathBuf>) -> CheckpointError {
        CheckpointError::File { path: path.into(), cause: self }
    }
}
