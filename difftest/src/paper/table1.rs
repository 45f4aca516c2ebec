//! Table 1 of the paper: seconds of an epoch, and test accuracy after 5, 10, 15 and 20 epochs, beside the paper's figures.

use super::cell::{Cell, Id, Side, mean_and_error};
use crate::check::divergence::Verdict;
use crate::statistics::median;
use reference::spec::{Head, Rounding};
use serde::Serialize;

/// A value and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// What happened at one learning rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Of which cell.
    pub cell: String,
    /// The rate.
    pub learning_rate: f64,
    /// Epochs it lasted.
    pub epochs: usize,
    /// Test accuracy at its end, percent.
    pub accuracy: f64,
    /// `trains`, `grows`, `range`, `stalls` or `non-finite`, with step and cause.
    pub verdict: String,
    /// Why the paper's rule ended it; null if it ran to its end.
    pub ended: Option<String>,
    /// Largest |logit| in it.
    pub largest_logit: Option<f64>,
    /// Largest |weight| in it.
    pub largest_weight: Option<f64>,
    /// First step after which a logit was seen beyond the fixed-point range.
    pub logits_leave: Option<usize>,
    /// Operands of the integer model out of range in the step that ended it.
    pub violations: u64,
    /// Dead units of each hidden layer in its last epoch.
    pub dead_units: Vec<usize>,
}

/// The paper's figures for the same row; null where they were not available to us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Printed {
    /// Seconds of an epoch, on three servers of 36 threads.
    pub seconds_per_epoch: Option<f64>,
    /// Test accuracy, percent.
    pub accuracy: [Option<f64>; 4],
    /// Whether no learning rate helps.
    pub diverges: Option<bool>,
}

/// One row: the cells that differ in their seed only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Who trained.
    pub side: Side,
    /// Head.
    pub head: Head,
    /// Dense layers.
    pub layers: usize,
    /// Rounding.
    pub rounding: Option<Rounding>,
    /// Extra velocity bits.
    pub velocity_bits: u32,
    /// Epochs of an attempt.
    pub epochs: usize,
    /// Cells.
    pub seeds: usize,
    /// Seconds of training in an epoch.
    pub seconds_per_epoch: Option<Measured>,
    /// Secure side: seconds of an epoch in f64, timed in turn with the first epochs.
    pub plain_seconds: Option<f64>,
    /// Secure seconds over f64 seconds of those epochs.
    pub ratio: Option<f64>,
    /// Test accuracy in percent after [`checkpoints`] of the attempt that counts; the mean of the seeds. The error is the binomial
    /// standard error of one test set: seeds share it.
    pub accuracy: [Option<Measured>; 4],
    /// Whether every seed trained at some rate.
    pub trained: bool,
    /// The same in words, with the rate.
    pub outcome: String,
    /// What happened at each rate, in order, with the first step of a cause; seeds apart.
    pub happened: String,
    /// Every attempt of every seed.
    pub rates: Vec<Rate>,
    /// The paper's row.
    pub paper: Printed,
}

/// The epochs at which the paper reports accuracy.
pub fn checkpoints() -> [u32; 4] {
    fixtures::paper::table1().epochs
}

/// Binomial standard error of an accuracy (0 to 1) on `rows` rows.
pub fn binomial_error(accuracy: f64, rows: usize) -> f64 {
    (accuracy * (1.0 - accuracy) / rows.max(1) as f64).sqrt()
}

/// The paper's figures for a configuration.
fn printed(id: &Id) -> Printed {
    let table = fixtures::paper::table1();
    let named = |r: &&fixtures::paper::Table1Row| {
        r.layers == id.layers
            && r.head.name() == id.head.name()
            && Some(r.rounding.name()) == id.rounding.map(Rounding::name)
    };
    let row = table.rows.iter().find(named).filter(|_| id.velocity_bits == 0);
    row.map_or(Printed::default(), |r| Printed {
        seconds_per_epoch: r.seconds_per_epoch,
        accuracy: r.accuracy,
        diverges: r.diverges,
    })
}

/// The rows of these cells: by side, depth, rounding, head.
pub fn rows(cells: &[Cell]) -> Vec<Row> {
    let key = |c: &Cell| {
        (c.id.side, c.id.layers, c.id.rounding.map(Rounding::name), c.id.head, c.id.velocity_bits, c.id.epochs)
    };
    let mut sorted: Vec<&Cell> = cells.iter().collect();
    sorted.sort_by_key(|c| c.id.order());
    sorted.chunk_by(|a, b| key(a) == key(b)).map(row).collect()
}

fn row(cells: &[&Cell]) -> Row {
    let id = &cells[0].id;
    let seconds: Vec<_> = cells.iter().filter_map(|c| c.seconds_per_epoch()).collect();
    let seconds_per_epoch = match seconds[..] {
        [(value, error)] => Some(Measured { value, error }),
        _ => mean_and_error(&seconds.iter().map(|s| s.0).collect::<Vec<_>>())
            .map(|(value, error)| Measured { value, error }),
    };
    let accuracy = checkpoints().map(|epoch| {
        let all: Option<Vec<f64>> = cells.iter().map(|c| c.accuracy(epoch as usize)).collect();
        let (value, _) = mean_and_error(&all?)?;
        Some(Measured { value: 100.0 * value, error: 100.0 * binomial_error(value, cells[0].setup.test_rows) })
    });
    let pairs: Vec<(f64, f64)> = cells.iter().flat_map(|c| c.paired_seconds()).collect();
    Row {
        side: id.side,
        head: id.head,
        layers: id.layers,
        rounding: id.rounding,
        velocity_bits: id.velocity_bits,
        epochs: id.epochs,
        seeds: cells.len(),
        seconds_per_epoch,
        plain_seconds: median(&pairs.iter().map(|p| p.1).collect::<Vec<_>>()),
        ratio: median(&pairs.iter().map(|(ours, plain)| ours / plain).collect::<Vec<_>>()),
        accuracy,
        trained: cells.iter().all(|c| c.trains()),
        outcome: outcome(cells),
        happened: cells.iter().map(|c| happened(c)).collect::<Vec<_>>().join(" / "),
        rates: cells.iter().flat_map(|c| rates(c)).collect(),
        paper: printed(id),
    }
}

/// What became of the cells of a row.
fn outcome(cells: &[&Cell]) -> String {
    let smallest = cells.iter().map(|c| c.last().learning_rate).fold(f64::MAX, f64::min);
    let attempts: usize = cells.iter().map(|c| c.attempts.len()).sum();
    if cells.iter().any(|c| !c.survived()) {
        format!("fails at every rate tried, {} to {smallest}", cells[0].setup.learning_rate)
    } else if cells.iter().any(|c| !c.trains()) {
        format!("stays at chance at rate {smallest}")
    } else if attempts == cells.len() {
        "trains".into()
    } else {
        format!("trains at rate {smallest}")
    }
}

/// What happened to a cell, rate by rate.
fn happened(cell: &Cell) -> String {
    let attempt = |a: &super::cell::Attempt| {
        let what = match &a.verdict {
            Verdict::Trains if a.ended.is_none() && !cell.trains() => "stays near chance".into(),
            Verdict::Trains => "trains".into(),
            Verdict::Grows { step, at, .. } => format!("{} out of range at step {step}", tensor(at)),
            Verdict::Range { step, at } => format!("operand of {} out of range at step {step}", tensor(at)),
            Verdict::TooFewSteps { .. } | Verdict::TooFewRows { .. } => "not judged".into(),
            Verdict::Stalls { dead_layer: Some(l), .. } => format!("at chance, layer {l} dead"),
            Verdict::Stalls { .. } => "at chance".into(),
            Verdict::NonFinite { step, at } => format!("{} not finite at step {step}", tensor(at)),
        };
        let end = if a.ended.is_some() { format!(", ended in epoch {}", a.epochs.len()) } else { String::new() };
        (a.learning_rate, format!("{what}{end}"))
    };
    let told: Vec<_> = cell.attempts.iter().map(attempt).collect();
    match &told[..] {
        [(_, only)] => only.clone(),
        _ => told.iter().map(|(rate, what)| format!("{rate}: {what}")).collect::<Vec<_>>().join("; "),
    }
}

/// The tensor or operation of `name[index] ..`.
fn tensor(at: &str) -> &str {
    at.split('[').next().unwrap_or(at)
}

fn rates(cell: &Cell) -> impl Iterator<Item = Rate> {
    cell.attempts.iter().map(|a| {
        let largest = |of: fn(&super::cell::Epoch) -> Option<f64>| a.epochs.iter().filter_map(of).reduce(f64::max);
        Rate {
            cell: cell.id.to_string(),
            learning_rate: a.learning_rate,
            epochs: a.epochs.len(),
            accuracy: a.epochs.last().map_or(0.0, |e| 100.0 * e.accuracy(&cell.setup)),
            verdict: a.verdict.to_string(),
            ended: a.ended.clone(),
            largest_logit: largest(|e| e.largest_logit),
            largest_weight: largest(|e| e.largest_weight),
            logits_leave: a.logits_leave,
            violations: a.violations.values().sum(),
            dead_units: a.epochs.last().map_or(Vec::new(), |e| e.dead_units.clone()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::*;

    #[test]
    fn a_row_has_the_papers_checkpoints_and_figures() {
        let curve: Vec<f64> = (1..=20).map(|e| 0.9 + 0.001 * f64::from(e)).collect();
        let mut cells =
            vec![cell("secure-softmax-l1-prob-s1-e20", &curve), cell("secure-softmax-l1-prob-s2-e20", &curve)];
        cells.push(cell("secure-relu-grad-l1-prob-s1-e20", &curve[..7]));
        let rows = rows(&cells);
        assert_eq!(rows.len(), 2);
        let (softmax, relu_grad) = (&rows[0], &rows[1]);
        let accuracy = softmax.accuracy.map(|a| (a.unwrap().value * 10.0).round() / 10.0);
        assert_eq!(
            (accuracy, softmax.seeds, softmax.paper.seconds_per_epoch),
            ([90.5, 91.0, 91.5, 92.0], 2, Some(12.0))
        );
        assert_eq!(
            (softmax.outcome.as_str(), relu_grad.outcome.as_str()),
            ("trains", "fails at every rate tried, 0.01 to 0.01")
        );
        let error = softmax.accuracy[3].unwrap().error;
        assert!((error - 100.0 * (0.92f64 * 0.08 / 1e4).sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(relu_grad.accuracy.map(|a| a.is_some()), [true, false, false, false]);
        assert_eq!(relu_grad.paper.seconds_per_epoch, None);
    }

    #[test]
    fn rows_are_in_the_papers_order() {
        let ids = [
            "f64-softmax-l1-s1-e1",
            "secure-softmax-l2-prob-s1-e1",
            "secure-softmax-l1-nearest-s1-e1",
            "secure-relu-grad-l1-prob-s1-e1",
            "secure-softmax-l1-prob-s1-e1",
        ];
        let rows = rows(&ids.map(|id| cell(id, &[0.5])));
        let told: Vec<_> = rows.iter().map(|r| r.rates[0].cell.as_str()).collect();
        assert_eq!(told, [ids[4], ids[3], ids[2], ids[1], ids[0]]);
    }
}
