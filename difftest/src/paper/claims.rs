//! The paper's claims, each judged from finished cells and from nothing else.
//!
//! *Uncertainty.* An accuracy carries its binomial standard error on the test rows; two differ where their distance exceeds twice the
//! standard error of the difference, as if the test rows were independent (they are shared, so this errs towards "no difference"). With several
//! seeds the standard error of their mean comes on top; of a single run, what another would have given is not known. Accuracy
//! is the secure side's, or the integer model's where no secure cell is finished: the same arithmetic, other coins. Seconds are the secure
//! side's only, those of like machines, with the standard error of the median over epochs.
//!
//! *Completeness.* A claim about every configuration fails by one that contradicts it, and passes once none is missing; a claim about some configuration
//! passes by one, and fails once none is missing.

use super::cell::{Cell, Epoch, Setup, Side, mean_and_error};
use super::table1::binomial_error;
use reference::fixed::divide::reciprocal_error_units;
use reference::spec::{FixedSpec, Head, Rounding};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// What the cells say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It holds here.
    Pass,
    /// It does not hold here: a finding.
    Fail,
    /// The cells that it needs are not finished, or leave it open.
    NotTested,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Judgement::Pass => "PASS",
            Judgement::Fail => "FAIL",
            Judgement::NotTested => "NOT TESTED",
        })
    }
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Short.
    pub name: &'static str,
    /// What the paper says, as it is tested here.
    pub statement: String,
    /// What the cells say.
    pub verdict: Judgement,
    /// The numbers, with their uncertainty, and what is missing.
    pub numbers: Vec<String>,
}

/// Epochs of the paper's table.
const EPOCHS: usize = 20;
/// Epochs of its longest run.
const LONG: usize = 50;
/// What the paper replaces softmax by. `relu-eps` is not the paper's, and no claim is about it.
const REPLACEMENTS: [Head; 3] = [Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];
/// The paper's heads.
const HEADS: [Head; 4] = [Head::Softmax, Head::ReluProb, Head::ReluProbCut, Head::ReluGrad];
/// Largest saving that the paper grants a replacement with more than one layer.
const SAVING: f64 = 0.25;

/// All claims.
pub fn judge(setup: &Setup, cells: &[Cell]) -> Vec<Claim> {
    let e = Evidence { setup, cells };
    vec![
        e.gradient_bound(),
        e.softmax_gradient(),
        e.below_softmax(Head::ReluProb, "relu-prob as printed", "relu-prob-printed"),
        e.below_softmax(Head::ReluProbCut, "relu-prob as in the paper's code", "relu-prob-coded"),
        e.relu_grad(EPOCHS, "relu-grad-20"),
        e.relu_grad(LONG, "relu-grad-50"),
        e.saving(),
        e.first_in_time(),
        e.rounding_cost(),
        e.late_decline(),
        e.velocity_bits(),
        e.third_layer(),
        e.long_run(),
    ]
}

/// How a line of numbers that contradicts its claim ends.
pub const CONTRADICTS: &str = ": contradicts";

/// How a line ends that a claim of the form "in some configuration" rests on.
pub const SUPPORTS: &str = ": supports";

/// Collects the cases of a claim. No case: not tested. One that contradicts: it fails.
struct Cases {
    name: &'static str,
    statement: String,
    numbers: Vec<String>,
    /// Configurations that the claim covers and that no finished cell is of.
    missing: Vec<String>,
    tested: usize,
    contradicted: bool,
    open: bool,
}

impl Cases {
    fn new(name: &'static str, statement: impl Into<String>) -> Self {
        let (numbers, missing) = (Vec::new(), Vec::new());
        Cases { name, statement: statement.into(), numbers, missing, tested: 0, contradicted: false, open: false }
    }

    fn case(&mut self, holds: bool, numbers: String) {
        self.tested += 1;
        self.contradicted |= !holds;
        self.numbers.push(if holds { numbers } else { format!("{numbers}{CONTRADICTS}") });
    }

    /// Something that the claim covers and that the cells leave open.
    fn open(&mut self, what: String) {
        self.open = true;
        self.numbers.push(what);
    }

    fn note(&mut self, what: String) {
        self.numbers.push(what);
    }

    fn missing(&mut self, what: String) {
        self.missing.push(what);
    }

    fn finish(self, needs: &str) -> Claim {
        let verdict = match self {
            Cases { contradicted: true, .. } => Judgement::Fail,
            Cases { tested: 0, .. } | Cases { open: true, .. } => Judgement::NotTested,
            _ if !self.missing.is_empty() => Judgement::NotTested,
            _ => Judgement::Pass,
        };
        let mut numbers = self.numbers;
        if self.tested == 0 {
            numbers.push(format!("needs {needs}"));
        } else if !self.missing.is_empty() {
            numbers.push(format!("not finished: {}", self.missing.join("; ")));
        }
        Claim { name: self.name, statement: self.statement, verdict, numbers }
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

struct Evidence<'a> {
    setup: &'a Setup,
    cells: &'a [Cell],
}

const DEPTHS: [usize; 3] = [1, 2, 3];

impl<'a> Evidence<'a> {
    /// Cells of a configuration with at least this many epochs, the shortest such run; secure ones, or else the model's.
    fn trained(&self, head: Head, layers: usize, rounding: Rounding, bits: u32, epochs: usize) -> Vec<&'a Cell> {
        let of = |side| {
            let fits = |c: &&Cell| {
                let id = &c.id;
                (id.side, id.head, id.layers, id.rounding, id.velocity_bits)
                    == (side, head, layers, Some(rounding), bits)
                    && id.epochs >= epochs
            };
            let found: Vec<_> = self.cells.iter().filter(fits).collect();
            let shortest = found.iter().map(|c| c.id.epochs).min();
            found.into_iter().filter(|c| Some(c.id.epochs) == shortest).collect::<Vec<_>>()
        };
        let secure = of(Side::Secure);
        if secure.is_empty() { of(Side::Model) } else { secure }
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

    /// Different seeds among the cells.
    fn seeds(&self) -> usize {
        self.cells.iter().map(|c| c.id.seed).collect::<BTreeSet<_>>().len()
    }

    fn largest_gradient(&self, side: Side, head: Head, rounding: Option<Rounding>) -> Option<f64> {
        let fits = |c: &&Cell| c.id.side == side && c.id.head == head && c.id.rounding == rounding;
        let epochs = self.cells.iter().filter(fits).flat_map(|c| &c.attempts).flat_map(|a| &a.epochs);
        epochs.filter_map(|e| e.largest_gradient).reduce(f64::max)
    }

    fn gradient_bound(&self) -> Claim {
        let limit = 1.0 / self.setup.epsilon;
        let mut cases = Cases::new(
            "gradient-bound",
            format!(
                "the gradient of relu-prob is at most 1/eps = {limit}: exactly in f64, within the reciprocal's proven error in fixed point"
            ),
        );
        for head in [Head::ReluProb, Head::ReluProbCut] {
            match self.largest_gradient(Side::F64, head, None) {
                Some(g) => cases.case(g <= limit, format!("f64 {head}: largest {g:.6}")),
                None => cases.missing(format!("f64 {head}")),
            }
            for rounding in Rounding::ALL {
                let one = FixedSpec::default().one() as f64;
                let allowed = limit + reciprocal_error_units(rounding, limit * one) / one;
                match self.largest_gradient(Side::Model, head, Some(rounding)) {
                    Some(g) => {
                        let numbers = format!("model {head} {rounding}: largest {g:.6}, allowed {allowed:.6}");
                        cases.case(g <= allowed, numbers);
                    }
                    None => cases.missing(format!("model {head} {rounding}")),
                }
            }
        }
        cases.finish("f64 or model cells of relu-prob")
    }

    fn softmax_gradient(&self) -> Claim {
        let mut cases = Cases::new(
            "softmax-gradient",
            "gradients of softmax are inside (-1, 1); a probability below 2^-54 (f64) or half a unit rounds to the end of the interval",
        );
        let sides = [(Side::F64, None), (Side::Model, Some(Rounding::ALL[0])), (Side::Model, Some(Rounding::ALL[1]))];
        for (side, rounding) in sides {
            let which = rounding.map_or(String::new(), |r| format!(" {r}"));
            match self.largest_gradient(side, Head::Softmax, rounding) {
                Some(g) => {
                    let limit = gradient_bound_of_softmax(side, rounding);
                    cases.case(g <= limit, format!("{side}{which}: largest {g:.9}, rounded limit {limit:.9}"));
                }
                None => cases.missing(format!("{side}{which}")),
            }
        }
        cases.finish("f64 or model cells of softmax")
    }

    fn below_softmax(&self, head: Head, what: &str, name: &'static str) -> Claim {
        let mut cases = Cases::new(
            name,
            format!("{what} converges, but stays below softmax, after {EPOCHS} epochs at every depth"),
        );
        for (layers, rounding) in configurations() {
            let cells = self.trained(head, layers, rounding, 0, EPOCHS);
            let base = self.trained(Head::Softmax, layers, rounding, 0, EPOCHS);
            let at = format!("{layers} layers, {rounding}");
            match (self.accuracy(&cells, EPOCHS), self.accuracy(&base, EPOCHS)) {
                (Some(a), Some(b)) => {
                    let (gap, error) = b.minus(a);
                    let numbers = format!("{at}: {a} against {b}, {}", points(-gap, error));
                    cases.case(cells.iter().all(|c| c.trains()) && gap > 2.0 * error, numbers);
                }
                (None, Some(_)) if !cells.is_empty() => {
                    cases.case(false, format!("{at}: does not converge at the rates tried"))
                }
                _ => cases.missing(at),
            }
        }
        if cases.tested > 0 && self.seeds() == 1 {
            cases.note("one run each: gradients up to 1/eps make runs chaotic, and how far two lie apart is not in the error (--seeds)".into());
        }
        cases.finish(&format!("secure or model cells of {head} and softmax with {EPOCHS} epochs"))
    }

    fn relu_grad(&self, epochs: usize, name: &'static str) -> Claim {
        let mut cases = Cases::new(
            name,
            format!(
                "relu-grad does not train with more than one layer within {epochs} epochs, at any learning rate that fixed point can represent"
            ),
        );
        for layers in [2, 3] {
            for rounding in Rounding::ALL {
                let cells = self.trained(Head::ReluGrad, layers, rounding, 0, epochs);
                if cells.is_empty() {
                    cases.missing(format!("{layers} layers, {rounding}"));
                }
                for cell in cells {
                    let at = format!("{layers} layers, {rounding}, seed {}, {}", cell.id.seed, cell.id.side);
                    let rates: Vec<_> = cell
                        .attempts
                        .iter()
                        .map(|a| {
                            let end = a.epochs.last().map_or(0.0, |e| e.accuracy(&cell.setup));
                            format!("{} lasts {} epochs, {:.1} %", a.learning_rate, a.epochs.len(), 100.0 * end)
                        })
                        .collect();
                    let rates = rates.join("; ");
                    // A rate helps if it lasts, learns more than the most frequent class and does not lose most of it again; longer runs are judged
                    // by their prefix.
                    let helps = cell.attempts.iter().any(|a| {
                        let accuracy = |e: &Epoch| e.accuracy(&cell.setup);
                        let end = a.epochs.get(epochs - 1).map_or(0.0, accuracy);
                        let best = a.epochs.iter().take(epochs).map(accuracy).fold(0.0, f64::max);
                        let learnt = end >= 2.0 / cell.setup.classes as f64 && !collapsed(best, end);
                        (a.ended.is_none() || a.epochs.len() > epochs) && learnt
                    });
                    let smaller = cell.setup.spec(&cell.id, cell.last().learning_rate / 2.0).is_ok();
                    if helps {
                        cases.case(false, format!("{at}: {rates}"));
                    } else if smaller {
                        cases.open(format!("{at}: {rates}; smaller rates exist and were not tried (--restarts)"));
                    } else {
                        cases.case(true, format!("{at}: {rates}; no smaller rate exists"));
                    }
                }
            }
        }
        cases.finish(&format!("cells of relu-grad with 2 or 3 layers and {epochs} epochs"))
    }

    fn saving(&self) -> Claim {
        let mut cases = Cases::new(
            "saving",
            format!(
                "with one layer some replacement saves more than {:.0} % of an epoch's time, with more layers none does",
                100.0 * SAVING
            ),
        );
        for (layers, rounding) in configurations() {
            let base = self.secure(Head::Softmax, layers, rounding, 1);
            // With one layer the largest saving decides: saved, error, numbers.
            let mut told = Vec::new();
            for head in REPLACEMENTS {
                let at = format!("{layers} layers, {rounding}, {head}");
                let cells = self.secure(head, layers, rounding, 1);
                let (Some((base_s, base_error)), Some((s, error))) = (seconds(&base), seconds(&cells)) else {
                    cases.missing(at);
                    continue;
                };
                if !like_machines(&[&base, &cells]) {
                    cases.open(format!("{at}: timed on different machines"));
                    continue;
                }
                let saved = 1.0 - s / base_s;
                let error = s / base_s * (error / s).hypot(base_error / base_s);
                let percent = (100.0 * saved, 100.0 * error);
                told.push((
                    saved,
                    error,
                    format!("{at}: {s:.2} s against {base_s:.2} s, saves {:.1} ± {:.1} %", percent.0, percent.1),
                ));
            }
            // Contradicted beyond twice the standard error only.
            if layers > 1 {
                told.into_iter().for_each(|(saved, error, n)| cases.case(saved - 2.0 * error <= SAVING, n));
            } else {
                told.sort_by(|a, b| b.0.total_cmp(&a.0));
                for (k, (saved, error, n)) in told.into_iter().enumerate() {
                    if k == 0 { cases.case(saved + 2.0 * error > SAVING, n) } else { cases.note(n) }
                }
            }
        }
        cases.finish("secure cells of softmax and a replacement at the same depth and rounding")
    }

    fn first_in_time(&self) -> Claim {
        let mut cases = Cases::new(
            "first-in-time",
            "softmax reaches any accuracy that a replacement reaches in no more time (secure seconds, told at the ends of epochs from softmax's first on)",
        );
        for (layers, rounding) in configurations() {
            let base = self.secure(Head::Softmax, layers, rounding, EPOCHS);
            for head in REPLACEMENTS {
                let at = format!("{layers} layers, {rounding}, {head}");
                let cells = self.secure(head, layers, rounding, EPOCHS);
                let same_seed = |c: &&'a Cell| Some((*c, *base.iter().find(|b| b.id.seed == c.id.seed)?));
                let pairs: Vec<_> = cells.iter().filter_map(same_seed).collect();
                if pairs.is_empty() {
                    cases.missing(at);
                    continue;
                }
                for (other, base) in pairs {
                    let at = if cells.len() > 1 { format!("{at}, seed {}", other.id.seed) } else { at.clone() };
                    if !like_machines(&[&[other], &[base]]) {
                        cases.open(format!("{at}: timed on different machines"));
                        continue;
                    }
                    match self.never_behind(&best_by_time(base), &best_by_time(other)) {
                        Some((holds, numbers)) => cases.case(holds, format!("{at}: {numbers}")),
                        None => cases.open(format!("{at}: over before softmax's first epoch was")),
                    }
                }
            }
        }
        cases.finish(&format!("secure cells of softmax and a replacement with {EPOCHS} epochs"))
    }

    /// Whether softmax is nowhere behind; how often, and how far at most. `None` if they have no time in common.
    fn never_behind(&self, softmax: &[(f64, f64)], other: &[(f64, f64)]) -> Option<(bool, String)> {
        let (mut told, mut behind, mut largest) = (0, 0, (0.0f64, 0.0, 0.0));
        let rows = self.setup.test_rows;
        for &(time, accuracy) in other.iter().filter(|p| softmax.first().is_some_and(|s| p.0 >= s.0)) {
            let best = softmax.iter().take_while(|p| p.0 <= time).map(|p| p.1).fold(0.0, f64::max);
            let error = binomial_error(accuracy, rows).hypot(binomial_error(best, rows));
            told += 1;
            if accuracy - best > 2.0 * error {
                behind += 1;
                if accuracy - best > largest.0 {
                    largest = (accuracy - best, time, error);
                }
            }
        }
        let worst = match behind {
            0 => "never behind".into(),
            _ => format!("behind at {behind}, most at {:.1} s: {}", largest.1, points(-largest.0, largest.2)),
        };
        (told > 0).then(|| (behind == 0, format!("{told} times compared, softmax {worst}")))
    }

    fn rounding_cost(&self) -> Claim {
        let mut cases =
            Cases::new("rounding-cost", "probabilistic rounding is cheaper than nearest at equal accuracy (softmax)");
        for layers in DEPTHS {
            let cells = Rounding::ALL.map(|r| self.secure(Head::Softmax, layers, r, EPOCHS));
            let [Some((p, pe)), Some((n, ne))] = cells.each_ref().map(|c| seconds(c)) else {
                cases.missing(format!("{layers} layers"));
                continue;
            };
            let at = format!("{layers} layers: {p:.2} ± {pe:.2} s against {n:.2} ± {ne:.2} s");
            if !like_machines(&[&cells[0], &cells[1]]) {
                cases.open(format!("{at}, timed on different machines"));
                continue;
            }
            match cells.each_ref().map(|c| self.accuracy(c, EPOCHS)) {
                [Some(a), Some(b)] => {
                    let (gap, error) = a.minus(b);
                    let cheaper = n - p > 2.0 * pe.hypot(ne);
                    cases.case(cheaper && gap >= -2.0 * error, format!("{at}, {}", points(gap, error)));
                }
                [None, _] => cases.case(false, format!("{at}, ends early under probabilistic rounding")),
                [_, None] => cases.open(format!("{at}, ends early under nearest rounding")),
            }
        }
        cases.finish(&format!("secure cells of softmax under both roundings with {EPOCHS} epochs"))
    }

    /// Best accuracy of the first three quarters, and at the end. `None` for what ends early or collapses: that is not a decline.
    fn decline(&self, cells: &[&Cell]) -> Option<(Accuracy, Accuracy)> {
        let end = self.accuracy(cells, EPOCHS)?;
        let early = (1..=EPOCHS * 3 / 4).filter_map(|e| self.accuracy(cells, e));
        let best = early.max_by(|a, b| a.value.total_cmp(&b.value))?;
        (!collapsed(best.value, end.value)).then_some((best, end))
    }

    fn late_decline(&self) -> Claim {
        let mut cases = Cases::new(
            "late-decline",
            format!(
                "accuracy falls in late epochs under nearest rounding: in some configuration epoch {EPOCHS} is below the best of the first {}, \
                 and is not under probabilistic rounding",
                EPOCHS * 3 / 4
            ),
        );
        let falls = |(best, end): (Accuracy, Accuracy)| {
            let (drop, error) = best.minus(end);
            (drop > 2.0 * error, points(-drop, error))
        };
        let (mut seen, mut fallen, mut alone) = (0, 0, 0);
        for layers in DEPTHS {
            for head in HEADS {
                let at = format!("{layers} layers, {head}");
                let cells = Rounding::ALL.map(|r| self.trained(head, layers, r, 0, EPOCHS));
                if cells.iter().any(Vec::is_empty) {
                    cases.missing(at);
                    continue;
                }
                let (control, nearest) = match cells.map(|c| self.decline(&c)) {
                    [Some(control), Some(nearest)] => (control, nearest),
                    [Some(_), None] => {
                        cases.open(format!("{at}: ends early or collapses, under nearest rounding only"));
                        continue;
                    }
                    _ => {
                        cases.note(format!("{at}: ends early or collapses"));
                        continue;
                    }
                };
                let ((control_falls, by), (nearest_falls, numbers)) = (falls(control), falls(nearest));
                seen += 1;
                fallen += usize::from(nearest_falls);
                let supports = nearest_falls && !control_falls;
                alone += usize::from(supports);
                let (best, end) = nearest;
                let line = format!("{at}: best {best}, end {end}, {numbers} (probabilistic: {by})");
                cases.note(if supports { line + SUPPORTS } else { line });
            }
        }
        if seen > 0 {
            let numbers = format!(
                "{fallen} of {seen} configurations fall beyond twice the standard error, {alone} of them only under nearest rounding"
            );
            match alone {
                // Those that are missing might still fall.
                0 if !cases.missing.is_empty() || cases.open => cases.open(numbers),
                0 => cases.case(false, numbers),
                _ => {
                    cases.case(true, numbers + SUPPORTS);
                    cases.missing.clear();
                    cases.open = false;
                }
            }
        }
        cases.finish(&format!("secure or model cells under both roundings with {EPOCHS} epochs"))
    }

    fn velocity_bits(&self) -> Claim {
        let mut cases = Cases::new(
            "velocity-bits",
            "with extra velocity bits accuracy does not fall under nearest rounding, and does not end lower than without: small velocities that never decay are the cause",
        );
        let bits = self.cells.iter().map(|c| c.id.velocity_bits).max().unwrap_or(0);
        for layers in DEPTHS.into_iter().filter(|_| bits > 0) {
            for head in HEADS {
                let at = format!("{layers} layers, {head}");
                let cells = [bits, 0].map(|bits| self.trained(head, layers, Rounding::Nearest, bits, EPOCHS));
                if cells.iter().any(Vec::is_empty) {
                    cases.missing(at);
                    continue;
                }
                let ((best, end), (_, without)) = match cells.map(|c| self.decline(&c)) {
                    [Some(with), Some(without)] => (with, without),
                    [None, Some(_)] => {
                        cases.case(false, format!("{at}, {bits} bits: ends early, and does not without them"));
                        continue;
                    }
                    [Some(_), None] => {
                        cases.open(format!("{at}: ends early without extra bits"));
                        continue;
                    }
                    [None, None] => {
                        cases.note(format!("{at}: ends early with and without them"));
                        continue;
                    }
                };
                let ((drop, error), (gain, gain_error)) = (best.minus(end), end.minus(without));
                let numbers = format!(
                    "{at}, {bits} bits: {} from its best; {end} against {without} without, {}",
                    points(-drop, error),
                    points(gain, gain_error)
                );
                cases.case(drop <= 2.0 * error && gain >= -2.0 * gain_error, numbers);
            }
        }
        cases.finish(&format!("cells under nearest rounding with --velocity-bits 0,8 and {EPOCHS} epochs"))
    }

    fn third_layer(&self) -> Claim {
        let mut cases =
            Cases::new("third-layer", format!("three layers do not beat two within {EPOCHS} epochs (softmax)"));
        for rounding in Rounding::ALL {
            let cells = [2, 3].map(|layers| self.trained(Head::Softmax, layers, rounding, 0, EPOCHS));
            match cells.each_ref().map(|c| self.accuracy(c, EPOCHS)) {
                [Some(two), Some(three)] => {
                    let (gain, error) = three.minus(two);
                    let numbers = format!("{rounding}: {three} against {two}, {}", points(gain, error));
                    cases.case(gain <= 2.0 * error, numbers);
                }
                _ if cells.iter().any(Vec::is_empty) => cases.missing(rounding.to_string()),
                _ => cases.open(format!("{rounding}: ends early")),
            }
        }
        cases.finish(&format!("secure or model cells of softmax with 2 and 3 layers and {EPOCHS} epochs"))
    }

    fn long_run(&self) -> Claim {
        let mut cases =
            Cases::new("98-percent", format!("98 % after {LONG} epochs with two or three layers (softmax)"));
        for layers in [2, 3] {
            for rounding in Rounding::ALL {
                let cells = self.trained(Head::Softmax, layers, rounding, 0, LONG);
                let at = format!("{layers} layers, {rounding}");
                match self.accuracy(&cells, LONG) {
                    Some(a) => cases.case(a.value + 2.0 * a.error >= 0.98, format!("{at}: {a}")),
                    None if cells.is_empty() => cases.missing(at),
                    None => cases.case(false, format!("{at}: ends early")),
                }
            }
        }
        cases.finish(&format!("secure or model cells of softmax with 2 or 3 layers and --epochs {LONG}"))
    }
}

/// 1, and in fixed point the proven error of a quotient more.
fn gradient_bound_of_softmax(side: Side, rounding: Option<Rounding>) -> f64 {
    let fixed = FixedSpec::default();
    match rounding {
        Some(r) if side == Side::Model => {
            1.0 + reference::fixed::divide::quotient_error_units(fixed, r) / fixed.one() as f64
        }
        _ => 1.0,
    }
}

/// Every depth and rounding of the paper's table.
fn configurations() -> impl Iterator<Item = (usize, Rounding)> {
    DEPTHS.into_iter().flat_map(|l| Rounding::ALL.map(|r| (l, r)))
}

/// Whether most of what was learnt is lost, as by a run that left the range and wrapped around.
fn collapsed(best: f64, end: f64) -> bool {
    end < best / 2.0
}

/// A difference of accuracies (0 to 1) and its standard error.
fn points(value: f64, error: f64) -> String {
    format!("{:+.2} ± {:.2} points", 100.0 * value, 100.0 * error)
}

/// Seconds of an epoch and their standard error: one cell's, or the mean of several.
fn seconds(cells: &[&Cell]) -> Option<(f64, f64)> {
    let each: Vec<_> = cells.iter().filter_map(|c| c.seconds_per_epoch()).collect();
    match each[..] {
        // One or two epochs have no error to speak of.
        [one] => (cells.iter().map(|c| c.whole_epochs().count()).sum::<usize>() >= 3).then_some(one),
        _ => mean_and_error(&each.iter().map(|s| s.0).collect::<Vec<_>>()),
    }
}

/// Whether seconds of these cells may be compared, as far as a cell knows its machine.
fn like_machines(cells: &[&[&Cell]]) -> bool {
    let mut machines = cells.iter().copied().flatten().map(|c| &c.machine);
    machines.next().is_none_or(|first| machines.all(|m| m == first))
}

/// (seconds of training so far, best accuracy so far) at the end of every epoch, failed rates included.
fn best_by_time(cell: &Cell) -> Vec<(f64, f64)> {
    let (mut time, mut best) = (0.0, 0.0f64);
    let epochs = cell.attempts.iter().flat_map(|a| &a.epochs);
    epochs
        .map(|e| {
            time += e.seconds;
            best = best.max(e.accuracy(&cell.setup));
            (time, best)
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::cell::{Attempt, Epoch, Machine, SCHEMA};
    use super::*;
    use crate::check::divergence::Verdict;

    /// A finished cell on 10,000 test rows with these accuracies, ten seconds an epoch. It survives if it has all its epochs.
    pub(crate) fn cell(id: &str, accuracy: &[f64]) -> Cell {
        let id: super::super::Id = id.parse().unwrap();
        let setup = Setup {
            inputs: 784,
            hidden: 128,
            train_rows: 60_000,
            test_rows: 10_000,
            batch: 128,
            ..super::super::cell::tests::setup()
        };
        let epochs = accuracy.iter().map(|a| Epoch {
            steps: 469,
            seconds: 10.0,
            plain_seconds: None,
            correct: (a * 10_000.0).round() as usize,
            loss: None,
            infinite_losses: None,
            largest_batch_loss: None,
            largest_logit: None,
            largest_weight: Some(1.0),
            largest_gradient: None,
            dead_units: vec![],
            nearness: Default::default(),
            sketch: vec![],
        });
        let ended = (accuracy.len() < id.epochs).then(|| "accuracy 9.80 %, below 11 %".into());
        let attempt = Attempt {
            learning_rate: setup.learning_rate,
            epochs: epochs.collect(),
            verdict: Verdict::Trains,
            ended,
            logits_leave: None,
            violations: Default::default(),
        };
        let machine = Machine { cpus: 2, kernel: "portable".into() };
        Cell { schema: SCHEMA, id, setup, attempts: vec![attempt], cost: None, machine }
    }

    fn judged(cells: &[Cell], name: &str) -> Claim {
        let setup = cell("f64-softmax-l1-s1-e1", &[0.5]).setup;
        judge(&setup, cells).into_iter().find(|c| c.name == name).unwrap()
    }

    fn gradient(id: &str, g: f64) -> Cell {
        let mut cell = cell(id, &[0.5]);
        cell.attempts[0].epochs[0].largest_gradient = Some(g);
        cell
    }

    /// A secure cell of 20 equal epochs.
    fn flat(config: &str, accuracy: f64, seconds: f64) -> Cell {
        let mut cell = cell(&format!("secure-{config}-s1-e20"), &[accuracy; 20]);
        cell.attempts[0].epochs.iter_mut().for_each(|e| e.seconds = seconds);
        cell
    }

    /// Secure cells of the paper's heads at every depth and rounding, 20 equal epochs each.
    fn grid(
        accuracy: impl Fn(usize, Rounding, Head) -> f64,
        seconds: impl Fn(usize, Rounding, Head) -> f64,
    ) -> Vec<Cell> {
        let of = |(l, r): (usize, Rounding)| {
            HEADS.map(|h| flat(&format!("{h}-l{l}-{r}"), accuracy(l, r, h), seconds(l, r, h)))
        };
        configurations().flat_map(of).collect()
    }

    fn without(cells: &[Cell], part: &str) -> Vec<Cell> {
        cells.iter().filter(|c| !c.id.to_string().contains(part)).cloned().collect()
    }

    #[test]
    fn nothing_is_claimed_without_cells() {
        for claim in judge(&cell("f64-softmax-l1-s1-e1", &[0.5]).setup, &[]) {
            assert_eq!(claim.verdict, Judgement::NotTested, "{claim:?}");
            assert!(claim.numbers.iter().any(|n| n.starts_with("needs")), "{claim:?}");
        }
    }

    #[test]
    fn gradient_claims_know_their_limits() {
        let verdict = |cells: &[Cell], name| judged(cells, name).verdict;
        let all = |f64_side: f64, model: f64| -> Vec<Cell> {
            let of = |head: &str| {
                [("f64", "", f64_side), ("model", "-prob", model), ("model", "-nearest", model)]
                    .map(|(side, rounding, g)| gradient(&format!("{side}-{head}-l1{rounding}-s1-e1"), g))
            };
            ["softmax", "relu-prob", "relu-prob-cut"].into_iter().flat_map(of).collect()
        };
        assert_eq!(verdict(&all(10.0, 10.000005), "gradient-bound"), Judgement::Pass);
        assert_eq!(verdict(&all(10.000001, 10.0), "gradient-bound"), Judgement::Fail);
        assert_eq!(verdict(&all(10.0, 10.1), "gradient-bound"), Judgement::Fail);
        for part in ["f64-relu-prob-l1", "model-relu-prob-cut-l1-prob", "nearest"] {
            assert_eq!(verdict(&without(&all(10.0, 10.0), part), "gradient-bound"), Judgement::NotTested, "{part}");
        }
        assert_eq!(verdict(&[gradient("f64-relu-prob-l1-s1-e1", 11.0)], "gradient-bound"), Judgement::Fail);
        assert_eq!(verdict(&[gradient("f64-relu-eps-l1-s1-e1", 1e6)], "gradient-bound"), Judgement::NotTested);
        assert_eq!(verdict(&all(1.0, 1.0), "softmax-gradient"), Judgement::Pass);
        assert_eq!(verdict(&all(1.0 + 1e-12, 1.0), "softmax-gradient"), Judgement::Fail);
        assert_eq!(verdict(&without(&all(1.0, 1.0), "model"), "softmax-gradient"), Judgement::NotTested);
    }

    #[test]
    fn a_replacement_must_be_below_softmax_beyond_sampling_error_everywhere() {
        let cells = |gap: f64| -> Vec<Cell> {
            let both = |c: (usize, Rounding)| {
                let config = format!("l{}-{}", c.0, c.1);
                [flat(&format!("softmax-{config}"), 0.97, 10.0), flat(&format!("relu-prob-{config}"), 0.97 - gap, 10.0)]
            };
            configurations().flat_map(both).collect()
        };
        // Twice the standard error of the difference is 0.0048.
        assert_eq!(judged(&cells(0.006), "relu-prob-printed").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(0.004), "relu-prob-printed").verdict, Judgement::Fail);
        assert_eq!(
            judged(&cells(0.006)[2..], "relu-prob-printed").verdict,
            Judgement::NotTested,
            "one depth is missing"
        );
        assert_eq!(judged(&cells(0.006), "relu-prob-coded").verdict, Judgement::NotTested);
    }

    #[test]
    fn relu_grad_is_open_until_no_smaller_rate_exists() {
        let mut failed = cell("secure-relu-grad-l2-prob-s1-e20", &[0.8, 0.1]);
        assert_eq!(judged(&[failed.clone()], "relu-grad-20").verdict, Judgement::NotTested);
        failed.attempts[0].learning_rate = 128.0 * 0.5f64.powi(31);
        let everywhere: Vec<Cell> = configurations()
            .filter(|(layers, _)| *layers > 1)
            .map(|(layers, rounding)| {
                let id = format!("secure-relu-grad-l{layers}-{rounding}-s1-e20").parse().unwrap();
                Cell { id, ..failed.clone() }
            })
            .collect();
        assert_eq!(judged(&everywhere, "relu-grad-20").verdict, Judgement::Pass);
        assert_eq!(judged(&everywhere[1..], "relu-grad-20").verdict, Judgement::NotTested, "one depth is missing");
        assert_eq!(judged(&everywhere, "relu-grad-50").verdict, Judgement::NotTested);
        assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.8, 10.0)], "relu-grad-20").verdict, Judgement::Fail);
        let mut fallen = flat("relu-grad-l3-nearest", 0.3, 10.0);
        fallen.attempts[0].epochs[0].correct *= 3;
        assert_eq!(judged(&[fallen], "relu-grad-20").verdict, Judgement::NotTested, "from 90 % to 30 %");
        // Always the most frequent class: the paper's rule does not fire, and nothing is learnt.
        assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.1135, 10.0)], "relu-grad-20").verdict, Judgement::NotTested);
        let mut long = cell("secure-relu-grad-l2-prob-s1-e50", &[0.8; 30]);
        assert_eq!(judged(&[long.clone()], "relu-grad-20").verdict, Judgement::Fail, "it lasts 30 epochs");
        long.attempts[0].epochs.truncate(20);
        assert_eq!(judged(&[long], "relu-grad-20").verdict, Judgement::NotTested, "it ends with epoch 20");
    }

    #[test]
    fn savings_are_expected_with_one_layer_only() {
        // relu-prob saves little; relu-grad what is given.
        let cells = |one: f64, more: f64| {
            grid(
                |_, _, _| 0.9,
                |layers, _, head| match head {
                    Head::ReluGrad if layers == 1 => one,
                    Head::ReluGrad => more,
                    Head::Softmax => 10.0,
                    _ => 9.8,
                },
            )
        };
        assert_eq!(judged(&cells(5.0, 8.0), "saving").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(5.0, 7.0), "saving").verdict, Judgement::Fail);
        assert_eq!(judged(&cells(9.0, 9.0), "saving").verdict, Judgement::Fail);
        assert_eq!(judged(&without(&cells(5.0, 8.0), "relu-prob-l3"), "saving").verdict, Judgement::NotTested);
        let mut elsewhere = cells(5.0, 8.0);
        elsewhere[0].machine.cpus = 36;
        assert_eq!(judged(&elsewhere, "saving").verdict, Judgement::NotTested, "seconds of another machine");
        let mut short = cells(5.0, 7.0);
        short.iter_mut().flat_map(|c| &mut c.attempts).for_each(|a| a.epochs.truncate(2));
        assert_eq!(judged(&short, "saving").verdict, Judgement::NotTested, "two epochs have no error");
    }

    #[test]
    fn being_first_is_told_in_time_and_not_in_epochs() {
        let cells = |accuracy: f64| {
            let grad = |h| h == Head::ReluGrad;
            grid(|_, _, h| if grad(h) { accuracy } else { 0.95 }, |_, _, h| if grad(h) { 5.0 } else { 10.0 })
        };
        assert_eq!(judged(&cells(0.94), "first-in-time").verdict, Judgement::Pass);
        assert_eq!(judged(&without(&cells(0.94), "l2-nearest"), "first-in-time").verdict, Judgement::NotTested);
        let slow = grid(|_, _, _| 0.9, |_, _, h| if h == Head::Softmax { 1000.0 } else { 1.0 });
        assert_eq!(judged(&slow, "first-in-time").verdict, Judgement::NotTested, "no time in common");
        let claim = judged(&cells(0.96), "first-in-time");
        assert_eq!(claim.verdict, Judgement::Fail);
        assert!(claim.numbers.iter().any(|n| n.contains("relu-grad: 19 times compared")), "{claim:?}");
    }

    #[test]
    fn cheaper_means_faster_at_no_lower_accuracy() {
        let cells = |accuracy: f64, seconds: f64| {
            let nearest = |r| r == Rounding::Nearest;
            grid(|_, r, _| if nearest(r) { 0.95 } else { accuracy }, |_, r, _| if nearest(r) { 20.0 } else { seconds })
        };
        assert_eq!(judged(&cells(0.949, 10.0), "rounding-cost").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(0.93, 10.0), "rounding-cost").verdict, Judgement::Fail);
        assert_eq!(judged(&cells(0.95, 20.0), "rounding-cost").verdict, Judgement::Fail);
        let two = without(&cells(0.949, 10.0), "l3");
        assert_eq!(judged(&two, "rounding-cost").verdict, Judgement::NotTested, "a depth is missing");
    }

    #[test]
    fn a_late_decline_and_its_cure() {
        let falling: Vec<f64> = (0..20).map(|e| if e < 10 { 0.97 } else { 0.96 }).collect();
        let plain = cell("model-softmax-l2-nearest-s1-e20", &falling);
        let control = |accuracy: &[f64]| cell("model-softmax-l2-prob-s1-e20", accuracy);
        assert_eq!(judged(&[plain.clone(), control(&[0.97; 20])], "late-decline").verdict, Judgement::Pass);
        // Everything else is there, and steady.
        let steady = grid(|_, _, _| 0.97, |_, _, _| 1.0);
        assert_eq!(judged(&steady, "late-decline").verdict, Judgement::Fail);
        let but = |cells: &[Cell]| [without(&steady, "-softmax-l2"), cells.to_vec()].concat();
        let claim = judged(&but(&[plain.clone(), control(&falling)]), "late-decline");
        assert_eq!(claim.verdict, Judgement::Fail, "not the rounding");
        assert!(claim.numbers.last().unwrap().starts_with("1 of 12 configurations fall beyond"), "{claim:?}");
        let open = judged(&steady[1..], "late-decline");
        assert_eq!(open.verdict, Judgement::NotTested, "what is missing might fall");
        assert_eq!(judged(std::slice::from_ref(&plain), "late-decline").verdict, Judgement::NotTested, "no control");
        assert_eq!(judged(std::slice::from_ref(&plain), "velocity-bits").verdict, Judgement::NotTested);
        let everywhere = |softmax: &[f64]| -> Vec<Cell> {
            let of = |l: usize| {
                HEADS.map(|h| {
                    let accuracy = if (l, h) == (2, Head::Softmax) { softmax } else { &[0.97; 20] };
                    cell(&format!("secure-{h}-l{l}-nearest-s1-e20-v8"), accuracy)
                })
            };
            DEPTHS.into_iter().flat_map(of).collect()
        };
        let with = |cured: &[Cell]| judged(&[steady.clone(), cured.to_vec()].concat(), "velocity-bits").verdict;
        assert_eq!(with(&everywhere(&[0.97; 20])), Judgement::Pass);
        assert_eq!(with(&everywhere(&[0.97; 20])[1..]), Judgement::NotTested);
        assert_eq!(with(&everywhere(&falling)), Judgement::Fail);
        assert_eq!(with(&everywhere(&[0.97; 5])), Judgement::Fail, "it ends early with the extra bits only");
        let ends = cell("model-softmax-l2-nearest-s1-e20", &[0.97; 5]);
        let claim = judged(&but(&[ends, control(&[0.97; 20])]), "late-decline");
        assert_eq!(claim.verdict, Judgement::NotTested, "an end under nearest rounding only is not steady");
        let collapse: Vec<f64> = (0..20).map(|e| if e < 10 { 0.97 } else { 0.3 }).collect();
        let collapses = cell("model-softmax-l2-nearest-s1-e20", &collapse);
        let claim = judged(&but(&[collapses, control(&[0.97; 20])]), "late-decline");
        assert_eq!(claim.verdict, Judgement::NotTested, "nor is a collapse a decline");
        let cured = cell("model-softmax-l2-nearest-s1-e20-v8", &[0.97; 20]);
        let some = judged(&[plain, cured], "velocity-bits");
        assert_eq!(some.verdict, Judgement::NotTested);
        assert!(some.numbers[0].contains("softmax, 8 bits"), "{some:?}");
    }

    #[test]
    fn depth_and_length() {
        let cells = |three| grid(|l, _, _| if l == 3 { three } else { 0.97 }, |_, _, _| 1.0);
        assert_eq!(judged(&cells(0.972), "third-layer").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(0.98), "third-layer").verdict, Judgement::Fail);
        assert_eq!(judged(&without(&cells(0.972), "l3-prob"), "third-layer").verdict, Judgement::NotTested);
        let long = |accuracy: &[f64]| -> Vec<Cell> {
            let deep = configurations().filter(|(layers, _)| *layers > 1);
            deep.map(|(l, r)| cell(&format!("secure-softmax-l{l}-{r}-s1-e50"), accuracy)).collect()
        };
        assert_eq!(judged(&long(&[0.979; 50]), "98-percent").verdict, Judgement::Pass, "within two standard errors");
        assert_eq!(judged(&long(&[0.979; 50])[1..], "98-percent").verdict, Judgement::NotTested);
        assert_eq!(judged(&long(&[0.97; 50]), "98-percent").verdict, Judgement::Fail);
        assert_eq!(judged(&long(&[0.99; 30]), "98-percent").verdict, Judgement::Fail, "a run that ends is no success");
    }
}
