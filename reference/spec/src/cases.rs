//! Boundary operands for the tests of every implementation of the arithmetic, each with the reason why it is here.
//!
//! The tests of the integer model, of the protocols and of the planted faults read these lists, and add random operands
//! to them. An operand that once told a right implementation from a wrong one is added with its story.
//!
//! The macros `by_rounding` and `by_head` make tests of every rounding and of every head and rounding, each with a name
//! of its own.

/// An operand of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The operand, as an element of the ring or in units.
    pub value: i64,
    /// The reason why a test should have it.
    pub why: &'static str,
}

const fn case(value: i64, why: &'static str) -> Case {
    Case { value, why }
}

/// The operands of a list, in order.
pub fn values(cases: &[Case]) -> impl Iterator<Item = i64> {
    cases.iter().map(|case| case.value)
}

/// Elements of the ring for every operation that is exact or is defined out of its range as well.
pub const RING: &[Case] = &[
    case(0, "the neutral element; a product with it leaves no carry and no borrow"),
    case(1, "one unit"),
    case(-1, "one unit below zero: every bit of the ring is set"),
    case(2, "twice a unit, where doubled products end in the same bit as the value"),
    case(-2, "minus twice a unit"),
    case(1 << 15, "half of one with 16 fraction bits: a tie of nearest rounding"),
    case(1 << 16, "one with 16 fraction bits: an exact multiple, which no coin may move"),
    case(-(1 << 16), "minus one: an exact multiple below zero"),
    case((5 << 16) + 1, "one unit above an exact multiple: the least probable coin"),
    case((5 << 16) + (1 << 15), "a tie above an exact multiple"),
    case(1 << 30, "half of the ordinary range, where a comparison needs the top bit of a value"),
    case(-(1 << 30), "minus half of the ordinary range"),
    case((1 << 31) - 1, "the largest ordinary value with 32 value bits"),
    case(1 << 31, "the first value out of the ordinary range"),
    case(-(1 << 31), "the least number of 32 bits; its negative is none"),
    case(1 << 46, "a product of two large values"),
    case(-(1 << 46), "minus such a product"),
    case(1 << 61, "the limit of matrix products, which are known modulo 2^63 only"),
    case(-(1 << 61), "minus that limit, which is inside"),
    case((1 << 61) + 77, "beyond the limit of matrix products by less than a truncation cuts off"),
    case((1 << 62) - 1, "the largest unreduced value"),
    case(1 << 62, "the first value that the offset of a truncation carries over the top bit"),
    case(-(1 << 62), "the least unreduced value, which the offset brings to zero"),
    case(-(1 << 62) - 1, "the first value that the offset leaves negative: the borrow is lost"),
    case(i64::MIN, "the least element; it is its own negative"),
    case(i64::MAX, "the largest element"),
];

/// Arguments of the exponential with 16 fraction bits, in its domain and beyond.
pub const EXPONENTIAL: &[Case] = &[
    case(0, "exp(0) is exactly 1, whatever the polynomial"),
    case(-1, "one unit below zero: integer part -1, fraction nearly 1"),
    case(-2, "two units below zero"),
    case(-65536, "exp(-1)"),
    case(-772_000, "just above the cut"),
    case(-772_243, "the cut, 17 ln 2: the last value that does not round to zero"),
    case(-772_244, "the first value that is cut off"),
    case(-786_432, "far enough below the cut that a missing cut shows"),
    case(-(1 << 31) + 1, "the least ordinary value: a shift by the integer part alone would wrap"),
    case(1, "out of the domain by one unit"),
    case(1 << 20, "out of the domain by far: the integer part is positive"),
    case(45_426, "integer part 0 modulo 32, where the polynomial carries into the power of two"),
    case(90_851, "the last argument of that kind"),
];

/// Divisors with 16 fraction bits.
pub const DIVISORS: &[Case] = &[
    case(0, "a sum without a positive term: the division takes one unit in its place"),
    case(1, "one unit, the smallest divisor: its reciprocal is the largest"),
    case(2, "the smallest divisor with a bit below the leading one"),
    case(3, "two leading ones"),
    case((1 << 16) - 1, "just below one: normalised by another power of two than one"),
    case(1 << 16, "one: quotient and reciprocal are exact"),
    case((1 << 16) + 1, "just above one"),
    case((1 << 20) - 1, "just below a power of two: the start of Goldschmidt's iteration is worst near both ends"),
    case(1 << 20, "a power of two"),
    case((1 << 24) + 1, "just above a large power of two"),
];

/// Logits with threshold `epsilon`, in units.
pub fn logits(epsilon: i64) -> [Case; 9] {
    [
        case(0, "the derivative of ReLU is 0 at 0"),
        case(1, "the least positive logit"),
        case(-1, "the largest negative logit"),
        case(epsilon - 1, "one unit below the threshold"),
        case(epsilon, "the threshold itself, which `relu-prob` counts as above and `relu-prob-cut` as below"),
        case(epsilon + 1, "one unit above the threshold"),
        case(2 * epsilon, "above the threshold for whoever encodes it at twice its value"),
        case(65_536, "one, where a logit and its reciprocal are equal"),
        case(-65_536, "minus one"),
    ]
}

/// Makes a test of each rounding: `case(arguments.., rounding)`.
#[doc(hidden)]
#[macro_export]
macro_rules! by_rounding {
    ($case:path $(, $argument:expr)*) => {
        #[test]
        fn nearest() {
            $case($($argument,)* $crate::Rounding::Nearest);
        }

        #[test]
        fn probabilistic() {
            $case($($argument,)* $crate::Rounding::Probabilistic);
        }
    };
}

/// Makes a test of each head and rounding, `case(arguments.., head, rounding)`, and the list `HEADS` of those heads,
/// which a test of coverage compares with [`Head::ALL`](crate::Head::ALL).
#[doc(hidden)]
#[macro_export]
macro_rules! by_head {
    ($case:path $(, $argument:expr)*) => {
        $crate::by_head!(@ $case, ($($argument),*), softmax Softmax);
        $crate::by_head!(@ $case, ($($argument),*), relu_prob ReluProb);
        $crate::by_head!(@ $case, ($($argument),*), relu_prob_cut ReluProbCut);
        $crate::by_head!(@ $case, ($($argument),*), relu_grad ReluGrad);
        $crate::by_head!(@ $case, ($($argument),*), relu_eps ReluEps);

        pub const HEADS: &[$crate::Head] =
            &[softmax::HEAD, relu_prob::HEAD, relu_prob_cut::HEAD, relu_grad::HEAD, relu_eps::HEAD];
    };
    (@ $case:path, ($($argument:expr),*), $name:ident $head:ident) => {
        mod $name {
            use super::*;

            pub const HEAD: $crate::Head = $crate::Head::$head;

            $crate::by_rounding!($case $(, $argument)*, HEAD);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FixedSpec;
    use std::collections::BTreeSet;

    #[test]
    fn every_operand_is_listed_once_and_says_why() {
        for cases in [RING, EXPONENTIAL, DIVISORS, &logits(6554)] {
            assert_eq!(values(cases).collect::<BTreeSet<_>>().len(), cases.len());
            assert!(cases.iter().all(|case| case.why.len() > 5));
        }
    }

    #[test]
    fn the_cut_of_the_exponential_is_where_the_specification_says() {
        let cut = -FixedSpec::default().exp_cut();
        assert!(values(EXPONENTIAL).any(|v| v == cut) && values(EXPONENTIAL).any(|v| v == cut - 1), "{cut}");
    }
}
