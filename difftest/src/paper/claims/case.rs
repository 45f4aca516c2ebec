//! The parts of a claim: the verdict, the cases that decide it, and the cells as evidence.

use super::super::cell::{Cell, Setup, Side};
use super::super::seconds::Source;
use super::super::standard_error::{binomial_error, mean_and_error};
use super::super::time_cell::{Configuration, TimeCell};
use crate::count::counted;
use reference::spec::{Head, Rounding};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Whether a claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The claim holds.
    Holds,
    /// It does not hold: a finding.
    DoesNotHold,
    /// The cells that it needs are not finished, or leave it open.
    NotTested,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Judgement::Holds => "holds",
            Judgement::DoesNotHold => "does not hold",
            Judgement::NotTested => "not tested",
        })
    }
}

/// One claim of the paper, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// A short name.
    pub name: &'static str,
    /// Whether it holds.
    pub verdict: Judgement,
    /// Where the paper says it.
    pub place: &'static str,
    /// The paper's statement, in other words.
    pub statement: String,
    /// How it is tested here.
    pub test: String,
    /// The numbers, with their uncertainty, and what is missing.
    pub numbers: Vec<String>,
}

/// Epochs of the paper's table.
pub const EPOCHS: usize = 20;
/// Depths of the paper's networks.
pub(super) const DEPTHS: [usize; 3] = [1, 2, 3];
/// What the paper replaces softmax by. `relu-eps` is not the paper's, and no claim is about it.
pub(super) const REPLACEMENTS: [Head; 3] = [Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];
/// The paper's heads.
pub(super) const HEADS: [Head; 4] = [Head::Softmax, Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];

/// How a line of numbers that contradicts its claim ends.
pub const CONTRADICTS: &str = ": contradicts";

/// How a line ends that a claim of the form "in some configuration" rests on.
pub const SUPPORTS: &str = ": supports";

/// Collects the cases of a claim. No case: not tested. One that contradicts: it does not hold.
pub(super) struct Cases {
    claim: Claim,
    /// Configurations that the claim covers and that no finished cell is of.
    pub missing: Vec<String>,
    /// The number of cases seen.
    pub tested: usize,
    contradicted: bool,
    /// Whether something is left open.
    pub open: bool,
}

impl Cases {
    pub(super) fn new(
        name: &'static str,
        place: &'static str,
        statement: impl Into<String>,
        test: impl Into<String>,
    ) -> Self {
        let (statement, test, numbers) = (statement.into(), test.into(), Vec::new());
        let claim = Claim { name, verdict: Judgement::NotTested, place, statement, test, numbers };
        Cases { claim, missing: Vec::new(), tested: 0, contradicted: false, open: false }
    }

    pub(super) fn case(&mut self, holds: bool, numbers: String) {
        self.tested += 1;
        self.contradicted |= !holds;
        self.claim.numbers.push(if holds { numbers } else { format!("{numbers}{CONTRADICTS}") });
    }

    /// Something that the claim covers and that the cells leave open.
    pub(super) fn open(&mut self, what: String) {
        self.open = true;
        if !self.claim.numbers.contains(&what) {
            self.claim.numbers.push(what);
        }
    }

    pub(super) fn note(&mut self, what: String) {
        self.claim.numbers.push(what);
    }

    pub(super) fn missing(&mut self, what: String) {
        self.missing.push(what);
    }

    pub(super) fn finish(self, needs: &str) -> Claim {
        let verdict = match self {
            Cases { contradicted: true, .. } => Judgement::DoesNotHold,
            Cases { tested: 0, .. } | Cases { open: true, .. } => Judgement::NotTested,
            _ if !self.missing.is_empty() => Judgement::NotTested,
            _ => Judgement::Holds,
        };
        let mut claim = Claim { verdict, ..self.claim };
        if self.tested == 0 {
            claim.numbers.push(format!("needs {needs}"));
        } else if !self.missing.is_empty() {
            claim.numbers.push(format!("not finished: {}", self.missing.join("; ")));
        }
        claim
    }
}

/// An accuracy, 0 to 1, with its standard error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accuracy {
    pub value: f64,
    pub error: f64,
}

impl Accuracy {
    /// self - other, and the standard error of that.
    pub(super) fn minus(self, other: Accuracy) -> (f64, f64) {
        (self.value - other.value, self.error.hypot(other.error))
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ± {:.2} %", 100.0 * self.value, 100.0 * self.error)
    }
}

/// The finished cells that claims are judged from.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Of all cells.
    pub setup: &'a Setup,
    /// The finished cells.
    pub cells: &'a [Cell],
    /// Configurations timed by themselves.
    pub times: &'a [TimeCell],
}

impl<'a> Evidence<'a> {
    /// Cells of a configuration with at least this many epochs, the shortest such run of each seed; the secure one, or
    /// else the integer side's.
    pub(super) fn trained(
        &self,
        head: Head,
        layers: usize,
        rounding: Rounding,
        bits: u32,
        epochs: usize,
    ) -> Vec<&'a Cell> {
        let mut seeds: BTreeMap<u64, &Cell> = BTreeMap::new();
        for cell in self.cells {
            let id = &cell.id;
            let fits = (id.head, id.layers, id.rounding, id.velocity_bits) == (head, layers, Some(rounding), bits);
            if !fits || id.epochs < epochs || id.code || id.rate.is_some() {
                continue;
            }
            // Of the same length, the secure cell.
            let rank = |c: &Cell| (c.id.epochs, c.id.side);
            let best = seeds.entry(id.seed).or_insert(cell);
            if rank(cell) < rank(best) {
                *best = cell;
            }
        }
        seeds.into_values().collect()
    }

    /// Mean accuracy after an epoch, if every seed's attempt that counts got there.
    pub(super) fn accuracy(&self, cells: &[&Cell], epoch: usize) -> Option<Accuracy> {
        let all: Option<Vec<f64>> = cells.iter().map(|c| c.accuracy(epoch)).collect();
        let (value, spread) = mean_and_error(&all?)?;
        Some(Accuracy { value, error: binomial_error(value, self.setup.test_rows).hypot(spread) })
    }

    pub(super) fn secure(&self, head: Head, layers: usize, rounding: Rounding, epochs: usize) -> Vec<&'a Cell> {
        let cells = self.trained(head, layers, rounding, 0, epochs);
        cells.into_iter().filter(|c| c.id.side == Side::Secure).collect()
    }

    /// Where the seconds of a configuration come from: of its training cells, those with at least this many epochs.
    pub(super) fn source(&self, head: Head, layers: usize, rounding: Rounding, epochs: usize) -> Source<'a> {
        let of = Configuration { head, layers, rounding };
        Source::choose(of, self.secure(head, layers, rounding, epochs), self.times)
    }
}

/// Every depth and rounding of the paper's table.
pub(super) fn configurations() -> impl Iterator<Item = (usize, Rounding)> {
    DEPTHS.into_iter().flat_map(|l| Rounding::ALL.map(|r| (l, r)))
}

/// Cells, as a claim names them.
pub(super) fn seeds(cells: &[&Cell]) -> String {
    counted(cells.len(), "seed")
}

/// Whether most of what was learnt is lost, as by a run that left the range and wrapped around.
pub(super) fn collapsed(best: f64, end: f64) -> bool {
    end < best / 2.0
}

/// A difference of accuracies (0 to 1) and its standard error.
pub(super) fn points(value: f64, error: f64) -> String {
    format!("{:+.2} ± {:.2} points", 100.0 * value, 100.0 * error)
}
