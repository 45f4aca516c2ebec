//! One cell: its identity ([`id`]), the settings that it has in common with others ([`setup`]), the attempts that it
//! made ([`attempt`]), and whether its seconds may be compared.

pub mod attempt;
pub mod id;
pub mod setup;
pub mod side;

pub use attempt::{Attempt, Cost, Epoch, Nearness, Sent};
pub use id::{Id, MOST_LAYERS, RATE_UNIT};
pub use setup::Setup;
pub use side::Side;

use super::machine::Machine;
use super::standard_error::median_and_error;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of a cell's file: raised when a field changes its meaning or goes away. Files of version 1, which called the
/// sides `model` and `f64`, are read as well.
pub const SCHEMA: u32 = 2;

/// The largest file of a cell, or of a record of cells, that is read, in bytes: a hundred times the largest written.
pub(super) const MAX_BYTES: u64 = 128 << 20;

/// Whether this program reads files of that version.
pub fn readable(schema: u32) -> bool {
    (1..=SCHEMA).contains(&schema)
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The version of the file, [`SCHEMA`].
    pub schema: u32,
    /// The identity of the cell.
    pub id: Id,
    /// The settings under which it was trained.
    pub setup: Setup,
    /// At each rate, the first one first. Never empty.
    pub attempts: Vec<Attempt>,
    /// Secure side: what all attempts sent.
    pub cost: Option<Cost>,
    /// The machine that it was trained on.
    pub machine: Machine,
    /// Name and version of the program that trained it.
    #[serde(default = "super::machine::unrecorded")]
    pub program: String,
    /// Root mean square of the differences of all weights to the same configuration in real numbers, by epoch of the
    /// first attempts, of a cell from a file of results, which keeps it instead of the sketches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<f64>,
}

impl Cell {
    /// The attempt that counts: the one that ran to its end, or the last.
    pub fn last(&self) -> &Attempt {
        self.attempts.last().expect("a cell is stored and loaded with at least one attempt")
    }

    /// Whether some rate survived all epochs by the paper's rule.
    pub fn survived(&self) -> bool {
        self.last().ended.is_none()
    }

    /// Whether it also learnt something: accuracy at the end is at least twice chance. (A network that always says "1"
    /// has 11.35 % on MNIST, which the paper's rule lets pass.)
    pub fn trains(&self) -> bool {
        let end = self.last().epochs.last().map_or(0.0, |e| e.accuracy(&self.setup));
        self.survived() && end >= 2.0 / self.setup.classes as f64
    }

    /// Accuracy after `epoch` epochs (from 1) of the attempt that counts, if it got there.
    pub fn accuracy(&self, epoch: usize) -> Option<f64> {
        self.last().epochs.get(epoch.checked_sub(1)?).map(|e| e.accuracy(&self.setup))
    }

    /// Whole epochs of all attempts.
    pub(super) fn whole_epochs(&self) -> impl Iterator<Item = &Epoch> {
        let whole = self.setup.train_rows.div_ceil(self.setup.batch.max(1));
        self.attempts.iter().flat_map(|a| &a.epochs).filter(move |e| e.steps == whole)
    }

    /// Median of the seconds of an epoch and its standard error, whole epochs of all attempts: other work on the
    /// machine only ever adds.
    pub fn seconds_per_epoch(&self) -> Option<(f64, f64)> {
        median_and_error(&self.whole_epochs().map(|e| e.seconds).collect::<Vec<_>>())
    }

    /// Whether its seconds are worth comparing: a grid's full length, at the only rate, on an otherwise idle machine;
    /// or why not.
    ///
    /// # Errors
    /// The reason.
    pub fn timed(&self) -> Result<(), Untimed> {
        if self.whole_epochs().count() < LEAST_EPOCHS {
            return Err(Untimed::Short);
        }
        let spent: Option<Vec<(f64, f64)>> =
            self.whole_epochs().map(|e| Some((e.other_cpu_seconds?, e.seconds))).collect();
        let Some(spent) = spent else { return Err(Untimed::NotMeasured) };
        // Half of the epochs undisturbed is what their median needs.
        let quiet = |&&(other, seconds): &&(f64, f64)| other <= QUIET * seconds * self.machine.cpus as f64;
        if spent.iter().filter(quiet).count() * 2 > spent.len() { Ok(()) } else { Err(Untimed::Busy) }
    }

    /// Seconds of the whole epochs that both this side and real numbers in turn with it were timed in: this side, real
    /// numbers.
    pub fn paired_seconds(&self) -> impl Iterator<Item = (f64, f64)> {
        self.whole_epochs().filter_map(|e| Some((e.seconds, e.plain_seconds.filter(|s| *s > 0.0)?)))
    }
}

/// Whole epochs that a claim about time needs.
pub const LEAST_EPOCHS: usize = 20;

/// The part of all processors that other processes may take on a machine that counts as quiet.
pub const QUIET: f64 = 0.05;

/// Why seconds are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untimed {
    /// Fewer than [`LEAST_EPOCHS`] whole epochs.
    Short,
    /// Fewer than [`super::time_cell::LEAST_COUNTED`] counted epochs of a configuration timed by itself.
    Few,
    /// Other processes used the machine.
    Busy,
    /// Nothing says whether they did.
    NotMeasured,
}

impl fmt::Display for Untimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Untimed::Short => "fewer than 20 whole epochs",
            Untimed::Few => "fewer than 3 counted epochs",
            Untimed::Busy => "other processes used the machine",
            Untimed::NotMeasured => "it is not recorded whether the machine was quiet",
        })
    }
}
