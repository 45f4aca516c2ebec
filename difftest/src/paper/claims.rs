//! The paper's claims, each judged from finished cells and from nothing else.
//!
//! *Uncertainty.* An accuracy carries its binomial standard error on the test rows; two differ where their distance exceeds twice the
//! standard error of the difference, as if the test rows were independent (they are shared, so this errs towards "no difference"). With several
//! seeds the standard error of their mean comes on top; of a single run, it is not known what another would have given. Accuracy
//! is, seed by seed, the secure side's, or the integer model's where no secure cell is finished: it is the same arithmetic with other coins, and
//! under nearest rounding the same numbers. Seconds are the secure side's only, those of whole grids on like and quiet machines ([`Cell::timed`]), with
//! the standard error of the median over epochs.
//!
//! *Completeness.* A claim about every configuration does not hold if one contradicts it, and holds once none is missing; a claim about some
//! configuration holds by one, and does not hold once none is missing.
//!
//! | file | claims about |
//! | --- | --- |
//! | [`gradients`] | the size of the heads' gradients |
//! | [`accuracy`] | the replacements' accuracy beside softmax's |
//! | [`divergence`] | relu-grad with more than one layer |
//! | [`time`] | what the replacements and probabilistic rounding save |
//! | [`decline`] | accuracy that falls in late epochs |
//! | [`depth`] | two layers, three layers, long training |
//! | [`needs`] | table 2, column by column |

pub mod accuracy;
pub mod decline;
pub mod depth;
pub mod divergence;
pub mod gradients;
pub mod needs;
pub mod time;

use super::cell::{Cell, Setup, Side, mean_and_error};
use super::table1::binomial_error;
use super::table2;
use reference::spec::{Head, Rounding};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Whether a claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It holds.
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

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// A short name.
    pub name: &'static str,
    /// Whether it holds.
    pub verdict: Judgement,
    /// Where the paper says it.
    pub place: &'static str,
    /// What the paper says, in other words.
    pub statement: String,
    /// How it is tested here.
    pub test: String,
    /// The numbers, with their uncertainty, and what is missing.
    pub numbers: Vec<String>,
}

/// Epochs of the paper's table.
pub const EPOCHS: usize = 20;
/// Depths of the paper's networks.
const DEPTHS: [usize; 3] = [1, 2, 3];
/// What the paper replaces softmax by. `relu-eps` is not the paper's, and no claim is about it.
const REPLACEMENTS: [Head; 3] = [Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];
/// The paper's heads.
const HEADS: [Head; 4] = [Head::Softmax, Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];

/// All claims, in the paper's order.
pub fn judge(setup: &Setup, cells: &[Cell], table2: &[table2::Row]) -> Vec<Claim> {
    let e = Evidence { setup, cells };
    let mut claims = vec![gradients::gradient_bound(&e), gradients::softmax_gradient(&e)];
    claims.extend([accuracy::RELU_PROB, accuracy::RELU_PROB_CUT].map(|which| accuracy::below_softmax(&e, which)));
    claims.push(accuracy::always_reduced(&e));
    claims.extend(divergence::READINGS.map(|reading| divergence::relu_grad(&e, reading)));
    claims.push(time::one_layer(&e));
    claims.push(time::more_layers(&e));
    claims.push(time::first_in_time(&e));
    claims.push(time::rounding_cost(&e));
    claims.push(decline::late_decline(&e));
    claims.push(decline::velocity_bits(&e));
    claims.extend([depth::third_layer(&e), depth::plaintext_third_layer(&e)]);
    claims.extend([2, 3].map(|layers| depth::long_run(&e, layers)));
    claims.extend(needs::claims(table2));
    claims
}

/// How a line of numbers that contradicts its claim ends.
pub const CONTRADICTS: &str = ": contradicts";

/// How a line ends that a claim of the form "in some configuration" rests on.
pub const SUPPORTS: &str = ": supports";

/// Collects the cases of a claim. No case: not tested. One that contradicts: it does not hold.
struct Cases {
    claim: Claim,
    /// Configurations that the claim covers and that no finished cell is of.
    missing: Vec<String>,
    tested: usize,
    contradicted: bool,
    open: bool,
}

impl Cases {
    fn new(name: &'static str, place: &'static str, statement: impl Into<String>, test: impl Into<String>) -> Self {
        let (statement, test, numbers) = (statement.into(), test.into(), Vec::new());
        let claim = Claim { name, verdict: Judgement::NotTested, place, statement, test, numbers };
        Cases { claim, missing: Vec::new(), tested: 0, contradicted: false, open: false }
    }

    fn case(&mut self, holds: bool, numbers: String) {
        self.tested += 1;
        self.contradicted |= !holds;
        self.claim.numbers.push(if holds { numbers } else { format!("{numbers}{CONTRADICTS}") });
    }

    /// Something that the claim covers and that the cells leave open.
    fn open(&mut self, what: String) {
        self.open = true;
        self.claim.numbers.push(what);
    }

    fn note(&mut self, what: String) {
        self.claim.numbers.push(what);
    }

    fn missing(&mut self, what: String) {
        self.missing.push(what);
    }

    fn finish(self, needs: &str) -> Claim {
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
struct Accuracy {
    value: f64,
    error: f64,
}

impl Accuracy {
    /// self - other, and the standard error of that.
    fn minus(self, other: Accuracy) -> (f64, f64) {
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
    setup: &'a Setup,
    cells: &'a [Cell],
}

impl<'a> Evidence<'a> {
    /// Cells of a configuration with at least this many epochs, the shortest such run of each seed; the secure one, or else the integer model's.
    fn trained(&self, head: Head, layers: usize, rounding: Rounding, bits: u32, epochs: usize) -> Vec<&'a Cell> {
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
    fn accuracy(&self, cells: &[&Cell], epoch: usize) -> Option<Accuracy> {
        let all: Option<Vec<f64>> = cells.iter().map(|c| c.accuracy(epoch)).collect();
        let (value, spread) = mean_and_error(&all?)?;
        Some(Accuracy { value, error: binomial_error(value, self.setup.test_rows).hypot(spread) })
    }

    fn secure(&self, head: Head, layers: usize, rounding: Rounding, epochs: usize) -> Vec<&'a Cell> {
        let cells = self.trained(head, layers, rounding, 0, epochs);
        cells.into_iter().filter(|c| c.id.side == Side::Secure).collect()
    }
}

/// Every depth and rounding of the paper's table.
fn configurations() -> impl Iterator<Item = (usize, Rounding)> {
    DEPTHS.into_iter().flat_map(|l| Rounding::ALL.map(|r| (l, r)))
}

/// A number of layers, in words.
pub(super) fn layers_of(layers: usize) -> String {
    if layers == 1 { "1 layer".into() } else { format!("{layers} layers") }
}

/// Cells, as a claim names them.
fn seeds(cells: &[&Cell]) -> String {
    if cells.len() == 1 { "1 seed".into() } else { format!("{} seeds", cells.len()) }
}

/// Whether most of what was learnt is lost, as by a run that left the range and wrapped around.
fn collapsed(best: f64, end: f64) -> bool {
    end < best / 2.0
}

/// A difference of accuracies (0 to 1) and its standard error.
fn points(value: f64, error: f64) -> String {
    format!("{:+.2} ± {:.2} points", 100.0 * value, 100.0 * error)
}

#[cfg(test)]
pub(crate) mod tests;
