//! The errors that the elementary functions of `docs/arithmetic.md` add, by function and rounding, with a reason each.

use crate::encoding;
use reference::spec::{FixedSpec, Rounding};

/// An elementary function of the arithmetic that is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Section 1: a real becomes units.
    Encode,
    /// Section 2: division by 2^s.
    Truncate,
    /// Section 6, the part that does not depend on the result: the last truncation.
    ExpAbsolute,
    /// Section 6, relative to the result.
    ExpRelative,
    /// Section 6, relative to the result times |d|: the encoding of log2 e.
    ExpArgument,
    /// Section 8, relative to the result: the inverse before its last truncation.
    Inverse,
}

/// Why a bound holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At most this many units of the result's scale.
    Units(f64),
    /// At most this part of the result (for [`Function::ExpArgument`]: of the result times |d|).
    Relative(f64),
}

impl Bound {
    /// The number itself.
    pub const fn value(self) -> f64 {
        match self {
            Bound::Units(v) | Bound::Relative(v) => v,
        }
    }
}

/// The bound of one function: exhaustive, so that a new function or rounding does not compile without one. All are
/// proven.
///
/// Let t be the error of one truncation in units of its result: below 1 (probabilistic), at most 1/2 (nearest).
///
/// *Exponential.* The polynomial is off by at most 4.2e-6; its coefficients, rounded at scales 29, 40, 20 and 20, add
/// at most 2^-30 + 2^-41 + 2^-20 < 9.6e-7. Truncating r1 and r2 at scale 20 adds t 2^-20 times c3 + (c2 + c3 + 2 c4) <
/// 0.45, and truncating P t 2^-29. All this is relative to 2^r >= 1. The exponent y is off by |d 2^f| |EXP_LOG2E -
/// log2(e) 2^(31-f)| 2^-31; times ln 2 this is relative to the result and proportional to |d|; the second-order term is
/// below a hundredth of it. A result that is cut to zero is below half a unit, i.e. below t. exp(0) = 1 exactly.
///
/// *Inverse.* Let q = 2^-29 t and |e| < 0.0858 the residual of the start. The error of each line of section 8, relative
/// to 1/u in (1/2, 1]: e2 by q / (1 - 0.0858) = 1.10 q; w4 by 2.02 q; e4 by (1 + 2 0.0858) q = 1.18 q; w8 by 2.01 q; e8
/// by 1.02 q; w16 by 2.01 q. Their sum is below 9.4 q with all second-order terms; the residual e^8 is below 3e-9.
pub fn bound(function: Function, rounding: Rounding, fixed: FixedSpec) -> Bound {
    let truncate = match rounding {
        Rounding::Probabilistic => 1.0,
        Rounding::Nearest => 0.5,
    };
    let f = fixed.fraction_bits as i32;
    match (function, rounding) {
        (Function::Encode, _) => Bound::Units(0.5),
        (Function::Truncate | Function::ExpAbsolute, _) => Bound::Units(truncate),
        (Function::ExpRelative, _) => {
            Bound::Relative(4.2e-6 + 9.6e-7 + truncate * (0.45 * 2f64.powi(-20) + 2f64.powi(-29)))
        }
        (Function::ExpArgument, _) => {
            let off = encoding::log2_e(fixed).slack() + 1e-9 * 2f64.powi(f - 31);
            Bound::Relative(1.01 * std::f64::consts::LN_2 * off)
        }
        (Function::Inverse, _) => Bound::Relative(3e-9 + 9.4 * truncate * 2f64.powi(-29)),
    }
}

/// The table evaluated for one run, in real numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The size of one unit, 2^-f, real.
    pub unit: f64,
    /// Encoding a real.
    pub encode: f64,
    /// One truncation to scale f.
    pub truncate: f64,
    /// The absolute error of the exponential, real.
    pub exp_absolute: f64,
    /// Exponential, relative to the result.
    pub exp_relative: f64,
    /// Exponential, relative to the result times |d|.
    pub exp_argument: f64,
    /// The relative error of the inverse.
    pub inverse: f64,
}

impl Errors {
    /// Evaluates the table.
    pub fn new(rounding: Rounding, fixed: FixedSpec) -> Self {
        let unit = 1.0 / fixed.one() as f64;
        let of = |function| bound(function, rounding, fixed).value();
        Errors {
            unit,
            encode: of(Function::Encode) * unit,
            truncate: of(Function::Truncate) * unit,
            exp_absolute: of(Function::ExpAbsolute) * unit,
            exp_relative: of(Function::ExpRelative),
            exp_argument: of(Function::ExpArgument),
            inverse: of(Function::Inverse),
        }
    }

    /// Real arithmetic: no error at all (units stay, for the conventions that mention them).
    pub fn none(fixed: FixedSpec) -> Self {
        Errors {
            unit: 1.0 / fixed.one() as f64,
            encode: 0.0,
            truncate: 0.0,
            exp_absolute: 0.0,
            exp_relative: 0.0,
            exp_argument: 0.0,
            inverse: 0.0,
        }
    }

    /// |computed exp(d) - exp(d)| for exp(d) <= `value` and |d| <= `argument`.
    pub fn exp(&self, value: f64, argument: f64) -> f64 {
        // Beyond the cut the result is zero and the error below exp_absolute; `value` is tiny there, so the product
        // stays finite.
        self.exp_absolute + value * (self.exp_relative + self.exp_argument * argument.min(1e3))
    }
}

/// gamma_n = n eps / (1 - n eps), eps = 2^-53: the relative error of any f64 sum of n products, in any order, fused or
/// not (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1).
pub fn gamma(n: usize) -> f64 {
    let ne = n as f64 * (f64::EPSILON / 2.0);
    ne / (1.0 - ne)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::fixed::{divide, exponential};

    /// Above what the integer model's exhaustive tests measured, and not far above: a bound too wide proves nothing.
    #[test]
    fn proven_bounds_are_above_the_measured_errors_and_near_them() {
        for rounding in Rounding::ALL {
            for fraction_bits in 4..=17 {
                let fixed = FixedSpec { fraction_bits, ..FixedSpec::default() };
                let errors = Errors::new(rounding, fixed);
                let (measured, worst) = exponential::worst(fixed, rounding);
                let d = -worst as f64 * errors.unit;
                let at_worst = errors.exp((-d).exp(), d) / errors.unit;
                assert!(at_worst >= measured, "exp, f = {fraction_bits}, {rounding}: {at_worst} < {measured}");
                assert!(
                    at_worst <= 1.6 * measured,
                    "exp, f = {fraction_bits}, {rounding}: {at_worst} against {measured}"
                );
                let inverse = errors.inverse / divide::inverse_relative_error(rounding);
                assert!((0.5..4.0).contains(&inverse), "inverse, {rounding}: {inverse} times the model's own");
            }
        }
    }

    #[test]
    fn gamma_is_above_n_half_ulps() {
        assert!(gamma(1) >= f64::EPSILON / 2.0 && gamma(1000) > 1000.0 * f64::EPSILON / 2.0);
        assert_eq!(gamma(0), 0.0);
    }
}
