//! Secure training against plaintext training, timed in one process, epoch by epoch in turn, without any check.
//!
//! The ratio is taken between epochs that ran one after the other, so that a machine that speeds up or slows down changes both. Accuracy
//! is evaluated once, after the last epoch, and is not part of any time.

use crate::error::Error;
use crate::evaluation::Evaluation;
use crate::generate;
use crate::side::Side;
use crate::side::Trains;
use crate::side::real::Real;
use crate::side::secure::Secure;
use crate::statistics::median;
use fixtures::Dataset;
use ndarray::{Array2, Axis};
use reference::spec::TrainSpec;
use secure::clock::Phase;
use secure::kernel::Kernel;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Version of the JSON; grows with every incompatible change.
pub const SCHEMA: u32 = 1;

/// A network that the parties are imagined to be on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// One way, in milliseconds.
    pub latency_ms: f64,
    /// Of each party's outgoing link, in megabits per second.
    pub megabits_per_second: f64,
}

impl Link {
    /// Seconds that messages take in an epoch: every round costs one latency, every byte of the busiest third its time on the wire.
    fn seconds(self, rounds: f64, bytes_all_parties: f64) -> f64 {
        rounds * self.latency_ms * 1e-3 + bytes_all_parties / 3.0 * 8.0 / (self.megabits_per_second * 1e6)
    }
}

/// What to time.
#[derive(Debug, Clone)]
pub struct Timing {
    /// What is trained.
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

/// An epoch's time on an imagined network: computation as measured here plus the messages. A projection, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Projection {
    /// Its name.
    pub network: &'static str,
    /// Its properties.
    pub link: Link,
    /// Seconds for an epoch.
    pub seconds_per_epoch: f64,
}

/// What was measured. Seconds are of an epoch; the first of each side warms up and is counted only if it is the only one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was trained.
    pub spec: TrainSpec,
    /// Seed of batches and initial weights.
    pub seed: u64,
    /// Steps of an epoch.
    pub steps_per_epoch: usize,
    /// Median over the epochs.
    pub secure_seconds_per_epoch: f64,
    /// Median over the epochs.
    pub plaintext_seconds_per_epoch: f64,
    /// Median of the pairwise ratios secure / plaintext.
    pub ratio: f64,
    /// Secure steps each second.
    pub secure_steps_per_second: f64,
    /// Plaintext steps each second.
    pub plaintext_steps_per_second: f64,
    /// Every epoch, (secure, plaintext).
    pub epochs: Vec<(f64, f64)>,
    /// Communication rounds of a step.
    pub rounds_per_step: f64,
    /// Bytes that all parties send in a step.
    pub bytes_per_step: f64,
    /// Messages that all parties send in a step.
    pub messages_per_step: f64,
    /// Largest resident size of this process so far: three parties, their data, and the plaintext side. Null where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// The matrix kernel that ran.
    pub kernel: &'static str,
    /// Cores that the system offers.
    pub cores: usize,
    /// Part of the three parties' time, by phase.
    pub phases: BTreeMap<&'static str, f64>,
    /// Part of the test set that the secure weights classify correctly.
    pub secure_accuracy: f64,
    /// The same for f64.
    pub plaintext_accuracy: f64,
    /// Other networks.
    pub projections: Vec<Projection>,
}

/// Times both sides. `progress` hears of epochs done.
///
/// # Errors
/// A side that cannot go on.
pub fn run(timing: &Timing, data: &Dataset, mut progress: impl FnMut(usize)) -> Result<Measured, Error> {
    let spec = &timing.spec;
    let start = generate::initial(spec, timing.seed)?;
    let mut all = generate::batches(data.train.len(), spec.sgd.batch, timing.seed);
    let steps = timing.steps.unwrap_or(data.train.len().div_ceil(spec.sgd.batch));

    let mut secure = Secure::start(spec.clone(), None, false)?;
    secure.load(&start)?;
    let rows: Vec<u32> = (0..data.train.len() as u32).collect();
    let labels = generate::labels(&data.train, &rows);
    secure.share_data(&generate::units(&data.train, &rows, spec.fixed), &labels)?;
    let pixels = generate::rounded(&data.train, &rows, spec.fixed);
    let mut plain = Real::new(spec.clone(), &start)?;

    let (mut epochs, mut cost) = (Vec::new(), crate::side::Spent::default());
    for done in 0..timing.epochs {
        let batches: Vec<Vec<u32>> = all.by_ref().take(steps).collect();
        let clock = Instant::now();
        cost += secure.train(&batches)?;
        let secure_seconds = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        for batch in &batches {
            let index: Vec<usize> = batch.iter().map(|&r| r as usize).collect();
            let x: Array2<f64> = pixels.select(Axis(0), &index);
            let y: Vec<usize> = index.iter().map(|&r| labels[r]).collect();
            plain.train_on(&x, &y)?;
        }
        epochs.push((secure_seconds, clock.elapsed().as_secs_f64()));
        progress(done + 1);
    }

    let counted = if epochs.len() > 1 { &epochs[1..] } else { &epochs[..] };
    let of = |f: fn(&(f64, f64)) -> f64| median(&counted.iter().map(f).collect::<Vec<_>>()).unwrap_or(f64::NAN);
    let (secure_seconds, plain_seconds) = (of(|e| e.0), of(|e| e.1));
    let total_steps = (steps * timing.epochs) as f64;
    let (rounds, bytes) = (cost.rounds as f64 / total_steps, cost.bytes as f64 / total_steps);
    let times = secure.times()?;
    let all_time: f64 = times.values().map(|t| t.as_secs_f64()).sum();
    let peak_memory_bytes = peak_memory();
    let evaluation = Evaluation::of(data, spec.fixed);
    Ok(Measured {
        schema: SCHEMA,
        spec: spec.clone(),
        seed: timing.seed,
        steps_per_epoch: steps,
        secure_seconds_per_epoch: secure_seconds,
        plaintext_seconds_per_epoch: plain_seconds,
        ratio: of(|e| e.0 / e.1),
        secure_steps_per_second: steps as f64 / secure_seconds,
        plaintext_steps_per_second: steps as f64 / plain_seconds,
        rounds_per_step: rounds,
        bytes_per_step: bytes,
        messages_per_step: cost.messages as f64 / total_steps,
        peak_memory_bytes,
        kernel: Kernel::selected().name(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        phases: times.iter().map(|(&phase, t)| (phase_name(phase), t.as_secs_f64() / all_time)).collect(),
        secure_accuracy: evaluation.accuracy(&mut secure)?,
        plaintext_accuracy: evaluation.accuracy(&mut plain)?,
        projections: timing
            .links
            .iter()
            .map(|&(network, link)| Projection {
                network,
                link,
                seconds_per_epoch: secure_seconds + link.seconds(rounds * steps as f64, bytes * steps as f64),
            })
            .collect(),
        epochs,
    })
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

/// VmHWM of this process, where Linux tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
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
        "{}   layers {} ({})   {} rounding   batch {}   {} steps an epoch, {} epochs   kernel {}   {} cores",
        m.spec.head,
        m.spec.network.layers(),
        widths.join("-"),
        m.spec.rounding,
        m.spec.sgd.batch,
        m.steps_per_epoch,
        m.epochs.len(),
        m.kernel,
        m.cores
    );
    let _ = writeln!(out, "\n                    s/epoch    steps/s   test accuracy");
    for (name, seconds, rate, accuracy) in [
        ("secure, 3 parties", m.secure_seconds_per_epoch, m.secure_steps_per_second, m.secure_accuracy),
        ("plaintext f64", m.plaintext_seconds_per_epoch, m.plaintext_steps_per_second, m.plaintext_accuracy),
    ] {
        let _ = writeln!(out, "{name:18} {seconds:8.3}   {rate:8.1}   {:10.2} %", accuracy * 100.0);
    }
    let _ = writeln!(out, "ratio              {:8.2}   (median of the pairs)", m.ratio);
    let _ = writeln!(
        out,
        "\na step: {:.0} rounds, {:.0} messages, {:.3} MB (all parties)",
        m.rounds_per_step,
        m.messages_per_step,
        m.bytes_per_step / 1e6
    );
    if let Some(peak) = m.peak_memory_bytes {
        let _ = writeln!(
            out,
            "peak memory: {:.2} GB (three parties with their data, and the plaintext side)",
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
            "projection, not measured: {} ({} ms, {} Mbit/s): {:.1} s/epoch",
            p.network, p.link.latency_ms, p.link.megabits_per_second, p.seconds_per_epoch
        );
    }
    out
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
    fn a_round_costs_a_latency_and_a_byte_its_time_on_the_wire() {
        let lan = Link { latency_ms: 2.0, megabits_per_second: 8.0 };
        assert!((lan.seconds(10.0, 3e6) - (0.02 + 1.0)).abs() < 1e-12);
    }
}
