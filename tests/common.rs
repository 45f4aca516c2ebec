//! Used by all tests of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, to be given its arguments.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_difftest"))
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
