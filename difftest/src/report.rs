//! What a run reports, as text for people and as JSON for programs.

pub mod budget;
#[cfg(feature = "html")]
pub mod html;
pub mod json;
pub mod text;

use crate::check::{Outcome, divergence::Verdict};
use crate::compare::Comparison;
use crate::config::{Config, Mode};
use crate::error::Error;
use crate::lockstep::{Detail, Tightness, median};
use crate::model::{Spent, execution_order};
use crate::saved::Trained;
use crate::{freerun, lockstep, watch};
use reference::spec::ProbePoint;
use secure::kernel::Kernel;
use serde::Serialize;
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Version of the JSON report: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

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
    /// `f64`, `integer` or `secure`.
    pub side: &'static str,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Accuracy on the test set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Rows of the test set.
    pub rows: usize,
    /// Part classified correctly by f64.
    pub f64: f64,
    /// The same, secure.
    pub secure: f64,
}

/// Time and communication of all steps together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostReport {
    /// Plaintext, real numbers.
    pub f64: Spent,
    /// Plaintext, integers.
    pub integer: Spent,
    /// Three parties.
    pub secure: Spent,
    /// Which kernel the parties multiplied with.
    pub kernel: &'static str,
}

/// Everything a run has to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The command that repeats the run.
    pub command: String,
    /// True if the secure side ran with a fixed seed: its shares were then no secret.
    pub insecure: bool,
    /// The configuration.
    pub config: Config,
    /// Steps taken.
    pub steps: usize,
    /// Lock-step: every probed tensor.
    pub tensors: Vec<TensorRow>,
    /// The cause of every difference by tensor, all steps together.
    pub budget: Vec<budget::BudgetRow>,
    /// The same, step by step, of runs of at most [`STEPS_SHOWN`] steps.
    pub budget_steps: Vec<budget::StepBudget>,
    /// The worst elements of the tensor asked for.
    pub details: Vec<Detail>,
    /// Free mode: the curves.
    pub curve: Vec<freerun::Point>,
    /// Every check.
    pub checks: Vec<Outcome>,
    /// Verdicts of the sides.
    pub divergence: Vec<SideVerdict>,
    /// How each side's training went.
    pub watch: Vec<watch::Side>,
    /// Accuracy at the end.
    pub accuracy: Accuracy,
    /// Time and communication.
    pub cost: CostReport,
}

/// What all modes find.
struct Common {
    checks: Vec<Outcome>,
    divergence: Vec<(&'static str, Verdict)>,
    watch: [watch::Side; 3],
    accuracy: (f64, f64),
    spent: [Spent; 3],
    steps: usize,
}

impl Report {
    fn new(config: &Config, test_rows: usize, found: Common) -> Self {
        let [f64_side, integer, secure] = found.spent;
        Report {
            schema: SCHEMA,
            command: config.command(&format!("--steps {}", config.steps)),
            insecure: config.insecure_seed.is_some(),
            config: config.clone(),
            steps: found.steps,
            tensors: Vec::new(),
            budget: Vec::new(),
            budget_steps: Vec::new(),
            details: Vec::new(),
            curve: Vec::new(),
            checks: found.checks,
            divergence: found.divergence.into_iter().map(|(side, verdict)| SideVerdict { side, verdict }).collect(),
            watch: found.watch.into(),
            accuracy: Accuracy { rows: test_rows, f64: found.accuracy.0, secure: found.accuracy.1 },
            cost: CostReport { f64: f64_side, integer, secure, kernel: Kernel::selected().name() },
        }
    }

    /// Of a lock-step run.
    pub fn lockstep(config: &Config, test_rows: usize, found: lockstep::Findings) -> Self {
        debug_assert_eq!(config.mode, Mode::Lockstep);
        let lockstep::Findings {
            tensors,
            statistical,
            tightness,
            budgets,
            details,
            checks,
            divergence,
            watch,
            accuracy,
            spent,
            steps,
        } = found;
        let unit = 1.0 / config.spec.fixed.one() as f64;
        let mut tensors: Vec<_> = tensors.iter().collect();
        tensors.sort_by_key(|(point, _)| execution_order(point));
        Report {
            tensors: tensors
                .into_iter()
                .map(|(point, c)| TensorRow::new(point, c, statistical.get(point), tightness.get(point), unit))
                .collect(),
            budget: budget::rows(&budget::merged(&budgets), unit),
            budget_steps: budgets
                .iter()
                .take(if budgets.len() > STEPS_SHOWN { 0 } else { STEPS_SHOWN })
                .map(|(step, b)| budget::StepBudget { step: *step, tensors: budget::rows(b, unit) })
                .collect(),
            details,
            ..Self::new(config, test_rows, Common { checks, divergence, watch, accuracy, spent, steps })
        }
    }

    /// Of a free run, beside what it has trained.
    pub fn free(config: &Config, test_rows: usize, found: freerun::Findings) -> (Self, Trained) {
        let freerun::Findings { curve, checks, divergence, watch, accuracy, spent, steps, trained } = found;
        let common = Common { checks, divergence, watch, accuracy, spent, steps };
        (Report { curve, ..Self::new(config, test_rows, common) }, trained)
    }

    /// Whether every check holds.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|c| c.passed)
    }
}

/// Refuses a file that cannot be written, by making one beside it that is gone again: before a run, not after it.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn check_output(path: Option<&Path>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        return Err(Error::Usage("-: an output is a file; name one (/dev/stdout is the standard output)".into()));
    }
    if path.is_dir() {
        return Err(Error::Usage(format!("{}: is a folder; name a file", path.display())));
    }
    let target = target(path);
    if target.exists() && !target.is_file() {
        return Ok(());
    }
    let parent = folder(&target);
    if !parent.is_dir() {
        return Err(Error::Usage(format!(
            "{}: there is no folder {}; make it, or name another file",
            path.display(),
            parent.display()
        )));
    }
    tempfile::tempfile_in(parent).map(drop).map_err(Error::file(path))
}

/// Refuses two outputs to the same file: the later one would replace the earlier.
///
/// # Errors
/// Names the file.
pub fn check_distinct<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for path in paths {
        let target = target(path);
        let place = folder(&target).canonicalize().unwrap_or_default().join(target.file_name().unwrap_or_default());
        if (!target.exists() || target.is_file()) && !seen.insert(place) {
            return Err(Error::Usage(format!(
                "{}: two outputs would go to this file; give each its own",
                path.display()
            )));
        }
    }
    Ok(())
}

/// What is written to: a link stays, and what it leads to is replaced.
fn target(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file as a whole or not at all: to a temporary file beside it, which is then renamed.
///
/// # Errors
/// Names the file.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    place(path, contents, false)
}

/// The same for what only its owner may read.
///
/// # Errors
/// Names the file.
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), Error> {
    place(path, contents, true)
}

/// A file that is replaced keeps its mode, but a private one its owner's rights only.
fn place(path: &Path, contents: &[u8], private: bool) -> Result<(), Error> {
    let place = || -> std::io::Result<()> {
        let target = target(path);
        let old = std::fs::metadata(&target).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            // A device or a pipe is written to; there is nothing to be replaced.
            return std::fs::OpenOptions::new().write(true).open(&target)?.write_all(contents);
        }
        let mut builder = tempfile::Builder::new();
        #[cfg(not(unix))]
        let _ = (private, old);
        #[cfg(unix)]
        builder.permissions(PermissionsExt::from_mode(if private { 0o600 } else { 0o666 }));
        let mut file = builder.tempfile_in(folder(&target))?;
        file.write_all(contents)?;
        #[cfg(unix)]
        if let Some(old) = old {
            let kept = old.permissions().mode() & if private { 0o700 } else { 0o7777 };
            file.as_file().set_permissions(PermissionsExt::from_mode(kept))?;
        }
        file.persist(&target)?;
        Ok(())
    };
    place().map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
        let error = write(&dir.path().join("missing/report.json"), b"").unwrap_err().to_string();
        assert!(error.contains("missing/report.json"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_modes_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_private(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((std::fs::read(&file).unwrap().as_slice(), mode(&file)), (b"two".as_slice(), 0o600));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o664)).unwrap();
        write(&file, b"three").unwrap();
        assert_eq!(mode(&file), 0o664);
        write_private(&file, b"secret").unwrap();
        assert_eq!(mode(&file), 0o600, "who could read the old file cannot read the new one");
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        let new = dir.path().join("new");
        write(&new, b"").unwrap();
        assert_eq!(mode(&new) & 0o111, 0);
        assert_ne!(mode(&new) & 0o400, 0);
    }

    #[test]
    fn an_output_that_cannot_be_is_refused_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| check_output(Some(path)).unwrap_err().to_string();
        assert!(refused(dir.path()).contains("is a folder"));
        assert!(refused(&dir.path().join("missing/report.json")).contains("there is no folder"));
        assert!(refused(Path::new("-")).contains("/dev/stdout"));
        assert!(check_output(Some(&dir.path().join("report.json"))).is_ok() && check_output(None).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a check leaves nothing");
        #[cfg(target_os = "linux")]
        {
            assert!(check_output(Some(Path::new("/dev/null"))).is_ok());
            let error = refused(Path::new("/proc/report.json"));
            assert!(error.starts_with("/proc/report.json: ") && !error.contains("tmp"), "{error}");
        }
    }

    #[test]
    fn two_outputs_to_one_file_are_refused_however_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let again = dir.path().join(".").join("a");
        let other = dir.path().join("b");
        assert!(check_distinct([&*file, &*other]).is_ok());
        let error = check_distinct([&*file, &*other, &*again]).unwrap_err().to_string();
        assert!(error.contains("two outputs"), "{error}");
        std::fs::write(&file, "").unwrap();
        assert!(check_distinct([&*file, &*again]).is_err());
        assert!(check_distinct([Path::new("/dev/null"), Path::new("/dev/null")]).is_ok());
    }
}
