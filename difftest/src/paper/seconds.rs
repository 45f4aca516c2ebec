//! The seconds of an epoch of a secure configuration, and where they come from: its timing cell if that is clean, or
//! else its training cells; of a configuration without training cells, the timing cell whatever it is like.

use super::cell::{Cell, Untimed};
use super::machine::Machine;
use super::standard_error::mean_and_error;
use super::table1::{Measured, rows};
use super::time_cell::{Configuration, TimeCell};
use serde::Serialize;

/// Where the seconds of a configuration come from.
#[derive(Debug, Clone)]
pub enum Source<'a> {
    /// It was timed by itself.
    ByItself(&'a TimeCell),
    /// Secure training cells, which may be none.
    Training(Vec<&'a Cell>),
}

impl<'a> Source<'a> {
    /// The source for a configuration whose secure training cells are `cells`.
    pub fn choose(configuration: Configuration, cells: Vec<&'a Cell>, times: &'a [TimeCell]) -> Self {
        let timed = times.iter().find(|t| t.of() == Ok(configuration));
        match timed {
            Some(timed) if timed.clean().is_ok() || cells.is_empty() => Source::ByItself(timed),
            _ => Source::Training(cells),
        }
    }

    /// Whether it is a timing cell whose seconds are worth comparing.
    pub fn is_clean_time(&self) -> bool {
        matches!(self, Source::ByItself(timed) if timed.clean().is_ok())
    }

    /// Seconds of an epoch and their standard error: one cell's, or the mean of several.
    pub fn seconds(&self) -> Option<(f64, f64)> {
        let cells = match self {
            Source::ByItself(timed) => return timed.seconds_per_epoch(),
            Source::Training(cells) => cells,
        };
        let each: Vec<_> = cells.iter().filter_map(|c| c.seconds_per_epoch()).collect();
        match each[..] {
            [one] => Some(one),
            _ => mean_and_error(&each.iter().map(|s| s.0).collect::<Vec<_>>()),
        }
    }

    /// The first cell whose seconds are not worth comparing, and why.
    pub fn untimed(&self) -> Option<(String, Untimed)> {
        match self {
            Source::ByItself(timed) => timed.clean().err().map(|why| (timed.configuration.clone(), why)),
            Source::Training(cells) => cells.iter().find_map(|c| Some((c.id.to_string(), c.timed().err()?))),
        }
    }

    /// Machine and program of each cell.
    pub fn made(&self) -> Vec<(&'a Machine, &'a str)> {
        match self {
            Source::ByItself(timed) => vec![(&timed.machine, &timed.program)],
            Source::Training(cells) => cells.iter().map(|c| (&c.machine, c.program.as_str())).collect(),
        }
    }
}

/// The seconds of a configuration beside the paper's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// Secure seconds of an epoch.
    pub seconds: Option<Measured>,
    /// Secure processor seconds of an epoch, all three parties.
    pub cpu_seconds: Option<f64>,
    /// Why these seconds are not compared with others, if they are not.
    pub untimed: Option<String>,
    /// Secure seconds over seconds in real numbers.
    pub ratio: Option<f64>,
    /// The paper's seconds of an epoch, on three servers.
    pub paper_seconds: Option<f64>,
    /// The paper's seconds over ours.
    pub paper_ratio: Option<f64>,
    /// The machine that our seconds are of.
    pub machine: Option<String>,
    /// The day, UTC, on which the configuration was timed by itself; null where the seconds are those of training
    /// cells.
    pub timed_on: Option<String>,
    /// Counted epochs of a configuration timed by itself.
    pub timed_epochs: Option<usize>,
    /// Name and version of the program that timed it by itself.
    pub timed_by: Option<String>,
}

impl Seconds {
    /// From their source, beside the paper's seconds.
    pub fn new(source: &Source, paper_seconds: Option<f64>) -> Self {
        let seconds = source.seconds().map(|(value, error)| Measured { value, error });
        let paper_ratio = paper_seconds.zip(seconds).map(|(theirs, ours)| theirs / ours.value);
        let found = match source {
            Source::ByItself(timed) => Seconds {
                cpu_seconds: timed.cpu_seconds(),
                untimed: timed.clean().err().map(|why| why.to_string()),
                ratio: timed.ratio(),
                machine: Some(timed.machine.to_string()),
                timed_on: Some(timed.day().into()),
                timed_epochs: Some(timed.counted().len()),
                timed_by: Some(timed.program.clone()),
                ..Seconds::default()
            },
            Source::Training(cells) => {
                let cells: Vec<Cell> = cells.iter().map(|c| (*c).clone()).collect();
                let row = rows(&cells).pop();
                row.map_or_else(Seconds::default, |row| Seconds {
                    cpu_seconds: row.cpu_seconds,
                    untimed: row.untimed,
                    ratio: row.ratio,
                    machine: Some(row.machine),
                    ..Seconds::default()
                })
            }
        };
        Seconds { seconds, paper_seconds, paper_ratio, ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::super::time_cell::tests::timed;
    use super::*;

    const SOFTMAX: &str = "softmax-l1-prob";

    fn seconds(cells: &[Cell], times: &[TimeCell]) -> Seconds {
        let source = Source::choose(SOFTMAX.parse().unwrap(), cells.iter().collect(), times);
        Seconds::new(&source, Some(12.0))
    }

    #[test]
    fn a_clean_timing_cell_comes_before_training_cells_and_they_before_a_disturbed_one() {
        let training = [cell("secure-softmax-l1-prob-s1-e20", &[0.9; 20])];
        let clean = timed(SOFTMAX, 4.0);
        let mut disturbed = clean.clone();
        disturbed.epochs[1].secure.others = Some(9.0);
        let told = |s: &Seconds| (s.seconds.map(|s| s.value), s.timed_on.clone(), s.untimed.clone());

        let found = seconds(&training, &[timed("softmax-l2-prob", 1.0), clean.clone()]);
        assert_eq!(told(&found), (Some(4.0), Some("2026-11-29".into()), None));
        assert_eq!((found.cpu_seconds, found.ratio, found.paper_ratio), (Some(8.0), Some(10.0), Some(3.0)));
        assert_eq!(found.machine.as_deref(), Some("P, 2 processors, kernel portable"));

        let found = seconds(&training, std::slice::from_ref(&disturbed));
        let open = Some("it is not recorded whether the machine was quiet".into());
        assert_eq!((told(&found), found.paper_ratio), ((Some(10.0), None, open), Some(1.2)));
        let found = seconds(&[], &[disturbed]);
        assert_eq!(found.untimed.as_deref(), Some("other processes used the machine"));
        assert_eq!((found.seconds.map(|s| s.value), found.timed_epochs), (Some(4.0), Some(3)));
        assert_eq!(seconds(&[], &[]), Seconds { paper_seconds: Some(12.0), ..Seconds::default() });
    }
}
