//! `difftest functions`: proven bound, measured worst error and bias of every function, by input range.

use super::{Verdict, parse_rounding, print};
use crate::error::Error;
use difftest::check::Outcome;
use difftest::functions::{self, Row, Scope, heads};
use difftest::{output, report};
use reference::spec::{FixedSpec, Rounding};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `difftest functions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rounding of every truncation: prob or nearest [default: both]
    #[arg(long, value_parser = parse_rounding)]
    rounding: Option<Rounding>,
    /// Fraction bits f, 4 to 17: a unit is 2^-f
    #[arg(long, default_value_t = 16)]
    fraction_bits: u32,
    /// Value bits K, f + 5 to 32: values stay below 2^(K-1) units
    #[arg(long, default_value_t = 32)]
    value_bits: u32,
    /// A range with at most 2^B inputs is run in full, a larger one at 2^B inputs spread over it; 24 takes minutes
    #[arg(long, value_name = "B", default_value_t = 20, value_parser = clap::value_parser!(u32).range(8..=30))]
    inputs_bits: u32,
    /// Also write the table as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Output {
    schema: u32,
    fixed: FixedSpec,
    rows: Vec<Row>,
    checks: Vec<Outcome>,
}

/// Runs `difftest functions`.
///
/// # Errors
/// A format that the ring cannot hold, a side that cannot go on, a file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let fixed = FixedSpec { fraction_bits: args.fraction_bits, value_bits: args.value_bits };
    fixed.validate()?;
    output::check_output(args.json.as_deref())?;
    let (mut rows, mut checks) = (Vec::new(), Vec::new());
    for rounding in Rounding::ALL.into_iter().filter(|r| args.rounding.is_none_or(|only| only == *r)) {
        let scope = Scope { fixed, rounding, inputs_bits: args.inputs_bits };
        rows.extend(functions::table(&scope)?);
        checks.push(heads::spot_check(&scope)?);
    }
    let mut text = functions::text(&rows, fixed);
    let failed = rows.iter().filter(|r| r.failure.is_some()).count();
    text.push('\n');
    checks.insert(
        0,
        Outcome::new(
            "bounds",
            format!("{} of {} rows inside their bound on every input that was run", rows.len() - failed, rows.len()),
            rows.iter().find_map(|r| r.failure.clone()),
        ),
    );
    for check in &checks {
        text += &check.line();
    }
    let output = Output { schema: report::SCHEMA, fixed, rows, checks };
    print(&text)?;
    if let Some(path) = &args.json {
        output::write(path, report::json::stamped(&output, None).as_bytes())?;
    }
    Ok(Verdict::of(output.checks.iter().all(|c| c.passed)))
}
