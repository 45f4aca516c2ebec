use std::path::PathBuf;

/// A run that cannot be begun or resumed in a folder of states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeepingError {
    /// The folder holds no run to be resumed.
    #[error("{} holds no run; leave --resume out to begin one", .0.display())]
    NoRun(PathBuf),
    /// The folder holds a run where a new one should begin.
    #[error("{} holds a run; go on with it by --resume, or name another folder", .0.display())]
    ARun(PathBuf),
    /// The folder holds a run of another command.
    #[error("{} holds another run; it is resumed by {command}", .folder.display())]
    Another {
        /// The folder.
        folder: PathBuf,
        /// The command of its run.
        command: String,
    },
    /// The file that names the run is damaged or of another version.
    #[error("{}: is no file of a run of this version; name another folder", .0.display())]
    File(PathBuf),
    /// The parties are already where the run should end.
    #[error("the parties have kept the state after step {0}; ask for more steps than that")]
    Over(u64),
    /// The side keeps no states.
    #[error("{0} keeps no states of runs; leave --checkpoint out")]
    Stateless(&'static str),
}
