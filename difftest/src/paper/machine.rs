//! Where and when a cell was trained: the machine that its seconds depend on, and how busy it was.
//!
//! Processor time comes from `/proc` (see proc(5)), in ticks of 1/100 s. Where there is none, nothing is claimed.

use crate::provenance;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

/// What timings depend on.
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
    /// This one.
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
        let s = if self.cpus == 1 { "" } else { "s" };
        write!(f, "{name}, {} processor{s}, kernel {}", self.cpus, self.kernel)
    }
}

/// The name of this program, its version and, if it is known, its commit.
pub fn program() -> String {
    format!("difftest {}", provenance::version())
}

/// What stands for it in a file that does not say.
pub fn unrecorded() -> String {
    "not recorded".into()
}

/// Processor seconds so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// Of this process, all threads.
    pub own: f64,
    /// Of every process of the machine.
    pub all: f64,
}

impl Spent {
    /// Until now, if the system tells.
    pub fn now() -> Option<Spent> {
        Some(Spent {
            own: own(&fs::read_to_string("/proc/self/stat").ok()?)?,
            all: all(&fs::read_to_string("/proc/stat").ok()?)?,
        })
    }

    /// This process's and the others' share since `start`. Either is off by up to two ticks, so that the others' may be
    /// negative; over spans that follow each other the errors cancel.
    pub fn since(self, start: Spent) -> (f64, f64) {
        let own = self.own - start.own;
        (own, self.all - start.all - own)
    }
}

const TICK: f64 = 0.01;

/// utime and stime, the fields 14 and 15: the name in brackets, field 2, may hold blanks.
fn own(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(TICK * (user + system))
}

/// user, nice, system, irq, softirq and steal: everything but idle and waiting.
fn all(stat: &str) -> Option<f64> {
    let line = stat.lines().find(|l| l.starts_with("cpu "))?;
    let fields: Vec<f64> = line.split_whitespace().skip(1).map(|v| v.parse().ok()).collect::<Option<_>>()?;
    let busy = [0, 1, 2, 5, 6, 7].into_iter().map(|i| fields.get(i).copied().unwrap_or_default());
    Some(TICK * busy.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_from_the_right_fields() {
        let stat = "12 (a ) b) R 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1";
        assert_eq!(own(stat), Some(1.75));
        assert_eq!(all("cpu  100 20 30 9000 50 1 2 3 0 0\ncpu0 1 1\n"), Some(1.56));
        assert_eq!((own(""), all("intr 1")), (None, None));
    }

    #[test]
    fn work_of_this_process_is_its_own() {
        let Some(start) = Spent::now() else { return };
        let mut x = 1u64;
        while Spent::now().unwrap().own < start.own + 0.05 {
            (0..1_000_000).for_each(|i| x = std::hint::black_box(x.wrapping_mul(i | 1)));
        }
        let (own, other) = Spent::now().unwrap().since(start);
        assert!(own > 0.049 && other > -1.0, "{own} {other}");
    }
}
