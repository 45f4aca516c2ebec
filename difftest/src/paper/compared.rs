//! Table 1 beside the paper's: each configuration's accuracies and seconds, the differences, and whether they are more
//! than chance.
//!
//! *Ours* is, seed by seed, the secure side's accuracy, or the integer side's where no secure cell is finished.
//!
//! *Beyond.* Runs of one configuration differ by their draws of weights, batches and coins. Their standard deviation s
//! is estimated from our seeds, pooled over the four checkpoints. The paper gives one run, rounded to 0.1 points, so
//! that the difference of our mean of n seeds and its figure has the standard error sqrt(s^2 / n + s^2 + 0.1^2 / 12) if
//! both do the same. Twice that is the limit. The test rows are the same, and are no source of difference.

use super::cell::{Cell, Side};
use super::seconds::{Seconds, Source};
use super::table1::{CHECKPOINTS, Checkpoints, Last, rows};
use super::time_cell::{Configuration, TimeCell};
use super::wording::layers_of;
use fixtures::paper::Table1Row;
use reference::spec::{Head, Rounding};
use serde::Serialize;

/// A mean over seeds, percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    /// The mean of the seeds.
    pub mean: f64,
    /// Standard deviation of a run, as far as the seeds tell; null for one seed.
    pub deviation: Option<f64>,
}

/// A configuration of the paper, with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The number of dense layers.
    pub layers: usize,
    /// The rounding of truncations.
    pub rounding: Rounding,
    /// Head; the paper's ReLU probability is both `relu-prob`, the formula, and `relu-prob-cut`, the published code.
    pub head: Head,
    /// Seeds of ours; 0 where the configuration was only timed.
    pub seeds: usize,
    /// Those of them that are secure.
    pub secure_seeds: usize,
    /// Test accuracy, percent: the secure cells, and the integer side's for the other seeds.
    pub ours: Checkpoints<Option<Mean>>,
    /// Test accuracy in real numbers, percent.
    pub real: Checkpoints<Option<Mean>>,
    /// The paper's test accuracy, percent; null where it diverges.
    pub paper: Checkpoints<Option<f64>>,
    /// Ours minus the paper's, points.
    pub difference: Checkpoints<Option<f64>>,
    /// Standard error of these differences if both did the same, points; null for one seed.
    pub difference_error: Option<f64>,
    /// Whether a difference exceeds twice its standard error.
    pub beyond: Checkpoints<Option<bool>>,
    /// Whether the paper says that it diverges.
    pub paper_diverges: bool,
    /// The end of a run that is no checkpoint.
    pub last: Option<Last>,
    /// The outcome at each learning rate, of the secure side or else of the integer side.
    pub happened: String,
    /// One sentence on differences that chance does not explain.
    pub explanation: Option<String>,
    /// Seconds of an epoch.
    #[serde(flatten)]
    pub time: Seconds,
}

impl Compared {
    /// The configuration, in words.
    pub fn name(&self) -> String {
        format!("{}, {}, {}", layers_of(self.layers), self.rounding, self.head)
    }

    /// Whether something is left that chance does not explain.
    pub fn differs(&self) -> bool {
        self.beyond.all().contains(&Some(true)) || (self.paper_diverges && self.ours.after_20.is_some())
    }
}

/// Every configuration of the paper that some cell is of, without explanations ([`super::explain`]): the shortest grid
/// that reaches its last checkpoint, or else the longest.
pub fn compare(cells: &[Cell], times: &[TimeCell]) -> Vec<Compared> {
    let paper = fixtures::paper::table1();
    let mut all = Vec::new();
    for row in &paper.rows {
        for &head in heads(row.head) {
            all.extend(configuration(row, head, cells, times));
        }
    }
    all
}

/// Our heads for one of the paper's.
fn heads(head: Head) -> &'static [Head] {
    match head {
        Head::ReluProb => &[Head::ReluProb, Head::ReluProbCut],
        Head::ReluGrad => &[Head::ReluGrad],
        _ => &[Head::Softmax],
    }
}

/// Cells of a head and depth without variants, of one number of epochs.
fn plain(cells: &[Cell], head: Head, layers: usize, rounding: Option<Rounding>) -> Vec<&Cell> {
    let fits = |c: &&Cell| {
        let id = &c.id;
        let side = rounding.is_none() == (id.side == Side::Real);
        let this = (id.head, id.layers, id.rounding) == (head, layers, rounding);
        side && this && !id.code && id.velocity_bits == 0 && id.rate.is_none()
    };
    let found: Vec<_> = cells.iter().filter(fits).collect();
    let lengths = || found.iter().map(|c| c.id.epochs);
    let enough = lengths().filter(|e| *e >= CHECKPOINTS[3]).min().or(lengths().max());
    found.into_iter().filter(|c| Some(c.id.epochs) == enough).collect()
}

fn configuration(row: &Table1Row, head: Head, cells: &[Cell], times: &[TimeCell]) -> Option<Compared> {
    let rounding = row.rounding;
    let found = plain(cells, head, row.layers, Some(rounding));
    let secure: Vec<&Cell> = found.iter().copied().filter(|c| c.id.side == Side::Secure).collect();
    let mut ours = secure.clone();
    ours.extend(found.iter().copied().filter(|c| secure.iter().all(|s| s.id.seed != c.id.seed)));
    let first: Vec<Cell> = ours.first().map(|c| (*c).clone()).into_iter().collect();
    let happened = rows(&first).pop();
    let of = Configuration { head, layers: row.layers, rounding };
    let time = Seconds::new(&Source::choose(of, secure.clone(), times), row.seconds_per_epoch);
    if happened.is_none() && time.seconds.is_none() {
        return None;
    }
    let (means, paper) = (means(&ours), Checkpoints::new(row.accuracy));
    let each = |at: fn(Checkpoints<Option<f64>>) -> [Option<f64>; 4], m: Checkpoints<Option<Mean>>| {
        let (ours, theirs) = (m.all(), at(paper));
        Checkpoints::new([0, 1, 2, 3].map(|i| Some(ours[i]?.mean - theirs[i]?)))
    };
    let difference = each(Checkpoints::all, means);
    let error = pooled(&means).map(|s| (s * s * (1.0 + 1.0 / ours.len() as f64) + 0.01 / 12.0).sqrt());
    let beyond = Checkpoints::new(difference.all().map(|d| Some(d?.abs() > 2.0 * error?)));
    Some(Compared {
        layers: row.layers,
        rounding,
        head,
        seeds: ours.len(),
        secure_seeds: secure.len(),
        ours: means,
        real: self::means(&plain(cells, head, row.layers, None)),
        paper,
        difference,
        difference_error: error,
        beyond,
        paper_diverges: row.diverges,
        last: happened.as_ref().and_then(|r| r.last),
        happened: happened.map_or_else(String::new, |r| r.happened),
        explanation: None,
        time,
    })
}

/// Mean and standard deviation of the seeds at each checkpoint that all of them reached.
fn means(cells: &[&Cell]) -> Checkpoints<Option<Mean>> {
    Checkpoints::of(|epoch| {
        let all: Option<Vec<f64>> = cells.iter().map(|c| c.accuracy(epoch).map(|a| 100.0 * a)).collect();
        let all = all.filter(|a| !a.is_empty())?;
        let (n, mean) = (all.len() as f64, all.iter().sum::<f64>() / all.len() as f64);
        let variance = all.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Mean { mean, deviation: (n > 1.0).then(|| variance.sqrt()) })
    })
}

/// Root mean square of the deviations.
pub(super) fn pooled(means: &Checkpoints<Option<Mean>>) -> Option<f64> {
    let squares: Vec<f64> = means.all().into_iter().flatten().filter_map(|m| Some(m.deviation?.powi(2))).collect();
    (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::super::explain::explained;
    use super::super::time_cell::tests::timed;
    use super::*;

    fn softmax(seed: u64, side: &str, accuracy: f64) -> Cell {
        let rounding = if side == "real" { "" } else { "-prob" };
        cell(&format!("{side}-softmax-l1{rounding}-s{seed}-e20"), &[accuracy; 20])
    }

    #[test]
    fn ours_is_secure_where_it_is_and_the_paper_is_beside_it() {
        let cells = [
            softmax(1, "secure", 0.9230),
            softmax(1, "integer", 0.5),
            softmax(2, "integer", 0.9240),
            softmax(3, "integer", 0.9250),
            softmax(1, "real", 0.9235),
        ];
        let all = explained(&cells, &[]);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.name().as_str(), one.seeds, one.secure_seeds), ("1 layer, prob, softmax", 3, 1));
        let round = |v: f64| (1000.0 * v).round() / 1000.0;
        let end = one.ours.after_20.unwrap();
        assert_eq!((round(end.mean), end.deviation.map(round)), (92.4, Some(0.1)));
        assert_eq!(one.difference.all().map(|d| d.map(round)), [Some(0.8), Some(0.2), Some(0.2), Some(0.0)]);
        // s = 0.1: sqrt(0.01 (1 + 1/3) + 0.01/12).
        assert_eq!(one.difference_error.map(round), Some(0.119));
        assert_eq!(one.beyond.all(), [Some(true), Some(false), Some(false), Some(false)]);
        assert!(one.differs() && one.explanation.is_some(), "{one:?}");
        assert_eq!(
            (one.time.paper_seconds, one.time.paper_ratio, one.time.seconds.map(|s| s.value)),
            (Some(12.0), Some(1.2), Some(10.0))
        );
        assert_eq!(one.time.untimed.as_deref(), Some("it is not recorded whether the machine was quiet"));
    }

    #[test]
    fn a_configuration_that_was_only_timed_has_seconds_and_no_accuracy() {
        let all = explained(&[], &[timed("softmax-l1-prob", 4.0)]);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.seeds, one.ours.after_20, one.time.paper_ratio), (0, None, Some(3.0)));
        assert!(!one.differs());
    }

    #[test]
    fn one_seed_has_a_difference_and_no_verdict() {
        let all = explained(&[softmax(1, "integer", 0.9)], &[]);
        assert_eq!((all[0].beyond.all(), all[0].difference_error), ([None; 4], None));
        assert_eq!(all[0].difference.after_20.map(|d| (10.0 * d).round()), Some(-24.0));
        assert!(!all[0].differs() && all[0].explanation.is_none() && all[0].time.seconds.is_none());
    }

    #[test]
    fn a_head_that_the_paper_says_diverges_differs_if_it_trains_here() {
        let all = explained(&[cell("secure-relu-grad-l2-prob-s1-e20", &[0.87; 20])], &[]);
        assert!(all[0].paper_diverges && all[0].differs() && all[0].explanation.is_some(), "{all:?}");
        let all = explained(&[cell("secure-relu-grad-l2-prob-s1-e20", &[0.87, 0.1])], &[]);
        assert!(!all[0].differs());
        assert_eq!(all[0].last.map(|l| l.epoch), Some(2));
    }
}
