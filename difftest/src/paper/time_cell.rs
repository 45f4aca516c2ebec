//! One timing cell: the seconds of an epoch of a secure configuration, measured by itself.
//!
//! *Measured.* Epochs of the three parties and of training in real numbers in turn, in one process that does nothing
//! else ([`crate::timing`]). The first pair warms up and does not count. Time is that of whole epochs at the first
//! learning rate, whether or not training succeeds.
//!
//! *Clean.* At least [`LEAST_COUNTED`] pairs count, and other work took at most a tenth of a core meanwhile.

use super::cell::{Id, Setup, Side, Untimed};
use super::data::Data;
use super::machine::{self, Machine};
use super::standard_error::median_and_error;
use crate::error::Error;
use crate::provenance::Provenance;
use crate::statistics::median;
use crate::timing::{self, Epoch, OTHER_WORK, Timing};
use reference::spec::{Head, Rounding};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Version of a timing cell's file: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// Counted pairs of epochs that a clean timing cell has.
pub const LEAST_COUNTED: usize = 3;

/// The configuration that a timing cell is of. Its text, `softmax-l2-prob`, names its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// Output head.
    pub head: Head,
    /// Dense layers.
    pub layers: usize,
    /// Rounding of truncations.
    pub rounding: Rounding,
}

impl Configuration {
    /// The secure training cell that it is timed as.
    pub fn id(self, seed: u64, epochs: usize) -> Id {
        let Configuration { head, layers, rounding } = self;
        let rounding = Some(rounding);
        Id { side: Side::Secure, head, layers, code: false, rounding, seed, epochs, velocity_bits: 0, rate: None }
    }

    /// Sorts as the tables do.
    pub fn order(self) -> impl Ord + use<> {
        self.id(0, 1).order()
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-l{}-{}", self.head, self.layers, self.rounding))
    }
}

impl FromStr for Configuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = format!("secure-{text}-s0-e1").parse::<Id>().ok();
        id.and_then(|id| Some(Configuration { head: id.head, layers: id.layers, rounding: id.rounding? }))
            .filter(|c| c.to_string() == text)
            .ok_or_else(|| {
                format!("{text:?} is no timing cell; they look like softmax-l2-prob, --times N --list shows them")
            })
    }
}

/// A finished timing cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeCell {
    /// The version of the file, [`SCHEMA`].
    pub schema: u32,
    /// The text of its [`Configuration`].
    pub configuration: String,
    /// How it was trained, in common with the cells beside it.
    pub setup: Setup,
    /// Every pair of epochs, the one that warms up first. At least two.
    pub epochs: Vec<Epoch>,
    /// When it was finished, UTC, as RFC 3339 writes it.
    pub date: String,
    /// The machine that it was timed on.
    pub machine: Machine,
    /// Name and version of the program that timed it.
    pub program: String,
}

impl TimeCell {
    /// The configuration that it is of, or why that is not known.
    ///
    /// # Errors
    /// A text that names no configuration.
    pub fn of(&self) -> Result<Configuration, String> {
        self.configuration.parse()
    }

    /// Refuses what no run leaves behind.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema {}, this program writes {SCHEMA}", self.schema));
        }
        self.setup.spec(&self.of()?.id(0, 1), self.setup.learning_rate).map_err(|e| e.to_string())?;
        if self.epochs.len() < 2 {
            return Err("a timing cell has at least two pairs of epochs".into());
        }
        let took = self.epochs.iter().flat_map(|e| [e.secure.wall, e.real.wall]);
        if took.into_iter().all(|wall| wall > 0.0) { Ok(()) } else { Err("epochs take seconds above 0".into()) }
    }

    /// The pairs of epochs that count.
    pub fn counted(&self) -> &[Epoch] {
        self.epochs.get(1..).unwrap_or_default()
    }

    /// Median of the seconds of a secure epoch, and its standard error.
    pub fn seconds_per_epoch(&self) -> Option<(f64, f64)> {
        median_and_error(&self.counted().iter().map(|e| e.secure.wall).collect::<Vec<_>>())
    }

    /// Median of the processor seconds of a secure epoch, all threads.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let all: Option<Vec<f64>> = self.counted().iter().map(|e| e.secure.processor).collect();
        median(&all?)
    }

    /// Median of the seconds of an epoch in real numbers.
    pub fn real_seconds(&self) -> Option<f64> {
        median(&self.counted().iter().map(|e| e.real.wall).collect::<Vec<_>>())
    }

    /// Median over the pairs of secure seconds over seconds in real numbers.
    pub fn ratio(&self) -> Option<f64> {
        median(&self.counted().iter().map(|e| e.secure.wall / e.real.wall).collect::<Vec<_>>())
    }

    /// Whether its seconds are worth comparing, or why not.
    ///
    /// # Errors
    /// The reason.
    pub fn clean(&self) -> Result<(), Untimed> {
        match timing::other_cores(self.counted().iter().flat_map(|e| [e.secure, e.real])) {
            _ if self.counted().len() < LEAST_COUNTED => Err(Untimed::Few),
            None => Err(Untimed::NotMeasured),
            Some(cores) if cores > OTHER_WORK => Err(Untimed::Busy),
            Some(_) => Ok(()),
        }
    }

    /// The day on which it was finished, UTC.
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }
}

/// Times a configuration: `counted` pairs of epochs after one that warms up. `tell` hears of pairs done.
///
/// # Errors
/// A configuration that cannot be, a side that cannot go on.
pub fn run(
    configuration: Configuration,
    setup: &Setup,
    data: &Data,
    (counted, seed): (usize, u64),
    tell: impl FnMut(usize),
) -> Result<TimeCell, Error> {
    let spec = setup.spec(&configuration.id(seed, counted), setup.learning_rate)?;
    let timing = Timing { spec, epochs: counted + 1, steps: None, seed, links: Vec::new() };
    let epochs = timing::epochs(&timing, data.all(), tell)?;
    Ok(TimeCell {
        schema: SCHEMA,
        configuration: configuration.to_string(),
        setup: setup.clone(),
        epochs,
        date: Provenance::now().date,
        machine: Machine::here(),
        program: machine::program(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::timing::Took;

    /// A timing cell on a quiet machine, with this many seconds an epoch, ten times those of real numbers.
    pub(crate) fn timed(configuration: &str, seconds: f64) -> TimeCell {
        let took = |wall: f64| Took { wall, processor: Some(2.0 * wall), others: Some(0.01) };
        let pair = |wall: f64| Epoch { secure: took(wall), real: took(wall / 10.0) };
        TimeCell {
            schema: SCHEMA,
            configuration: configuration.into(),
            setup: super::super::claims::tests::cell("real-softmax-l1-s1-e1", &[0.5]).setup,
            epochs: vec![pair(9.0 * seconds), pair(seconds), pair(seconds), pair(seconds)],
            date: "2026-11-29T05:00:00Z".into(),
            machine: Machine { processor: "P".into(), cpus: 2, kernel: "portable".into() },
            program: "difftest 1".into(),
        }
    }

    #[test]
    fn a_configuration_has_one_spelling() {
        for head in Head::ALL {
            for rounding in Rounding::ALL {
                let configuration = Configuration { head, layers: 3, rounding };
                assert_eq!(configuration.to_string().parse(), Ok(configuration));
            }
        }
        for text in ["", "softmax", "softmax-l2", "softmax-l02-prob", "softmax-l2-prob-s1", "relu-grad-code-l2-prob"] {
            assert!(text.parse::<Configuration>().unwrap_err().contains("--list"), "{text}");
        }
    }

    #[test]
    fn the_first_pair_warms_up_and_other_work_is_told() {
        let mut cell = timed("softmax-l1-prob", 4.0);
        assert_eq!((cell.seconds_per_epoch(), cell.cpu_seconds()), (Some((4.0, 0.0)), Some(8.0)));
        assert_eq!((cell.ratio(), cell.real_seconds(), cell.day()), (Some(10.0), Some(0.4), "2026-11-29"));
        assert_eq!(cell.clean(), Ok(()));
        // The pair that warms up may be disturbed.
        cell.epochs[0].secure.others = Some(100.0);
        assert_eq!(cell.clean(), Ok(()));
        // 3 * 4.4 s were counted, and a tenth of a core is 1.32 s of that; the other five spans have 0.05 s.
        cell.epochs[2].secure.others = Some(1.2);
        assert_eq!(cell.clean(), Ok(()));
        cell.epochs[2].secure.others = Some(1.4);
        assert_eq!(cell.clean(), Err(Untimed::Busy));
        cell.epochs[2].secure.others = None;
        assert_eq!(cell.clean(), Err(Untimed::NotMeasured));
        cell.epochs.pop();
        assert_eq!(cell.clean(), Err(Untimed::Few));
    }
}
