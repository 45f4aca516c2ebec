//! `bit-exact`: the secure result is the integer model's, in every element of every probed tensor.

use super::comparison::Judged;
use super::{Check, Outcome};
use crate::bound::operation::affects;
use crate::compare::{first_difference, place};
use crate::config::Config;
use crate::count::counted;
use crate::error::Error;
use crate::explain::origin::{self, FirstDifference};
use crate::failure::{Failure, Sides};
use crate::trace::Trace;
use ndarray::Array2;
use reference::spec::ProbePoint;
use std::collections::BTreeSet;

/// Gathers the elements in which the tested side and the integer model differ.
#[derive(Debug)]
pub struct BitExact<'c> {
    config: &'c Config,
    tested: &'static str,
    elements: u64,
    mismatches: u64,
    steps: usize,
    first: Option<String>,
    parted: Option<FirstDifference>,
    recorded: bool,
    /// Whether a step came without the coins that the integer side would have replayed.
    blind: bool,
}

impl<'c> BitExact<'c> {
    /// Nothing compared yet.
    pub fn new(config: &'c Config) -> Self {
        let (elements, mismatches, steps) = (0, 0, 0);
        let (first, parted, recorded, blind) = (None, None, false, false);
        BitExact { config, tested: "secure", elements, mismatches, steps, first, parted, recorded, blind }
    }

    /// Compares one step's tensors. A tensor that only one side has is a mismatch.
    fn compare(&mut self, trace: &Trace, wanted: impl Fn(&ProbePoint) -> bool) {
        self.steps += 1;
        let (integer, tested) = (&trace.integer.tensors, &trace.tested.tensors);
        let points: BTreeSet<_> = integer.keys().chain(tested.keys()).filter(|p| wanted(p)).collect();
        for point in points {
            match (integer.get(point), tested.get(point)) {
                (Some(a), Some(b)) => self.tensor(trace.step, point, a, b),
                (model, _) => self.missing(trace.step, point, if model.is_none() { self.tested } else { "integer" }),
            }
        }
    }

    fn missing(&mut self, step: usize, point: &ProbePoint, side: &str) {
        self.mismatches += 1;
        let again = self.config.command(&format!("--step {step} --probe {point}"));
        self.first.get_or_insert_with(|| {
            format!("FAIL bit-exact   step {step}, {point}: only the {side} side has this tensor\n  again: {again}")
        });
    }

    fn tensor(&mut self, step: usize, point: &ProbePoint, a: &Array2<i64>, b: &Array2<i64>) {
        if a.dim() != b.dim() {
            self.mismatches += 1;
            let again = self.config.command(&format!("--step {step} --probe {point}"));
            let (name, found, expected) = (self.tested, b.dim(), a.dim());
            self.first.get_or_insert_with(|| {
                format!(
                    "FAIL bit-exact   step {step}, {point}: {name} has shape {found:?}, expected {expected:?}\n  \
                     again: {again}"
                )
            });
            return;
        }
        self.elements += a.len() as u64;
        let Some((index, integer, tested)) = first_difference(a, b) else { return };
        self.mismatches += a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
        let (config, name) = (self.config, self.tested);
        let operation = self.operation(point, config.spec.network.layers());
        self.first.get_or_insert_with(|| {
            let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
            let off = tested.wrapping_sub(integer);
            Failure {
                check: "bit-exact",
                at: format!("step {step}, {}", place(point, index)),
                sides: Sides { real: None, integer: Some(integer), tested: Some((name, tested)), scale },
                what: format!("{name} - integer = {off} units of 2^-{scale}; every tensor before it agrees{operation}"),
                repeat: format!("--step {step} --probe {point}"),
            }
            .text(config)
        });
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
    fn refused(&mut self, step: usize, error: &Error) {
        self.mismatches += 1;
        let again = self.config.command(&format!("--steps {}", step + 1));
        let operation = self.parted.as_ref().map(|p| format!("\n  first operation: {p}")).unwrap_or_default();
        self.first.get_or_insert_with(|| format!("FAIL bit-exact   step {step}: {error}{operation}\n  again: {again}"));
    }
}

impl Check for BitExact<'_> {
    fn name(&self) -> &'static str {
        "bit-exact"
    }

    fn see(&mut self, trace: &Trace, _: Option<&Judged>) {
        self.tested = trace.tested_name;
        self.blind |= trace.blind;
        if trace.blind {
            return;
        }
        self.recorded = !trace.tested_truncated.is_empty();
        self.parted = origin::first(&trace.truncated, &trace.tested_truncated, trace.spec.network.layers());
        if let Some(error) = &trace.refused {
            // The coins of a truncation whose operand differs cannot be replayed: the difference itself lies before.
            self.compare(trace, |point| trace.integer.tensors.contains_key(point));
            self.refused(trace.step, error);
        } else if self.config.compares(trace.step) {
            let config = self.config;
            self.compare(trace, |point| config.wants(point));
        }
    }

    fn failed(&self) -> bool {
        self.first.is_some()
    }

    fn finish(self: Box<Self>) -> Outcome {
        let BitExact { tested, elements, mismatches, steps, first, blind, .. } = *self;
        if blind && first.is_none() {
            let summary =
                format!("{tested} hands out no coins to replay; its elements are judged by their bounds alone");
            return Outcome::open("bit-exact", summary);
        }
        let summary = format!(
            "{tested} = integer model: {} in {} of {}",
            counted(mismatches, "mismatch"),
            counted(elements, "element"),
            counted(steps, "step")
        );
        Outcome::new("bit-exact", summary, first)
    }
}
