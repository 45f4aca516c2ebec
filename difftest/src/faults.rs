//! Planted faults and what finds them.
//!
//! A build with the feature `faults` can be made to commit one of a [`catalogue`] of mistakes, in the engine or in the
//! specification that all sides share. For each, the whole [`suite`] runs without being told: every protocol and
//! layer by itself against the integer model and under transcript tests, from the bottom up, then [training]. The first
//! failure names check, place and cause; the matrix compares them with what was planted. The same suite on an
//! unchanged engine must find nothing: that is what its false-alarm rate means.

pub mod catalogue;
pub mod cause;
pub mod clean;
pub mod from_file;
pub mod harness;
pub mod suite;
pub mod three_parties;
pub mod training;

use crate::error::Error;
use catalogue::AnyFault;
use clean::Clean;
use harness::{Finding, Harness};
use serde::Serialize;
use std::time::Instant;

/// One planted fault, and what found it.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name of the fault.
    pub fault: &'static str,
    /// The mistake that it makes, in words.
    pub description: &'static str,
    /// Where it was planted.
    pub planted_at: &'static str,
    /// The kind of mistake that was planted.
    pub planted_cause: &'static str,
    /// The first finding of the suite; null if it noticed nothing.
    pub finding: Option<Finding>,
    /// Whether the place is right.
    pub place_right: bool,
    /// Whether the cause is right.
    pub cause_right: bool,
    /// The first finding of ordinary lock-step training within `--steps` steps; null if it noticed nothing.
    pub training: Option<Finding>,
    /// The seconds that it took to find.
    pub seconds: f64,
}

/// The detection matrix.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    /// Version of this report.
    pub schema: u32,
    /// Training steps allowed.
    pub steps: usize,
    /// One row a fault.
    pub faults: Vec<Row>,
    /// The number of faults found.
    pub detected: usize,
    /// Faults found with the right place and cause.
    pub explained: usize,
}

/// A planted fault. Plants nothing again when it goes, whatever happened.
#[derive(Debug)]
pub struct Planted;

impl Planted {
    /// Plants a fault in the whole process.
    pub fn new(fault: impl Into<AnyFault>) -> Self {
        match fault.into() {
            AnyFault::Engine(fault) => secure::fault::plant(Some(fault)),
            AnyFault::Specification(fault) => spec::fault::plant(Some(fault)),
        }
        Planted
    }

    /// Plants a fault by its name.
    ///
    /// # Errors
    /// A name that is no fault.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Self::new(named(name)?))
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        secure::fault::plant(None);
        spec::fault::plant(None);
    }
}

/// The fault of this name.
///
/// # Errors
/// A name that is no fault.
pub fn named(name: &str) -> Result<AnyFault, Error> {
    let all = AnyFault::all();
    let refuse = || Error::UnknownFault { name: name.into(), known: all.iter().map(|f| f.name()).collect() };
    all.iter().find(|f| f.name() == name).copied().ok_or_else(refuse)
}

/// Runs the suite with `fault` planted; `steps` training steps at most.
///
/// # Errors
/// A harness that cannot run: no fault makes it fail.
pub fn judge(fault: impl Into<AnyFault>, steps: usize, seed: u64) -> Result<Row, Error> {
    let (start, fault) = (Instant::now(), fault.into());
    let _planted = Planted::new(fault);
    let mut harness = Harness::new();
    suite::judge(&mut harness, seed);
    if harness.finding.is_none() {
        harness.finding = training::epoch(seed)?;
    }
    let training = training::lockstep(steps, seed)?;
    let finding = harness.finding.or_else(|| training.clone());
    Ok(Row {
        fault: fault.name(),
        description: fault.description(),
        planted_at: fault.place(),
        planted_cause: fault.cause().name(),
        place_right: finding.as_ref().is_some_and(|f| f.place == fault.place()),
        cause_right: finding.as_ref().is_some_and(|f| f.cause == fault.cause().name()),
        finding,
        training,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Runs `faults` one after another; `progress` sees every row.
///
/// # Errors
/// Those of [`judge`].
pub fn matrix(faults: &[AnyFault], steps: usize, mut progress: impl FnMut(&Row)) -> Result<Matrix, Error> {
    let mut rows = Vec::new();
    for &fault in faults {
        let row = judge(fault, steps, 1)?;
        progress(&row);
        rows.push(row);
    }
    let count = |of: fn(&Row) -> bool| rows.iter().filter(|r| of(r)).count();
    Ok(Matrix {
        schema: 1,
        steps,
        detected: count(|r| r.finding.is_some()),
        explained: count(|r| r.place_right && r.cause_right),
        faults: rows,
    })
}

/// One clean run with operands, shapes, formats and data from `seed`: every protocol and layer by itself, an epoch
/// without probes, and lock-step training. Nothing may be found but a training that leaves its number format, which
/// `range` has to name.
///
/// # Errors
/// A harness that cannot run.
pub fn clean(seed: u64) -> Result<Clean, Error> {
    let mut harness = Harness::new();
    suite::judge(&mut harness, seed);
    if harness.finding.is_none() {
        harness.finding = training::epoch(seed)?;
    }
    match harness.finding {
        None => clean::training(seed),
        wrong => Ok(Clean { forecast: clean::forecast(seed)?, range: None, wrong }),
    }
}
