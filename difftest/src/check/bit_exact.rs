//! `bit-exact`: the secure result is the integer model's, in every element of every probed tensor.

use super::Outcome;
use crate::compare::{first_difference, place};
use crate::config::Config;
use crate::error::Error;
use crate::explain::origin::{FirstDifference, Truncated, affects, first_difference_of_operands};
use crate::failure::{Failure, Sides};
use crate::side::Tensors;
use reference::fixed::Replayed;
use reference::spec::ProbePoint;
use std::collections::BTreeSet;

/// Gathers mismatches.
#[derive(Debug, Default)]
pub struct BitExact {
    elements: u64,
    mismatches: u64,
    steps: usize,
    first: Option<String>,
    parted: Option<FirstDifference>,
    recorded: bool,
    blind: bool,
}

impl BitExact {
    /// Before a step's tensors: the first truncation that the sides feed differently, for the text of a failure.
    pub fn truncations(&mut self, integer: &[Replayed], secure: &[Truncated], layers: usize) {
        self.recorded = !secure.is_empty();
        self.parted = first_difference_of_operands(integer, secure, layers);
    }

    /// The secure side hands out no coins, so that nothing can be replayed: its steps are not compared here.
    pub fn without_coins(&mut self) {
        self.blind = true;
    }

    /// Compares one step's tensors. A tensor that only one side has is a mismatch.
    pub fn step(
        &mut self,
        config: &Config,
        step: usize,
        integer: &Tensors<i64>,
        secure: &Tensors<i64>,
        wanted: impl Fn(&ProbePoint) -> bool,
    ) {
        self.steps += 1;
        let points: BTreeSet<_> = integer.keys().chain(secure.keys()).filter(|p| wanted(p)).collect();
        for point in points {
            let (Some(a), Some(b)) = (integer.get(point), secure.get(point)) else {
                self.mismatches += 1;
                let side = if secure.contains_key(point) { config.engine.unwrap_or("secure") } else { "integer" };
                let again = config.command(&format!("--step {step} --probe {point}"));
                let text = || {
                    format!(
                        "FAIL bit-exact   step {step}, {point}: only the {side} side has this tensor\n  again: {again}"
                    )
                };
                self.first.get_or_insert_with(text);
                continue;
            };
            if a.dim() != b.dim() {
                self.mismatches += 1;
                let again = config.command(&format!("--step {step} --probe {point}"));
                let name = config.engine.unwrap_or("secure");
                self.first.get_or_insert_with(|| {
                    format!(
                        "FAIL bit-exact   step {step}, {point}: {name} has shape {:?}, expected {:?}\n  again: {again}",
                        b.dim(),
                        a.dim()
                    )
                });
                continue;
            }
            self.elements += a.len() as u64;
            let Some((index, integer, secure)) = first_difference(a, b) else { continue };
            self.mismatches += a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
            let operation = self.operation(point, config.spec.network.layers());
            let failure = || {
                let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
                let off = secure.wrapping_sub(integer);
                Failure {
                    check: "bit-exact",
                    at: format!("step {step}, {}", place(point, index)),
                    sides: Sides { real: None, integer: Some(integer), secure: Some(secure), scale },
                    what: format!(
                        "secure - integer = {off} units of 2^-{scale}; every tensor before it agrees{operation}"
                    ),
                    repeat: format!("--step {step} --probe {point}"),
                }
                .text(config)
            };
            self.first.get_or_insert_with(failure);
        }
    }

    /// The operation to look at if `point` is the first tensor that differs.
    fn operation(&self, point: &ProbePoint, layers: usize) -> String {
        match &self.parted {
            Some(p) if affects(&p.name, point, layers) => format!("\n  first operation: {p}"),
            Some(p) => format!("\n  after this tensor {p}"),
            None if !self.recorded => String::new(),
            None => "\n  every recorded truncation is given the same: the fault is in what was made of it".into(),
        }
    }

    /// The integer model refused the recorded coins, or another part of the step.
    pub fn refused(&mut self, config: &Config, step: usize, error: &Error) {
        self.mismatches += 1;
        let again = config.command(&format!("--steps {}", step + 1));
        let operation = self.parted.as_ref().map(|p| format!("\n  first operation: {p}")).unwrap_or_default();
        self.first.get_or_insert_with(|| format!("FAIL bit-exact   step {step}: {error}{operation}\n  again: {again}"));
    }

    /// Whether anything differed so far.
    pub fn failed(&self) -> bool {
        self.first.is_some()
    }

    /// The verdict.
    pub fn finish(self, config: &Config) -> Outcome {
        let BitExact { elements, mismatches, steps, first, blind, .. } = self;
        let name = config.engine.unwrap_or("secure");
        if blind && first.is_none() {
            let summary = format!("{name} hands out no coins to replay; its elements are judged by their bounds alone");
            return Outcome::open("bit-exact", summary);
        }
        let summary =
            format!("{name} = integer model: {mismatches} mismatches in {elements} elements of {steps} steps");
        Outcome::new("bit-exact", summary, first)
    }
}
