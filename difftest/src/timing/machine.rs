//! What a measurement ran on, and what else ran there meanwhile.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime};

/// The processor and what of it this process may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name, as the system tells it; else the architecture.
    pub processor: String,
    /// The matrix kernel that ran.
    pub kernel: String,
    /// Cores that this process may use, `taskset` included.
    pub cores: usize,
}

impl Machine {
    /// This one, with the kernel of that name.
    pub fn here(kernel: &str) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.into());
        Machine { processor, kernel: kernel.into(), cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// Name, family and model of the first processor that Linux lists.
fn processor(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let name = field("model name")?;
    Some(match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.into(),
    })
}

/// The day, UTC, as 2026-11-28.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date that many days after 1 January 1970.
fn date(days: u64) -> String {
    let (mut year, mut day) = (1970, days);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

/// Seconds of a piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// By the clock on the wall.
    pub wall: f64,
    /// Of processors, by all threads of this process. Null where the system does not tell.
    pub processor: Option<f64>,
    /// Of processors, by everything else on the machine. Null where the system does not tell.
    pub others: Option<f64>,
}

impl Took {
    /// Cores that other work had meanwhile, on average.
    pub fn other_cores(&self) -> Option<f64> {
        Some(self.others? / self.wall)
    }
}

/// Measures from now on.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    processor: Option<Duration>,
    busy: Option<Duration>,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Stopwatch { wall: Instant::now(), processor: own(), busy: busy() }
    }

    /// What passed since the start.
    pub fn stop(&self) -> Took {
        let seconds = |now: Option<Duration>, then: Option<Duration>| Some(now?.saturating_sub(then?).as_secs_f64());
        let processor = seconds(own(), self.processor);
        let others = seconds(busy(), self.busy).zip(processor).map(|(all, own)| (all - own).max(0.0));
        Took { wall: self.wall.elapsed().as_secs_f64(), processor, others }
    }
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

/// Everything but idling and waiting for disks, in hundredths of a second; what a host takes from a virtual machine counts.
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
    fn the_processor_is_the_first_that_is_listed() {
        let text = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(processor(text).as_deref(), Some("AMD EPYC (family 26, model 2)"));
        assert_eq!(processor("CPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn days_are_dates() {
        let known = [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_785, "2026-11-28"),
            (47_540, "2100-02-28"),
        ];
        for (days, text) in known {
            assert_eq!(date(days), text);
        }
        assert_eq!(date(47_541), "2100-03-01", "2100 is no leap year");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_busy_loop_takes_processor_time() {
        let watch = Stopwatch::start();
        let mut x = 1u64;
        while own().unwrap() - watch.processor.unwrap() < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let took = watch.stop();
        assert!(took.processor.unwrap() >= 0.02 && took.wall >= 0.0 && took.others.is_some(), "{took:?}");
    }
}
