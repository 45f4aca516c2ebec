//! Secure training against training in real numbers, timed in one process, epoch by epoch in turn, without any check.
//!
//! The ratio is taken between epochs that ran one after the other, so that a machine that speeds up or slows down
//! changes both. Accuracy is evaluated once, after the last epoch, and is not part of any time. A run beside other work
//! still tells processor time; its wall time is not called clean ([`Measured::unclean`]).

mod chain;
mod stopwatch;

pub use stopwatch::{Stopwatch, Took};

use crate::count::counted;
use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::generate;
use crate::parties::{Processes, processes};
use crate::provenance::Provenance;
use crate::side::Side;
use crate::side::Trains;
use crate::side::real::Real;
use crate::side::secure::Secure;
use crate::statistics::median;
use fixtures::Dataset;
use ndarray::{Array2, Axis};
use reference::spec::TrainSpec;
use secure::clock::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of the JSON; grows with every incompatible change.
pub const SCHEMA: u32 = 3;

/// Cores that other work may have in a clean run, on average.
pub const OTHER_WORK: f64 = 0.1;

/// Counted epochs that a clean run has.
pub const CLEAN_EPOCHS: usize = 5;

/// Numbers of cores that are projected to.
const CORES: [usize; 3] = [4, 8, 16];

/// A network that the parties are imagined to be on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// One way, in milliseconds.
    pub latency_ms: f64,
    /// Of each party's outgoing link, in megabits per second.
    pub megabits_per_second: f64,
}

impl Link {
    /// Seconds that messages take if so many wait for one another: each of those costs one latency, and every byte of a
    /// third of all its time on the wire.
    pub fn seconds(self, waits: f64, bytes_all_parties: f64) -> f64 {
        waits * self.latency_ms * 1e-3 + bytes_all_parties / 3.0 * 8.0 / (self.megabits_per_second * 1e6)
    }
}

/// A measurement to make: the training, and the number of epochs.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The specification that both sides train.
    pub spec: TrainSpec,
    /// Epochs of each side.
    pub epochs: usize,
    /// Steps of an epoch; all of them if none is given.
    pub steps: Option<usize>,
    /// Seed of batches and initial weights.
    pub seed: u64,
    /// Networks to project to, by name.
    pub links: Vec<(&'static str, Link)>,
}

impl Timing {
    /// Steps of an epoch.
    fn steps_of(&self, data: &Dataset) -> usize {
        self.steps.unwrap_or(data.train.len().div_ceil(self.spec.sgd.batch))
    }
}

/// An epoch's time on an imagined network: computation as measured here plus the messages. A projection, not a
/// measurement. Not every party waits in every round, so the estimate counts the longest chain of messages and the
/// bound the rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Projection {
    /// The name of the network, `LAN` or `WAN`.
    pub network: &'static str,
    /// The latency and bandwidth of the network.
    pub link: Link,
    /// Seconds for an epoch, estimated: one latency for each message of the longest chain.
    pub seconds_per_epoch: f64,
    /// Seconds for an epoch, at most: one latency for each round.
    pub most_seconds_per_epoch: f64,
}

/// An epoch's time on a machine of this kind with more cores: a projection, not a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MoreCores {
    /// The number of cores.
    pub cores: usize,
    /// Seconds for a secure epoch.
    pub seconds_per_epoch: f64,
}

/// Median, least and most of the counted epochs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The value in the middle.
    pub median: f64,
    /// The smallest of the values.
    pub least: f64,
    /// The largest of the values.
    pub most: f64,
}

impl Spread {
    /// Of some values; `None` if there are none or one of them is not known.
    fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        let (least, most) =
            (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max));
        Some(Spread { median: median(&values)?, least, most })
    }
}

/// One epoch of each side, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Training by three parties.
    pub secure: Took,
    /// Training in real numbers.
    pub real: Took,
}

/// The time that one side's counted epochs took, and the accuracy after them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Speed {
    /// Wall time of an epoch.
    pub seconds_per_epoch: Spread,
    /// Processor time of an epoch, all threads. Null where the system does not tell.
    pub processor_seconds_per_epoch: Option<Spread>,
    /// Steps each second, by the median.
    pub steps_per_second: f64,
    /// Part of the test set that the trained weights classify correctly.
    pub accuracy: f64,
}

/// The measurements of a run. The first epoch of each side warms up and is counted only if it is the only one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The version of the JSON, [`SCHEMA`].
    pub schema: u32,
    /// When, and on what.
    #[serde(skip)]
    pub made: Provenance,
    /// Why wall times of this run are not to be quoted; empty for a clean one.
    pub unclean: Vec<String>,
    /// The specification that was trained.
    pub spec: TrainSpec,
    /// Seed of batches and initial weights.
    pub seed: u64,
    /// Steps of an epoch.
    pub steps_per_epoch: usize,
    /// Training by three parties.
    pub secure: Speed,
    /// Training in real numbers.
    pub real: Speed,
    /// Of the pairs, secure / real, wall time.
    pub ratio: Spread,
    /// The ratio secure / real of the pairs in processor time, null where the system does not tell: what is left of the
    /// ratio on a busy machine, waiting left out.
    pub processor_ratio: Option<Spread>,
    /// Cores that other work had during the counted epochs, on average. Null where the system does not tell.
    pub other_cores: Option<f64>,
    /// Every epoch, the first one too.
    pub epochs: Vec<Epoch>,
    /// Communication rounds of a step.
    pub rounds_per_step: f64,
    /// Messages of the longest chain of a step, each of which its sender could only send after the one before had come.
    pub longest_chain_per_step: u64,
    /// Bytes that all parties send in a step.
    pub bytes_per_step: f64,
    /// Messages that all parties send in a step.
    pub messages_per_step: f64,
    /// Largest resident size of this process so far: three parties, their data, and the real side. Where the
    /// parties have processes of their own on this machine, theirs is added. Null where the system does not tell, or
    /// they are on other machines.
    pub peak_memory_bytes: Option<u64>,
    /// The parties' part of it, where they have processes of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parties_peak_memory_bytes: Option<u64>,
    /// Part of the three parties' time, by phase.
    pub phases: BTreeMap<&'static str, f64>,
    /// Projections to other networks.
    pub projections: Vec<Projection>,
    /// Projections to more cores.
    pub more_cores: Vec<MoreCores>,
}

/// Both sides after their epochs.
struct Trained {
    secure: Secure,
    real: Real,
    epochs: Vec<Epoch>,
    cost: crate::side::Spent,
}

/// Trains both sides in turn from the seed's initial weights. `progress` hears of epochs done.
fn train(timing: &Timing, data: &Dataset, mut progress: impl FnMut(usize)) -> Result<Trained, Error> {
    let spec = &timing.spec;
    let start = generate::initial(spec, timing.seed)?;
    let mut all = generate::batches(data.train.len(), spec.sgd.batch, timing.seed);

    let mut secure = Secure::start(spec.clone(), None, false)?;
    secure.load(&start)?;
    let rows: Vec<u32> = (0..data.train.len() as u32).collect();
    let labels = generate::labels(&data.train, &rows);
    secure.share_data(&generate::units(&data.train, &rows, spec.fixed), &labels)?;
    let pixels = generate::rounded(&data.train, &rows, spec.fixed);
    let mut real = Real::new(spec.clone(), &start)?;

    let (mut epochs, mut cost) = (Vec::new(), crate::side::Spent::default());
    for done in 0..timing.epochs {
        let batches: Vec<Vec<u32>> = all.by_ref().take(timing.steps_of(data)).collect();
        let watch = Stopwatch::start(processes());
        cost += secure.train(&batches)?;
        let secure_took = watch.stop();
        let watch = Stopwatch::start(Processes::Own);
        for batch in &batches {
            let index: Vec<usize> = batch.iter().map(|&r| r as usize).collect();
            let x: Array2<f64> = pixels.select(Axis(0), &index);
            let y: Vec<usize> = index.iter().map(|&r| labels[r]).collect();
            real.train_on(&x, &y)?;
        }
        epochs.push(Epoch { secure: secure_took, real: watch.stop() });
        progress(done + 1);
    }
    Ok(Trained { secure, real, epochs, cost })
}

/// Times both sides and nothing else: the epochs, of which the first warms up. `progress` hears of epochs done.
///
/// # Errors
/// A side that cannot go on.
pub fn epochs(timing: &Timing, data: &Dataset, progress: impl FnMut(usize)) -> Result<Vec<Epoch>, Error> {
    Ok(train(timing, data, progress)?.epochs)
}

/// Times both sides, evaluates what they have learnt, and sums up. `progress` hears of epochs done.
///
/// # Errors
/// A side that cannot go on.
pub fn run(timing: &Timing, data: &Dataset, progress: impl FnMut(usize)) -> Result<Measured, Error> {
    let longest_chain = chain::longest_of_a_step(&timing.spec)?;
    let Trained { mut secure, mut real, epochs, cost } = train(timing, data, progress)?;
    let times = secure.times()?;
    let memory = peak_memory();
    let evaluation = Evaluation::of(data, timing.spec.fixed);
    let accuracy = (evaluation.accuracy(&mut secure)?, evaluation.accuracy(&mut real)?);
    Ok(summary(timing, timing.steps_of(data), epochs, (&cost, longest_chain), &times, memory, accuracy))
}

/// Cores that other work had meanwhile, on average; `None` where the system does not tell.
pub fn other_cores(took: impl Iterator<Item = Took> + Clone) -> Option<f64> {
    let others: Option<f64> = took.clone().map(|t| t.others).sum();
    others.map(|seconds| (seconds / took.map(|t| t.wall).sum::<f64>()).max(0.0))
}

/// What the epochs come to.
fn summary(
    timing: &Timing,
    steps: usize,
    epochs: Vec<Epoch>,
    (cost, longest_chain_per_step): (&crate::side::Spent, u64),
    times: &BTreeMap<Phase, Duration>,
    (peak_memory_bytes, parties_peak_memory_bytes): (Option<u64>, Option<u64>),
    (secure_accuracy, real_accuracy): (f64, f64),
) -> Measured {
    let counted = if epochs.len() > 1 { &epochs[1..] } else { &epochs[..] };
    let spread = |value: &dyn Fn(&Epoch) -> Option<f64>| Spread::of(counted.iter().map(value));
    let known = |value: &dyn Fn(&Epoch) -> f64| {
        spread(&|e| Some(value(e))).unwrap_or(Spread { median: f64::NAN, least: f64::NAN, most: f64::NAN })
    };
    let speed = |side: fn(&Epoch) -> &Took, accuracy| {
        let seconds_per_epoch = known(&|e| side(e).wall);
        let steps_per_second = steps as f64 / seconds_per_epoch.median;
        let processor_seconds_per_epoch = spread(&|e| side(e).processor);
        Speed { seconds_per_epoch, processor_seconds_per_epoch, steps_per_second, accuracy }
    };
    let secure = speed(|e| &e.secure, secure_accuracy);
    let total_steps = (steps * epochs.len()) as f64;
    let (rounds, bytes) = (cost.rounds as f64 / total_steps, cost.bytes as f64 / total_steps);
    let made = Provenance::now();
    let all_time: f64 = times.values().map(Duration::as_secs_f64).sum();
    let phases: BTreeMap<_, _> =
        times.iter().map(|(&phase, t)| (phase_name(phase), t.as_secs_f64() / all_time)).collect();
    let other_cores = other_cores(counted.iter().flat_map(|e| [e.secure, e.real]));
    let project = |&(network, link): &(&'static str, Link)| {
        let with =
            |waits: f64| secure.seconds_per_epoch.median + link.seconds(waits * steps as f64, bytes * steps as f64);
        let (seconds_per_epoch, most_seconds_per_epoch) = (with(longest_chain_per_step as f64), with(rounds));
        Projection { network, link, seconds_per_epoch, most_seconds_per_epoch }
    };
    Measured {
        schema: SCHEMA,
        unclean: unclean(counted.len(), other_cores),
        spec: timing.spec.clone(),
        seed: timing.seed,
        steps_per_epoch: steps,
        real: speed(|e| &e.real, real_accuracy),
        ratio: known(&|e| e.secure.wall / e.real.wall),
        processor_ratio: spread(&|e| Some(e.secure.processor? / e.real.processor?)),
        other_cores,
        rounds_per_step: rounds,
        longest_chain_per_step,
        bytes_per_step: bytes,
        messages_per_step: cost.messages as f64 / total_steps,
        peak_memory_bytes,
        parties_peak_memory_bytes,
        projections: timing.links.iter().map(project).collect(),
        more_cores: more_cores(&secure, &phases, made.cores),
        made,
        secure,
        phases,
        epochs,
    }
}

/// Why a run's wall times are not to be quoted.
fn unclean(epochs: usize, other_cores: Option<f64>) -> Vec<String> {
    let mut reasons = Vec::new();
    match other_cores {
        Some(cores) if cores <= OTHER_WORK => {}
        Some(cores) => reasons.push(format!("other work had {cores:.2} cores, {OTHER_WORK} are allowed")),
        None => reasons.push("the system does not tell how much other work there was".into()),
    }
    if epochs < CLEAN_EPOCHS {
        reasons.push(format!(
            "{}, {CLEAN_EPOCHS} are needed (--epochs {})",
            counted(epochs, "counted epoch"),
            CLEAN_EPOCHS + 1
        ));
    }
    reasons
}

/// From measured parts: matrix products over all cores, the rest of the processor time over one core a party, and as
/// much idle time as here, which the rounds cost and more cores do not shorten. No more cores than this machine has:
/// nothing.
fn more_cores(secure: &Speed, phases: &BTreeMap<&'static str, f64>, here: usize) -> Vec<MoreCores> {
    let part = |phase| phases.get(phase_name(phase)).copied().unwrap_or(0.0);
    let Some(processor) = secure.processor_seconds_per_epoch.map(|p| p.median) else { return Vec::new() };
    let products = processor * part(Phase::MatrixProducts) / (1.0 - part(Phase::Waiting)).max(f64::MIN_POSITIVE);
    let rest = processor - products;
    let busy = |cores: usize| rest / cores.min(3) as f64 + products / cores as f64;
    let idle = (secure.seconds_per_epoch.median - busy(here)).max(0.0);
    let at = |cores| MoreCores { cores, seconds_per_epoch: busy(cores) + idle };
    CORES.into_iter().filter(|&cores| cores > here).map(at).collect()
}

/// The name of a phase in tables and JSON.
pub const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::MatrixProducts => "matrix products",
        Phase::Truncation => "truncation",
        Phase::Comparison => "comparison",
        Phase::Head => "head",
        Phase::Waiting => "waiting",
        Phase::Other => "other",
    }
}

/// The largest resident sizes of all processes that take part, and of the parties' own, where they have some.
fn peak_memory() -> (Option<u64>, Option<u64>) {
    let own = peak_memory_of("self");
    match processes() {
        Processes::Own => (own, None),
        Processes::Unknown => (None, None),
        Processes::Here(ids) => {
            let parties: Option<u64> = ids.iter().map(|id| peak_memory_of(&id.to_string())).sum();
            (own.zip(parties).map(|(own, parties)| own + parties), parties)
        }
    }
}

/// VmHWM of a process, where Linux tells it.
fn peak_memory_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// The table that `difftest time` prints.
pub fn text(m: &Measured) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let widths: Vec<String> = m.spec.network.widths.iter().map(usize::to_string).collect();
    let _ = writeln!(
        out,
        "{}   layers {} ({})   {} rounding   batch {}   {} an epoch, {}\n{}",
        m.spec.head,
        m.spec.network.layers(),
        widths.join("-"),
        m.spec.rounding,
        m.spec.sgd.batch,
        counted(m.steps_per_epoch, "step"),
        counted(m.epochs.len(), "epoch"),
        m.made
    );
    let _ = writeln!(out, "\n{:18} {:>24}   {:>24}   steps/s   test accuracy", "", "s/epoch", "processor s/epoch");
    for (name, side) in [("secure, 3 parties", &m.secure), ("real, f64", &m.real)] {
        let processor = spread_text(side.processor_seconds_per_epoch, 3);
        let wall = spread_text(Some(side.seconds_per_epoch), 3);
        let (rate, accuracy) = (side.steps_per_second, side.accuracy * 100.0);
        let _ = writeln!(out, "{name:18} {wall:>24}   {processor:>24}   {rate:7.1}   {accuracy:11.2} %");
    }
    let (wall, processor) = (spread_text(Some(m.ratio), 2), spread_text(m.processor_ratio, 2));
    let _ = writeln!(out, "{:18} {wall:>24}   {processor:>24}", "ratio of the pairs");
    let _ =
        writeln!(out, "median (least to most) of {} counted", if m.epochs.len() > 1 { m.epochs.len() - 1 } else { 1 });
    match m.unclean.as_slice() {
        [] => {
            let _ = writeln!(out, "\nclean: other work had {:.2} cores", m.other_cores.unwrap_or(0.0));
        }
        reasons => {
            let _ = writeln!(out, "\nNOT CLEAN, do not quote wall times: {}", reasons.join("; "));
        }
    }
    out + &details(m)
}

/// What a step costs, where the time goes, what it would be elsewhere.
fn details(m: &Measured) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\na step: {:.0} rounds, {:.0} messages, of which {} wait for one another, {:.3} MB (all parties)",
        m.rounds_per_step,
        m.messages_per_step,
        m.longest_chain_per_step,
        m.bytes_per_step / 1e6
    );
    if let Some(peak) = m.peak_memory_bytes {
        let parties = m.parties_peak_memory_bytes.map_or(String::new(), |bytes| {
            format!(", {:.2} GB of them by the parties' own processes", bytes as f64 / 1e9)
        });
        let _ = writeln!(
            out,
            "peak memory: {:.2} GB (three parties with their data, and the real side){parties}",
            peak as f64 / 1e9
        );
    }
    let _ = writeln!(
        out,
        "\nthe parties' time   {}",
        m.phases.iter().map(|(p, s)| format!("{p} {:.0} %", s * 100.0)).collect::<Vec<_>>().join(", ")
    );
    for p in &m.projections {
        let _ = writeln!(
            out,
            "projection, not measured: {} ({} ms, {} Mbit/s): {:.1} s/epoch, at most {:.1}",
            p.network, p.link.latency_ms, p.link.megabits_per_second, p.seconds_per_epoch, p.most_seconds_per_epoch
        );
    }
    for MoreCores { cores, seconds_per_epoch } in &m.more_cores {
        let _ = writeln!(out, "projection, not measured: {cores} such cores: {seconds_per_epoch:.2} s/epoch");
    }
    out
}

fn spread_text(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("-".into(), |s| format!("{:.digits$} ({:.digits$} to {:.digits$})", s.median, s.least, s.most))
}

/// The name of a measurement's file among dated results: date, processor, kernel and what was trained.
pub fn file_name(m: &Measured) -> String {
    let Provenance { date, processor, kernel, cores, .. } = &m.made;
    let (day, _) = date.split_once('T').unwrap_or((date, ""));
    let processor = processor.as_deref().unwrap_or(std::env::consts::ARCH);
    let (head, layers, rounding) = (m.spec.head, m.spec.network.layers(), m.spec.rounding);
    let named = format!("{day} {processor} {kernel} {cores} cores {head} {layers} layers {rounding}");
    let words = named.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-") + ".json"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_even_and_odd_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_run_is_clean_only_with_five_epochs_and_a_machine_to_itself() {
        assert_eq!(unclean(5, Some(0.1)), Vec::<String>::new());
        assert_eq!(unclean(5, Some(0.11)), ["other work had 0.11 cores, 0.1 are allowed"]);
        assert_eq!(unclean(4, Some(0.0)), ["4 counted epochs, 5 are needed (--epochs 6)"]);
        assert_eq!(unclean(1, None).len(), 2);
    }

    #[test]
    fn a_spread_needs_every_value() {
        let spread = |v: &[Option<f64>]| Spread::of(v.iter().copied());
        assert_eq!(spread(&[Some(3.0), Some(1.0), Some(2.0)]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(spread(&[Some(3.0), None]), None);
        assert_eq!(spread(&[]), None);
    }

    /// Two cores, 6 s of processor time, half of what is not waited products: 3 / 2 + 3 / 2 s busy, 1 s idle.
    #[test]
    fn more_cores_shorten_products_and_at_most_three_parties() {
        let of = |v| Spread { median: v, least: v, most: v };
        let (seconds_per_epoch, processor_seconds_per_epoch) = (of(4.0), Some(of(6.0)));
        let secure = Speed { seconds_per_epoch, processor_seconds_per_epoch, steps_per_second: 1.0, accuracy: 0.0 };
        let phases = BTreeMap::from([("matrix products", 0.25), ("waiting", 0.5), ("truncation", 0.25)]);
        let seconds: Vec<_> = more_cores(&secure, &phases, 2).iter().map(|m| (m.cores, m.seconds_per_epoch)).collect();
        assert_eq!(seconds, [(4, 1.0 + 0.75 + 1.0), (8, 1.0 + 0.375 + 1.0), (16, 1.0 + 0.1875 + 1.0)]);
        assert_eq!(more_cores(&secure, &phases, 16), []);
    }

    #[test]
    fn a_message_that_is_waited_for_costs_a_latency_and_a_byte_its_time_on_the_wire() {
        let lan = Link { latency_ms: 2.0, megabits_per_second: 8.0 };
        assert!((lan.seconds(10.0, 3e6) - (0.02 + 1.0)).abs() < 1e-12);
    }
}
