//! Table 1 side by side: seconds of an epoch, test accuracy after 5, 10, 15 and 20 epochs, and what happened at each
//! learning rate. [`super::compared`] sets it beside the paper's.

use super::cell::{Cell, RATE_UNIT, Side};
use super::standard_error::{binomial_error, mean_and_error};
use super::wording::{layers_of, short};
use crate::check::divergence::Verdict;
use crate::count::counted;
use crate::statistics::median;
use reference::spec::Rounding;
use serde::Serialize;

/// A value and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// The value itself.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// The outcome of training at one learning rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Of which cell.
    pub cell: String,
    /// The learning rate, real.
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
    /// Operands of the integer side out of range in the step that ended it.
    pub violations: u64,
    /// Dead units of each hidden layer in its last epoch.
    pub dead_units: Vec<usize>,
}

/// A value after each number of epochs at which the paper reports accuracy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Checkpoints<T> {
    /// After 5 epochs.
    pub after_5: T,
    /// After 10 epochs.
    pub after_10: T,
    /// After 15 epochs.
    pub after_15: T,
    /// After 20 epochs.
    pub after_20: T,
}

/// The epochs of [`Checkpoints`].
pub const CHECKPOINTS: [usize; 4] = [5, 10, 15, 20];

impl<T: Copy> Checkpoints<T> {
    /// The four values in the order of the table.
    pub fn all(self) -> [T; 4] {
        [self.after_5, self.after_10, self.after_15, self.after_20]
    }

    /// From the four values, in order.
    pub fn new([after_5, after_10, after_15, after_20]: [T; 4]) -> Self {
        Checkpoints { after_5, after_10, after_15, after_20 }
    }

    /// A value for each number of epochs.
    pub fn of(value: impl Fn(usize) -> T) -> Self {
        Checkpoints::new(CHECKPOINTS.map(value))
    }
}

/// Where a run shorter than the last checkpoint ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Last {
    /// The number of epochs.
    pub epoch: usize,
    /// Test accuracy there, percent, the mean of the seeds.
    pub accuracy: f64,
}

/// One row: the cells that differ in their seed only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The side that trained.
    pub side: Side,
    /// The number of dense layers.
    pub layers: usize,
    /// The rounding of truncations; none for real numbers.
    pub rounding: Option<Rounding>,
    /// Name of the head, `relu-grad-code` for the published code's order.
    pub head: String,
    /// Extra velocity bits.
    pub velocity_bits: u32,
    /// The only learning rate tried, units of 2^-16.
    pub rate_units: Option<u32>,
    /// Epochs of an attempt.
    pub epochs: usize,
    /// The number of cells, one a seed.
    pub seeds: usize,
    /// Seconds of training in an epoch.
    pub seconds_per_epoch: Option<Measured>,
    /// Secure side: processor seconds of an epoch, all three parties.
    pub cpu_seconds: Option<f64>,
    /// Why these seconds are not compared with others, if they are not.
    pub untimed: Option<String>,
    /// Secure side: seconds of an epoch in real numbers, timed in turn with the first epochs.
    pub plain_seconds: Option<f64>,
    /// Secure seconds over the seconds in real numbers of those epochs.
    pub ratio: Option<f64>,
    /// Test accuracy in percent after [`CHECKPOINTS`] of the attempt that counts; the mean of the seeds. The error is
    /// the binomial standard error of one test set: seeds share it.
    pub accuracy: Checkpoints<Option<Measured>>,
    /// The end of a run that is no checkpoint.
    pub last: Option<Last>,
    /// Whether every seed trained at some rate.
    pub trained: bool,
    /// The outcome in words, with the rate.
    pub outcome: String,
    /// The outcome at each rate, in order, with the first step of a cause; seeds apart.
    pub happened: String,
    /// The machines it ran on.
    pub machine: String,
    /// Every attempt of every seed.
    pub rates: Vec<Rate>,
}

impl Row {
    /// The configuration, in words.
    pub fn name(&self) -> String {
        let rounding = self.rounding.map_or(String::new(), |rounding| format!(", {rounding}"));
        let bits =
            if self.velocity_bits > 0 { format!(", {} velocity bits", self.velocity_bits) } else { String::new() };
        let rate = self.rate_units.map_or(String::new(), |n| format!(", rate {}", short(f64::from(n) * RATE_UNIT)));
        format!("{}{rounding}, {}{bits}{rate}, {}", layers_of(self.layers), self.head, counted(self.epochs, "epoch"))
    }
}

/// The rows of these cells: by side, depth, rounding, head.
pub fn rows(cells: &[Cell]) -> Vec<Row> {
    let key = |c: &Cell| {
        let id = &c.id;
        let variant = (id.code, id.velocity_bits, id.rate, id.epochs);
        (id.side, id.layers, id.rounding.map(Rounding::name), id.head, variant)
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
    let mean = |epoch: usize| {
        let all: Option<Vec<f64>> = cells.iter().map(|c| c.accuracy(epoch)).collect();
        Some(mean_and_error(&all?)?.0)
    };
    let accuracy = Checkpoints::of(|epoch| {
        let (value, rows) = (mean(epoch)?, cells[0].setup.test_rows);
        Some(Measured { value: 100.0 * value, error: 100.0 * binomial_error(value, rows) })
    });
    let pairs: Vec<(f64, f64)> = cells.iter().flat_map(|c| c.paired_seconds()).collect();
    let epochs: Vec<f64> = cells.iter().flat_map(|c| c.whole_epochs()).filter_map(|e| e.cpu_seconds).collect();
    let secure = cells.iter().filter(|_| id.side == Side::Secure);
    let untimed = secure.filter_map(|c| c.timed().err()).map(|why| why.to_string()).next();
    let end = cells.iter().map(|c| c.last().epochs.len()).min().filter(|e| !CHECKPOINTS.contains(e));
    let mut machines: Vec<String> = cells.iter().map(|c| c.machine.to_string()).collect();
    machines.dedup();
    Row {
        side: id.side,
        layers: id.layers,
        rounding: id.rounding,
        head: id.head_name(),
        velocity_bits: id.velocity_bits,
        rate_units: id.rate,
        epochs: id.epochs,
        seeds: cells.len(),
        seconds_per_epoch,
        cpu_seconds: median(&epochs),
        untimed,
        plain_seconds: median(&pairs.iter().map(|p| p.1).collect::<Vec<_>>()),
        ratio: median(&pairs.iter().map(|(ours, plain)| ours / plain).collect::<Vec<_>>()),
        accuracy,
        last: end.and_then(|epoch| Some(Last { epoch, accuracy: 100.0 * mean(epoch)? })),
        trained: cells.iter().all(|c| c.trains()),
        outcome: outcome(cells),
        happened: cells.iter().map(|c| happened(c)).collect::<Vec<_>>().join(" / "),
        machine: machines.join("; "),
        rates: cells.iter().flat_map(|c| rates(c)).collect(),
    }
}

/// What became of the cells of a row.
fn outcome(cells: &[&Cell]) -> String {
    let smallest = cells.iter().map(|c| c.last().learning_rate).fold(f64::MAX, f64::min);
    let attempts: usize = cells.iter().map(|c| c.attempts.len()).sum();
    if cells.iter().any(|c| !c.survived()) {
        format!("fails at every rate tried, {} to {}", short(cells[0].setup.first_rate(&cells[0].id)), short(smallest))
    } else if cells.iter().any(|c| !c.trains()) {
        format!("stays at chance at rate {}", short(smallest))
    } else if attempts == cells.len() {
        "trains".into()
    } else {
        format!("trains at rate {}", short(smallest))
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
        _ => told.iter().map(|(rate, what)| format!("{}: {what}", short(*rate))).collect::<Vec<_>>().join("; "),
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
    fn a_row_has_the_papers_checkpoints() {
        let curve: Vec<f64> = (1..=20).map(|e| 0.9 + 0.001 * f64::from(e)).collect();
        let mut cells =
            vec![cell("secure-softmax-l1-prob-s1-e20", &curve), cell("secure-softmax-l1-prob-s2-e20", &curve)];
        cells.push(cell("secure-relu-grad-l1-prob-s1-e20", &curve[..7]));
        let rows = rows(&cells);
        assert_eq!(rows.len(), 2);
        let (softmax, relu_grad) = (&rows[0], &rows[1]);
        let accuracy = softmax.accuracy.all().map(|a| (a.unwrap().value * 10.0).round() / 10.0);
        assert_eq!((accuracy, softmax.seeds, softmax.last), ([90.5, 91.0, 91.5, 92.0], 2, None));
        assert_eq!(
            (softmax.outcome.as_str(), relu_grad.outcome.as_str()),
            ("trains", "fails at every rate tried, 0.01 to 0.01")
        );
        let error = softmax.accuracy.after_20.unwrap().error;
        assert!((error - 100.0 * (0.92f64 * 0.08 / 1e4).sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(relu_grad.accuracy.all().map(|a| a.is_some()), [true, false, false, false]);
        // A run that ends between checkpoints shows its end.
        let last = relu_grad.last.unwrap();
        assert_eq!((last.epoch, (last.accuracy * 10.0).round()), (7, 907.0));
        assert_eq!(fixtures::paper::table1().epochs.map(|e| e as usize), CHECKPOINTS);
        assert_eq!(softmax.untimed.as_deref(), Some("it is not recorded whether the machine was quiet"));
    }

    #[test]
    fn rows_are_in_the_papers_order() {
        let ids = [
            "real-softmax-l1-s1-e1",
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
