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

/// What kind of mistake a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A constant, threshold or datum at the wrong value or scale.
    Encoding,
    /// A truncation that rounds as it must not.
    Rounding,
    /// An algorithm that is not as near to its function as it promises.
    Approximation,
    /// Something that works only for a part of the range.
    Range,
    /// A comparison that goes the wrong way exactly at its threshold, or a special case left out.
    Branch,
    /// Algebra, masks, copies or messages that are not those of the protocol: wrong for any operand.
    Protocol,
}

impl Cause {
    /// In lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Encoding => "encoding",
            Cause::Rounding => "rounding",
            Cause::Approximation => "approximation",
            Cause::Range => "range",
            Cause::Branch => "branch",
            Cause::Protocol => "protocol",
        }
    }
}

macro_rules! catalogue {
    ($($fault:ident, $name:literal, $place:literal, $cause:ident, $what:literal;)*) => {
        /// A fault of the catalogue.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $what] $fault,)*
        }

        impl Fault {
            /// The whole catalogue.
            pub const ALL: &[Fault] = &[$(Fault::$fault,)*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$fault => $name,)* }
            }

            /// The protocol or layer that it breaks.
            pub const fn place(self) -> &'static str {
                match self { $(Fault::$fault => $place,)* }
            }

            /// What kind of mistake it is.
            pub const fn cause(self) -> Cause {
                match self { $(Fault::$fault => Cause::$cause,)* }
            }

            /// What goes wrong, in one line.
            pub const fn description(self) -> &'static str {
                match self { $(Fault::$fault => $what,)* }
            }
        }
    };
}

catalogue! {
    SeedFixed, "seed-fixed", "prg", Protocol, "the parties' seeds are a constant instead of fresh randomness";
    StreamReused, "stream-reused", "prg", Protocol, "every protocol call draws the same words of a stream";
    StreamNarrow, "stream-narrow", "prg", Protocol, "masks have 32 random bits instead of 64";
    InputUnmasked, "input-unmasked", "input", Protocol, "party 0 shares a value with mask 0: party 1 sees it";
    AndUnmasked, "and-unmasked", "and", Protocol, "conjunctions are reshared without a sharing of zero";
    AndCrossTerm, "and-cross-term", "and", Protocol, "a cross term of the conjunction is left out";
    AndOdd, "and-odd", "and", Protocol, "a conjunction of an odd number of factors drops the last one";
    ReshareUnmasked, "zero-shares-zero", "multiply", Protocol, "products are reshared with zero shares that are all zero";
    ReshareOneSided, "zero-shares-do-not-cancel", "multiply", Protocol, "one party adds to its zero share and does not subtract";
    CrossTerm, "product-cross-term", "multiply", Protocol, "party 2 leaves out one cross term of a product";
    WeightForgotten, "weight-forgotten", "matmul", Protocol, "party 2 takes the component that it doubles on the left only once on the right";
    DifferenceOnce, "difference-once", "matmul", Protocol, "party 0 subtracts the product of the differences once instead of twice";
    LostCarry, "lost-carry", "adder", Protocol, "the carry from the lower half of the bits is lost at the last level";
    SumCarry, "sum-carry", "adder", Protocol, "a carry does not run on through a position that propagates";
    AdderUnmasked, "adder-unmasked", "adder", Protocol, "the indicator of party 0's digits goes out without its mask";
    AnswerMask, "answer-mask", "adder", Protocol, "parties 1 and 2 mask their answers to party 0 with the same words";
    SignWidth, "sign-width", "compare", Range, "the sign is taken from one bit below the top of the value";
    SignOffByOne, "sign-off-by-one", "compare", Branch, "a comparison with zero is off by one unit";
    SignTop, "sign-top", "compare", Protocol, "the sign lacks the top bit of the second summand";
    BitNotBit, "bit-not-bit", "convert", Protocol, "the exclusive or of two bits becomes their sum, which can be 2";
    BitScaled, "bit-scaled", "convert", Encoding, "a bit is handed out at the scale of fixed-point values";
    Replicas, "replicas-disagree", "convert", Protocol, "the two copies of a share component differ by one";
    BitUnmasked, "bit-unmasked", "convert", Protocol, "parties 1 and 2 return their products to party 0 without masks";
    SelectSign, "select-sign", "select", Protocol, "a bit times a value takes the wrong sign of the second summand where the bit is set";
    SelectUnmasked, "select-unmasked", "select", Protocol, "party 0's half of the value goes to party 1 without its mask";
    MessageShort, "message-short", "select", Protocol, "the last word of a message is not sent";
    LocalTruncation, "local-truncation", "truncate", Range, "each share is shifted by itself: off by the ring's size with probability |v| / 2^64";
    BothFloored, "both-shares-floored", "truncate", Rounding, "both shares are floored: every result is one unit low";
    HalfMissing, "half-missing", "truncate", Rounding, "nearest rounding without the half: it floors";
    TiesDown, "ties-down", "truncate", Rounding, "nearest rounding rounds ties down";
    BorrowDropped, "borrow-dropped", "truncate", Range, "nearest rounding drops the borrow between the two summands";
    TruncateUnmasked, "truncate-unmasked", "truncate", Protocol, "party 2's part of the product goes to party 1 without its mask";
    MaskLowBits, "mask-low-bits", "truncate", Protocol, "the mask has zeros where the coin is decided: the coin depends on the shares alone";
    ResultUnmasked, "result-unmasked", "truncate", Protocol, "party 1's part of the result goes to party 0 without its mask";
    PieceOffset, "piece-offset", "truncate", Protocol, "the mask of the product starts anew with every piece of 1024 elements";
    NormaliseFirst, "normalise-first", "normalise", Protocol, "every element is normalised by the first element's power of two";
    NormaliseZero, "normalise-zero", "normalise", Branch, "zero is not treated as one";
    InverseStep, "inverse-step", "divide", Approximation, "the last Goldschmidt step is missing";
    ReciprocalFirst, "reciprocal-then-multiply", "divide", Approximation, "quotients are products with a reciprocal that was rounded before";
    ExpTail, "exp-tail", "exponential", Range, "exp of a very negative number is not 0";
    ExpCoefficient, "exp-coefficient", "exponential", Approximation, "the last coefficient of the exponential's polynomial is off by one percent";
    LogCoefficient, "log-coefficient", "logarithm", Approximation, "the last term of the logarithm's polynomial is left out";
    MaximumPower, "maximum-power-of-two", "argmax", Protocol, "the winner is compared with a power of two of rivals only";
    TiesHighest, "ties-highest", "argmax", Branch, "argmax resolves ties to the highest index";
    Unit, "one-unit-everywhere", "dense/forward", Rounding, "every pre-activation is one unit high: less than the error bound";
    BiasShift, "bias-shift", "dense/forward", Encoding, "the bias is added at the scale of values, not of products";
    ReluAtZero, "relu-at-zero", "dense/relu", Branch, "the derivative of ReLU is 1 at zero";
    NotTransposed, "not-transposed", "dense/backward", Protocol, "the gradient passes through the weights untransposed";
    MaskForgotten, "mask-forgotten", "dense/backward", Protocol, "the gradient passes where ReLU was inactive";
    BiasGradient, "bias-gradient-missing", "dense/gradients", Protocol, "the gradient of the bias is zero";
    MaximumOfBatch, "maximum-of-batch", "head/softmax", Range, "the maximum over the batch is subtracted, not that of the row";
    NoMaximum, "no-maximum", "head/softmax", Range, "no maximum is subtracted before exp";
    LabelScale, "label-scale", "head/softmax", Encoding, "labels are subtracted at half their scale";
    ReluGradZero, "relu-grad-zero", "head/relu-grad", Branch, "a row without a positive logit takes probability 1/L instead of 0";
    EpsilonStrict, "epsilon-strict", "head/relu-prob", Branch, "a logit equal to epsilon does not reach it";
    SumCut, "sum-cut", "head/relu-prob", Encoding, "the sum takes the logits above epsilon only, as relu-prob-cut does";
    EpsilonDown, "epsilon-down", "head/relu-prob", Encoding, "epsilon is encoded rounding down";
    ThresholdScale, "threshold-scale", "head/relu-prob-cut", Encoding, "epsilon is encoded with eight fraction bits, the logits with sixteen";
    Regulariser, "regulariser-missing", "head/relu-eps", Encoding, "the true logit lacks its regulariser of one unit";
    BatchSize, "batch-size", "sgd", Encoding, "the gradient is divided by half the batch size";
    RateDown, "rate-down", "sgd", Encoding, "the learning rate is encoded one unit low";
    MomentumTwice, "momentum-twice", "sgd", Encoding, "momentum is applied twice";
    StaleBatch, "stale-batch", "train", Protocol, "the last batch of a run finds the images of the batch before in its buffer";
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(feature = "faults")]
pub use selection::plant;
#[cfg(feature = "faults")]
pub(crate) use selection::planted;

#[cfg(feature = "faults")]
mod selection {
    use super::Fault;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// 0: none; k + 1: the k-th fault.
    static PLANTED: AtomicUsize = AtomicUsize::new(0);

    /// Plants one fault in the whole process, or none. Set it before the parties start.
    pub fn plant(fault: Option<Fault>) {
        PLANTED.store(fault.map_or(0, |f| f as usize + 1), Ordering::SeqCst);
    }

    pub(crate) fn planted(fault: Fault) -> bool {
        PLANTED.load(Ordering::Relaxed) == fault as usize + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_nothing_is_planted_unasked() {
        assert!(Fault::ALL.len() >= 40);
        let names: std::collections::BTreeSet<_> = Fault::ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(Fault::ALL.iter().all(|&f| !f.description().is_empty()));
        #[cfg(feature = "faults")]
        assert!(Fault::ALL.iter().all(|&f| !planted(f)));
    }
}
