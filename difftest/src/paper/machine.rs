//! Where and by what a cell was trained: the machine that its seconds depend on, and the program.

use crate::count::counted;
use crate::provenance;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The machine that timings depend on: processor, number of cores, and kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor; empty if it is not known.
    #[serde(default)]
    pub processor: String,
    /// Processors that the process may use.
    pub cpus: usize,
    /// Matrix kernel of the secure side.
    pub kernel: String,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn here() -> Self {
        Machine {
            processor: provenance::processor().unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: secure::kernel::Kernel::select().map_or_else(|e| e.to_string(), |k| k.name().into()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.processor.is_empty() { "processor not recorded" } else { &self.processor };
        write!(f, "{name}, {}, kernel {}", counted(self.cpus, "processor"), self.kernel)
    }
}

/// The name of this program, its version and, if it is known, its commit.
pub fn program() -> String {
    format!("difftest {}", provenance::version())
}

/// The text that stands for a machine in a file that does not name one.
pub fn unrecorded() -> String {
    "not recorded".into()
}
