//! Wall time and processor time of a piece of work, and what else ran on the machine meanwhile.

use crate::parties::Processes;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Seconds of a piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// By the clock on the wall.
    pub wall: f64,
    /// Of processors, by all threads of this process, and of the parties' where they have processes of their own and
    /// were measured. Null where the system does not tell, or the parties are on other machines.
    pub processor: Option<f64>,
    /// Of processors, by everything else on the machine. The system counts in hundredths of a second, so that this is
    /// off by up to two of them and may be negative; over pieces of work that follow each other these errors cancel.
    /// Null where the system does not tell.
    pub others: Option<f64>,
}

/// Measures from now on.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    processes: Processes,
    processor: Option<Duration>,
    busy: Option<Duration>,
}

impl Stopwatch {
    /// Starts to measure work of this process and of `processes`.
    pub fn start(processes: Processes) -> Self {
        Stopwatch { wall: Instant::now(), processes, processor: of(processes), busy: busy() }
    }

    /// The time that passed since the start.
    pub fn stop(&self) -> Took {
        let seconds = |now: Option<Duration>, then: Option<Duration>| Some(now?.saturating_sub(then?).as_secs_f64());
        let processor = seconds(of(self.processes), self.processor);
        let others = seconds(busy(), self.busy).zip(processor).map(|(all, own)| all - own);
        Took { wall: self.wall.elapsed().as_secs_f64(), processor, others }
    }
}

/// Processor time of this process and of `processes` so far.
fn of(processes: Processes) -> Option<Duration> {
    match processes {
        Processes::Own => own(),
        Processes::Here(ids) => ids.into_iter().try_fold(own()?, |sum, id| Some(sum + other(id)?)),
        Processes::Unknown => None,
    }
}

/// Processor time of another process so far.
fn other(id: u32) -> Option<Duration> {
    other_of(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// User and system time, the 14th and the 15th field, in hundredths of a second. The second is a name, which may
/// contain anything.
fn other_of(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).map_while(|v| v.parse().ok()).collect();
    let &[user, system, ..] = ticks.as_slice() else { return None };
    Some(Duration::from_millis(10 * (user + system)))
}

/// Processor time of this process so far.
#[cfg(unix)]
fn own() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(not(unix))]
fn own() -> Option<Duration> {
    None
}

/// Processor time of the whole machine so far.
fn busy() -> Option<Duration> {
    busy_of(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// Everything but idling and waiting for disks, in hundredths of a second; what a host takes from a virtual machine
/// counts.
fn busy_of(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|v| v.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are contained in user.
    let &[user, nice, system, _, _, irq, soft, steal, ..] = ticks.as_slice() else { return None };
    Some(Duration::from_millis(10 * (user + nice + system + irq + soft + steal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle_and_waiting_for_disks() {
        let stat = "cpu  100 20 30 5000 700 4 5 6 90 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_of(stat), Some(Duration::from_millis(1650)));
        assert_eq!(busy_of("cpu  1 2 3\n"), None);
        assert_eq!(busy_of("intr 5"), None);
    }

    #[test]
    fn another_process_has_its_time_behind_its_name() {
        let stat = "77 (a ) b (c) S 1 77 77 0 -1 4194560 5 0 0 0 123 45 6 7 20 0 9 0 100 200 300";
        assert_eq!(other_of(stat), Some(Duration::from_millis(1680)));
        assert_eq!(other_of("77 (a) S 1"), None);
        assert_eq!(of(Processes::Unknown), None);
        assert_eq!(of(Processes::Here([u32::MAX; 3])), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_busy_loop_takes_processor_time() {
        let watch = Stopwatch::start(Processes::Own);
        let mut x = 1u64;
        while own().unwrap() - watch.processor.unwrap() < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let took = watch.stop();
        assert!(took.processor.unwrap() >= 0.02 && took.wall >= 0.0 && took.others.is_some(), "{took:?}");
    }
}
