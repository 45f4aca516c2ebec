//! `difftest head`: one output head on given logits, by all sides, as JSON.

use super::{Verdict, parse_head, parse_rounding, print};
use crate::error::{Error, LogitsCause, LogitsError};
use difftest::bound::head::HeadRules;
use difftest::bound::interval::Interval;
use difftest::compare::real;
use difftest::error::Error as RunError;
use difftest::input;
use difftest::report;
use difftest::run::head::HeadTrace;
use ndarray::Array2;
use reference::f64::RealHead;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which sides answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    /// The sides real, integer and secure.
    All,
    /// The real side alone: any finite logits, also those that fixed point cannot hold.
    #[value(alias = "f64")]
    Real,
}

/// Flags of `difftest head`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Input:  {\"logits\": [[2.0, -1.0, 0.3], ...], \"labels\": [0, ...]}, rows of the same class count, 2 \
        or more\n\
Output: {\"schema\": 2, \"rows\": [{\"real\": {\"probabilities\", \"loss\", \"gradient\"}, \"integer\": .., \
\"secure\": .., \"bound\": [..], \"ambiguous\": [..]}]}\n\
bound: largest possible |secure - real| of each gradient element; ambiguous: it jumps with a comparison that rounding \
may turn;\n\
loss: null where the head has none or it is infinite."
)]
pub struct Args {
    /// softmax, relu-prob, relu-prob-cut, relu-grad or relu-eps
    #[arg(long, value_parser = parse_head)]
    head: Head,
    /// JSON file with logits and labels; - for standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Rounding of every truncation: prob or nearest
    #[arg(long, value_parser = parse_rounding, default_value = "prob")]
    rounding: Rounding,
    /// Threshold of relu-prob and relu-prob-cut, between 0 and 1
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    epsilon: f64,
    /// Fraction bits f, 4 to 17: a unit is 2^-f
    #[arg(long, default_value_t = 16)]
    fraction_bits: u32,
    /// Value bits K, f + 5 to 32: values stay below 2^(K-1) units
    #[arg(long, default_value_t = 32)]
    value_bits: u32,
    /// Sides that answer
    #[arg(long, value_enum, default_value_t = Side::All)]
    side: Side,
    /// Fix the three parties' randomness in order to repeat a run. INSECURE: the shares hide nothing, and the answer
    /// says so
    #[arg(long, value_name = "N")]
    insecure_seed: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    logits: Vec<Vec<f64>>,
    labels: Vec<Label>,
}

/// A label as it is written, which need not name a class.
#[derive(Debug, Clone, Copy)]
struct Label(i128);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Integer;
        impl serde::de::Visitor<'_> for Integer {
            type Value = Label;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a class, which is an integer from 0 on")
            }
            fn visit_i64<E>(self, v: i64) -> Result<Label, E> {
                Ok(Label(v.into()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Label, E> {
                Ok(Label(v.into()))
            }
        }
        deserializer.deserialize_i64(Integer)
    }
}

/// A head's answer to one row, in reals.
#[derive(Debug, Serialize)]
struct Answer {
    probabilities: Vec<f64>,
    loss: Option<f64>,
    gradient: Vec<f64>,
    /// Integers at scale f; not for the real side.
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_units: Option<Vec<i64>>,
}

#[derive(Debug, Serialize)]
struct Row {
    real: Answer,
    integer: Option<Answer>,
    secure: Option<Answer>,
    bound: Option<Vec<f64>>,
    ambiguous: Option<Vec<bool>>,
}

#[derive(Debug, Serialize)]
struct Output {
    schema: u32,
    head: Head,
    rounding: Rounding,
    epsilon: f64,
    fraction_bits: u32,
    value_bits: u32,
    insecure: bool,
    bit_exact: Option<bool>,
    inside_bound: Option<bool>,
    /// Why the integer model cannot have drawn the parties' coins, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The first operand that left its range; the bounds then say nothing.
    range: Option<String>,
    rows: Vec<Row>,
}

/// The largest input that is read.
const MAX_INPUT: u64 = 64 << 20;

/// The name of the input in an error.
fn name(input: &Path) -> &Path {
    if input.as_os_str() == "-" { Path::new("standard input") } else { input }
}

/// Reads and checks the input. Returns the logits, (rows, classes), and the labels.
fn read(args: &Args) -> Result<(Array2<f64>, Vec<usize>), Error> {
    let standard = args.input.as_os_str() == "-";
    let path = name(&args.input);
    let bad = |cause| Error::from(LogitsError { path: path.into(), cause });
    let text = if standard { input::text(std::io::stdin(), path, MAX_INPUT) } else { input::file(path, MAX_INPUT) }?;
    let Input { logits, labels } = serde_json::from_str(&text).map_err(|e| match input::not_finite(&text) {
        Some(word) => bad(LogitsCause::NotFinite(word.into())),
        None => bad(LogitsCause::Json(e)),
    })?;
    if logits.is_empty() || logits.len() != labels.len() {
        return Err(bad(LogitsCause::Count { rows: logits.len(), labels: labels.len() }));
    }
    let classes = logits[0].len();
    if !(2..=4096).contains(&classes) {
        return Err(bad(LogitsCause::Classes(classes)));
    }
    if let Some(row) = logits.iter().position(|r| r.len() != classes) {
        return Err(bad(LogitsCause::Row { row, found: logits[row].len(), classes }));
    }
    if let Some(row) = labels.iter().position(|l| !(0..classes as i128).contains(&l.0)) {
        return Err(bad(LogitsCause::Label { row, label: labels[row].0, classes }));
    }
    let labels: Vec<usize> = labels.into_iter().map(|l| l.0 as usize).collect();
    let flat: Vec<f64> = logits.into_iter().flatten().collect();
    let matrix = Array2::from_shape_vec((labels.len(), classes), flat).expect("every row was found to have as many");
    Ok((matrix, labels))
}

/// round(v 2^f) of every logit.
fn encode(input: &Path, logits: &Array2<f64>, fixed: FixedSpec) -> Result<Array2<i64>, LogitsError> {
    reference::fixed::parameters::encode("logits", logits, fixed, fixed.fraction_bits).map_err(|cause| {
        let classes = logits.ncols();
        let at =
            logits.iter().position(|v| (v * fixed.one() as f64).round().abs() >= fixed.limit() as f64).unwrap_or(0);
        let cause = LogitsCause::Encode { row: at / classes, class: at % classes, cause: Box::new(cause) };
        LogitsError { path: input.into(), cause }
    })
}

/// An answer of a side in units, row by row.
fn in_reals(
    probabilities: &[i64],
    loss: Option<&Vec<Option<i64>>>,
    gradient: &[i64],
    classes: usize,
    f: u32,
) -> Vec<Answer> {
    let reals = |units: &[i64]| units.iter().map(|&u| real(u, f)).collect();
    probabilities
        .chunks(classes)
        .zip(gradient.chunks(classes))
        .enumerate()
        .map(|(row, (p, g))| Answer {
            probabilities: reals(p),
            loss: loss.and_then(|l| l[row]).map(|u| real(u, f)),
            gradient: reals(g),
            gradient_units: Some(g.to_vec()),
        })
        .collect()
}

/// Runs `difftest head`.
///
/// # Errors
/// Bad input, or a side that cannot go on.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let (logits, labels) = read(&args)?;
    let (rows, classes) = logits.dim();
    let spec = TrainSpec {
        network: NetworkSpec { widths: vec![1, classes] },
        head: args.head,
        epsilon: args.epsilon,
        rounding: args.rounding,
        fixed: FixedSpec { fraction_bits: args.fraction_bits, value_bits: args.value_bits },
        sgd: SgdSpec { batch: rows, ..SgdSpec::default() },
    };
    match args.side {
        Side::All => spec.validate()?,
        Side::Real => spec.validate_real()?,
    }
    let head = RealHead::of(&spec);
    let mut answers = Vec::with_capacity(rows);
    for (row, &label) in logits.rows().into_iter().zip(&labels) {
        let x = row.to_vec();
        answers.push(Row {
            real: Answer {
                probabilities: head.probabilities(&x),
                loss: head.loss(&x, label)?.filter(|l| l.is_finite()),
                gradient: head.gradient(&x, label)?,
                gradient_units: None,
            },
            integer: None,
            secure: None,
            bound: None,
            ambiguous: None,
        });
    }
    let mut output = Output {
        schema: report::SCHEMA,
        head: args.head,
        rounding: args.rounding,
        epsilon: args.epsilon,
        fraction_bits: args.fraction_bits,
        value_bits: args.value_bits,
        insecure: args.insecure_seed.is_some(),
        bit_exact: None,
        inside_bound: None,
        refused: None,
        range: None,
        rows: answers,
    };
    if args.side == Side::All {
        fixed_sides(&args, &spec, &logits, &labels, &mut output)?;
    }
    print(&report::json::stamped(&output, None))?;
    let holds = output.bit_exact != Some(false) && output.inside_bound != Some(false) && output.range.is_none();
    Ok(Verdict::of(holds))
}

/// Secure engine, integer model on its coins, and the bounds.
fn fixed_sides(
    args: &Args,
    spec: &TrainSpec,
    logits: &Array2<f64>,
    labels: &[usize],
    output: &mut Output,
) -> Result<(), Error> {
    let (classes, f) = (logits.ncols(), spec.fixed.fraction_bits);
    let units = encode(name(&args.input), logits, spec.fixed)?;
    let trace = HeadTrace::of(spec, &units, labels, args.insecure_seed)?;
    output.bit_exact = Some(trace.bit_exact());
    let HeadTrace { integer, secure, violations } = trace;
    let integer = match integer {
        Ok(integer) => integer,
        // The parties rounded as the arithmetic cannot: their fault, not the input's.
        Err(RunError::Integer(refused)) => {
            output.refused = Some(refused.to_string());
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    };
    let flat = |m: &Array2<i64>| m.iter().copied().collect::<Vec<_>>();
    let (p, g) = (flat(&integer.probabilities), flat(&integer.gradient));

    let (rules, real_rules) = (HeadRules::fixed(spec), HeadRules::real(spec));
    let mut inside = true;
    let integer = in_reals(&p, integer.loss.as_ref(), &g, classes, f);
    let secure = in_reals(&secure.probabilities, secure.loss.as_ref(), &secure.gradient, classes, f);
    for (row, (integer, secure)) in integer.into_iter().zip(secure).enumerate() {
        let x = logits.row(row).to_vec();
        // The encoding's error is known exactly: the box holds the logit and what it was rounded to.
        let boxes: Vec<_> =
            x.iter().zip(units.row(row)).map(|(&x, &u)| Interval::point(x).hull(Interval::point(real(u, f)))).collect();
        let decisions = rules.decide(&x, &boxes);
        let branches = rules.branches(&boxes, labels[row], &decisions);
        let own = real_rules.at_point(&x, labels[row]);
        inside &= branches.iter().any(|b| b.gradient.iter().zip(&secure.gradient).all(|(i, g)| i.contains(*g)));
        let hull = |k: usize| branches.iter().fold(branches[0].gradient[k], |h, b| h.hull(b.gradient[k]));
        let out = &mut output.rows[row];
        out.bound = Some((0..classes).map(|k| hull(k).distance(own.gradient[k])).collect());
        let jump = real_rules.at_threshold(&x, labels[row], &decisions);
        out.ambiguous = Some((0..classes).map(|k| jump.iter().any(|b| b.gradient[k] != jump[0].gradient[k])).collect());
        out.integer = Some(integer);
        out.secure = Some(secure);
    }
    // The bounds hold for arithmetic that stays in range; where it does not, they say nothing.
    output.range = violations.violations().first().map(ToString::to_string);
    output.inside_bound = output.range.is_none().then_some(inside);
    Ok(())
}
