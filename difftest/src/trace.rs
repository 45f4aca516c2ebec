//! One training step as a value: what it started from, what each side computed, the coins, the violations and the cost.
//!
//! A [run](crate::run) is an iterator of traces; checks, reports, replay, recorded results and advice read them. What a
//! side does not show in a run is missing from its tensors, and a side that takes no part has none.
//!
//! # Files
//! * [`file`](mod@file): steps of any engine, in the trace format of `docs/trace.md`, its names, and reading and
//!   writing by file type.
//! * [`header`]: what an engine says about itself: network, number format, rounding, claims; [`tensor`]: one named
//!   array, integers in units or floats.
//! * [`npz`] and [`safetensors`]: the two containers.
//! * [`export`]: a step of one of this project's own sides in that format, and [`coins`] with the coins of it; whole
//!   runs of the secure engine are in [`crate::run::record`].
//! * [`step_file`]: such a step as what can be run again (`--save-step`, `replay`).
//!
//! Readers trust nothing: no memory is taken because a header asks for it, and every refusal is one line.

pub mod coins;
pub mod export;
pub mod file;
pub mod header;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod step_file;
pub mod tensor;

pub use file::TraceFile;
pub use header::Header;
pub use tensor::{Tensor, Values};

use crate::error::Error;
use crate::explain::origin::Truncated;
use crate::side::{Batch, Spent, Tensors};
use reference::fixed::{LayerValues, Monitor, Parameters, Replayed, Tape};
use reference::spec::TrainSpec;

/// The tensors that one side computed in a step, and the cost.
#[derive(Debug, Clone)]
pub struct Computed<T> {
    /// The tensors that it showed, by probe point.
    pub tensors: Tensors<T>,
    /// The cost of the step for this side.
    pub spent: Spent,
}

impl<T> Default for Computed<T> {
    fn default() -> Self {
        Computed { tensors: Tensors::new(), spent: Spent::default() }
    }
}

impl<T> From<(Tensors<T>, Spent)> for Computed<T> {
    fn from((tensors, spent): (Tensors<T>, Spent)) -> Self {
        Computed { tensors, spent }
    }
}

/// The opened parameters from which all sides started a step.
#[derive(Debug, Clone)]
pub struct Start {
    /// Weights, biases and velocities in units.
    pub units: Parameters,
    /// The reals that these units stand for, exactly.
    pub values: Vec<LayerValues>,
}

impl Start {
    /// Decodes opened parameters by the formats of `spec`.
    pub fn new(units: Parameters, spec: &TrainSpec) -> Self {
        Start { values: units.decode(spec.fixed, &spec.sgd), units }
    }
}

/// One training step.
#[derive(Debug)]
pub struct Trace {
    /// Number of the step in its run, from 0.
    pub step: usize,
    /// The specification of the training.
    pub spec: TrainSpec,
    /// Name of the side that is tested: `secure`, or an engine's own.
    pub tested_name: &'static str,
    /// Where all sides started; `None` in a free run, in which each went on from its own parameters.
    pub start: Option<Start>,
    /// The rows that were trained on.
    pub batch: Batch,
    /// The real side's tensors.
    pub real: Computed<f64>,
    /// The integer side's tensors; those before the refusal if it [refused](Trace::refused) the coins.
    pub integer: Computed<i64>,
    /// The tested side's tensors.
    pub tested: Computed<i64>,
    /// The coins that the tested side drew, and that the integer side replayed.
    pub coins: Tape,
    /// Whether the tested side handed out no coins though it drew some: the integer side then drew its own, and only
    /// bounds judge.
    pub blind: bool,
    /// The operands and coins of the integer side's truncations.
    pub truncated: Vec<Replayed>,
    /// The operands of the tested side's truncations; empty if it records none.
    pub tested_truncated: Vec<Truncated>,
    /// Operands of the integer side that left their range.
    pub violations: Monitor,
    /// Why the integer side cannot have drawn the coins, if so. The difference lies in a tensor before.
    pub refused: Option<Error>,
    /// Why the tested side did not finish the step, if so. No side has tensors then.
    pub stopped: Option<Error>,
}

impl Trace {
    /// A step that no side has taken yet.
    pub fn new(step: usize, spec: &TrainSpec, tested_name: &'static str, start: Option<Start>, batch: Batch) -> Self {
        Trace {
            step,
            spec: spec.clone(),
            tested_name,
            start,
            batch,
            real: Computed::default(),
            integer: Computed::default(),
            tested: Computed::default(),
            coins: Tape::default(),
            blind: false,
            truncated: Vec::new(),
            tested_truncated: Vec::new(),
            violations: Monitor::default(),
            refused: None,
            stopped: None,
        }
    }

    /// Whether all three sides finished the step.
    pub fn complete(&self) -> bool {
        self.refused.is_none() && self.stopped.is_none()
    }

    /// The cost of the step for the real, the integer and the tested side.
    pub fn spent(&self) -> [Spent; 3] {
        [self.real.spent, self.integer.spent, self.tested.spent]
    }
}
