//! Truncation, exp, reciprocal, quotient and log: what is measured where, and against which bound.

use super::{Row, Scope, Tally, tally};
use crate::bound::rules::Errors;
use crate::error::Error;
use reference::fixed::{Arithmetic, ModelError, Unreduced, divide, exponential, logarithm, truncate};
use reference::spec::{Rounding, SgdSpec};

/// A function of one or two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    /// By this many bits.
    Truncate(u32),
    Exp,
    Reciprocal,
    Quotient,
    Log,
}

/// Operand and, for a quotient, denominator; otherwise 0. Units.
type Input = (i64, i64);

/// Inputs by number.
struct Inputs {
    range: String,
    count: u64,
    exhaustive: bool,
    at: Box<dyn Fn(u64) -> Input + Sync>,
}

impl Function {
    fn name(self) -> String {
        match self {
            Function::Truncate(shift) => format!("truncate by {shift}"),
            Function::Exp => "exp".into(),
            Function::Reciprocal => "reciprocal".into(),
            Function::Quotient => "quotient".into(),
            Function::Log => "log".into(),
        }
    }

    fn evaluate(self, a: &mut Arithmetic, inputs: &[Input]) -> Result<Vec<i64>, ModelError> {
        let (x, s): (Vec<_>, Vec<_>) = inputs.iter().copied().unzip();
        let range = a.fixed.full_range();
        match self {
            Function::Truncate(shift) => {
                truncate::trunc(a, "truncate", &Unreduced::new(x.into_iter().map(i128::from)), shift)
            }
            Function::Exp => exponential::exp(a, &x),
            Function::Reciprocal => divide::reciprocal(a, "divide", &x, range),
            Function::Quotient => Ok(divide::quotient(a, "divide", &x, &s, range)?.0),
            Function::Log => logarithm::log(a, &x, range),
        }
    }

    /// result - exact, units. f64 is exact to 2^-20 units here: values are below 2^33, and those near it have errors of
    /// tens of units.
    fn error(self, f: u32, (x, s): Input, result: i64) -> f64 {
        let unit = 2f64.powi(-(f as i32));
        match self {
            // Exact in integers: operands have up to 62 bits.
            Function::Truncate(shift) => {
                ((i128::from(result) << shift) - i128::from(x)) as f64 / 2f64.powi(shift as i32)
            }
            Function::Exp => result as f64 - (x as f64 * unit).exp() / unit,
            Function::Reciprocal => result as f64 - 1.0 / (unit * unit * x as f64),
            Function::Quotient => result as f64 - x as f64 / (unit * s as f64),
            Function::Log => result as f64 - (x as f64 * unit).ln() / unit,
        }
    }

    /// The proven bound of that error, units.
    fn bound(self, scope: &Scope, errors: &Errors, (x, s): Input) -> f64 {
        let (unit, truncate) = (errors.unit, errors.truncate / errors.unit);
        match self {
            Function::Truncate(_) => truncate,
            Function::Exp if x == 0 => 0.0,
            Function::Exp => {
                let d = x as f64 * unit;
                errors.exp(d.exp(), -d) / unit
            }
            Function::Reciprocal => errors.inverse / (unit * unit * x as f64) + truncate,
            Function::Quotient => errors.inverse * x as f64 / (unit * s as f64) + truncate,
            Function::Log => logarithm::error_units(scope.fixed, scope.rounding),
        }
    }

    /// Whether the mean error is zero by proof, given the inputs.
    fn unbiased(self, rounding: Rounding) -> bool {
        matches!((self, rounding), (Function::Truncate(_), Rounding::Probabilistic))
    }

    fn inputs(self, scope: &Scope) -> Vec<Inputs> {
        let (fixed, bits) = (scope.fixed, scope.inputs_bits);
        let (one, limit) = (fixed.one(), fixed.limit());
        match self {
            Function::Truncate(shift) => [None, Some(31), Some(46), Some(61)]
                .into_iter()
                .map(|magnitude| {
                    let at = magnitude.map_or(0, |m| 1i64 << m);
                    // Both signs, every fraction that is cut off.
                    let fractions = spread(0, (1 << shift) - 1, bits.saturating_sub(1));
                    Inputs {
                        range: magnitude.map_or("fractions at 0".into(), |m| format!("fractions at +-2^{m}")),
                        count: 2 * fractions.count,
                        at: Box::new(move |i| {
                            let fraction = (fractions.at)(i / 2).0;
                            (if i % 2 == 0 { at + fraction } else { -at - fraction }, 0)
                        }),
                        exhaustive: fractions.exhaustive,
                    }
                })
                .collect(),
            Function::Exp => {
                let negative = |inputs: Inputs| Inputs { at: Box::new(move |i| (-(inputs.at)(i).0, 0)), ..inputs };
                let cut = fixed.exp_cut();
                let ends = [-1, one, 4 * one, 8 * one, cut, limit - 1];
                let names = ["[-1, 0]", "[-4, -1)", "[-8, -4)", "[cut, -8)", "below the cut"];
                ranges(&ends, &names, limit - 1, bits).into_iter().map(negative).collect()
            }
            Function::Reciprocal | Function::Log => {
                let ends = [0, one - 1, 16 * one - 1, 256 * one - 1, limit - 1];
                ranges(&ends, &["below 1", "[1, 16)", "[16, 256)", "from 256 on"], limit - 1, bits)
            }
            Function::Quotient => {
                let small = 1i64 << (bits / 2).min(fixed.value_bits - 2);
                let ends = [small - 1, one - 1, 16 * one - 1, limit - 1];
                let names = ["s below 1, parts of s", "s in [1, 16), parts of s", "s from 16 on, parts of s"];
                let mut all = vec![Inputs {
                    range: format!("every x <= s < {small} units"),
                    // s = 1: x = 0, 1; s = 2: x = 0, 1, 2; ...
                    count: (small * (small + 1) / 2 - 1) as u64,
                    exhaustive: true,
                    at: Box::new(|i| pair(i + 1)),
                }];
                all.extend(ranges(&ends, &names, limit - 1, bits).into_iter().map(parts));
                all
            }
        }
    }
}

/// Pair number i of (0, 0), (0, 1), (1, 1), (0, 2), ...: x of s.
fn pair(i: u64) -> Input {
    let mut s = ((((8 * i + 1) as f64).sqrt() - 1.0) / 2.0) as u64;
    while s * (s + 1) / 2 > i {
        s -= 1;
    }
    while (s + 1) * (s + 2) / 2 <= i {
        s += 1;
    }
    ((i - s * (s + 1) / 2) as i64, s as i64)
}

/// Numerators for given denominators: 0, 1, s - 1, s and parts in between.
fn parts(denominators: Inputs) -> Inputs {
    let at = move |i| {
        let s: i64 = (denominators.at)(i).0;
        // Multiples of the golden ratio are spread evenly.
        let part = (i as f64 * 0.618_033_988_749_894_9).fract();
        let x = match i % 16 {
            0 => 0,
            1 => 1,
            2 => s - 1,
            3 => s,
            _ => (part * s as f64) as i64,
        };
        (x, s)
    };
    Inputs { range: denominators.range, count: denominators.count, exhaustive: false, at: Box::new(at) }
}

/// The integers lo..=hi: all of them, or 2^bits with both ends.
fn spread(lo: i64, hi: i64, bits: u32) -> Inputs {
    let (span, most) = ((hi - lo) as u64, 1u64 << bits);
    let exhaustive = span < most;
    let count = if exhaustive { span + 1 } else { most };
    let at = move |i| {
        let offset = if exhaustive { i } else { (u128::from(i) * u128::from(span) / u128::from(most - 1)) as u64 };
        (lo + offset as i64, 0)
    };
    Inputs { range: String::new(), count, exhaustive, at: Box::new(at) }
}

/// (ends[i], ends[i + 1]] under the name i, as far as `last` allows; ranges without an input are left out.
fn ranges(ends: &[i64], names: &[&str], last: i64, bits: u32) -> Vec<Inputs> {
    ends.windows(2)
        .zip(names)
        .map(|(end, name)| (end[0] + 1, end[1].min(last), name))
        .filter(|(lo, hi, _)| lo <= hi)
        .map(|(lo, hi, name)| Inputs { range: (*name).into(), ..spread(lo, hi, bits) })
        .collect()
}

/// The rows of all elementary functions.
///
/// # Errors
/// The integer model refuses.
pub fn rows(scope: &Scope) -> Result<Vec<Row>, Error> {
    let update = SgdSpec::default().units(scope.fixed)?.shift;
    let truncations = [Function::Truncate(scope.fixed.fraction_bits), Function::Truncate(update)];
    measure(
        scope,
        &[&truncations[..], &[Function::Exp, Function::Reciprocal, Function::Quotient, Function::Log]].concat(),
    )
}

fn measure(scope: &Scope, functions: &[Function]) -> Result<Vec<Row>, Error> {
    let errors = Errors::new(scope.rounding, scope.fixed);
    let mut rows = Vec::new();
    for &function in functions {
        for inputs in function.inputs(scope) {
            let tally = tally(scope, inputs.count, |a, block, fair, tally: &mut Tally| {
                let input: Vec<_> = block.map(&inputs.at).collect();
                for (&input, result) in input.iter().zip(function.evaluate(a, &input)?) {
                    let error = function.error(scope.fixed.fraction_bits, input, result);
                    let shown = || match function {
                        Function::Quotient => (vec![input.0, input.1], None),
                        _ => (vec![input.0], None),
                    };
                    tally.add(error, function.bound(scope, &errors, input), fair, shown);
                }
                Ok(())
            })?;
            let run = (inputs.count, inputs.exhaustive);
            rows.push(tally.row(scope, &function.name(), inputs.range, run, function.unbiased(scope.rounding)));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reference::spec::FixedSpec;

    #[test]
    fn pairs_are_numbered_without_gaps() {
        let all: Vec<_> = (0..6).map(pair).collect();
        assert_eq!(all, [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]);
        for i in [1u64 << 40, (1 << 40) + 12_345] {
            let (x, s) = pair(i);
            assert_eq!(((s * (s + 1) / 2 + x) as u64, x <= s), (i, true));
        }
    }

    #[test]
    fn a_range_is_run_in_full_or_spread_with_both_ends() {
        let all = |inputs: &Inputs| (0..inputs.count).map(|i| (inputs.at)(i).0).collect::<Vec<_>>();
        let full = spread(-3, 4, 3);
        assert_eq!((all(&full), full.exhaustive), ((-3..=4).collect(), true));
        let part = spread(10, 1_000_000, 3);
        let values = all(&part);
        assert_eq!((values[0], values[7], values.len(), part.exhaustive), (10, 1_000_000, 8, false));
        assert!(values.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn the_measured_exp_is_the_recorded_worst_case() {
        for rounding in Rounding::ALL {
            let scope = Scope { fixed: FixedSpec::default(), rounding, inputs_bits: 20 };
            let (units, input) = exponential::worst(scope.fixed, rounding);
            let mut exp = measure(&scope, &[Function::Exp]).unwrap();
            exp.retain(|r| r.range != "below the cut");
            assert!(exp.iter().all(|r| r.exhaustive));
            let worst = exp.iter().max_by(|a, b| a.worst.total_cmp(&b.worst)).unwrap();
            assert_eq!(worst.worst_input, [input]);
            assert!((worst.worst - units).abs() < 1.01e-4, "{worst:?}");
        }
    }
}
