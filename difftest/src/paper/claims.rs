//! The paper's claims, each judged from finished cells and from nothing else.
//!
//! *Uncertainty.* An accuracy carries its binomial standard error on the test rows; two differ where their distance exceeds twice the
//! standard error of the difference, as if the test rows were independent (they are shared, so this errs towards "no difference"). Accuracy
//! is the secure side's, or the integer model's where no secure cell is finished: the same arithmetic, other coins. Seconds are the secure
//! side's only, with the standard error of the mean over epochs.

use super::cell::{Cell, Setup, Side, mean_and_error};
use super::table1::binomial_error;
use reference::fixed::divide::reciprocal_error_units;
use reference::spec::{FixedSpec, Head, Rounding};
use serde::Serialize;
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

/// Collects the cases of a claim. No case: not tested. One that contradicts: it fails.
struct Cases {
    name: &'static str,
    statement: String,
    numbers: Vec<String>,
    tested: usize,
    contradicted: bool,
    open: bool,
}

impl Cases {
    fn new(name: &'static str, statement: impl Into<String>) -> Self {
        Cases { name, statement: statement.into(), numbers: Vec::new(), tested: 0, contradicted: false, open: false }
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

    fn finish(self, missing: &str) -> Claim {
        let verdict = match self {
            Cases { contradicted: true, .. } => Judgement::Fail,
            Cases { tested: 0, .. } | Cases { open: true, .. } => Judgement::NotTested,
            _ => Judgement::Pass,
        };
        let mut numbers = self.numbers;
        if self.tested == 0 {
            numbers.push(format!("needs {missing}"));
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
        let (value, _) = mean_and_error(&all?)?;
        Some(Accuracy { value, error: binomial_error(value, self.setup.test_rows) })
    }

    fn seconds(&self, head: Head, layers: usize, rounding: Rounding) -> Option<(f64, f64)> {
        let cells = self.trained(head, layers, rounding, 0, 1);
        let one: Vec<_> =
            cells.iter().filter(|c| c.id.side == Side::Secure).filter_map(|c| c.seconds_per_epoch()).collect();
        match one[..] {
            [one] => Some(one),
            _ => mean_and_error(&one.iter().map(|s| s.0).collect::<Vec<_>>()),
        }
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
            if let Some(g) = self.largest_gradient(Side::F64, head, None) {
                cases.case(g <= limit, format!("f64 {head}: largest {g:.6}"));
            }
            for rounding in Rounding::ALL {
                let one = FixedSpec::default().one() as f64;
                let allowed = limit + reciprocal_error_units(rounding, limit * one) / one;
                if let Some(g) = self.largest_gradient(Side::Model, head, Some(rounding)) {
                    cases.case(g <= allowed, format!("model {head} {rounding}: largest {g:.6}, allowed {allowed:.6}"));
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
            if let Some(g) = self.largest_gradient(side, Head::Softmax, rounding) {
                let limit = gradient_bound_of_softmax(side, rounding);
                let which = rounding.map_or(String::new(), |r| format!(" {r}"));
                cases.case(g <= limit, format!("{side}{which}: largest {g:.9}, rounded limit {limit:.9}"));
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
                _ => cases.open(format!("{at}: not finished")),
            }
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
                for cell in self.trained(Head::ReluGrad, layers, rounding, 0, epochs) {
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
                    // A rate helps if it lasts, and learns more than the most frequent class; longer runs are judged by their prefix.
                    let helps = cell.attempts.iter().any(|a| {
                        let end = a.epochs.get(epochs - 1).map_or(0.0, |e| e.accuracy(&cell.setup));
                        (a.ended.is_none() || a.epochs.len() > epochs) && end >= 2.0 / cell.setup.classes as f64
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
            format!("a replacement saves more than {:.0} % of an epoch's time only with one layer", 100.0 * SAVING),
        );
        for (layers, rounding) in configurations() {
            let Some((base, base_error)) = self.seconds(Head::Softmax, layers, rounding) else { continue };
            for head in REPLACEMENTS {
                let Some((s, error)) = self.seconds(head, layers, rounding) else { continue };
                let saved = 1.0 - s / base;
                let error = s / base * (error / s).hypot(base_error / base);
                let numbers = format!(
                    "{layers} layers, {rounding}, {head}: {s:.2} s against {base:.2} s, saves {:.1} ± {:.1} %",
                    100.0 * saved,
                    100.0 * error
                );
                // Contradicted beyond twice the standard error only.
                let holds = if layers == 1 { saved + 2.0 * error > SAVING } else { saved - 2.0 * error <= SAVING };
                cases.case(holds, numbers);
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
            let curves = |head| -> Vec<Vec<(f64, f64)>> {
                let cells = self.trained(head, layers, rounding, 0, EPOCHS);
                cells.into_iter().filter(|c| c.id.side == Side::Secure).map(best_by_time).collect()
            };
            let base = curves(Head::Softmax);
            let Some(base) = base.first() else { continue };
            for head in REPLACEMENTS {
                let others = curves(head);
                let Some(other) = others.first() else { continue };
                let (mut told, mut behind, mut largest) = (0, 0, (0.0f64, 0.0, 0.0));
                for &(time, accuracy) in other.iter().filter(|p| p.0 >= base[0].0) {
                    let softmax = base.iter().take_while(|p| p.0 <= time).map(|p| p.1).fold(0.0, f64::max);
                    let rows = self.setup.test_rows;
                    let error = binomial_error(accuracy, rows).hypot(binomial_error(softmax, rows));
                    told += 1;
                    if accuracy - softmax > 2.0 * error {
                        behind += 1;
                        if accuracy - softmax > largest.0 {
                            largest = (accuracy - softmax, time, error);
                        }
                    }
                }
                let worst = if behind == 0 {
                    "never behind".into()
                } else {
                    format!("behind at {behind}, most at {:.1} s: {}", largest.1, points(-largest.0, largest.2))
                };
                cases.case(
                    behind == 0,
                    format!("{layers} layers, {rounding}, {head}: {told} times compared, softmax {worst}"),
                );
            }
        }
        cases.finish(&format!("secure cells of softmax and a replacement with {EPOCHS} epochs"))
    }

    fn rounding_cost(&self) -> Claim {
        let mut cases =
            Cases::new("rounding-cost", "probabilistic rounding is cheaper than nearest at equal accuracy (softmax)");
        let [prob, nearest] = Rounding::ALL;
        for layers in DEPTHS {
            let seconds = [prob, nearest].map(|r| self.seconds(Head::Softmax, layers, r));
            let accuracy =
                [prob, nearest].map(|r| self.accuracy(&self.trained(Head::Softmax, layers, r, 0, EPOCHS), EPOCHS));
            let ([Some((p, pe)), Some((n, ne))], [Some(a), Some(b)]) = (seconds, accuracy) else { continue };
            let (gap, error) = a.minus(b);
            let cheaper = n - p > 2.0 * pe.hypot(ne);
            let numbers =
                format!("{layers} layers: {p:.2} ± {pe:.2} s against {n:.2} ± {ne:.2} s, {}", points(gap, error));
            cases.case(cheaper && gap >= -2.0 * error, numbers);
        }
        cases.finish(&format!("secure cells of softmax under both roundings with {EPOCHS} epochs"))
    }

    /// Best accuracy of the first three quarters, and at the end.
    fn decline(&self, cells: &[&Cell]) -> Option<(Accuracy, Accuracy)> {
        let end = self.accuracy(cells, EPOCHS)?;
        let early = (1..=EPOCHS * 3 / 4).filter_map(|e| self.accuracy(cells, e));
        Some((early.max_by(|a, b| a.value.total_cmp(&b.value))?, end))
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
        let (mut seen, mut fallen) = (0, 0);
        for layers in DEPTHS {
            for head in HEADS {
                let told = Rounding::ALL.map(|r| self.decline(&self.trained(head, layers, r, 0, EPOCHS)));
                let [Some(control), Some(nearest)] = told else { continue };
                let ((control_falls, by), (nearest_falls, numbers)) = (falls(control), falls(nearest));
                seen += 1;
                fallen += usize::from(nearest_falls && !control_falls);
                let (best, end) = nearest;
                cases.note(format!("{layers} layers, {head}: best {best}, end {end}, {numbers} (probabilistic: {by})"));
            }
        }
        if seen > 0 {
            cases.case(fallen > 0, format!("{fallen} of {seen} configurations fall beyond twice the standard error"));
        }
        cases.finish(&format!("secure or model cells under both roundings with {EPOCHS} epochs"))
    }

    fn velocity_bits(&self) -> Claim {
        let mut cases = Cases::new(
            "velocity-bits",
            "with extra velocity bits accuracy does not fall under nearest rounding, and does not end lower than without: small velocities that never decay are the cause",
        );
        for layers in DEPTHS {
            for head in HEADS {
                let bits: Vec<u32> = self.cells.iter().map(|c| c.id.velocity_bits).filter(|b| *b > 0).collect();
                let Some(&bits) = bits.iter().max() else { continue };
                let cured = self.decline(&self.trained(head, layers, Rounding::Nearest, bits, EPOCHS));
                let plain = self.decline(&self.trained(head, layers, Rounding::Nearest, 0, EPOCHS));
                let (Some((best, end)), Some((_, without))) = (cured, plain) else { continue };
                let ((drop, error), (gain, gain_error)) = (best.minus(end), end.minus(without));
                let numbers = format!(
                    "{layers} layers, {head}, {bits} bits: {} from its best; {end} against {without} without, {}",
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
            let at = |layers| self.accuracy(&self.trained(Head::Softmax, layers, rounding, 0, EPOCHS), EPOCHS);
            let (Some(two), Some(three)) = (at(2), at(3)) else { continue };
            let (gain, error) = three.minus(two);
            cases.case(gain <= 2.0 * error, format!("{rounding}: {three} against {two}, {}", points(gain, error)));
        }
        cases.finish(&format!("secure or model cells of softmax with 2 and 3 layers and {EPOCHS} epochs"))
    }

    fn long_run(&self) -> Claim {
        let mut cases =
            Cases::new("98-percent", format!("98 % after {LONG} epochs with two or three layers (softmax)"));
        for layers in [2, 3] {
            for rounding in Rounding::ALL {
                let cells = self.trained(Head::Softmax, layers, rounding, 0, LONG);
                let Some(a) = self.accuracy(&cells, LONG) else { continue };
                cases.case(a.value + 2.0 * a.error >= 0.98, format!("{layers} layers, {rounding}: {a}"));
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

/// A difference of accuracies (0 to 1) and its standard error.
fn points(value: f64, error: f64) -> String {
    format!("{:+.2} ± {:.2} points", 100.0 * value, 100.0 * error)
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
        assert_eq!(verdict(&[gradient("f64-relu-prob-l1-s1-e1", 10.0)], "gradient-bound"), Judgement::Pass);
        assert_eq!(verdict(&[gradient("f64-relu-prob-l1-s1-e1", 10.000001)], "gradient-bound"), Judgement::Fail);
        assert_eq!(verdict(&[gradient("model-relu-prob-l1-prob-s1-e1", 10.1)], "gradient-bound"), Judgement::Fail);
        assert_eq!(verdict(&[gradient("f64-relu-eps-l1-s1-e1", 1e6)], "gradient-bound"), Judgement::NotTested);
        assert_eq!(verdict(&[gradient("f64-softmax-l1-s1-e1", 1.0)], "softmax-gradient"), Judgement::Pass);
        assert_eq!(verdict(&[gradient("f64-softmax-l1-s1-e1", 1.0 + 1e-12)], "softmax-gradient"), Judgement::Fail);
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
        assert_eq!(judged(&[failed.clone()], "relu-grad-20").verdict, Judgement::Pass);
        assert_eq!(judged(&[failed], "relu-grad-50").verdict, Judgement::NotTested);
        assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.8, 10.0)], "relu-grad-20").verdict, Judgement::Fail);
        // Always the most frequent class: the paper's rule does not fire, and nothing is learnt.
        assert_eq!(judged(&[flat("relu-grad-l3-nearest", 0.1135, 10.0)], "relu-grad-20").verdict, Judgement::NotTested);
        let mut long = cell("secure-relu-grad-l2-prob-s1-e50", &[0.8; 30]);
        assert_eq!(judged(&[long.clone()], "relu-grad-20").verdict, Judgement::Fail, "it lasts 30 epochs");
        long.attempts[0].epochs.truncate(20);
        assert_eq!(judged(&[long], "relu-grad-20").verdict, Judgement::NotTested, "it ends with epoch 20");
    }

    #[test]
    fn savings_are_expected_with_one_layer_only() {
        let cells = |one: f64, two: f64| {
            [
                flat("softmax-l1-prob", 0.9, 10.0),
                flat("relu-grad-l1-prob", 0.9, one),
                flat("softmax-l2-prob", 0.9, 10.0),
                flat("relu-grad-l2-prob", 0.9, two),
            ]
        };
        assert_eq!(judged(&cells(5.0, 8.0), "saving").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(5.0, 7.0), "saving").verdict, Judgement::Fail);
        assert_eq!(judged(&cells(9.0, 9.0), "saving").verdict, Judgement::Fail);
    }

    #[test]
    fn being_first_is_told_in_time_and_not_in_epochs() {
        let softmax = flat("softmax-l1-prob", 0.95, 10.0);
        let fast = |accuracy| flat("relu-grad-l1-prob", accuracy, 5.0);
        assert_eq!(judged(&[softmax.clone(), fast(0.94)], "first-in-time").verdict, Judgement::Pass);
        let claim = judged(&[softmax, fast(0.96)], "first-in-time");
        assert_eq!(claim.verdict, Judgement::Fail);
        assert!(claim.numbers[0].contains("19 times compared"), "{claim:?}");
    }

    #[test]
    fn cheaper_means_faster_at_no_lower_accuracy() {
        let cells =
            |accuracy, seconds| [flat("softmax-l1-prob", accuracy, seconds), flat("softmax-l1-nearest", 0.95, 20.0)];
        assert_eq!(judged(&cells(0.949, 10.0), "rounding-cost").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(0.93, 10.0), "rounding-cost").verdict, Judgement::Fail);
        assert_eq!(judged(&cells(0.95, 20.0), "rounding-cost").verdict, Judgement::Fail);
    }

    #[test]
    fn a_late_decline_and_its_cure() {
        let falling: Vec<f64> = (0..20).map(|e| if e < 10 { 0.97 } else { 0.96 }).collect();
        let plain = cell("model-softmax-l2-nearest-s1-e20", &falling);
        let cured = cell("model-softmax-l2-nearest-s1-e20-v8", &[0.97; 20]);
        let control = |accuracy: &[f64]| cell("model-softmax-l2-prob-s1-e20", accuracy);
        assert_eq!(judged(&[plain.clone(), control(&[0.97; 20])], "late-decline").verdict, Judgement::Pass);
        assert_eq!(
            judged(&[plain.clone(), control(&falling)], "late-decline").verdict,
            Judgement::Fail,
            "not the rounding"
        );
        assert_eq!(judged(std::slice::from_ref(&plain), "late-decline").verdict, Judgement::NotTested, "no control");
        assert_eq!(judged(std::slice::from_ref(&plain), "velocity-bits").verdict, Judgement::NotTested);
        assert_eq!(judged(&[plain.clone(), cured], "velocity-bits").verdict, Judgement::Pass);
        let still = cell("model-softmax-l2-nearest-s1-e20-v8", &falling);
        assert_eq!(judged(&[plain, still], "velocity-bits").verdict, Judgement::Fail);
        let steady = [flat("softmax-l2-nearest", 0.97, 1.0), flat("softmax-l2-prob", 0.97, 1.0)];
        assert_eq!(judged(&steady, "late-decline").verdict, Judgement::Fail);
    }

    #[test]
    fn depth_and_length() {
        let cells = |three| [flat("softmax-l2-prob", 0.97, 1.0), flat("softmax-l3-prob", three, 1.0)];
        assert_eq!(judged(&cells(0.972), "third-layer").verdict, Judgement::Pass);
        assert_eq!(judged(&cells(0.98), "third-layer").verdict, Judgement::Fail);
        let long = |a: f64| [cell("secure-softmax-l2-prob-s1-e50", &[a; 50])];
        assert_eq!(judged(&long(0.979), "98-percent").verdict, Judgement::Pass, "within two standard errors");
        assert_eq!(judged(&long(0.97), "98-percent").verdict, Judgement::Fail);
    }
}
