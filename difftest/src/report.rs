//! The report of a run, as text for people and as JSON for programs.

pub mod budget;
#[cfg(feature = "html")]
pub mod html;
pub mod json;
pub mod number;
pub mod text;

use crate::check::{Outcome, divergence::Verdict};
use crate::checkpoint::Trained;
use crate::compare::Comparison;
use crate::config::{Config, Mode};
use crate::evaluation::Evaluation;
use crate::explain::health;
use crate::provenance::{DataReport, Provenance};
use crate::run::distances::{Detail, Distances, Tightness};
use crate::run::{free, lockstep};
use crate::side::Spent;
use crate::statistics::median;
use fixtures::Dataset;
use reference::spec::ProbePoint;
use secure::kernel::Kernel;
use serde::Serialize;

/// Version of the JSON report: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 2;

/// Longer runs report the budget of their steps together only.
pub const STEPS_SHOWN: usize = 1000;

/// A tensor under the statistical bound, which a run exceeds by chance with probability 2^-40 at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StatisticalRow {
    /// Elements outside it.
    pub outside: u64,
    /// Bound of the element with the largest error, units.
    pub bound_units: f64,
    /// Largest bound, units.
    pub max_bound_units: f64,
    /// Largest error / bound of one element.
    pub closest: f64,
    /// Median over the steps of bound / largest error.
    pub median_tightness: Option<f64>,
}

/// One row of the table of tensors. Errors and bounds in units of 2^-f and in reals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TensorRow {
    /// Name of the probe.
    pub tensor: String,
    /// Elements compared, all steps.
    pub elements: u64,
    /// Elements that agree exactly.
    pub equal: u64,
    /// Elements that jump with undecided comparisons and agree with one outcome of them. They are in no other column.
    pub ambiguous: u64,
    /// Elements outside their bound.
    pub outside: u64,
    /// Largest error, units.
    pub max_error_units: f64,
    /// Mean error, units.
    pub mean_error_units: f64,
    /// Largest error, real.
    pub max_error: f64,
    /// Mean error, real.
    pub mean_error: f64,
    /// Bound of the element with the largest error, units.
    pub bound_units: f64,
    /// Largest bound, units.
    pub max_bound_units: f64,
    /// Bound / largest error; null where nothing differs.
    pub tightness: Option<f64>,
    /// Largest error / bound of one element.
    pub closest: f64,
    /// Median over the steps of bound / largest error.
    pub median_tightness: Option<f64>,
    /// The statistical bound, under probabilistic rounding, of tensors that have one of their own.
    pub statistical: Option<StatisticalRow>,
}

impl TensorRow {
    fn new(
        point: &ProbePoint,
        c: &Comparison,
        statistical: Option<&Comparison>,
        tightness: Option<&Tightness>,
        unit: f64,
    ) -> Self {
        TensorRow {
            tensor: point.to_string(),
            elements: c.elements,
            equal: c.equal,
            ambiguous: c.ambiguous,
            outside: c.outside,
            max_error_units: c.max_error / unit,
            mean_error_units: c.mean_error() / unit,
            max_error: c.max_error,
            mean_error: c.mean_error(),
            bound_units: c.bound_there / unit,
            max_bound_units: c.max_bound / unit,
            tightness: c.tightness(),
            closest: c.closest,
            median_tightness: tightness.and_then(|t| median(&t.worst_case)),
            statistical: statistical.map(|s| StatisticalRow {
                outside: s.outside,
                bound_units: s.bound_there / unit,
                max_bound_units: s.max_bound / unit,
                closest: s.closest,
                median_tightness: tightness.and_then(|t| median(&t.statistical)),
            }),
        }
    }
}

/// The verdict on one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideVerdict {
    /// `real`, `integer` or `secure`.
    pub side: &'static str,
    /// The verdict on its training.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Accuracy on the test set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Rows of the test set.
    pub rows: usize,
    /// Part of them with the most frequent label: what a constant answer gets right.
    pub chance: f64,
    /// Part that the real side classifies correctly.
    pub real: f64,
    /// Part that the secure side classifies correctly.
    pub secure: f64,
}

/// Time and communication of all steps together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostReport {
    /// The cost of training in real numbers.
    pub real: Spent,
    /// The cost of training in integers.
    pub integer: Spent,
    /// The cost of training by three parties.
    pub secure: Spent,
    /// Which kernel the parties multiplied with.
    pub kernel: &'static str,
}

/// Everything a run has to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The version of the report, [`SCHEMA`].
    pub schema: u32,
    /// The command that repeats the run.
    pub command: String,
    /// Program, date, processor, kernel.
    pub made: Provenance,
    /// The data set that was trained on.
    pub data: DataReport,
    /// True if the secure side ran with a fixed seed: its shares were then no secret.
    pub insecure: bool,
    /// The configuration of the run.
    pub config: Config,
    /// The number of steps taken.
    pub steps: usize,
    /// Steps that were taken and judged before, by the run that this one has resumed.
    #[serde(skip_serializing_if = "is_zero")]
    pub before: usize,
    /// Lock-step: every probed tensor.
    pub tensors: Vec<TensorRow>,
    /// The cause of every difference by tensor, all steps together.
    pub budget: Vec<budget::BudgetRow>,
    /// The cause of every difference by tensor and step, for runs of at most [`STEPS_SHOWN`] steps.
    pub budget_steps: Vec<budget::StepBudget>,
    /// The worst elements of the tensor asked for.
    pub details: Vec<Detail>,
    /// Free mode: the curves.
    pub curve: Vec<free::Point>,
    /// The outcome of every check.
    pub checks: Vec<Outcome>,
    /// Verdicts of the sides.
    pub divergence: Vec<SideVerdict>,
    /// How each side's training went.
    pub watch: Vec<health::Health>,
    /// Accuracy at the end.
    pub accuracy: Accuracy,
    /// Time and communication.
    pub cost: CostReport,
}

fn is_zero(steps: &usize) -> bool {
    *steps == 0
}

/// What all modes find.
struct Common {
    checks: Vec<Outcome>,
    divergence: Vec<(&'static str, Verdict)>,
    watch: [health::Health; 3],
    accuracy: (f64, f64),
    spent: [Spent; 3],
    steps: usize,
    before: usize,
}

impl Report {
    fn new(config: &Config, data: &Dataset, found: Common) -> Self {
        let [real, integer, secure] = found.spent;
        let chance = Evaluation::of(data, config.spec.fixed).chance();
        Report {
            schema: SCHEMA,
            command: config.command(&format!("--steps {}", config.steps)),
            made: Provenance::now(),
            data: DataReport::of(data),
            insecure: config.insecure_seed.is_some(),
            config: config.clone(),
            steps: found.steps,
            before: found.before,
            tensors: Vec::new(),
            budget: Vec::new(),
            budget_steps: Vec::new(),
            details: Vec::new(),
            curve: Vec::new(),
            checks: found.checks,
            divergence: found.divergence.into_iter().map(|(side, verdict)| SideVerdict { side, verdict }).collect(),
            watch: found.watch.into(),
            accuracy: Accuracy {
                rows: data.test.len(),
                chance: chance.share,
                real: found.accuracy.0,
                secure: found.accuracy.1,
            },
            cost: CostReport { real, integer, secure, kernel: Kernel::selected().name() },
        }
    }

    /// Of a lock-step run.
    pub fn lockstep(config: &Config, data: &Dataset, found: lockstep::Findings) -> Self {
        debug_assert_eq!(config.mode, Mode::Lockstep);
        let lockstep::Findings { distances, budgets, checks, divergence, watch, accuracy, spent, steps, before } =
            found;
        let Distances { tensors, statistical, tightness, details } = distances;
        let unit = 1.0 / config.spec.fixed.one() as f64;
        Report {
            tensors: tensors
                .iter()
                .map(|(point, c)| TensorRow::new(point, c, statistical.get(point), tightness.get(point), unit))
                .collect(),
            budget: budget::rows(&budget::merged(&budgets), unit),
            budget_steps: budgets
                .iter()
                .take(if budgets.len() > STEPS_SHOWN { 0 } else { STEPS_SHOWN })
                .map(|(step, b)| budget::StepBudget { step: *step, tensors: budget::rows(b, unit) })
                .collect(),
            details,
            ..Self::new(config, data, Common { checks, divergence, watch, accuracy, spent, steps, before })
        }
    }

    /// Of a free run, beside what it has trained.
    pub fn free(config: &Config, data: &Dataset, found: free::Findings) -> (Self, Trained) {
        let free::Findings { curve, checks, divergence, watch, accuracy, spent, steps, before, trained } = found;
        let common = Common { checks, divergence, watch, accuracy, spent, steps, before };
        (Report { curve, ..Self::new(config, data, common) }, trained)
    }

    /// Whether every check holds.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|c| c.passed)
    }
}
