//! One training step of a trace as a value that can be run again, anywhere (`--save-step`, `--save-failure`, `replay`).
//!
//! The file is a trace as any other: header, starting parameters, batch, what the tested side computed, and its coins.
//! So `difftest check` judges a saved step, and `difftest replay` runs a step of an exported trace.

use super::export::{self, ENGINE};
use super::file::TraceFile;
use super::tensor::Values;
use super::{Trace, coins};
use crate::compare::real;
use crate::config::Config;
use crate::error::{Error, FileKind, Malformed};
use crate::side::{Batch, SIDES, Tensors};
use ndarray::{Array2, Axis};
use reference::fixed::{LayerUnits, Parameters, Tape};
use reference::spec::TrainSpec;
use std::path::{Path, PathBuf};

/// Steps of the longest run.
const MOST_STEPS: usize = 1 << 31;

/// One training step. Integers are units.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFile {
    /// The engine that took the step, in the words of a trace's header.
    pub engine: String,
    /// The command that ran the step.
    pub command: String,
    /// Number of the step in its run, from 0.
    pub step: usize,
    /// Seed of its batches and initial weights.
    pub seed: u64,
    /// Why it was written: the first failures, if any.
    pub failures: Vec<String>,
    /// The specification of the training.
    pub spec: TrainSpec,
    /// The opened parameters that the step started from.
    pub start: Parameters,
    /// The rows that were trained on.
    pub batch: Batch,
    /// The recorded coins.
    pub coins: Tape,
    /// The tensors that the tested side computed; empty in a part of a step, and in one that was read.
    pub computed: Tensors<i64>,
    /// Where it was read from, or will be written to: what a failure names to repeat it.
    pub path: PathBuf,
}

impl StepFile {
    /// The step of a run; `None` for a step of a free run, which has no common start.
    pub fn new(config: &Config, trace: &Trace, failures: Vec<String>) -> Option<Self> {
        let own = trace.tested_name == SIDES[2];
        Some(StepFile {
            engine: if own { ENGINE } else { trace.tested_name }.into(),
            command: config.command(&format!("--steps {}", config.steps)),
            step: trace.step,
            seed: config.seed,
            failures,
            spec: config.spec.clone(),
            start: trace.start.as_ref()?.units.clone(),
            batch: trace.batch.clone(),
            coins: trace.coins.clone(),
            computed: trace.tested.tensors.clone(),
            path: PathBuf::new(),
        })
    }

    /// The trace that has this step and no other.
    ///
    /// # Errors
    /// Rates that cannot be encoded.
    pub fn trace(&self) -> Result<TraceFile, Error> {
        let mut header = export::header(&self.engine, &self.spec)?;
        header.recorded = Some(self.command.clone());
        header.seed = Some(self.seed);
        header.failures.clone_from(&self.failures);
        let mut trace = TraceFile::new(header);
        trace.record(self.step, &self.start, &self.batch, &self.computed);
        coins::write(&mut trace, self.step, &self.coins);
        Ok(trace)
    }

    /// Writes the step as a trace.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.trace()?.write(path)
    }

    /// Reads step `step` of a trace, or its only one, and checks that it is a step of what the header says.
    ///
    /// # Errors
    /// One line naming the file and what is wrong with it.
    pub fn read(path: &Path, step: Option<usize>) -> Result<Self, Error> {
        let trace = TraceFile::read(path)?;
        let found = Self::of(&trace, step).map_err(|what| Malformed::new(FileKind::Step, path, what))?;
        Ok(StepFile { path: path.into(), ..found })
    }

    /// Step `step` of a trace, or its only one.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn of(trace: &TraceFile, step: Option<usize>) -> Result<Self, String> {
        let (header, spec) = (&trace.header, export::spec(&trace.header)?);
        let step = chosen(&trace.steps(), step)?;
        let read = Reader { trace, step };
        let (rows, inputs) = (spec.sgd.batch, spec.network.inputs());
        let units = read.matrix("input", (rows, inputs))?;
        let labels = labels(&read, &spec)?;
        let layers = (1..=spec.network.layers()).map(|l| read.layer(l, spec.network.shape(l)));
        Ok(StepFile {
            engine: header.engine.clone(),
            command: header.recorded.clone().unwrap_or_else(|| header.engine.clone()),
            step,
            seed: header.seed.unwrap_or(0),
            failures: header.failures.clone(),
            start: Parameters { layers: layers.collect::<Result<_, String>>()? },
            batch: Batch { reals: units.mapv(|u| real(u, spec.fixed.fraction_bits)), units, labels },
            coins: coins::read(trace, step)?,
            computed: Tensors::new(),
            path: PathBuf::new(),
            spec,
        })
    }

    /// The step on some of its rows and classes, both in order, without coins: theirs were for all. `None` if a row's
    /// label is not among the classes, or what is left cannot be trained.
    pub fn part(&self, rows: &[usize], classes: &[usize]) -> Option<StepFile> {
        let label = |&r: &usize| classes.iter().position(|&c| c == self.batch.labels[r]);
        let batch = Batch {
            units: self.batch.units.select(Axis(0), rows),
            reals: self.batch.reals.select(Axis(0), rows),
            labels: rows.iter().map(label).collect::<Option<_>>()?,
        };
        let mut part = StepFile { batch, coins: Tape::default(), computed: Tensors::new(), ..self.clone() };
        *part.spec.network.widths.last_mut()? = classes.len();
        let last = part.start.layers.last_mut()?;
        *last = LayerUnits {
            weights: last.weights.select(Axis(1), classes),
            bias: last.bias.select(Axis(0), classes),
            weight_velocity: last.weight_velocity.select(Axis(1), classes),
            bias_velocity: last.bias_velocity.select(Axis(0), classes),
        };
        part.spec.sgd.batch = rows.len();
        part.spec.sgd.learning_rate *= rows.len() as f64 / self.rows() as f64;
        part.spec.validate().is_ok().then_some(part)
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.spec.network.classes()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.batch.labels.len()
    }

    /// The run that a replay of the step is.
    pub fn config(&self) -> Config {
        Config { replayed: Some(self.path.clone()), ..Config::new(self.spec.clone(), self.step + 1, self.seed) }
    }
}

/// The step that was asked for, or the only one.
fn chosen(steps: &[usize], asked: Option<usize>) -> Result<usize, String> {
    let list = || steps.iter().take(8).map(usize::to_string).collect::<Vec<_>>().join(", ");
    let step = match (asked, steps) {
        (_, []) => return Err("it has no step; a trace of blocks can only be checked".into()),
        (None, &[step]) => step,
        (None, _) => return Err(format!("it has {} steps ({}, ..); choose one with --step", steps.len(), list())),
        (Some(step), _) if steps.contains(&step) => step,
        (Some(step), _) => return Err(format!("it has no step {step}; it has {}", list())),
    };
    if step > MOST_STEPS {
        return Err(format!("is step {step} of its run; no run has more than {MOST_STEPS}"));
    }
    Ok(step)
}

fn labels(read: &Reader, spec: &TrainSpec) -> Result<Vec<usize>, String> {
    let classes = spec.network.classes();
    let class = |(row, &l): (usize, &i64)| {
        usize::try_from(l)
            .ok()
            .filter(|&l| l < classes)
            .ok_or_else(|| format!("label {l} of row {row} names no class; labels are 0 to {}", classes - 1))
    };
    read.units("labels", &[spec.sgd.batch])?.iter().enumerate().map(class).collect()
}

/// Tensors of one step of a trace, which must be there, integers, and of the network's shape.
struct Reader<'t> {
    trace: &'t TraceFile,
    step: usize,
}

impl Reader<'_> {
    fn units(&self, name: &str, shape: &[usize]) -> Result<&[i64], String> {
        let full = format!("step/{}/{name}", self.step);
        let tensor = self.trace.tensors.get(&full).ok_or_else(|| format!("it lacks {full}, which a replay needs"))?;
        let long = |shape: &[usize]| shape.iter().copied().filter(|&d| d != 1).collect::<Vec<_>>();
        match &tensor.values {
            Values::Units(_) if long(&tensor.shape) != long(shape) => {
                Err(format!("{full} has shape {:?}; it must be {shape:?}", tensor.shape))
            }
            Values::Units(v) => Ok(v),
            _ => Err(format!("{full} has reals; a replay needs integers in units")),
        }
    }

    fn matrix(&self, name: &str, (rows, columns): (usize, usize)) -> Result<Array2<i64>, String> {
        let units = self.units(name, &[rows, columns])?.to_vec();
        Array2::from_shape_vec((rows, columns), units).map_err(|e| format!("{name}: {e}"))
    }

    fn layer(&self, l: usize, shape: (usize, usize)) -> Result<LayerUnits, String> {
        let matrix = |what: &str| self.matrix(&format!("start/layer{l}/{what}"), shape);
        let row = |what: &str| Ok(self.units(&format!("start/layer{l}/{what}"), &[shape.1])?.iter().copied().collect());
        let bias: Result<_, String> = row("bias");
        let bias_velocity: Result<_, String> = row("bias_velocity");
        Ok(LayerUnits {
            weights: matrix("weights")?,
            bias: bias?,
            weight_velocity: matrix("weight_velocity")?,
            bias_velocity: bias_velocity?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_chosen_where_there_are_several_and_no_run_has_more_than_so_many() {
        assert_eq!((chosen(&[7], None), chosen(&[3, 7], Some(7))), (Ok(7), Ok(7)));
        assert_eq!(chosen(&[MOST_STEPS], None), Ok(MOST_STEPS));
        let refused = |steps: &[usize], asked| chosen(steps, asked).unwrap_err();
        let late = format!("is step {} of its run; no run has more than {MOST_STEPS}", MOST_STEPS + 1);
        assert_eq!(refused(&[MOST_STEPS + 1], None), late);
        assert_eq!(refused(&[], None), "it has no step; a trace of blocks can only be checked");
        assert_eq!(refused(&[3, 7], None), "it has 2 steps (3, 7, ..); choose one with --step");
        assert_eq!(refused(&[3, 7], Some(4)), "it has no step 4; it has 3, 7");
    }
}
