//! The configuration of a run, validated: the meaning of the flags.

use crate::error::{ConfigError, Error};
use crate::keeping::Keeping;
use fixtures::Dataset;
use reference::spec::{FixedSpec, Head, NetworkSpec, ProbePoint, Rounding, SgdSpec, TrainSpec};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;

/// How the sides relate from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every step starts all sides from the same opened weights.
    Lockstep,
    /// Each side trains on its own from a common start.
    Free,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Mode; 2] = [Mode::Lockstep, Mode::Free];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Lockstep => "lockstep",
            Mode::Free => "free",
        }
    }
}

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The number of training steps.
    Steps(usize),
    /// Passes over the training set.
    Epochs(usize),
}

/// Everything that decides a run. Only the secure side's randomness is not in here, unless a seed is asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Network, head, arithmetic, optimiser.
    pub spec: TrainSpec,
    /// Lock-step or free.
    pub mode: Mode,
    /// The number of training steps.
    pub steps: usize,
    /// Seed of the batches and the initial weights.
    pub seed: u64,
    /// Seed of the parties' streams: for reproducing a run only, the shares are then no secret.
    pub insecure_seed: Option<u64>,
    /// Directory of the data set; MNIST as shipped if none.
    #[serde(serialize_with = "path_text")]
    pub data: Option<PathBuf>,
    /// Compare only this step (from 0) of the run.
    pub only_step: Option<usize>,
    /// Compare only this tensor.
    pub only_probe: Option<String>,
    /// Trained model that a free run goes on with, instead of initial weights.
    #[serde(serialize_with = "path_text")]
    pub loaded: Option<PathBuf>,
    /// Whether and how the parties keep states of the run.
    #[serde(skip)]
    pub keeping: Option<Keeping>,
    /// Name of the engine on the secure side, if it is not the one of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<&'static str>,
    /// The file whose step is replayed, if this is a replay.
    #[serde(serialize_with = "path_text")]
    pub replayed: Option<PathBuf>,
}

/// The numbers that make a [`TrainSpec`], as typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// The output head.
    pub head: Head,
    /// The number of dense layers.
    pub layers: usize,
    /// Units of each hidden layer.
    pub hidden: usize,
    /// Rounding of truncations.
    pub rounding: Rounding,
    /// The threshold of `relu-prob` and `relu-prob-cut`, real.
    pub epsilon: f64,
    /// The optimiser: rate, momentum, batch size.
    pub sgd: SgdSpec,
}

impl Training {
    /// The specification for data of `inputs` columns and ten classes, as MNIST has, in the paper's format, with its
    /// limits checked.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn spec(&self, inputs: usize) -> Result<TrainSpec, Error> {
        self.sized(inputs, 10, FixedSpec::default())
    }

    /// The specification for the data set that ships with the program.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn spec_for_shipped(&self, fixed: FixedSpec) -> Result<TrainSpec, Error> {
        self.sized(784, 10, fixed)
    }

    /// The specification for a data set, as wide as its images and with as many classes as its labels name, with its
    /// limits checked.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn spec_for(&self, data: &Dataset, fixed: FixedSpec) -> Result<TrainSpec, Error> {
        self.sized(data.train.inputs(), data.classes(), fixed)
    }

    /// The specification for a data set that nothing is known of yet: what is refused here is refused for every one.
    ///
    /// # Errors
    /// The first limit that is broken.
    pub fn spec_for_any(&self, fixed: FixedSpec) -> Result<TrainSpec, Error> {
        self.sized(1, 2, fixed)
    }

    fn sized(&self, inputs: usize, classes: usize, fixed: FixedSpec) -> Result<TrainSpec, Error> {
        if !(1..=ConfigError::MOST_LAYERS).contains(&self.layers) {
            return Err(ConfigError::Layers(self.layers).into());
        }
        let spec = TrainSpec {
            network: NetworkSpec::dense(inputs, self.hidden, classes, self.layers),
            head: self.head,
            epsilon: self.epsilon,
            rounding: self.rounding,
            fixed,
            sgd: self.sgd,
        };
        spec.validate()?;
        Ok(spec)
    }
}

/// Loads the data set that a run asks for.
///
/// # Errors
/// Whatever is wrong with the files.
pub fn data(dir: Option<&std::path::Path>) -> Result<Dataset, Error> {
    Ok(match dir {
        Some(dir) => fixtures::load(dir)?,
        #[cfg(feature = "mnist")]
        None => fixtures::mnist()?,
        #[cfg(not(feature = "mnist"))]
        None => return Err(ConfigError::NoData.into()),
    })
}

impl Length {
    /// In steps, for `rows` training rows in batches of `batch`.
    ///
    /// # Errors
    /// Nothing to do, or more than can be counted.
    pub fn steps(self, rows: usize, batch: usize) -> Result<usize, Error> {
        let (flag, steps) = match self {
            Length::Steps(n) => ("--steps", Some(n)),
            Length::Epochs(n) => ("--epochs", n.checked_mul(rows.div_ceil(batch))),
        };
        match steps {
            Some(0) => Err(ConfigError::Nothing { flag, of: "a run" }.into()),
            Some(n) => Ok(n),
            None => Err(ConfigError::Uncountable(flag).into()),
        }
    }
}

impl Config {
    /// A lock-step run of `steps` steps on MNIST as shipped, with batches and initial weights from `seed`: every tensor
    /// of every step is compared.
    pub fn new(spec: TrainSpec, steps: usize, seed: u64) -> Self {
        Config {
            spec,
            mode: Mode::Lockstep,
            steps,
            seed,
            insecure_seed: None,
            data: None,
            only_step: None,
            only_probe: None,
            loaded: None,
            keeping: None,
            engine: None,
            replayed: None,
        }
    }

    /// The run to be resumed, if that is asked for.
    pub fn resumed(&self) -> Option<&Keeping> {
        self.keeping.as_ref().filter(|keeping| keeping.resume)
    }

    /// Whether the tensors of this step are compared (`--step`).
    pub fn compares(&self, step: usize) -> bool {
        self.only_step.is_none_or(|only| only == step)
    }

    /// Whether this tensor is compared (`--probe`).
    pub fn wants(&self, point: &ProbePoint) -> bool {
        self.only_probe.as_ref().is_none_or(|name| *name == point.to_string())
    }

    /// Refuses a name for `--probe` that none of the tensors of a step has.
    ///
    /// # Errors
    /// The names to choose from.
    pub fn probe_exists<'p>(&self, points: impl Iterator<Item = &'p ProbePoint> + Clone) -> Result<(), Error> {
        let Some(name) = &self.only_probe else { return Ok(()) };
        if points.clone().any(|point| self.wants(point)) {
            return Ok(());
        }
        let known = points.map(ToString::to_string).collect();
        Err(ConfigError::NoTensor { name: name.clone(), known }.into())
    }

    /// The command line that repeats this run, with `extra` flags.
    pub fn command(&self, extra: &str) -> String {
        if let Some(engine) = self.engine {
            let what = if extra.is_empty() { String::new() } else { format!(" ({extra})") };
            return format!(
                "the caller's own run of {engine}, seed {}{what}; no command of difftest runs it",
                self.seed
            );
        }
        if let Some(file) = &self.replayed {
            return format!("difftest replay {}", shell_word(file.as_os_str()));
        }
        let (spec, default) = (&self.spec, SgdSpec::default());
        let mut c = format!("difftest --head {} --layers {}", spec.head, spec.network.layers());
        let mut flag = |differs: bool, text: String| {
            if differs {
                c.push(' ');
                c.push_str(&text);
            }
        };
        let layers = spec.network.layers();
        let hidden = if layers > 1 { spec.network.widths[1] } else { 128 };
        flag(spec.rounding != Rounding::Probabilistic, format!("--rounding {}", spec.rounding));
        flag(hidden != 128, format!("--hidden {hidden}"));
        flag(spec.epsilon != 0.1, format!("--epsilon {}", spec.epsilon));
        flag(spec.sgd.batch != default.batch, format!("--batch {}", spec.sgd.batch));
        flag(spec.sgd.learning_rate != default.learning_rate, format!("--lr {}", spec.sgd.learning_rate));
        flag(spec.sgd.momentum != default.momentum, format!("--momentum {}", spec.sgd.momentum));
        flag(spec.sgd.extra_velocity_bits != 0, format!("--velocity-bits {}", spec.sgd.extra_velocity_bits));
        let (fixed, default) = (spec.fixed, FixedSpec::default());
        flag(fixed.fraction_bits != default.fraction_bits, format!("--fraction-bits {}", fixed.fraction_bits));
        flag(fixed.value_bits != default.value_bits, format!("--value-bits {}", fixed.value_bits));
        flag(self.mode == Mode::Free, "--mode free".into());
        for (name, path) in [("--data", &self.data), ("--load-model", &self.loaded)] {
            let word = path.as_ref().map(|p| shell_word(p.as_os_str())).unwrap_or_default();
            flag(path.is_some(), format!("{name} {word}"));
        }
        flag(true, format!("--seed {}", self.seed));
        flag(self.insecure_seed.is_some(), format!("--insecure-seed {}", self.insecure_seed.unwrap_or_default()));
        flag(!extra.is_empty(), extra.into());
        c
    }
}

/// Quotes what a shell would take apart. Control characters and bytes that are no UTF-8, which no report can hold, are
/// written as `$'\xe9'`.
fn shell_word(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:".contains(c);
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => word.into(),
        Some(word) if !word.contains(char::is_control) => format!("'{}'", word.replace('\'', "'\\''")),
        _ => format!("$'{}'", word.as_encoded_bytes().escape_ascii()),
    }
}

/// A path as text: bytes that are no UTF-8 as `\xe9`.
fn path_text<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = |path: &PathBuf| {
        let chunks = path.as_os_str().as_encoded_bytes().utf8_chunks();
        chunks.map(|c| format!("{}{}", c.valid(), c.invalid().escape_ascii())).collect::<String>()
    };
    path.as_ref().map(text).serialize(serializer)
}

/// A run of one step of a small network with two layers, for tests.
#[cfg(test)]
pub fn small(head: Head, rounding: Rounding) -> Config {
    let training = Training { head, layers: 2, hidden: 8, rounding, epsilon: 0.1, sgd: SgdSpec::default() };
    Config::new(training.spec(16).expect("a valid specification"), 1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn training() -> Training {
        Training {
            head: Head::ReluGrad,
            layers: 2,
            hidden: 128,
            rounding: Rounding::Nearest,
            epsilon: 0.1,
            sgd: SgdSpec::default(),
        }
    }

    #[test]
    fn a_command_line_says_what_differs_from_the_defaults() {
        let config = Config { data: Some("a b".into()), ..Config::new(training().spec(784).unwrap(), 10, 7) };
        assert_eq!(
            config.command("--step 3"),
            "difftest --head relu-grad --layers 2 --rounding nearest --data 'a b' --seed 7 --step 3"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_path_of_any_bytes_has_a_text_and_a_shell_word() {
        use std::os::unix::ffi::OsStrExt;
        let latin = OsStr::from_bytes(b"donn\xe9es");
        assert_eq!(shell_word(latin), r"$'donn\xe9es'");
        assert_eq!(shell_word(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(shell_word(OsStr::new("données")), "'données'");
        assert_eq!(shell_word(OsStr::new("a\nb'c")), r"$'a\nb\'c'");
        let text = |path: &OsStr| path_text(&Some(path.into()), serde_json::value::Serializer).unwrap();
        assert_eq!((text(latin), text(OsStr::new("données"))), (r"donn\xe9es".into(), "données".into()));
    }

    #[test]
    fn limits_are_named() {
        let error = |t: Training| t.spec(784).unwrap_err().to_string();
        assert!(error(Training { layers: 0, ..training() }).contains("1 to 64"));
        assert!(error(Training { epsilon: 1.0, ..training() }).contains("inside (0, 1)"));
        assert!(error(Training { hidden: 0, ..training() }).contains("width 1 is 0"));
        let sgd = SgdSpec { batch: 0, ..SgdSpec::default() };
        assert!(error(Training { sgd, ..training() }).contains("batch is 0"));
        assert_eq!(Length::Epochs(2).steps(60_000, 128).unwrap(), 938);
        assert!(Length::Steps(0).steps(1, 1).is_err());
        assert!(Length::Epochs(usize::MAX).steps(60_000, 128).is_err());
    }
}
