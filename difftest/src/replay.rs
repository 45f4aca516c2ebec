//! Replay: one training step as a file that anybody can run again, anywhere, and its reduction to the rows and classes that matter.
//!
//! A file holds what the step started from (specification, rows, labels, opened parameters) and the coins that the parties drew. Replaying it runs f64,
//! the integer model on the recorded coins, and fresh parties, whose coins are their own, and judges both by the checks of a lock-step run.
//! A failure is reduced to the fewest rows, and the fewest classes beside their labels, on which the same check still fails;
//! learning rate / batch, i.e. what each row adds, is kept.

use crate::check::bit_exact::BitExact;
use crate::check::gradient_bound::GradientBound;
use crate::check::range::Range;
use crate::check::{Outcome, error_bound};
use crate::compare::real;
use crate::config::Config;
use crate::error::Error;
use crate::explain::origin::Truncated;
use crate::input;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::{Batch, Opens, Side, Step, Tensors};
use ndarray::{Array1, Array2};
use reference::fixed::{LayerUnits, Parameters, Rounded, Tape};
use reference::spec::{ProbePoint, TrainSpec};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Version of the file: raised when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// Steps of the longest run.
const MOST_STEPS: usize = 1 << 31;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 30;

/// Runs that a reduction may take.
const TRIES: usize = 400;

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
    labels: Vec<usize>,
    layers: Vec<Layer>,
    tape: Vec<Truncation>,
    /// Where it was read from, or will be written to: what a failure names to repeat it.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A step as it was taken.
#[derive(Debug, Clone)]
pub struct Captured {
    step: usize,
    parameters: Parameters,
    batch: Batch,
    tape: Tape,
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
    /// The file of a captured step of a run.
    pub fn new(config: &Config, captured: &Captured, failures: Vec<String>) -> Self {
        let Captured { step, parameters, batch, tape } = captured;
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
        StepFile {
            schema: SCHEMA,
            command: config.command(&format!("--steps {}", config.steps)),
            step: *step,
            seed: config.seed,
            failures,
            spec: config.spec.clone(),
            rows: batch.units.rows().into_iter().map(|row| row.to_vec()).collect(),
            labels: batch.labels.clone(),
            layers: parameters.layers.iter().map(layer).collect(),
            tape: tape.entries().map(truncation).collect(),
            path: PathBuf::new(),
        }
    }

    /// Reads a file and checks that it is a step of what it says.
    ///
    /// # Errors
    /// One line naming the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad = |what: String| Error::Usage(format!("{}: {what}", path.display()));
        let text = input::file(path, MAX_BYTES)?;
        let mut file: StepFile = serde_json::from_str(&text)
            .map_err(|e| bad(format!("{e}; expected a step written by --save-step or --save-failure")))?;
        path.clone_into(&mut file.path);
        if file.schema != SCHEMA {
            return Err(bad(format!("has schema {}; this difftest reads {SCHEMA}", file.schema)));
        }
        file.spec.validate().map_err(|e| bad(e.0))?;
        if file.step > MOST_STEPS {
            return Err(bad(format!("is step {} of its run; no run has more than {MOST_STEPS}", file.step)));
        }
        let (batch, inputs) = (file.spec.sgd.batch, file.spec.network.inputs());
        if file.rows.len() != batch || file.labels.len() != batch {
            return Err(bad(format!(
                "has {} rows and {} labels; its batch is {batch}",
                file.rows.len(),
                file.labels.len()
            )));
        }
        if let Some(row) = file.rows.iter().position(|r| r.len() != inputs) {
            return Err(bad(format!("row {row} has {} values; the network takes {inputs}", file.rows[row].len())));
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

    /// As it is written to a file.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists always have a JSON form")
    }

    fn parameters(&self) -> Result<Parameters, String> {
        let network = &self.spec.network;
        if self.layers.len() != network.layers() {
            return Err(format!("has {} layers; the network has {}", self.layers.len(), network.layers()));
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

    fn tape(&self) -> Result<Tape, String> {
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

    /// The same step on some of its rows and classes, both in order, without coins: theirs were for all. `None` if a row's label is not
    /// among the classes, or what is left cannot be trained.
    fn part(&self, rows: &[usize], classes: &[usize]) -> Option<StepFile> {
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

    fn config(&self) -> Config {
        Config { replayed: Some(self.path.clone()), ..Config::new(self.spec.clone(), self.step + 1, self.seed) }
    }

    fn batch_units(&self) -> Batch {
        let (rows, inputs) = (self.rows.len(), self.spec.network.inputs());
        let units = Array2::from_shape_fn((rows, inputs), |(i, j)| self.rows[i][j]);
        Batch { reals: units.mapv(|u| real(u, self.spec.fixed.fraction_bits)), units, labels: self.labels.clone() }
    }
}

/// A secure side that remembers its last step.
pub struct Capturing<S> {
    side: S,
    steps: usize,
    parameters: Parameters,
    last: Rc<RefCell<Option<Captured>>>,
}

impl<S> Capturing<S> {
    /// Wraps a side; `last` will hold the step taken last.
    pub fn new(side: S, last: Rc<RefCell<Option<Captured>>>) -> Self {
        Capturing { side, steps: 0, parameters: Parameters { layers: Vec::new() }, last }
    }
}

impl<S: Opens> Side for Capturing<S> {
    type Value = i64;

    fn name(&self) -> &'static str {
        self.side.name()
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        self.parameters = parameters.clone();
        self.side.load(parameters)
    }

    fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
        // A step that the parties do not finish is kept as well, without coins.
        let (step, parameters, batch_of) = (self.steps, self.parameters.clone(), batch.clone());
        *self.last.borrow_mut() = Some(Captured { step, parameters, batch: batch_of, tape: Tape::default() });
        let done = self.side.step(batch, tape)?;
        if let Some(last) = self.last.borrow_mut().as_mut() {
            last.tape = done.tape.clone();
        }
        self.steps += 1;
        Ok(done)
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        self.side.correct(batch)
    }
}

impl<S: Opens> Opens for Capturing<S> {
    fn parameters(&mut self) -> Result<Parameters, Error> {
        self.parameters = self.side.parameters()?;
        Ok(self.parameters.clone())
    }

    fn truncated(&self) -> &[Truncated] {
        self.side.truncated()
    }
}

/// The checks on one run of a step. Without `secure` the integer model itself is judged, by its bounds alone.
fn judge(file: &StepFile, tape: Tape, secure: Option<&Tensors<i64>>) -> Result<Vec<Outcome>, Error> {
    let (config, batch) = (file.config(), file.batch_units());
    let parameters = file.parameters().map_err(Error::Usage)?;
    let (mut bit_exact, mut range, mut gradient) = (BitExact::default(), Range::default(), GradientBound::default());
    let mut integer = Integer::replaying(file.spec.clone())?;
    integer.load(&parameters)?;
    let everything = |_: &ProbePoint| true;
    let model = match (integer.step(&batch, tape), secure) {
        (Ok(done), _) => done.tensors,
        (Err(e), Some(secure)) => {
            let computed = |p: &ProbePoint| integer.unfinished.contains_key(p);
            bit_exact.step(&config, file.step, &integer.unfinished, secure, computed);
            bit_exact.refused(&config, file.step, &e);
            return Ok(vec![bit_exact.finish(&config)]);
        }
        (Err(e), None) => return Err(e),
    };
    range.step(file.step, &integer.violations);
    let judged = secure.unwrap_or(&model);
    let mut f64_side = Real::new(file.spec.clone(), &parameters)?;
    let reals = f64_side.step(&batch, Tape::default())?.tensors;
    let (mut tensors, mut statistics) = (BTreeMap::new(), BTreeMap::new());
    if range.first().is_none() {
        let start = parameters.decode(file.spec.fixed, &file.spec.sgd);
        let run = (file.step, error_bound::elements(&file.spec));
        let found = error_bound::judge(&file.spec, run, &start, &batch, (&reals, judged), everything)?;
        let bounds = found.bounds;
        (tensors, statistics) = (found.worst_case, found.statistical);
        let point = ProbePoint::HeadGradient;
        if let (Some(units), Some(bounded)) = (judged.get(&point), bounds.get(&point)) {
            gradient.step(&config, file.step, &reals[&point], units, Some(bounded));
        }
    }
    let mut checks = Vec::new();
    if let Some(secure) = secure {
        bit_exact.step(&config, file.step, &model, secure, everything);
        checks.push(bit_exact.finish(&config));
    }
    let unjudged = range.first().map(|_| "not judged: the range was left".into());
    checks.push(error_bound::finish(&config, &tensors, &statistics, usize::from(range.first().is_none()), unjudged));
    checks.push(gradient.finish(&config));
    checks.push(range.finish(&config));
    Ok(checks)
}

/// The integer model on the recorded coins, inside its bounds around f64?
///
/// # Errors
/// Coins that do not fit the step.
pub fn recorded(file: &StepFile) -> Result<Vec<Outcome>, Error> {
    judge(file, file.tape().map_err(Error::Usage)?, None)
}

/// A secure run of the step by parties that `start` starts, against the integer model and f64; and the step with the coins of that run.
///
/// # Errors
/// A side that cannot go on.
pub fn fresh<S: Opens>(
    file: &StepFile,
    start: &mut impl FnMut(&TrainSpec) -> Result<S, Error>,
) -> Result<(Vec<Outcome>, StepFile), Error> {
    let mut secure = start(&file.spec)?;
    secure.load(&file.parameters().map_err(Error::Usage)?)?;
    let batch = file.batch_units();
    let done = secure.step(&batch, Tape::default())?;
    let captured = Captured {
        step: file.step,
        parameters: file.parameters().map_err(Error::Usage)?,
        batch,
        tape: done.tape.clone(),
    };
    let checks = judge(file, done.tape, Some(&done.tensors))?;
    let failures = checks.iter().filter_map(|c| c.failure.clone()).collect();
    let written = StepFile { command: file.command.clone(), ..StepFile::new(&file.config(), &captured, failures) };
    Ok((checks, written))
}

/// A failing step on the fewest rows and classes on which one of the checks that `failed` still does, as far as leaving out halves, quarters, ...,
/// single ones finds them. A class that is the label of a row is not left out.
///
/// # Errors
/// A side that cannot go on.
pub fn shrink<S: Opens>(
    file: &StepFile,
    failed: &[Outcome],
    start: &mut impl FnMut(&TrainSpec) -> Result<S, Error>,
) -> Result<StepFile, Error> {
    let again = |c: &Outcome| !c.passed && failed.iter().any(|f| !f.passed && f.name == c.name);
    let (mut smallest, mut tries) = (file.clone(), 0);
    let mut fails = |rows: &[usize], classes: &[usize]| -> Result<bool, Error> {
        let Some(part) = file.part(rows, classes).filter(|_| tries < TRIES) else { return Ok(false) };
        tries += 1;
        let (checks, written) = match fresh(&part, start) {
            Ok(run) => run,
            // Parties that stop on a part fail in another way than those that finished the whole.
            Err(Error::Secure(_) | Error::Protocol(_)) => return Ok(false),
            Err(e) => return Err(e),
        };
        let fails = checks.iter().any(again);
        if fails {
            smallest = written;
        }
        Ok(fails)
    };
    let (mut rows, mut classes): (Vec<_>, Vec<_>) = ((0..file.batch()).collect(), (0..file.classes()).collect());
    // Fewer classes may need fewer rows, and the other way round.
    loop {
        let before = (rows.len(), classes.len());
        rows = fewest(rows, |rows| fails(rows, &classes))?;
        classes = fewest(classes, |classes| fails(&rows, classes))?;
        if before == (rows.len(), classes.len()) {
            return Ok(smallest);
        }
    }
}

/// What is left of `all` after leaving out halves, quarters, ..., single ones wherever it still `fails`; at least one.
fn fewest(mut all: Vec<usize>, mut fails: impl FnMut(&[usize]) -> Result<bool, Error>) -> Result<Vec<usize>, Error> {
    let mut piece = all.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < all.len() {
            let rest = [&all[..from], &all[(from + piece).min(all.len())..]].concat();
            if !rest.is_empty() && fails(&rest)? {
                all = rest;
            } else {
                from += piece;
            }
        }
        if piece <= 1 {
            return Ok(all);
        }
        piece = piece.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::small as config;
    use crate::generate;
    use crate::side::secure::Secure;
    use ndarray::{Axis, s};
    use reference::spec::{Head, Rounding, SgdSpec};

    /// One captured step of a small network, written and read again.
    fn saved(head: Head, rounding: Rounding) -> StepFile {
        let mut config = config(head, rounding);
        config.spec.sgd = SgdSpec { batch: 6, ..config.spec.sgd };
        let last = Rc::new(RefCell::new(None));
        let mut side = Capturing::new(Secure::start(config.spec.clone(), None, true).unwrap(), Rc::clone(&last));
        side.load(&generate::initial(&config.spec, 1).unwrap()).unwrap();
        let units = Array2::from_shape_fn((6, 16), |(i, j)| ((i * 31 + j * 17) % 256 * 256) as i64);
        let batch = Batch { reals: units.mapv(|u| real(u, 16)), units, labels: vec![0, 1, 2, 3, 4, 5] };
        side.step(&batch, Tape::default()).unwrap();
        side.parameters().unwrap();
        side.step(&batch, Tape::default()).unwrap();
        StepFile::new(&config, last.borrow().as_ref().unwrap(), vec![])
    }

    fn start(spec: &TrainSpec) -> Result<Secure, Error> {
        Secure::start(spec.clone(), None, true)
    }

    /// A side that is one unit off in the first logit of every row with label 4.
    struct Planted(Secure);

    impl Side for Planted {
        type Value = i64;
        fn name(&self) -> &'static str {
            "secure"
        }
        fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
            self.0.load(parameters)
        }
        fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
            let mut done = self.0.step(batch, tape)?;
            let logits = done.tensors.get_mut(&ProbePoint::Logits).unwrap();
            batch.labels.iter().enumerate().filter(|(_, l)| **l == 4).for_each(|(row, _)| logits[[row, 0]] += 1);
            Ok(done)
        }
        fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
            self.0.correct(batch)
        }
    }

    impl Opens for Planted {
        fn parameters(&mut self) -> Result<Parameters, Error> {
            self.0.parameters()
        }
    }

    #[test]
    fn a_step_is_written_read_and_passes_again() {
        let dir = tempfile::tempdir().unwrap();
        for rounding in Rounding::ALL {
            let file = saved(Head::Softmax, rounding);
            assert_eq!((file.step, file.batch()), (1, 6));
            let path = dir.path().join("step.json");
            std::fs::write(&path, file.json()).unwrap();
            let read = StepFile::read(&path).unwrap();
            assert_eq!(read, StepFile { path, ..file });
            assert!(!read.tape().unwrap().is_empty(), "{rounding}");
            for checks in [recorded(&read).unwrap(), fresh(&read, &mut start).unwrap().0] {
                assert!(checks.iter().all(|c| c.passed), "{checks:?}");
            }
        }
    }

    #[test]
    fn other_coins_than_the_recorded_give_another_result() {
        let mut file = saved(Head::Softmax, Rounding::Probabilistic);
        let flip = file.tape.iter_mut().find(|t| t.name == "layer2/forward").unwrap();
        flip.elements -= 1;
        assert!(recorded(&file).unwrap_err().to_string().contains("layer2/forward has 59 coins; it must have 60"));
    }

    #[test]
    fn a_failure_is_reduced_to_its_row_and_the_classes_it_needs_at_the_same_rate() {
        let file = saved(Head::ReluGrad, Rounding::Probabilistic);
        let mut planted = |spec: &TrainSpec| start(spec).map(Planted);
        let failed = fresh(&file, &mut planted).unwrap().0;
        assert!(failed.iter().any(|c| !c.passed));
        let small = shrink(&file, &failed, &mut planted).unwrap();
        // Label 4 has four classes before it; none of the five after it is left.
        assert_eq!((small.labels.as_slice(), small.batch(), small.classes()), ([4].as_slice(), 1, 5));
        let columns =
            |f: &StepFile| f.parameters().unwrap().layers.last().unwrap().weights.slice(s![.., ..5]).to_owned();
        assert_eq!(columns(&small), columns(&file), "the classes keep their weights");
        let rate = |f: &StepFile| f.spec.sgd.units(f.spec.fixed).unwrap();
        assert_eq!(rate(&small), rate(&file));
        assert!(small.failures[0].contains("logits[0, 0]"), "{:?}", small.failures);
        assert!(recorded(&small).unwrap().iter().all(|c| c.passed), "its coins are those of the small run");
    }

    #[test]
    fn a_part_has_the_columns_of_its_classes_and_every_label() {
        let file = saved(Head::Softmax, Rounding::Nearest);
        let part = file.part(&[1, 3], &[1, 3, 9]).unwrap();
        assert_eq!((part.labels.as_slice(), part.classes()), ([0, 1].as_slice(), 3));
        let (whole, left) = (file.parameters().unwrap(), part.parameters().unwrap());
        assert_eq!(left.layers[0], whole.layers[0], "hidden layers know no classes");
        assert_eq!(left.layers[1].weights, whole.layers[1].weights.select(Axis(1), &[1, 3, 9]));
        assert_eq!(left.layers[1].bias_velocity, whole.layers[1].bias_velocity.select(Axis(0), &[1, 3, 9]));
        assert_eq!(file.part(&[1, 2], &[1, 3]), None, "row 2 has label 2");
        assert_eq!(file.part(&[1], &[1]), None, "one class is nothing to learn");
    }

    #[test]
    fn a_failure_of_another_check_is_not_the_one_looked_for() {
        let file = saved(Head::Softmax, Rounding::Nearest);
        let other = Outcome::new("range", String::new(), Some("range".into()));
        let mut planted = |spec: &TrainSpec| start(spec).map(Planted);
        assert_eq!(shrink(&file, &[other], &mut planted).unwrap(), file);
    }

    #[test]
    fn leaving_out_finds_what_a_failure_needs_wherever_it_stands() {
        for needed in [vec![0], vec![12], vec![3, 4], vec![0, 6, 12], (0..13).collect()] {
            let fails = |some: &[usize]| Ok(needed.iter().all(|n| some.contains(n)));
            assert_eq!(fewest((0..13).collect(), fails).unwrap(), needed);
        }
        assert_eq!(fewest(vec![7], |_| Ok(true)).unwrap(), [7]);
    }

    #[test]
    fn a_file_that_is_no_step_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("step.json");
        let good: serde_json::Value = serde_json::from_str(&saved(Head::Softmax, Rounding::Nearest).json()).unwrap();
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = good.clone();
            change(&mut value);
            std::fs::write(&path, value.to_string()).unwrap();
            let error = StepFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("step.json: ") && !error.contains('\n'), "{error}");
            error
        };
        assert!(refused(&|v| v["schema"] = 7.into()).contains("schema 7"));
        assert!(refused(&|v| v["labels"][2] = 10.into()).contains("label 10 of row 2"));
        assert!(refused(&|v| v["labels"] = serde_json::json!([1])).contains("1 labels"));
        assert!(refused(&|v| v["rows"][1] = serde_json::json!([1, 2])).contains("row 1 has 2 values"));
        assert!(refused(&|v| v["layers"][1]["bias"] = serde_json::json!([1])).contains("layer2/bias has 1"));
        assert!(refused(&|v| v["layers"] = serde_json::json!([])).contains("0 layers"));
        assert!(refused(&|v| v["tape"][0]["coins"] = "0g".into()).contains("hexadecimal"));
        assert!(refused(&|v| v["spec"]["epsilon"] = 2.into()).contains("epsilon is 2"));
        assert!(refused(&|v| v["more"] = 1.into()).contains("unknown field"));
        assert!(StepFile::read(&dir.path().join("none.json")).unwrap_err().to_string().contains("none.json"));
    }
}
