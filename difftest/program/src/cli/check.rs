//! The comparison itself: what `difftest` does without a command.

use super::training::Flags;
use super::{Verdict, one_of, print};
use crate::error::{Error, FlagError};
use difftest::check::{Outcome, comparison};
use difftest::checkpoint::Trained;
use difftest::config::{self, Config, Length, Mode};
use difftest::error::Error as RunError;
use difftest::evaluation::Evaluation;
use difftest::experiment;
use difftest::interrupt;
use difftest::keeping::Keeping;
use difftest::report::{self, Report};
use difftest::run::{free, lockstep, restart};
use difftest::side::secure::Secure;
use difftest::trace::TraceFile;
use difftest::trace::step_file::StepFile;
use difftest::{checkpoint, output};
use fixtures::Dataset;
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Flags of the comparison.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    training: Flags,
    /// Training steps [default: 10]
    #[arg(long, conflicts_with = "epochs")]
    steps: Option<usize>,
    /// Passes over the training set, instead of --steps
    #[arg(long)]
    epochs: Option<usize>,
    /// As many steps as compare 10^9 elements: some minutes
    #[arg(long, conflicts_with_all = ["steps", "epochs", "step"])]
    long: bool,
    /// lockstep: all sides start every step from the same weights; free: each side trains on its own
    #[arg(long, value_parser = one_of(&Mode::ALL, Mode::name), default_value = "lockstep")]
    mode: Mode,
    /// Free mode: start again at half the learning rate if, after an epoch, a loss exceeds 100 or accuracy is at
    /// chance, 11 % for ten balanced classes (the paper's rule)
    #[arg(long)]
    restart_on_divergence: bool,
    /// Free mode: write what was trained, the real side's weights to FILE and each party's shares to a file of its own
    /// beside it (safetensors)
    #[arg(long, value_name = "FILE")]
    save_model: Option<PathBuf>,
    /// Free mode: go on with a model written by --save-model, from the batch after its last
    #[arg(long, value_name = "FILE", conflicts_with = "restart_on_divergence")]
    load_model: Option<PathBuf>,
    /// Have each party keep its own share state every so many steps, so that --resume can go on: parties on this
    /// machine in folders of DIR, those elsewhere where their files say
    #[arg(long, value_name = "DIR", conflicts_with_all = ["restart_on_divergence", "load_model"])]
    checkpoint: Option<PathBuf>,
    /// Steps between two states
    #[arg(long, value_name = "STEPS", default_value_t = 10, requires = "checkpoint",
        value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Go on with the run that DIR holds, after the newest step whose states all three parties have kept
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the report as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the first step with a failed check as a trace (.npz or .safetensors), which `difftest replay` runs again
    #[arg(long, value_name = "FILE")]
    save_failure: Option<PathBuf>,
    /// Write this step (from 0) of the run as such a trace
    #[arg(long, num_args = 2, value_names = ["N", "FILE"])]
    save_step: Option<Vec<OsString>>,
    /// Print the cause of every difference by tensor: encoding, rounding, approximation, range, branch or protocol
    #[arg(long)]
    budget: bool,
    /// Run up to this step (from 0) and compare only there
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    /// Compare only this tensor, and list the elements nearest to their bounds
    #[arg(long, value_name = "TENSOR")]
    probe: Option<String>,
    /// Fix the three parties' randomness in order to repeat a run. INSECURE: the shares hide nothing, and every report
    /// says so
    #[arg(long, value_name = "N")]
    insecure_seed: Option<u64>,
}

/// Elements that a long run compares.
const LONG: u64 = 1_000_000_000;

/// Most rows that a free run takes, all its batches together: their numbers are kept in memory, 1 GiB of them.
const ROWS: usize = 1 << 28;

/// Steps of a run that names no length.
const STEPS: usize = 10;

impl Args {
    /// Of the data set, once it is known; until then its rows are known if it is the one that ships with the program.
    fn config(&self, data: Option<&Dataset>) -> Result<Config, Error> {
        let shipped = self.training.data.is_none();
        let rows = data.map(|d| d.train.len()).or(shipped.then_some(60_000));
        let spec = self.training.spec(1, data)?;
        let length = match (self.steps, self.epochs, self.step) {
            _ if self.long => Length::Steps(LONG.div_ceil(comparison::elements(&spec)) as usize),
            (Some(n), ..) => Length::Steps(n),
            (None, Some(n), _) => Length::Epochs(n),
            (None, None, Some(step)) => Length::Steps(step.saturating_add(1)),
            (None, None, None) => Length::Steps(STEPS),
        };
        let steps = length.steps(rows.unwrap_or(1), self.training.batch)?;
        if self.mode == Mode::Free && (self.step.is_some() || self.probe.is_some() || self.budget) {
            let (flags, because) = ("--step, --probe and --budget", "look into single steps");
            return Err(FlagError::Mode { flags, because, they: "they need", mode: "lockstep" }.into());
        }
        if self.mode == Mode::Free && (self.save_step.is_some() || self.save_failure.is_some()) {
            let (flags, because) = ("--save-step and --save-failure", "write single steps");
            return Err(FlagError::Mode { flags, because, they: "they need", mode: "lockstep" }.into());
        }
        if self.mode == Mode::Lockstep && (self.save_model.is_some() || self.load_model.is_some()) {
            let (flags, because) = ("--save-model and --load-model", "are about what each side trains on its own");
            return Err(FlagError::Mode { flags, because, they: "they need", mode: "free" }.into());
        }
        if self.mode == Mode::Free && steps.saturating_mul(self.training.batch) > ROWS {
            let batch = self.training.batch;
            return Err(FlagError::TooLong { steps, batch, most: ROWS / batch }.into());
        }
        if self.restart_on_divergence && self.mode != Mode::Free {
            let (flags, because) = ("--restart-on-divergence", "judges whole epochs");
            return Err(FlagError::Mode { flags, because, they: "it needs", mode: "free" }.into());
        }
        if let Some(rows) = rows {
            self.fits(steps, rows.div_ceil(self.training.batch))?;
        }
        Ok(Config {
            mode: self.mode,
            insecure_seed: self.insecure_seed,
            data: self.training.data.clone(),
            only_step: self.step,
            only_probe: self.probe.clone(),
            loaded: self.load_model.clone(),
            ..Config::new(spec, steps, self.training.seed)
        })
    }
}

impl Args {
    /// The folder of the run's states.
    pub fn states(&self) -> Option<&Path> {
        self.checkpoint.as_deref()
    }

    /// How the run keeps its states.
    fn keeping(&self, config: &Config) -> Result<Option<Keeping>, Error> {
        let open = |folder| Keeping::open(folder, self.every as usize, self.resume, &config.command(""));
        Ok(self.checkpoint.as_deref().map(open).transpose()?)
    }
}

/// The error of a run, with what to do about parties that did not finish where they have kept states.
fn resumable(error: Error, config: &Config) -> Error {
    match error {
        Error::Run(cause @ RunError::Protocol(_)) if config.keeping.is_some() => Error::Resumable(cause),
        error => error,
    }
}

/// A step and the file that it is written to.
type Saved = (StepFile, PathBuf);

impl Args {
    /// Whether what is asked of a run's steps is there, given how many an epoch has.
    fn fits(&self, steps: usize, epoch: usize) -> Result<(), Error> {
        if let Some(step) = self.step.filter(|s| *s >= steps) {
            return Err(FlagError::NoStep { flag: "--step is", step: step.to_string(), steps }.into());
        }
        if self.restart_on_divergence && steps < epoch {
            return Err(FlagError::ShortOfAnEpoch(epoch).into());
        }
        self.saves(steps).map(drop)
    }

    /// The step asked for with --save-step and its file.
    fn saves(&self, steps: usize) -> Result<Option<(usize, PathBuf)>, Error> {
        let Some([n, file]) = self.save_step.as_deref() else { return Ok(None) };
        match n.to_str().unwrap_or_default().parse() {
            Ok(n) if n < steps => Ok(Some((n, file.into()))),
            _ => Err(FlagError::NoStep { flag: "--save-step is", step: n.display().to_string(), steps }.into()),
        }
    }
}

/// A lock-step run that keeps the steps to be saved.
fn lockstep(args: &Args, config: &Config, data: &Dataset) -> Result<(lockstep::Findings, Vec<Saved>), Error> {
    let bar = progress(config.steps);
    let wanted = args.saves(config.steps)?;
    let mut secure = Secure::start(config.spec.clone(), config.insecure_seed, true)?;
    let (mut step, mut failure, mut last) = (None, None, None);
    let run = lockstep::run(config, data, &mut secure, |trace, failed| {
        bar.set_position(trace.step as u64 + 1);
        let saved = |path: &PathBuf| StepFile::new(config, &trace, Vec::new()).map(|file| (file, path.clone()));
        if let Some((_, path)) = wanted.as_ref().filter(|w| w.0 == trace.step) {
            step = saved(path);
        }
        if failed && failure.is_none() {
            failure = args.save_failure.as_ref().and_then(saved);
        }
        last = args.save_failure.is_some().then_some(trace);
    });
    bar.finish_and_clear();
    // What the parties did not finish is a failure as well.
    if let (Err(RunError::Protocol(what)), Some(path), Some(trace)) = (&run, &args.save_failure, &last)
        && let Some(file) = StepFile::new(config, trace, vec![what.to_string()])
    {
        file.write(path)?;
    }
    Ok((run?, step.into_iter().chain(failure).collect()))
}

/// A bar on a terminal, nothing elsewhere.
fn progress(total: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total as u64).with_style(style)
}

/// A free run, or with `--restart-on-divergence` as many as the rule asks for; `config` becomes the last one's.
fn free(args: &Args, config: &mut Config, data: &Dataset, loaded: Option<Trained>) -> Result<(Report, Trained), Error> {
    let (judged, epoch) = (args.restart_on_divergence, data.train.len().div_ceil(config.spec.sgd.batch));
    let chance = Evaluation::of(data, config.spec.fixed).chance();
    let ends = |step, loss, accuracy| judged && restart::breaks(step, epoch, &chance, loss, accuracy).is_some();
    let mut ended = Vec::new();
    loop {
        let bar = progress(free::RUNS * config.steps);
        let start = |n| Secure::start(config.spec.clone(), config.insecure_seed.map(|s| s.wrapping_add(n)), false);
        let found = free::run(config, data, loaded.as_ref(), &ends, start, |steps| bar.inc(steps as u64))?;
        bar.finish_and_clear();
        let why = restart::reason(&found.curve, found.accuracy.1, epoch, &chance).filter(|_| judged);
        let diverged = why.is_some();
        if let Some(why) = &why {
            let line = format!("learning rate {}, seed {}: {why}", config.spec.sgd.learning_rate, config.seed);
            print(&format!("diverges: {line}\n"))?;
            ended.push(line);
        }
        if let Some(next) = why.filter(|_| !interrupt::requested()).and_then(|_| restart::next(config)) {
            *config = next;
            continue;
        }
        let (mut report, trained) = Report::free(config, data, found);
        if judged {
            report.checks.push(restart::outcome(config, &ended, diverged));
        }
        return Ok((report, trained));
    }
}

/// A run that Ctrl-C ended has no verdict on the steps that it did not take.
fn interrupted(config: &Config, steps: usize) -> Option<Outcome> {
    let summary = format!("by Ctrl-C after {steps} of {} steps: all of this is about those", config.steps);
    (interrupt::requested() && steps < config.steps).then(|| Outcome::open("interrupted", summary))
}

/// Runs the comparison.
///
/// # Errors
/// Bad flags, bad data, a side that cannot go on, a report that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    // Flags first: a typing error should not wait for the data.
    let step = args.save_step.as_ref().map(|s| PathBuf::from(&s[1]));
    let model = args.save_model.as_deref().map(checkpoint::files).unwrap_or_default();
    let single = [&args.json, &args.html, &args.save_failure, &step];
    let outputs = || model.iter().chain(single.into_iter().flatten()).map(PathBuf::as_path);
    outputs().try_for_each(|output| output::check_output(Some(output)))?;
    output::check_distinct(outputs())?;
    args.save_failure.iter().chain(&step).try_for_each(|path| TraceFile::check_name(path))?;
    args.config(None)?;
    crate::interrupt::listen();
    let data = config::data(args.training.data.as_deref())?;
    let mut config = args.config(Some(&data))?;
    let loaded = config.loaded.as_deref().map(|path| checkpoint::load(path, &config.spec)).transpose()?;
    config.keeping = args.keeping(&config)?;
    print(&report::text::heading(&config))?;

    let (mut steps, mut trained) = (Vec::new(), None);
    let mut report = match config.mode {
        Mode::Lockstep => {
            let found;
            (found, steps) = lockstep(&args, &config, &data).map_err(|e| resumable(e, &config))?;
            Report::lockstep(&config, &data, found)
        }
        Mode::Free => {
            let (report, last) = free(&args, &mut config, &data, loaded).map_err(|e| resumable(e, &config))?;
            trained = Some(last);
            report
        }
    };
    report.checks.extend(experiment::checks(&config)?);
    report.checks.extend(interrupted(&config, report.before + report.steps));
    // Whatever becomes of the files, the verdict has been seen.
    print(&report::text::body(&report))?;
    if args.budget {
        print(&report::budget::table(&report.budget, config.spec.fixed.fraction_bits))?;
    }
    if let (Some(path), Some(trained)) = (&args.save_model, &trained) {
        checkpoint::save(path, &config.spec, trained)?;
    }
    let failures: Vec<_> = report.checks.iter().filter_map(|c| c.failure.clone()).collect();
    for (file, path) in &mut steps {
        file.failures.clone_from(&failures);
        file.write(path)?;
    }
    if let Some(path) = step.filter(|path| !steps.iter().any(|s| s.1 == *path)) {
        print(&format!("\n{} is not written: the run ended before that step\n", path.display()))?;
    }
    if let Some(path) = &args.json {
        output::write(path, report::json::report(&report).as_bytes())?;
    }
    if let Some(path) = &args.html {
        output::write(path, report::html::comparison(&report).as_bytes())?;
    }
    Ok(Verdict::of(report.passed()))
}
