//! One cell: what identifies it, what it has in common with the others, what it found.

use super::machine::Machine;
use crate::check::divergence::Verdict;
use crate::count::counted;
use crate::error::Error;
use crate::statistics::median;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Version of a cell's file: raised when a field changes its meaning or goes away. Files of version 1, which called the
/// sides `model` and `f64`, are read as well.
pub const SCHEMA: u32 = 2;

/// The largest file of a cell, or of a record of cells, that is read, in bytes: a hundred times the largest written.
pub(super) const MAX_BYTES: u64 = 128 << 20;

/// Whether this program reads files of that version.
pub fn readable(schema: u32) -> bool {
    (1..=SCHEMA).contains(&schema)
}

/// Layers of the deepest network.
pub const MOST_LAYERS: usize = 64;

/// The side that trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Three parties on shares.
    Secure,
    /// The integer side with coins of its own.
    #[serde(alias = "model")]
    Integer,
    /// Real numbers; has no rounding.
    #[serde(alias = "f64")]
    Real,
}

impl Side {
    /// All, in the order of the tables.
    pub const ALL: [Side; 3] = [Side::Secure, Side::Integer, Side::Real];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Secure => "secure",
            Side::Integer => "integer",
            Side::Real => "real",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Learning rates of [`Id::rate`] are multiples of this.
pub const RATE_UNIT: f64 = 1.0 / 65_536.0;

/// The identity of a cell: everything that tells it from another. Its text, `secure-softmax-l2-prob-s1-e20`, names its
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Id {
    /// The side that trains.
    pub side: Side,
    /// Output head.
    pub head: Head,
    /// Dense layers.
    pub layers: usize,
    /// Whether `relu-grad` is computed in the order of the paper's published code ([`super::published`]).
    #[serde(default)]
    pub code: bool,
    /// Rounding of truncations; none for real numbers.
    pub rounding: Option<Rounding>,
    /// Of batches and initial weights. The parties' coins are the operating system's.
    pub seed: u64,
    /// Epochs of an attempt.
    pub epochs: usize,
    /// Extra fractional bits of the velocity.
    pub velocity_bits: u32,
    /// The only learning rate that is tried, in units of 2^-16; without it, the setup's first rate and its halves.
    #[serde(default)]
    pub rate: Option<u32>,
}

impl Id {
    /// Sorts as the tables do: `prob` before `nearest`, heads in their order.
    pub fn order(&self) -> impl Ord + use<> {
        let rounding = Rounding::ALL.iter().position(|r| Some(*r) == self.rounding);
        let variant = (self.rate, self.velocity_bits, self.epochs);
        (variant, self.side, self.layers, rounding, self.head, self.code, self.seed)
    }

    /// Whether it is no variant: none of extra velocity bits, the published code's order, and a rate of its own.
    pub fn is_plain(&self) -> bool {
        self.velocity_bits == 0 && !self.code && self.rate.is_none()
    }

    /// The head's name; `relu-grad-code` is `relu-grad` in the order of the published code.
    pub fn head_name(&self) -> String {
        format!("{}{}", self.head, if self.code { CODE } else { "" })
    }

    /// The identity of the cell with this configuration on another side.
    pub fn on(&self, side: Side) -> Id {
        let real = side == Side::Real;
        let velocity_bits = if real { 0 } else { self.velocity_bits };
        let rounding = self.rounding.filter(|_| !real);
        Id { side, rounding, velocity_bits, code: self.code && !real, ..self.clone() }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-l{}", self.side, self.head_name(), self.layers)?;
        self.rounding.map_or(Ok(()), |r| write!(f, "-{r}"))?;
        write!(f, "-s{}-e{}", self.seed, self.epochs)?;
        if self.velocity_bits > 0 {
            write!(f, "-v{}", self.velocity_bits)?;
        }
        self.rate.map_or(Ok(()), |r| write!(f, "-r{r}"))
    }
}

/// What the name of a head ends in that is computed in the order of the published code.
const CODE: &str = "-code";

/// What files of the first version called the sides.
const FIRST_NAMES: [(&str, Side); 2] = [("model", Side::Integer), ("f64", Side::Real)];

/// A name of the first version as it is written today; others as they are.
fn renamed(text: &str) -> String {
    let old = |(old, side): (&str, Side)| {
        text.strip_prefix(old).filter(|rest| rest.starts_with('-')).map(|rest| format!("{side}{rest}"))
    };
    FIRST_NAMES.into_iter().find_map(old).unwrap_or_else(|| text.into())
}

/// A cell's name in the first version.
pub(super) fn first_version(id: &Id) -> String {
    let name = id.to_string();
    let old = FIRST_NAMES.into_iter().find(|(_, side)| *side == id.side);
    old.map_or(name.clone(), |(old, side)| format!("{old}{}", &name[side.name().len()..]))
}

impl FromStr for Id {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let text = &renamed(given);
        let parse = || {
            let (side, rest) = text.split_once('-')?;
            let mut parts: Vec<_> = rest.split('-').collect();
            let mut number = |tag: char| {
                let digits = parts.last()?.strip_prefix(tag)?;
                let value = digits.parse::<u64>().ok()?;
                parts.pop();
                Some(value)
            };
            let rate = number('r');
            let velocity_bits = number('v').unwrap_or(0);
            let (epochs, seed) = (number('e')?, number('s')?);
            let rounding = Rounding::ALL.into_iter().find(|r| parts.last() == Some(&r.name()));
            parts.truncate(parts.len() - usize::from(rounding.is_some()));
            let layers = parts.pop()?.strip_prefix('l')?.parse().ok()?;
            let name = parts.join("-");
            let (head, code) = name.strip_suffix(CODE).map_or((name.as_str(), false), |head| (head, true));
            let id = Id {
                side: Side::ALL.into_iter().find(|s| s.name() == side)?,
                head: Head::ALL.into_iter().find(|h| h.name() == head)?,
                code,
                layers,
                rounding,
                seed,
                epochs: usize::try_from(epochs).ok()?,
                velocity_bits: u32::try_from(velocity_bits).ok()?,
                rate: rate.map(|r| u32::try_from(r).ok()).map_or(Some(None), |r| r.map(Some))?,
            };
            let possible = (1..=MOST_LAYERS).contains(&id.layers) && id.epochs > 0 && id.rate != Some(0);
            let variant = !id.code || (id.side == Side::Integer && id.head == Head::ReluGrad);
            // One spelling each: real numbers have no rounding, the others have one, and `-v0` is not written.
            let spelt = id.to_string() == *text && rounding.is_none() == (id.side == Side::Real);
            (possible && variant && spelt).then_some(id)
        };
        parse().ok_or_else(|| {
            format!("{given:?} is no cell; cells look like secure-softmax-l2-prob-s1-e20, --list shows them")
        })
    }
}

/// The settings that all cells of one evaluation have in common. Cells with different setups are never put into one
/// table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Width of the data.
    pub inputs: usize,
    /// ReLU units of a hidden layer.
    pub hidden: usize,
    /// The number of classes.
    pub classes: usize,
    /// eps, real.
    pub epsilon: f64,
    /// Learning rate of the first attempt.
    pub learning_rate: f64,
    /// Momentum.
    pub momentum: f64,
    /// Rows of a step.
    pub batch: usize,
    /// How often the rate is halved at most.
    pub restarts: usize,
    /// Rows of an epoch.
    pub train_rows: usize,
    /// Rows that accuracy is measured on.
    pub test_rows: usize,
    /// SHA-256 of all pixels and labels used.
    pub data: String,
}

impl Setup {
    /// The specification of a cell at a learning rate. The real side takes its regulariser and the encoding of its
    /// start from the format.
    ///
    /// # Errors
    /// The first limit that is broken; a rate that rounds to 0 in fixed point is one.
    pub fn spec(&self, id: &Id, learning_rate: f64) -> Result<TrainSpec, Error> {
        let spec = TrainSpec {
            network: NetworkSpec::dense(self.inputs, self.hidden, self.classes, id.layers),
            head: id.head,
            epsilon: self.epsilon,
            rounding: id.rounding.unwrap_or(Rounding::Nearest),
            fixed: FixedSpec::default(),
            sgd: SgdSpec {
                learning_rate,
                momentum: self.momentum,
                batch: self.batch,
                extra_velocity_bits: id.velocity_bits,
            },
        };
        spec.validate()?;
        Ok(spec)
    }

    /// The learning rate of a cell's first attempt.
    pub fn first_rate(&self, id: &Id) -> f64 {
        id.rate.map_or(self.learning_rate, |r| f64::from(r) * RATE_UNIT)
    }

    /// The first setting in which two setups differ: its name and both values.
    pub fn difference(&self, other: &Setup) -> Option<String> {
        let fields = |s| serde_json::to_value(s).ok().and_then(|v| v.as_object().cloned()).unwrap_or_default();
        let (mine, theirs) = (fields(self), fields(other));
        let differs = mine.into_iter().find(|(name, value)| theirs.get(name) != Some(value));
        differs
            .map(|(name, value)| format!("{name} {value} against {}", theirs.get(&name).cloned().unwrap_or_default()))
    }
}

/// One pass over the training rows. What a side does not look at is `None`; [`f64::MAX`] stands for anything that is
/// not finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Steps taken: fewer than a whole epoch only where the integer side left its range.
    pub steps: usize,
    /// Wall-clock seconds of training alone: evaluation, opening and looking are not in it. Only secure cells have the
    /// machine for themselves.
    pub seconds: f64,
    /// Secure side: processor seconds of this process in that time, all threads.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// Secure side: processor seconds that the machine's other processes took in that time. On a quiet machine they are
    /// few.
    #[serde(default)]
    pub other_cpu_seconds: Option<f64>,
    /// Secure side, its first [`super::train::PAIRED`] epochs: wall-clock seconds of the same steps in real numbers
    /// without probes, taken in turn with them on the otherwise idle machine, each batch made ready before the clock
    /// starts.
    pub plain_seconds: Option<f64>,
    /// Test rows classified correctly at its end.
    pub correct: usize,
    /// Mean loss of the training rows whose loss is finite, real.
    pub loss: Option<f64>,
    /// Training rows whose loss is infinite (`relu-prob`: true logit not positive).
    pub infinite_losses: Option<usize>,
    /// Largest mean loss of a batch, over its finite rows.
    pub largest_batch_loss: Option<f64>,
    /// Largest |logit|, real: of the training rows at any step, or on the secure side of the test rows at the end of
    /// the epoch, computed in real numbers from the opened weights.
    pub largest_logit: Option<f64>,
    /// Largest |weight| or |bias|, real: after any step, or on the secure side at the end of the epoch.
    pub largest_weight: Option<f64>,
    /// Largest element of the head's gradient, real.
    pub largest_gradient: Option<f64>,
    /// Units of each hidden layer that were not positive for any row (the same rows as for the logits).
    pub dead_units: Vec<usize>,
    /// Integer model: error against real numbers and its proven bound in one step from the weights at its end, on its
    /// first batch, inside the range; by tensor (`logits`, `head_gradient`, `layerN/dW`).
    pub nearness: BTreeMap<String, Nearness>,
    /// The weights at its end ([`super::sketch`]); empty if one is not finite.
    pub sketch: Vec<f32>,
}

impl Epoch {
    /// Test accuracy, 0 to 1.
    pub fn accuracy(&self, setup: &Setup) -> f64 {
        self.correct as f64 / setup.test_rows.max(1) as f64
    }
}

/// How near one tensor of a step came to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Nearness {
    /// Largest |integer side - real numbers|, units of 2^-f.
    pub error: f64,
    /// The bound of that element, units of 2^-f.
    pub bound: f64,
    /// Largest error / bound of any element.
    pub closest: f64,
    /// Elements outside their bound.
    pub outside: u64,
}

/// One attempt at training, at one learning rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The learning rate, real.
    pub learning_rate: f64,
    /// The epochs of the attempt, in order.
    pub epochs: Vec<Epoch>,
    /// The verdict on the attempt, with step and cause.
    pub verdict: Verdict,
    /// Why it ended before its time, if it did.
    pub ended: Option<String>,
    /// First step after which a logit was seen beyond the fixed-point range, whatever the verdict is about.
    pub logits_leave: Option<usize>,
    /// Integer model: operands out of range in the step that ended the attempt, by operation.
    pub violations: BTreeMap<String, u64>,
}

/// The messages and bytes that training sent, by protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Rounds in which it took part; protocols share rounds.
    pub rounds: u64,
    /// Bytes, all parties.
    pub bytes: u64,
}

/// The cost of a cell's training, of all parties; its evaluation is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Training steps.
    pub steps: u64,
    /// The communication rounds.
    pub rounds: u64,
    /// The messages of all parties.
    pub messages: u64,
    /// The bytes that all parties sent.
    pub bytes: u64,
    /// By name of the protocol.
    pub by_protocol: BTreeMap<String, Sent>,
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The version of the file, [`SCHEMA`].
    pub schema: u32,
    /// The identity of the cell.
    pub id: Id,
    /// The settings under which it was trained.
    pub setup: Setup,
    /// At each rate, the first one first. Never empty.
    pub attempts: Vec<Attempt>,
    /// Secure side: what all attempts sent.
    pub cost: Option<Cost>,
    /// The machine that it was trained on.
    pub machine: Machine,
    /// Name and version of the program that trained it.
    #[serde(default = "super::machine::unrecorded")]
    pub program: String,
    /// Root mean square of the differences of all weights to the same configuration in real numbers, by epoch of the
    /// first attempts, of a cell from a file of results, which keeps it instead of the sketches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<f64>,
}

impl Cell {
    /// The attempt that counts: the one that ran to its end, or the last.
    pub fn last(&self) -> &Attempt {
        self.attempts.last().expect("a cell is stored and loaded with at least one attempt")
    }

    /// Whether some rate survived all epochs by the paper's rule.
    pub fn survived(&self) -> bool {
        self.last().ended.is_none()
    }

    /// Whether it also learnt something: accuracy at the end is at least twice chance. (A network that always says "1"
    /// has 11.35 % on MNIST, which the paper's rule lets pass.)
    pub fn trains(&self) -> bool {
        let end = self.last().epochs.last().map_or(0.0, |e| e.accuracy(&self.setup));
        self.survived() && end >= 2.0 / self.setup.classes as f64
    }

    /// Accuracy after `epoch` epochs (from 1) of the attempt that counts, if it got there.
    pub fn accuracy(&self, epoch: usize) -> Option<f64> {
        self.last().epochs.get(epoch.checked_sub(1)?).map(|e| e.accuracy(&self.setup))
    }

    /// Whole epochs of all attempts.
    pub(super) fn whole_epochs(&self) -> impl Iterator<Item = &Epoch> {
        let whole = self.setup.train_rows.div_ceil(self.setup.batch.max(1));
        self.attempts.iter().flat_map(|a| &a.epochs).filter(move |e| e.steps == whole)
    }

    /// Median of the seconds of an epoch and its standard error, whole epochs of all attempts: other work on the
    /// machine only ever adds.
    pub fn seconds_per_epoch(&self) -> Option<(f64, f64)> {
        median_and_error(&self.whole_epochs().map(|e| e.seconds).collect::<Vec<_>>())
    }

    /// Whether its seconds are worth comparing: a grid's full length, at the only rate, on an otherwise idle machine;
    /// or why not.
    ///
    /// # Errors
    /// The reason.
    pub fn timed(&self) -> Result<(), Untimed> {
        if self.whole_epochs().count() < LEAST_EPOCHS {
            return Err(Untimed::Short);
        }
        let spent: Option<Vec<(f64, f64)>> =
            self.whole_epochs().map(|e| Some((e.other_cpu_seconds?, e.seconds))).collect();
        let Some(spent) = spent else { return Err(Untimed::NotMeasured) };
        // Half of the epochs undisturbed is what their median needs.
        let quiet = |&&(other, seconds): &&(f64, f64)| other <= QUIET * seconds * self.machine.cpus as f64;
        if spent.iter().filter(quiet).count() * 2 > spent.len() { Ok(()) } else { Err(Untimed::Busy) }
    }

    /// Seconds of the whole epochs that both this side and real numbers in turn with it were timed in: this side, real
    /// numbers.
    pub fn paired_seconds(&self) -> impl Iterator<Item = (f64, f64)> {
        self.whole_epochs().filter_map(|e| Some((e.seconds, e.plain_seconds.filter(|s| *s > 0.0)?)))
    }
}

/// Whole epochs that a claim about time needs.
pub const LEAST_EPOCHS: usize = 20;

/// The part of all processors that other processes may take on a machine that counts as quiet.
pub const QUIET: f64 = 0.05;

/// Why seconds are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untimed {
    /// Fewer than [`LEAST_EPOCHS`] whole epochs.
    Short,
    /// Fewer than [`super::time_cell::LEAST_COUNTED`] counted epochs of a configuration timed by itself.
    Few,
    /// Other processes used the machine.
    Busy,
    /// Nothing says whether they did.
    NotMeasured,
}

impl fmt::Display for Untimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Untimed::Short => "fewer than 20 whole epochs",
            Untimed::Few => "fewer than 3 counted epochs",
            Untimed::Busy => "other processes used the machine",
            Untimed::NotMeasured => "it is not recorded whether the machine was quiet",
        })
    }
}

/// A number of layers, in words.
pub fn layers_of(layers: usize) -> String {
    counted(layers, "layer")
}

/// A learning rate with three significant digits.
pub fn short(rate: f64) -> String {
    let text = format!("{rate:.2e}");
    text.parse::<f64>().map_or(text, |v| v.to_string())
}

/// Binomial standard error of an accuracy (0 to 1) on `rows` rows.
pub fn binomial_error(accuracy: f64, rows: usize) -> f64 {
    (accuracy * (1.0 - accuracy) / rows.max(1) as f64).sqrt()
}

/// Median and its standard error from the median deviation, as if the undisturbed values were normal (0 for a single
/// value).
pub fn median_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let middle = median(values)?;
    let deviation = median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())?;
    // 1.4826: a normal's standard deviation over its median deviation; sqrt(pi / 2): its median's error over its
    // mean's.
    let one = 1.4826 * (std::f64::consts::PI / 2.0).sqrt();
    Some((middle, one * deviation / (values.len() as f64).sqrt()))
}

/// Mean and its standard error (0 for a single value).
pub fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A setup that a test can run in a moment.
    pub(crate) fn setup() -> Setup {
        Setup {
            inputs: 784,
            hidden: 16,
            classes: 10,
            epsilon: 0.1,
            learning_rate: 0.01,
            momentum: 0.9,
            batch: 16,
            restarts: 3,
            train_rows: 64,
            test_rows: 50,
            data: "test".into(),
        }
    }

    #[test]
    fn the_text_of_an_id_is_the_id() {
        for side in Side::ALL {
            for head in Head::ALL {
                for rounding in Rounding::ALL {
                    for velocity_bits in [0, 8] {
                        let rounding = (side != Side::Real).then_some(rounding);
                        let code = side == Side::Integer && head == Head::ReluGrad;
                        for (code, rate) in [(false, None), (code, Some(128))] {
                            let epochs = 20;
                            let id = Id { side, head, code, layers: 3, rounding, seed: 7, epochs, velocity_bits, rate };
                            assert_eq!(id.to_string().parse(), Ok(id));
                        }
                    }
                }
            }
        }
        for text in [
            "",
            "secure",
            "secure-softmax",
            "secure-softmax-l2-s1-e20",
            "real-softmax-l2-prob-s1-e20",
            "secure-softmax-l2-prob-s1-e20-v0",
            "secure-softmax-l02-prob-s1-e20",
            "secure--l2-prob-s1-e20",
            "x-softmax-l2-prob-s1-e20",
            "real-softmax-l0-s1-e20",
            "real-softmax-l65-s1-e20",
            "real-softmax-l1-s1-e0",
            "secure-softmax-l2-prob-s1-e20-",
            "integer-relu-grad-l2-prob-s1-e20-r0",
            "secure-relu-grad-code-l2-prob-s1-e20",
            "integer-softmax-code-l2-prob-s1-e20",
        ] {
            assert!(text.parse::<Id>().unwrap_err().contains("--list"), "{text}");
        }
    }

    #[test]
    fn names_of_the_first_version_are_read() {
        for (old, new) in [
            ("model-relu-grad-l2-prob-s1-e50", "integer-relu-grad-l2-prob-s1-e50"),
            ("f64-softmax-l1-s1-e20", "real-softmax-l1-s1-e20"),
        ] {
            assert_eq!(old.parse::<Id>().unwrap().to_string(), new);
            assert_eq!(old.parse::<Id>(), new.parse());
        }
        assert_eq!(serde_json::from_str::<[Side; 2]>(r#"["model", "f64"]"#).unwrap(), [Side::Integer, Side::Real]);
    }

    #[test]
    fn setups_name_what_differs() {
        assert_eq!(setup().difference(&setup()), None);
        let other = Setup { restarts: 4, ..setup() };
        assert_eq!(setup().difference(&other).unwrap(), "restarts 3 against 4");
    }

    #[test]
    fn the_standard_error_of_a_mean() {
        let (middle, error) = median_and_error(&[6.0, 5.0, 200.0, 5.5, 7.0]).unwrap();
        assert!(middle == 6.0 && error < 1.0, "one disturbed epoch moves neither: {middle} ± {error}");
        assert_eq!((median_and_error(&[]), median_and_error(&[3.0])), (None, Some((3.0, 0.0))));
        assert_eq!(mean_and_error(&[]), None);
        assert_eq!(mean_and_error(&[3.0]), Some((3.0, 0.0)));
        assert_eq!(mean_and_error(&[1.0, 3.0]), Some((2.0, 1.0)));
    }
}
