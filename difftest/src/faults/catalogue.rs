//! The kind of mistake that each planted fault is, in the words of the causes of differences.

use crate::explain::cause::Cause;
use secure::fault::Fault;

/// The cause that the battery should name for a fault.
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
