//! An attempt at training at one learning rate: its epochs, its verdict, and the cost of a cell.

use super::setup::Setup;
use crate::check::divergence::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One pass over the training rows. What a side does not look at is `None`; [`f64::MAX`] stands for anything that is
/// not finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Steps taken: fewer than a whole epoch only where the integer side left its range.
    pub steps: usize,
    /// Wall-clock seconds of training alone: evaluation, opening and looking are not in it. Only secure cells have the
    /// machine for themselves.
    pub seconds: f64,
    /// Secure side: processor seconds of this process in that time, all threads.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// Secure side: processor seconds that the machine's other processes took in that time. On a quiet machine they are
    /// few.
    #[serde(default)]
    pub other_cpu_seconds: Option<f64>,
    /// Secure side, its first [`PAIRED`](crate::paper::train::PAIRED) epochs: wall-clock seconds of the same steps in real numbers
    /// without probes, taken in turn with them on the otherwise idle machine, each batch made ready before the clock
    /// starts.
    pub plain_seconds: Option<f64>,
    /// Test rows classified correctly at its end.
    pub correct: usize,
    /// Mean loss of the training rows whose loss is finite, real.
    pub loss: Option<f64>,
    /// Training rows whose loss is infinite (`relu-prob`: true logit not positive).
    pub infinite_losses: Option<usize>,
    /// Largest mean loss of a batch, over its finite rows.
    pub largest_batch_loss: Option<f64>,
    /// Largest |logit|, real: of the training rows at any step, or on the secure side of the test rows at the end of
    /// the epoch, computed in real numbers from the opened weights.
    pub largest_logit: Option<f64>,
    /// Largest |weight| or |bias|, real: after any step, or on the secure side at the end of the epoch.
    pub largest_weight: Option<f64>,
    /// Largest element of the head's gradient, real.
    pub largest_gradient: Option<f64>,
    /// Units of each hidden layer that were not positive for any row (the same rows as for the logits).
    pub dead_units: Vec<usize>,
    /// Integer model: error against real numbers and its proven bound in one step from the weights at its end, on its
    /// first batch, inside the range; by tensor (`logits`, `head_gradient`, `layerN/dW`).
    pub nearness: BTreeMap<String, Nearness>,
    /// The weights at its end ([`sketch`](crate::bound::sketch)); empty if one is not finite.
    pub sketch: Vec<f32>,
}

impl Epoch {
    /// Test accuracy, 0 to 1.
    pub fn accuracy(&self, setup: &Setup) -> f64 {
        self.correct as f64 / setup.test_rows.max(1) as f64
    }
}

/// How near one tensor of a step came to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Nearness {
    /// Largest |integer side - real numbers|, units of 2^-f.
    pub error: f64,
    /// The bound of that element, units of 2^-f.
    pub bound: f64,
    /// Largest error / bound of any element.
    pub closest: f64,
    /// Elements outside their bound.
    pub outside: u64,
}

/// One attempt at training, at one learning rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The learning rate, real.
    pub learning_rate: f64,
    /// The epochs of the attempt, in order.
    pub epochs: Vec<Epoch>,
    /// The verdict on the attempt, with step and cause.
    pub verdict: Verdict,
    /// Why it ended before its time, if it did.
    pub ended: Option<String>,
    /// First step after which a logit was seen beyond the fixed-point range, whatever the verdict is about.
    pub logits_leave: Option<usize>,
    /// Integer model: operands out of range in the step that ended the attempt, by operation.
    pub violations: BTreeMap<String, u64>,
}

/// The messages and bytes that training sent, by protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Rounds in which it took part; protocols share rounds.
    pub rounds: u64,
    /// Bytes, all parties.
    pub bytes: u64,
}

/// The cost of a cell's training, of all parties; its evaluation is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The number of training steps.
    pub steps: u64,
    /// The communication rounds.
    pub rounds: u64,
    /// The messages of all parties.
    pub messages: u64,
    /// The bytes that all parties sent.
    pub bytes: u64,
    /// By name of the protocol.
    pub by_protocol: BTreeMap<String, Sent>,
}
