//! Faults that can be planted on purpose, to prove that a tester finds them.
//!
//! Only a build with the feature `faults` can plant one. In any other build `faulty!` leaves nothing but the right
//! expression.
//!
//! Each fault is one that real systems have shipped or that a porter would make. It is planted at one place, named by
//! the protocol or layer that it breaks; the places are listed in the order in which they depend on one another. Where
//! the wrong code is more than an expression it stands in a file of this folder, so that a protocol's file shows the
//! protocol.

#[cfg(feature = "faults")]
pub(crate) mod batch;
#[cfg(feature = "faults")]
pub(crate) mod prg;
#[cfg(feature = "faults")]
pub(crate) mod truncate;

/// An expression with a wrong twin: `faulty!(HalfMissing => 0, 1 << (shift - 1))` is 0 while the fault `HalfMissing` is
/// planted and `1 << (shift - 1)` otherwise. Several faults can stand before the right expression. A
/// fault without a right expression is done besides. Without the feature `faults` no wrong expression is compiled.
#[cfg(feature = "faults")]
macro_rules! faulty {
    ($fault:ident => $wrong:expr, $other:ident => $($rest:tt)+) => {
        if $crate::fault::planted($crate::fault::Fault::$fault) {
            $wrong
        } else {
            $crate::fault::faulty!($other => $($rest)+)
        }
    };
    ($fault:ident => $wrong:expr, $right:expr $(,)?) => {
        if $crate::fault::planted($crate::fault::Fault::$fault) { $wrong } else { $right }
    };
    ($fault:ident => $wrong:expr) => {
        if $crate::fault::planted($crate::fault::Fault::$fault) {
            $wrong
        }
    };
}

/// The right expression: this build cannot plant faults.
#[cfg(not(feature = "faults"))]
macro_rules! faulty {
    ($fault:ident => $wrong:expr, $other:ident => $($rest:tt)+) => {
        $crate::fault::faulty!($other => $($rest)+)
    };
    ($fault:ident => $wrong:expr, $right:expr $(,)?) => {
        $right
    };
    ($fault:ident => $wrong:expr) => {};
}
pub(crate) use faulty;

spec::fault_catalogue! {
    SeedFixed, "seed-fixed", "prg", "the parties' seeds are a constant instead of fresh randomness";
    StreamReused, "stream-reused", "prg", "every protocol call draws the same words of a stream";
    StreamNarrow, "stream-narrow", "prg", "masks have 32 random bits instead of 64";
    InputUnmasked, "input-unmasked", "input", "party 0 shares a value with mask 0: party 1 sees it";
    AndUnmasked, "and-unmasked", "and", "conjunctions are reshared without a sharing of zero";
    AndCrossTerm, "and-cross-term", "and", "a cross term of the conjunction is left out";
    AndOdd, "and-odd", "and", "a conjunction of an odd number of factors drops the last one";
    ReshareUnmasked, "zero-shares-zero", "multiply", "products are reshared with zero shares that are all zero";
    ReshareOneSided, "zero-shares-do-not-cancel", "multiply", "one party adds to its zero share and does not subtract";
    CrossTerm, "product-cross-term", "multiply", "party 2 leaves out one cross term of a product";
    WeightForgotten, "weight-forgotten", "matmul", "party 2 takes the component that it doubles on the left only once \
        on the right";
    DifferenceOnce, "difference-once", "matmul", "party 0 subtracts the product of the differences once instead of \
        twice";
    LostCarry, "lost-carry", "adder", "the carry from the lower half of the bits is lost at the last level";
    SumCarry, "sum-carry", "adder", "a carry does not run on through a position that propagates";
    AdderUnmasked, "adder-unmasked", "adder", "the indicator of party 0's digits goes out without its mask";
    AnswerMask, "answer-mask", "adder", "parties 1 and 2 mask their answers to party 0 with the same words";
    SignWidth, "sign-width", "compare", "the sign is taken from one bit below the top of the value";
    SignOffByOne, "sign-off-by-one", "compare", "a comparison with zero is off by one unit";
    SignTop, "sign-top", "compare", "the sign lacks the top bit of the second summand";
    BitNotBit, "bit-not-bit", "convert", "the exclusive or of two bits becomes their sum, which can be 2";
    BitScaled, "bit-scaled", "convert", "a bit is handed out at the scale of fixed-point values";
    Replicas, "replicas-disagree", "convert", "the two copies of a share component differ by one";
    BitUnmasked, "bit-unmasked", "convert", "parties 1 and 2 return their products to party 0 without masks";
    SelectSign, "select-sign", "select", "a bit times a value takes the wrong sign of the second summand where the bit \
        is set";
    SelectUnmasked, "select-unmasked", "select", "party 0's half of the value goes to party 1 without its mask";
    MessageShort, "message-short", "select", "the last word of a message is not sent";
    LocalTruncation, "local-truncation", "truncate", "each share is shifted by itself: off by the ring's size with \
        probability |v| / 2^64";
    BothFloored, "both-shares-floored", "truncate", "both shares are floored: every result is one unit low";
    HalfMissing, "half-missing", "truncate", "nearest rounding without the half: it floors";
    TiesDown, "ties-down", "truncate", "nearest rounding rounds ties down";
    BorrowDropped, "borrow-dropped", "truncate", "nearest rounding drops the borrow between the two summands";
    TruncateUnmasked, "truncate-unmasked", "truncate", "party 2's part of the product goes to party 1 without its mask";
    MaskLowBits, "mask-low-bits", "truncate", "the mask has zeros where the coin is decided: the coin depends on the \
        shares alone";
    ResultUnmasked, "result-unmasked", "truncate", "party 1's part of the result goes to party 0 without its mask";
    PieceOffset, "piece-offset", "truncate", "the mask of a product starts anew with every piece of 1024 elements";
    NormaliseFirst, "normalise-first", "normalise", "every element is normalised by the first element's power of two";
    NormaliseZero, "normalise-zero", "normalise", "zero is not treated as one";
    InverseStep, "inverse-step", "divide", "the last Goldschmidt step is missing";
    ReciprocalFirst, "reciprocal-then-multiply", "divide", "quotients are products with a reciprocal that was rounded \
        before";
    ExpTail, "exp-tail", "exponential", "exp of a very negative number is not 0";
    ExpCoefficient, "exp-coefficient", "exponential", "the last coefficient of the exponential's polynomial is off by \
        one percent";
    LogCoefficient, "log-coefficient", "logarithm", "the last term of the logarithm's polynomial is left out";
    MaximumPower, "maximum-power-of-two", "argmax", "the winner is compared with a power of two of rivals only";
    TiesHighest, "ties-highest", "argmax", "argmax resolves ties to the highest index";
    Unit, "one-unit-everywhere", "dense/forward", "every pre-activation is one unit high: less than the error bound";
    BiasShift, "bias-shift", "dense/forward", "the bias is added at the scale of values, not of products";
    ReluAtZero, "relu-at-zero", "dense/relu", "the derivative of ReLU is 1 at zero";
    NotTransposed, "not-transposed", "dense/backward", "the gradient passes through the weights untransposed";
    MaskForgotten, "mask-forgotten", "dense/backward", "the gradient passes where ReLU was inactive";
    BiasGradient, "bias-gradient-missing", "dense/gradients", "the gradient of the bias is zero";
    MaximumOfBatch, "maximum-of-batch", "head/softmax", "the maximum over the batch is subtracted, not that of the row";
    NoMaximum, "no-maximum", "head/softmax", "no maximum is subtracted before exp";
    LabelScale, "label-scale", "head/softmax", "labels are subtracted at half their scale";
    ReluGradZero, "relu-grad-zero", "head/relu-grad", "a row without a positive logit takes probability 1/L instead of \
        0";
    EpsilonStrict, "epsilon-strict", "head/relu-prob", "a logit equal to epsilon does not reach it";
    SumCut, "sum-cut", "head/relu-prob", "the sum takes the logits above epsilon only, as relu-prob-cut does";
    EpsilonDown, "epsilon-down", "head/relu-prob", "epsilon is encoded rounding down";
    ThresholdScale, "threshold-scale", "head/relu-prob-cut", "epsilon is encoded with eight fraction bits, the logits \
        with sixteen";
    Regulariser, "regulariser-missing", "head/relu-eps", "the true logit lacks its regulariser of one unit";
    BatchSize, "batch-size", "sgd", "the gradient is divided by half the batch size";
    RateDown, "rate-down", "sgd", "the learning rate is encoded one unit low";
    MomentumTwice, "momentum-twice", "sgd", "momentum is applied twice";
    StaleBatch, "stale-batch", "train", "the last batch of a run finds the images of the batch before in its buffer";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_nothing_is_planted_unasked() {
        assert!(Fault::ALL.len() >= 40);
        let names: std::collections::BTreeSet<_> = Fault::ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(Fault::ALL.iter().all(|&f| !planted(f) && !f.description().is_empty()));
    }
}
