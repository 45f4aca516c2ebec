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

    /// The mistake that the fault makes, in one line.
    pub const fn description(self) -> &'static str {
        match self {
            AnyFault::Engine(f) => f.description(),
            AnyFault::Specification(f) => f.description(),
        }
    }

    /// The cause that the suite should name.
    pub const fn cause(self) -> Cause {
        match self {
            AnyFault::Engine(f) => cause(f),
            AnyFault::Specification(_) => Cause::Encoding,
        }
    }
}

/// The cause that the suite should name for a fault of the engine.
pub const fn cause(fault: Fault) -> Cause {
    use Fault::*;
    match fault {
        // A constant, threshold or datum at the wrong value or scale.
        BitScaled | BiasShift | LabelScale | SumCut | EpsilonDown | ThresholdScale | Regulariser | BatchSize
        | RateDown | MomentumTwice => Cause::Encoding,
        // A truncation that rounds as it must not.
        BothFloored | HalfMissing | TiesDown | Unit => Cause::Rounding,
        // An algorithm that is not as near to its function as it promises.
        InverseStep | ReciprocalFirst | ExpCoefficient | LogCoefficient => Cause::Approximation,
        // Something that works only for a part of the range.
        SignWidth | LocalTruncation | BorrowDropped | ExpTail | MaximumOfBatch | NoMaximum => Cause::Range,
        // A comparison that goes the wrong way exactly at its threshold, or a special case left out.
        SignOffByOne | NormaliseZero | TiesHighest | ReluAtZero | ReluGradZero | EpsilonStrict => Cause::Branch,
        // Algebra, masks, copies or messages that are not those of the protocol: wrong for any operand.
        SeedFixed | StreamReused | StreamNarrow | InputUnmasked | AndUnmasked | AndCrossTerm | AndOdd
        | ReshareUnmasked | ReshareOneSided | CrossTerm | WeightForgotten | DifferenceOnce | LostCarry | SumCarry
        | AdderUnmasked | AnswerMask | SignTop | BitNotBit | Replicas | BitUnmasked | SelectSign | SelectUnmasked
        | MessageShort | TruncateUnmasked | MaskLowBits | ResultUnmasked | PieceOffset | NormaliseFirst
        | MaximumPower | NotTransposed | MaskForgotten | BiasGradient | StaleBatch => Cause::Protocol,
    }
}
