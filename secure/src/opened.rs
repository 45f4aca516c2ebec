//! The values that the client outside of the three parties holds in the clear: parameters, probes, roundings, the
//! results of a head.

use crate::cost::Spent;
use crate::id::PartyId;
use crate::net::recorded::Sent;
use spec::{Layer, ProbePoint};

/// The opened parameters of one layer: ring units, row-major.
pub type LayerUnits = Layer<Vec<i64>>;

/// The opened parameters of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterUnits {
    /// One entry for each layer, the input's first.
    pub layers: Vec<LayerUnits>,
}

/// A tensor of the training step that the client has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The tensor's place in the training step.
    pub point: ProbePoint,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    /// Row-major, at the point's scale.
    pub units: Vec<i64>,
}

/// The rounding of one truncation, put together from the views of parties 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundingRecord {
    /// The truncation's name in the arithmetic specification.
    pub name: String,
    /// Bits that were cut off.
    pub shift: u32,
    /// c of each element (empty with nearest rounding).
    pub coins: Vec<bool>,
    /// (index, e) of each element whose operand left the range so that the protocol's borrow was wrong.
    pub wraps: Vec<(usize, i8)>,
    /// V of each element, modulo 2^64.
    pub operands: Vec<i64>,
}

/// The results of one recorded step.
#[derive(Debug, Clone, Default)]
pub struct StepReport {
    /// Probed tensors, in the order of execution.
    pub probes: Vec<Probe>,
    /// Roundings, in the order of execution.
    pub rounding: Vec<RoundingRecord>,
    /// The protocol that wrote each range of words, with the sending party.
    pub sent: Vec<(PartyId, Sent)>,
    /// The first party, if any, that drew the same words of a stream twice in this step: the call's number and the
    /// purpose.
    pub reused: Option<String>,
    /// The cost of the step, of all parties together.
    pub spent: Spent,
    /// Wall time of the step.
    pub seconds: f64,
}

/// The results of a head on given logits.
#[derive(Debug, Clone)]
pub struct HeadReport {
    /// (batch, classes), scale f.
    pub probabilities: Vec<i64>,
    /// Per row, scale f; the inner `None` is an infinite loss; `None` if the head has no loss.
    pub loss: Option<Vec<Option<i64>>>,
    /// (batch, classes), scale f.
    pub gradient: Vec<i64>,
    /// The rounding of every truncation.
    pub rounding: Vec<RoundingRecord>,
}
