use std::path::PathBuf;

/// Cells of the paper's evaluation that do not fit what is asked of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The folder holds no cells.
    #[error("{} is no folder of cells; give the --out of a run", .0.display())]
    NoFolder(PathBuf),
    /// The folder holds no finished cell.
    #[error("{} holds no finished cell; run difftest paper first", .0.display())]
    NoCells(PathBuf),
    /// A cell was run with other flags or data.
    #[error(
        "{}: this cell was run with another setup ({difference}); use the same flags and data, or another --out",
        .path.display()
    )]
    OtherSetup {
        /// The cell's file.
        path: PathBuf,
        /// The settings that differ.
        difference: String,
    },
    /// Two files hold the same cell.
    #[error("{}: two files hold cell {id}; delete one of them", .folder.display())]
    Twice {
        /// The folder of cells.
        folder: PathBuf,
        /// The cell's name.
        id: String,
    },
    /// Cells of one folder were run with different settings.
    #[error(
        "{}: {first} and {other} were run with different setups ({difference}); keep them in folders of their own",
        .folder.display()
    )]
    Mixed {
        /// The folder of cells.
        folder: PathBuf,
        /// A cell's name.
        first: String,
        /// The name of another cell.
        other: String,
        /// The settings that differ.
        difference: String,
    },
    /// Cells that are to be added were run with other settings than those that are there.
    #[error(
        "{} was run with another setup than {} ({difference}); cells of one report share all settings",
        .from.display(), .here.display()
    )]
    Foreign {
        /// The folder or file to be added.
        from: PathBuf,
        /// The folder that it would be added to.
        here: PathBuf,
        /// The settings that differ.
        difference: String,
    },
    /// A cell that is to be run is finished already.
    #[error("{id} is finished in {}; give --resume to keep what is there, or another --out", .folder.display())]
    Finished {
        /// The cell's name.
        id: String,
        /// The folder of the results.
        folder: PathBuf,
    },
    /// A configuration that is to be timed has a timing cell already.
    #[error(
        "{configuration} is timed in {}; give --resume to keep what is clean there, or another --out",
        .folder.display()
    )]
    Timed {
        /// The configuration.
        configuration: String,
        /// The folder of the results.
        folder: PathBuf,
    },
    /// A cell ended with a panic: a fault of this program.
    #[error("a cell ended with an internal error; report it, with the lines above")]
    Panicked,
    /// A document has no place for the table.
    #[error("there are no lines {begin} and {end} between which the table could go; add them")]
    NoMarkers {
        /// The line before the table.
        begin: &'static str,
        /// The line after it.
        end: &'static str,
    },
}
