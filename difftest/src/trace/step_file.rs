//! One training step as a file that anybody can run again, anywhere (`--save-step`, `--save-failure`).
//!
//! The file is JSON. It holds what the step started from (specification, rows, labels, opened parameters), the coins
//! that the parties drew, and the failures for which it was written. Integers are units.

use super::Trace;
use crate::compare::real;
use crate::config::Config;
use crate::count::counted;
use crate::error::{Error, FileKind, Malformed};
use crate::input;
use crate::side::Batch;
use ndarray::{Array1, Array2};
use reference::fixed::{LayerUnits, Parameters, Rounded, Tape};
use reference::spec::TrainSpec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the file: raised when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// Steps of the longest run.
const MOST_STEPS: usize = 1 << 31;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 30;

/// Opened parameters of a layer, row-major units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    weights: Vec<i64>,
    bias: Vec<i64>,
    weight_velocity: Vec<i64>,
    bias_velocity: Vec<i64>,
}

/// The recorded rounding of one truncation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Truncation {
    name: String,
    /// Number of coins; 0 under nearest rounding.
    elements: usize,
    /// The coins, 8 a byte, lowest bit first, in hexadecimal digits.
    coins: String,
    /// (index, e) where the operand was out of range and wrapped.
    wraps: Vec<(usize, i8)>,
}

/// One training step. Integers are units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepFile {
    schema: u32,
    /// The command that ran the step.
    pub command: String,
    /// Which step of it.
    pub step: usize,
    /// Seed of its batches and initial weights.
    pub seed: u64,
    /// Why it was written: the first failures, if any.
    pub failures: Vec<String>,
    /// What is trained.
    pub spec: TrainSpec,
    /// The data, one list a row, scale f.
    rows: Vec<Vec<i64>>,
    /// Class of each row.
    pub labels: Vec<usize>,
    layers: Vec<Layer>,
    tape: Vec<Truncation>,
    /// Where it was read from, or will be written to: what a failure names to repeat it.
    #[serde(skip)]
    pub path: PathBuf,
}

fn pack(coins: &[bool]) -> String {
    coins.chunks(8).map(|c| format!("{:02x}", c.iter().rev().fold(0u8, |b, &c| b << 1 | u8::from(c)))).collect()
}

fn unpack(hex: &str, elements: usize) -> Option<Vec<bool>> {
    if hex.len() != 2 * elements.div_ceil(8) || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let bit = |i: usize| u8::from_str_radix(&hex[i / 8 * 2..][..2], 16).map(|byte| byte >> (i % 8) & 1 == 1).ok();
    (0..elements).map(bit).collect()
}

impl StepFile {
    /// The file of a step of a run; `None` for a step of a free run, which has no common start.
    pub fn new(config: &Config, trace: &Trace, failures: Vec<String>) -> Option<Self> {
        let Trace { step, batch, coins, .. } = trace;
        let parameters = &trace.start.as_ref()?.units;
        let flat = |m: &Array2<i64>| m.iter().copied().collect();
        let layer = |l: &LayerUnits| Layer {
            weights: flat(&l.weights),
            bias: l.bias.to_vec(),
            weight_velocity: flat(&l.weight_velocity),
            bias_velocity: l.bias_velocity.to_vec(),
        };
        let truncation = |(name, r): (&str, &Rounded)| Truncation {
            name: name.into(),
            elements: r.coins.len(),
            coins: pack(&r.coins),
            wraps: r.wraps.clone(),
        };
        Some(StepFile {
            schema: SCHEMA,
            command: config.command(&format!("--steps {}", config.steps)),
            step: *step,
            seed: config.seed,
            failures,
            spec: config.spec.clone(),
            rows: batch.units.rows().into_iter().map(|row| row.to_vec()).collect(),
            labels: batch.labels.clone(),
            layers: parameters.layers.iter().map(layer).collect(),
            tape: coins.entries().map(truncation).collect(),
            path: PathBuf::new(),
        })
    }

    /// Reads a file and checks that it is a step of what it says.
    ///
    /// # Errors
    /// One line naming the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad = |what: String| Error::from(Malformed::new(FileKind::Step, path, what));
        let text = input::file(path, MAX_BYTES)?;
        let mut file: StepFile = serde_json::from_str(&text)
            .map_err(|e| bad(format!("{e}; expected a step written by --save-step or --save-failure")))?;
        path.clone_into(&mut file.path);
        if file.schema != SCHEMA {
            return Err(bad(format!("has schema {}; this difftest reads {SCHEMA}", file.schema)));
        }
        file.spec.validate().map_err(|e| bad(e.to_string()))?;
        if file.step > MOST_STEPS {
            return Err(bad(format!("is step {} of its run; no run has more than {MOST_STEPS}", file.step)));
        }
        let (batch, inputs) = (file.spec.sgd.batch, file.spec.network.inputs());
        if file.rows.len() != batch || file.labels.len() != batch {
            return Err(bad(format!(
                "has {} and {}; its batch is {batch}",
                counted(file.rows.len(), "row"),
                counted(file.labels.len(), "label")
            )));
        }
        if let Some(row) = file.rows.iter().position(|r| r.len() != inputs) {
            return Err(bad(format!(
                "row {row} has {}; the network takes {inputs}",
                counted(file.rows[row].len(), "value")
            )));
        }
        let classes = file.spec.network.classes();
        if let Some(row) = file.labels.iter().position(|&l| l >= classes) {
            return Err(bad(format!(
                "label {} of row {row} names no class; labels are 0 to {}",
                file.labels[row],
                classes - 1
            )));
        }
        file.parameters().map_err(bad)?;
        file.tape().map_err(bad)?;
        Ok(file)
    }

    /// Names the file and what is wrong with it.
    pub fn refuse(&self, what: String) -> Malformed {
        Malformed::new(FileKind::Step, &self.path, what)
    }

    /// Leaves out the last coin of a truncation.
    #[cfg(test)]
    pub fn forget_a_coin(&mut self, name: &str) {
        self.tape.iter_mut().find(|t| t.name == name).expect("a truncation of the step").elements -= 1;
    }

    /// As it is written to a file.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists always have a JSON form")
    }

    /// The opened parameters that the step started from.
    ///
    /// # Errors
    /// Names the list that has another length than the network asks for.
    pub fn parameters(&self) -> Result<Parameters, String> {
        let network = &self.spec.network;
        if self.layers.len() != network.layers() {
            return Err(format!("has {}; the network has {}", counted(self.layers.len(), "layer"), network.layers()));
        }
        let layer = |(l, layer): (usize, &Layer)| {
            let (rows, columns) = network.shape(l);
            let matrix = |name: &str, v: &Vec<i64>| {
                Array2::from_shape_vec((rows, columns), v.clone())
                    .map_err(|_| format!("layer{l}/{name} has {} values; it must have {}", v.len(), rows * columns))
            };
            let row = |name: &str, v: &Vec<i64>| match v.len() == columns {
                true => Ok(Array1::from(v.clone())),
                false => Err(format!("layer{l}/{name} has {} values; it must have {columns}", v.len())),
            };
            Ok(LayerUnits {
                weights: matrix("weights", &layer.weights)?,
                bias: row("bias", &layer.bias)?,
                weight_velocity: matrix("weight_velocity", &layer.weight_velocity)?,
                bias_velocity: row("bias_velocity", &layer.bias_velocity)?,
            })
        };
        Ok(Parameters { layers: (1..).zip(&self.layers).map(layer).collect::<Result<_, String>>()? })
    }

    /// The recorded coins.
    ///
    /// # Errors
    /// Names the truncation whose coins cannot be read.
    pub fn tape(&self) -> Result<Tape, String> {
        let mut tape = Tape::default();
        for t in &self.tape {
            let coins = unpack(&t.coins, t.elements).ok_or_else(|| {
                format!(
                    "truncation {}: {} coins need {} hexadecimal digits",
                    t.name,
                    t.elements,
                    2 * t.elements.div_ceil(8)
                )
            })?;
            tape.push(&t.name, Rounded { coins, wraps: t.wraps.clone() });
        }
        Ok(tape)
    }

    /// The step on some of its rows and classes, both in order, without coins: theirs were for all. `None` if a row's
    /// label is not among the classes, or what is left cannot be trained.
    pub fn part(&self, rows: &[usize], classes: &[usize]) -> Option<StepFile> {
        let label = |&r: &usize| classes.iter().position(|&c| c == self.labels[r]);
        let columns = |v: &[i64]| -> Vec<i64> {
            v.chunks(self.classes()).flat_map(|row| classes.iter().map(|&c| row[c])).collect()
        };
        let mut part = StepFile {
            rows: rows.iter().map(|&r| self.rows[r].clone()).collect(),
            labels: rows.iter().map(label).collect::<Option<_>>()?,
            tape: Vec::new(),
            ..self.clone()
        };
        *part.spec.network.widths.last_mut()? = classes.len();
        let last = part.layers.last_mut()?;
        for v in [&mut last.weights, &mut last.bias, &mut last.weight_velocity, &mut last.bias_velocity] {
            *v = columns(v);
        }
        part.spec.sgd.batch = rows.len();
        part.spec.sgd.learning_rate *= rows.len() as f64 / self.batch() as f64;
        part.spec.validate().is_ok().then_some(part)
    }

    /// Classes of the step.
    pub fn classes(&self) -> usize {
        self.spec.network.classes()
    }

    /// Rows of the step.
    pub fn batch(&self) -> usize {
        self.rows.len()
    }

    /// The run that a replay of the step is.
    pub fn config(&self) -> Config {
        Config { replayed: Some(self.path.clone()), ..Config::new(self.spec.clone(), self.step + 1, self.seed) }
    }

    /// The rows of the step.
    pub fn rows(&self) -> Batch {
        let (rows, inputs) = (self.rows.len(), self.spec.network.inputs());
        let units = Array2::from_shape_fn((rows, inputs), |(i, j)| self.rows[i][j]);
        Batch { reals: units.mapv(|u| real(u, self.spec.fixed.fraction_bits)), units, labels: self.labels.clone() }
    }
}
