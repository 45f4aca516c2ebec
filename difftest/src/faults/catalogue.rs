//! Every fault that can be planted, in the engine or in the specification that all sides share, and the kind of mistake
//! that it is, in the words of the causes of differences.

use crate::explain::cause::Cause;
use secure::fault::Fault;

/// A fault of the engine or of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyFault {
    /// A fault of the secure engine: the other sides differ from it.
    Engine(Fault),
    /// A fault of the specification: all sides have it.
    Specification(spec::fault::Fault),
}

impl From<Fault> for AnyFault {
    fn from(fault: Fault) -> Self {
        AnyFault::Engine(fault)
    }
}

impl From<spec::fault::Fault> for AnyFault {
    fn from(fault: spec::fault::Fault) -> Self {
        AnyFault::Specification(fault)
    }
}

impl AnyFault {
    /// The whole catalogue: the engine's faults, then the specification's.
    pub fn all() -> Vec<AnyFault> {
        let engine = Fault::ALL.iter().map(|&f| f.into());
        engine.chain(spec::fault::Fault::ALL.iter().map(|&f| f.into())).collect()
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            AnyFault::Engine(f) => f.name(),
            AnyFault::Specification(f) => f.name(),
        }
    }

    /// The protocol, layer or constant that the fault breaks.
    pub const fn place(self) -> &'static str {
        match self {
            AnyFault::Engine(f) => f.place(),
            AnyFault::Specification(f) => f.place(),
        }
    }

    /// What goes wrong, in one line.
    pub const fn description(self) -> &'static str {
        match self {
            AnyFault::Engine(f) => f.description(),
            AnyFault::Specification(f) => f.description(),
        }
    }

    /// The cause that the battery should name.
    pub const fn cause(self) -> Cause {
        match self {
            AnyFault::Engine(f) => cause(f),
            AnyFault::Specification(_) => Cause::Encoding,
        }
    }
}

/// The cause that the battery should name for a fault of the engine.
pub const fn cause(fault: Fault) -> Cause {
    match fault {
        // A constant, threshold or datum at the wrong value or scale.
        Fault::BitScaled
        | Fault::BiasShift
        | Fault::LabelScale
        | Fault::SumCut
        | Fault::EpsilonDown
        | Fault::ThresholdScale
        | Fault::Regulariser
        | Fault::BatchSize
        | Fault::RateDown
        | Fault::MomentumTwice => Cause::Encoding,
        // A truncation that rounds as it must not.
        Fault::BothFloored | Fault::HalfMissing | Fault::TiesDown | Fault::Unit => Cause::Rounding,
        // An algorithm that is not as near to its function as it promises.
        Fault::InverseStep | Fault::ReciprocalFirst | Fault::ExpCoefficient | Fault::LogCoefficient => {
            Cause::Approximation
        }
        // Something that works only for a part of the range.
        Fault::SignWidth
        | Fault::LocalTruncation
        | Fault::BorrowDropped
        | Fault::ExpTail
        | Fault::MaximumOfBatch
        | Fault::NoMaximum => Cause::Range,
        // A comparison that goes the wrong way exactly at its threshold, or a special case left out.
        Fault::SignOffByOne
        | Fault::NormaliseZero
        | Fault::TiesHighest
        | Fault::ReluAtZero
        | Fault::ReluGradZero
        | Fault::EpsilonStrict => Cause::Branch,
        // Algebra, masks, copies or messages that are not those of the protocol: wrong for any operand.
        Fault::SeedFixed
        | Fault::StreamReused
        | Fault::StreamNarrow
        | Fault::InputUnmasked
        | Fault::AndUnmasked
        | Fault::AndCrossTerm
        | Fault::AndOdd
        | Fault::ReshareUnmasked
        | Fault::ReshareOneSided
        | Fault::CrossTerm
        | Fault::WeightForgotten
        | Fault::DifferenceOnce
        | Fault::LostCarry
        | Fault::SumCarry
        | Fault::AdderUnmasked
        | Fault::AnswerMask
        | Fault::SignTop
        | Fault::BitNotBit
        | Fault::Replicas
        | Fault::BitUnmasked
        | Fault::SelectSign
        | Fault::SelectUnmasked
        | Fault::MessageShort
        | Fault::TruncateUnmasked
        | Fault::MaskLowBits
        | Fault::ResultUnmasked
        | Fault::PieceOffset
        | Fault::NormaliseFirst
        | Fault::MaximumPower
        | Fault::NotTransposed
        | Fault::MaskForgotten
        | Fault::BiasGradient
        | Fault::StaleBatch => Cause::Protocol,
    }
}
