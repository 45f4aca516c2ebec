//! The function table: for every inexact function of the arithmetic and every head the proven bound beside the error
//! that was measured.
//!
//! The integer model is measured, because it is quick and the secure engine equals it bit for bit (a sample of every
//! head goes through the engine as well, [`heads::spot_check`]). Under probabilistic rounding every input is tried with
//! all coins down, all coins up, and a fair draw: where a function is monotone in its coins the first two bracket every
//! draw. The bias is that of the fair draw.
//!
//! A range with at most 2^`inputs_bits` inputs is run in full, a larger one at that many inputs spread evenly over it.

pub mod elementary;
pub mod heads;

use crate::error::Error;
use rayon::prelude::*;
use reference::fixed::{Arithmetic, Coins, Monitor};
use reference::spec::{FixedSpec, Head, Rounding};
use serde::Serialize;
use std::fmt::Write;

/// The scope of a measurement: number format, rounding, and the number of inputs.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The number format in which the functions are computed.
    pub fixed: FixedSpec,
    /// The rounding of every truncation.
    pub rounding: Rounding,
    /// At most 2^this inputs a range.
    pub inputs_bits: u32,
}

/// One function on one range of inputs. Errors and bounds in units of the result's scale, 2^-f.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Truncation, exp, ..., or the name of a head.
    pub function: String,
    /// Rounding of every truncation.
    pub rounding: Rounding,
    /// Inputs, in words.
    pub range: String,
    /// How many of them were run.
    pub inputs: u64,
    /// Whether that is all of them.
    pub exhaustive: bool,
    /// Largest |result - exact|.
    pub worst: f64,
    /// The bound at that input.
    pub bound: f64,
    /// Largest error / bound of all inputs: at most 1 if the bound holds.
    pub closest: f64,
    /// The input with the largest error, units; of a head the logits.
    pub worst_input: Vec<i64>,
    /// Of a head: the label, and the class whose gradient it is.
    pub worst_label: Option<(usize, usize)>,
    /// Mean of result - exact.
    pub bias: f64,
    /// Standard deviation of that mean.
    pub bias_deviation: f64,
    /// Results outside their bound.
    pub outside: u64,
    /// Elements that jump with a comparison exactly at its threshold, each equal to one outcome; they are in no other
    /// column.
    pub ambiguous: u64,
    /// Why the row fails, if it does.
    pub failure: Option<String>,
}

/// How many standard deviations the mean error of an unbiased function may be off: 2^-37 for each row, both signs.
const BIAS_DEVIATIONS: f64 = 6.9;

/// Inputs that are evaluated together.
const BLOCK: u64 = 1 << 13;

/// Errors gathered over some inputs.
#[derive(Debug, Clone, Default)]
struct Tally {
    worst: f64,
    bound: f64,
    closest: f64,
    input: Vec<i64>,
    label: Option<(usize, usize)>,
    outside: u64,
    ambiguous: u64,
    sum: f64,
    squares: f64,
    samples: u64,
    violation: Option<String>,
}

impl Tally {
    /// Judges one error (units, signed). `fair`: it counts for the bias.
    fn add(&mut self, error: f64, bound: f64, fair: bool, input: impl FnOnce() -> (Vec<i64>, Option<(usize, usize)>)) {
        let magnitude = error.abs();
        self.outside += u64::from(magnitude > bound || magnitude.is_nan());
        if bound > 0.0 {
            self.closest = self.closest.max(magnitude / bound);
        }
        if magnitude > self.worst || self.input.is_empty() {
            (self.worst, self.bound) = (magnitude, bound);
            (self.input, self.label) = input();
        }
        if fair {
            self.sum += error;
            self.squares += error * error;
            self.samples += 1;
        }
    }

    /// Joins the tally of later inputs.
    fn join(mut self, other: Tally) -> Tally {
        if self.input.is_empty() || other.worst > self.worst {
            (self.worst, self.bound, self.input, self.label) = (other.worst, other.bound, other.input, other.label);
        }
        Tally {
            closest: self.closest.max(other.closest),
            outside: self.outside + other.outside,
            ambiguous: self.ambiguous + other.ambiguous,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            samples: self.samples + other.samples,
            violation: self.violation.or(other.violation),
            ..self
        }
    }

    fn bias(&self) -> (f64, f64) {
        let n = self.samples.max(1) as f64;
        let mean = self.sum / n;
        (mean, ((self.squares / n - mean * mean).max(0.0) / n).sqrt())
    }

    /// `unbiased`: the mean error must be zero but for the coins.
    fn row(
        self,
        scope: &Scope,
        function: &str,
        range: String,
        (inputs, exhaustive): (u64, bool),
        unbiased: bool,
    ) -> Row {
        let (bias, bias_deviation) = self.bias();
        let failure = if let Some(violation) = &self.violation {
            Some(format!("{violation}: the range of the inputs is too wide"))
        } else if self.outside > 0 {
            Some(format!("{} results outside their bound", self.outside))
        } else if unbiased && bias.abs() > BIAS_DEVIATIONS * bias_deviation {
            Some(format!("biased: mean error {bias:.2e}, {:.1} standard deviations", bias.abs() / bias_deviation))
        } else {
            None
        };
        Row {
            function: function.into(),
            rounding: scope.rounding,
            range,
            inputs,
            exhaustive,
            worst: self.worst,
            bound: self.bound,
            closest: self.closest,
            worst_input: self.input,
            worst_label: self.label,
            bias,
            bias_deviation,
            outside: self.outside,
            ambiguous: self.ambiguous,
            failure,
        }
    }
}

/// The coins that a block of inputs is tried with; `true` for the draw that counts for the bias.
fn coins(rounding: Rounding, block: u64) -> Vec<(Coins, bool)> {
    match rounding {
        Rounding::Nearest => vec![(Coins::Extreme { up: false }, true)],
        Rounding::Probabilistic => {
            vec![
                (Coins::Extreme { up: false }, false),
                (Coins::Extreme { up: true }, false),
                (Coins::seeded(block), true),
            ]
        }
    }
}

/// Evaluates `count` inputs in blocks, on all cores. The result does not depend on how many there are.
fn tally(
    scope: &Scope,
    count: u64,
    block: impl Fn(&mut Arithmetic, std::ops::Range<u64>, bool, &mut Tally) -> Result<(), Error> + Sync,
) -> Result<Tally, Error> {
    let blocks: Vec<_> = (0..count).step_by(BLOCK as usize).collect();
    let tallies: Vec<Tally> = blocks
        .into_par_iter()
        .map(|start| {
            let mut tally = Tally::default();
            for (mut coins, fair) in coins(scope.rounding, start) {
                let mut monitor = Monitor::default();
                let mut a = Arithmetic {
                    fixed: scope.fixed,
                    rounding: scope.rounding,
                    coins: &mut coins,
                    monitor: &mut monitor,
                };
                block(&mut a, start..(start + BLOCK).min(count), fair, &mut tally)?;
                let violation = monitor.violations().first().map(ToString::to_string);
                tally.violation = tally.violation.take().or(violation);
            }
            Ok(tally)
        })
        .collect::<Result<_, Error>>()?;
    Ok(tallies.into_iter().fold(Tally::default(), Tally::join))
}

/// The whole table for one format and rounding.
///
/// # Errors
/// A side that cannot go on.
pub fn table(scope: &Scope) -> Result<Vec<Row>, Error> {
    let mut rows = elementary::rows(scope)?;
    rows.extend(heads::rows(scope)?);
    Ok(rows)
}

/// A number in at most nine places.
fn short(v: f64) -> String {
    match v {
        0.0 => "0".into(),
        v if (0.001..9_999.5).contains(&v.abs()) => format!("{v:.4}"),
        v => format!("{v:.2e}"),
    }
}

/// The table for people.
pub fn text(rows: &[Row], fixed: FixedSpec) -> String {
    let f = fixed.fraction_bits;
    let mut out = format!(
        "{:<14} {:<8} {:<30} {:>11} {:>10} {:>10} {:>12} {:>22}  worst input\n",
        "function", "rounding", "inputs", "run", "bound", "worst", "error/bound", "bias"
    );
    for r in rows {
        let run = format!("{}{}", if r.exhaustive { "all " } else { "" }, r.inputs);
        let bias = format!("{:+.1e} +- {:.0e}", r.bias, r.bias_deviation);
        let input = match (r.worst_label, r.worst_input.as_slice()) {
            (Some((_, class)), _) => format!("gradient[{class}]"),
            (None, [v]) => v.to_string(),
            (None, [x, s]) => format!("{x} / {s}"),
            (None, other) => format!("{other:?}"),
        };
        let _ = writeln!(
            out,
            "{:<14} {:<8} {:<30} {:>11} {:>10} {:>10} {:>12.4} {:>22}  {input}",
            r.function,
            r.rounding,
            r.range,
            run,
            short(r.bound),
            short(r.worst),
            r.closest,
            bias
        );
    }
    let _ = writeln!(
        out,
        "errors, bounds, bias and inputs in units of 2^-{f}; bound: at the worst input; error/bound: largest of any \
         input;\n\
         bias: mean of result - exact over fair coins, +- its standard deviation"
    );
    if fixed == FixedSpec::default() {
        out.push_str("\ninput for `difftest head --input -`: the worst row of each head\n");
        for head in Head::ALL {
            let of_head = rows.iter().filter(|r| r.function == head.name());
            let Some(r) = of_head.max_by(|a, b| a.worst.total_cmp(&b.worst)) else { continue };
            let Some((label, _)) = r.worst_label else { continue };
            let logits: Vec<_> = r.worst_input.iter().map(|&v| crate::compare::real(v, f).to_string()).collect();
            let _ =
                writeln!(out, "  {:<14} {{\"logits\": [[{}]], \"labels\": [{label}]}}", r.function, logits.join(", "));
        }
    }
    for r in rows {
        if let Some(failure) = &r.failure {
            let _ = writeln!(out, "FAIL  {} {} on {}: {failure}", r.function, r.rounding, r.range);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_small_table_holds_and_is_not_vacuous() {
        for (fraction_bits, value_bits) in [(16, 32), (8, 24), (4, 9), (17, 32)] {
            for rounding in Rounding::ALL {
                let fixed = FixedSpec { fraction_bits, value_bits };
                let rows = table(&Scope { fixed, rounding, inputs_bits: 13 }).unwrap();
                for row in &rows {
                    assert_eq!(row.failure, None, "{row:?}");
                    assert!(row.inputs > 0 && row.closest > 0.0 && row.closest <= 1.0, "{row:?}");
                }
                for name in ["truncate", "exp", "reciprocal", "quotient", "log", "softmax", "relu-prob", "relu-eps"] {
                    assert!(rows.iter().any(|r| r.function.starts_with(name)), "{name} has no row");
                }
            }
        }
    }

    #[test]
    fn a_result_outside_its_bound_or_no_number_or_a_bias_fails_the_row() {
        let scope = Scope { fixed: FixedSpec::default(), rounding: Rounding::Probabilistic, inputs_bits: 4 };
        let row = |tally: Tally, unbiased| tally.row(&scope, "t", "r".into(), (1, true), unbiased);
        let of = |errors: &[f64]| {
            let mut tally = Tally::default();
            errors.iter().enumerate().for_each(|(i, &e)| tally.add(e, 1.0, true, || (vec![i as i64], None)));
            tally
        };
        assert_eq!(row(of(&[-1.0, 1.0, 0.5]), false).failure, None);
        let outside = row(of(&[0.5, -1.5, f64::NAN]), false);
        assert_eq!((outside.outside, outside.worst_input, outside.closest), (2, vec![1], 1.5));
        assert!(outside.failure.unwrap().contains("2 results outside"));
        let one_sided: Vec<_> = (0..400).map(|i| if i % 4 == 0 { -0.1 } else { 0.9 }).collect();
        assert!(row(of(&one_sided), true).failure.unwrap().starts_with("biased"));
        assert_eq!(row(of(&one_sided), false).failure, None);
        let violated = Tally { violation: Some("x[0] is 9".into()), ..of(&[0.0]) };
        assert!(row(violated, false).failure.unwrap().contains("too wide"));
    }
}
