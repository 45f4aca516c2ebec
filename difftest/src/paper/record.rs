//! All finished cells in one compact file, fit to be committed: what tables and claims need, epochs as columns.
//!
//! Left out are the sketches of the weights, of which the drift against real numbers is kept. Numbers have six
//! significant digits, except gradients, which are judged against exact limits.

use super::cell::{self, Attempt, Cell, Cost, Epoch, Id, MAX_BYTES, SCHEMA, Setup};
use super::finished::Finished;
use super::machine::{self, Machine};
use super::result;
use super::time_cell::{self, TimeCell};
use crate::check::divergence::Verdict;
use crate::error::{Error, FileKind, Malformed};
use crate::input;
use crate::timing;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The file in which a folder of cells is recorded as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Of the cells.
    schema: u32,
    setup: Setup,
    machines: Vec<Machine>,
    cells: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    times: Vec<Timed>,
}

/// A timing cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timed {
    configuration: String,
    date: String,
    /// Place in `machines`.
    machine: usize,
    program: String,
    epochs: Vec<timing::Epoch>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// Place in `machines`.
    machine: usize,
    /// Name and version of the program that trained it.
    #[serde(default = "machine::unrecorded")]
    program: String,
    attempts: Vec<Tried>,
    cost: Option<Cost>,
    /// [`Cell::drift`], from the sketches.
    drift: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tried {
    learning_rate: f64,
    verdict: Verdict,
    ended: Option<String>,
    logits_leave: Option<usize>,
    violations: BTreeMap<String, u64>,
    epochs: usize,
    /// [`Epoch`] by field.
    columns: Value,
}

/// How far a cell comes apart from real numbers, by its sketches, or as the file says that it was read from.
fn drift(cell: &Cell, cells: &[Cell]) -> Vec<f64> {
    let told = result::drift(cell, cells);
    if told.is_empty() { cell.drift.clone() } else { told.iter().map(|d| six_digits(d.weights)).collect() }
}

impl Record {
    /// From finished cells of one setup.
    pub fn new(finished: &Finished) -> Self {
        let Finished { setup, cells, times } = finished;
        let machines = finished.machines();
        let place = |machine: &Machine| machines.iter().position(|m| m == machine).unwrap_or_default();
        let row = |cell: &Cell| Row {
            id: cell.id.to_string(),
            machine: place(&cell.machine),
            program: cell.program.clone(),
            attempts: cell.attempts.iter().map(tried).collect(),
            cost: cell.cost.clone(),
            drift: drift(cell, cells),
        };
        let timed = |time: &TimeCell| Timed {
            configuration: time.configuration.clone(),
            date: time.date.clone(),
            machine: place(&time.machine),
            program: time.program.clone(),
            epochs: time.epochs.clone(),
        };
        let (cells, times) = (cells.iter().map(row).collect(), times.iter().map(timed).collect());
        Record { schema: SCHEMA, setup: setup.clone(), machines, cells, times }
    }

    /// The text of the file: one line a cell, so that two versions can be compared.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub fn json(&self) -> Result<String, Error> {
        let write = || -> serde_json::Result<String> {
            let (setup, machines) = (serde_json::to_string(&self.setup)?, serde_json::to_string(&self.machines)?);
            let rows = self.cells.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
            let timed = |time| serde_json::to_string(&short(&serde_json::to_value(time)?));
            let times = self.times.iter().map(timed).collect::<serde_json::Result<Vec<_>>>()?;
            let times =
                if times.is_empty() { String::new() } else { format!(",\n\"times\": [\n{}\n]", times.join(",\n")) };
            Ok(format!(
                "{{\n\"schema\": {},\n\"setup\": {setup},\n\"machines\": {machines},\n\"cells\": [\n{}\n]{times}\n}}\n",
                self.schema,
                rows.join(",\n")
            ))
        };
        write().map_err(Error::json("the record of results"))
    }

    /// The cells of a file; their sketches are empty.
    ///
    /// # Errors
    /// A file that cannot be read, is no such record, or is one of another schema.
    pub fn read(path: &Path) -> Result<Finished, Error> {
        Self::parse(path, &input::bytes(path, MAX_BYTES)?)
    }

    /// Setup and cells from the bytes of a file that is called `path`.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Finished, Error> {
        let refuse = |what: String| Error::from(Malformed::new(FileKind::Record, path, what));
        let record: Record =
            serde_json::from_slice(bytes).map_err(|e| refuse(format!("no record of results ({e})")))?;
        if !cell::readable(record.schema) {
            return Err(refuse(format!("schema {}, this program writes {SCHEMA}", record.schema)));
        }
        let Record { setup, machines, cells, times, .. } = record;
        let cells: Result<Vec<Cell>, String> = cells.into_iter().map(|row| row.cell(&setup, &machines)).collect();
        let times: Result<_, String> = times.into_iter().map(|time| time.cell(&setup, &machines)).collect();
        Ok(Finished { cells: cells.map_err(refuse)?, times: times.map_err(refuse)?, setup })
    }
}

impl Row {
    fn cell(self, setup: &Setup, machines: &[Machine]) -> Result<Cell, String> {
        let id: Id = self.id.parse()?;
        let machine = machines.get(self.machine).cloned().ok_or_else(|| format!("cell {id} names no machine"))?;
        let attempts: Vec<Attempt> = self
            .attempts
            .into_iter()
            .map(|t| {
                let wrong = |what| format!("cell {id}: {what}");
                let epochs = (0..t.epochs).map(|at| epoch(&t.columns, at)).collect::<Result<Vec<_>, _>>();
                let epochs = epochs.map_err(wrong)?;
                let Tried { learning_rate, verdict, ended, logits_leave, violations, .. } = t;
                Ok(Attempt { learning_rate, epochs, verdict, ended, logits_leave, violations })
            })
            .collect::<Result<_, String>>()?;
        if attempts.is_empty() || attempts.iter().any(|a| a.epochs.is_empty()) {
            return Err(format!("cell {id} has an attempt without an epoch"));
        }
        let (setup, cost, program, drift) = (setup.clone(), self.cost, self.program, self.drift);
        Ok(Cell { schema: SCHEMA, id, setup, attempts, cost, machine, program, drift })
    }
}

impl Timed {
    fn cell(self, setup: &Setup, machines: &[Machine]) -> Result<TimeCell, String> {
        let Timed { configuration, date, machine, program, epochs } = self;
        let machine = machines.get(machine).cloned();
        let machine = machine.ok_or_else(|| format!("timing cell {configuration} names no machine"))?;
        let (schema, setup) = (time_cell::SCHEMA, setup.clone());
        let cell = TimeCell { schema, configuration, setup, epochs, date, machine, program };
        cell.checked().map(|()| cell)
    }
}

fn tried(a: &Attempt) -> Tried {
    let fields = |e: &Epoch| {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(e) else { return Map::new() };
        fields.remove("sketch");
        fields
    };
    let epochs: Vec<Map<_, _>> = a.epochs.iter().map(fields).collect();
    let mut columns = Map::new();
    for name in epochs.first().into_iter().flat_map(Map::keys) {
        let column: Vec<&Value> = epochs.iter().filter_map(|e| e.get(name)).collect();
        if column.iter().any(|v| !v.is_null()) {
            let exact = name == "largest_gradient";
            columns.insert(name.clone(), transposed(&column, &|v| if exact { v.clone() } else { short(v) }));
        }
    }
    Tried {
        learning_rate: a.learning_rate,
        verdict: a.verdict.clone(),
        ended: a.ended.clone(),
        logits_leave: a.logits_leave,
        violations: a.violations.clone(),
        epochs: a.epochs.len(),
        columns: Value::Object(columns),
    }
}

/// One value an epoch as one value of lists: records with the same fields become a record of columns.
fn transposed(values: &[&Value], leaf: &dyn Fn(&Value) -> Value) -> Value {
    let records: Option<Vec<_>> = values.iter().map(|v| v.as_object()).collect();
    match records.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|r| r.keys().eq(first.keys())) => {
            let column = |name: &String| values.iter().map(|v| &v[name]).collect::<Vec<_>>();
            first.keys().map(|name| (name.clone(), transposed(&column(name), leaf))).collect()
        }
        _ => values.iter().map(|v| leaf(v)).collect(),
    }
}

/// The value of one epoch, out of what [`transposed`] made.
fn at(columns: &Value, epoch: usize) -> Value {
    match columns {
        Value::Object(fields) => fields.iter().map(|(name, column)| (name.clone(), at(column, epoch))).collect(),
        Value::Array(values) => values.get(epoch).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

fn epoch(columns: &Value, number: usize) -> Result<Epoch, String> {
    let mut value = at(columns, number);
    value.as_object_mut().ok_or("no columns of epochs")?.insert("sketch".into(), Value::Array(Vec::new()));
    serde_json::from_value(value).map_err(|e| format!("epoch {}: {e}", number + 1))
}

fn six_digits(v: f64) -> f64 {
    format!("{v:.5e}").parse().unwrap_or(v)
}

/// Six significant digits of what is no integer; [`f64::MAX`], which stands for anything not finite, as it is.
fn short(value: &Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            let v = n.as_f64().unwrap_or_default();
            if v.abs() == f64::MAX { value.clone() } else { six_digits(v).into() }
        }
        Value::Object(fields) => fields.iter().map(|(name, v)| (name.clone(), short(v))).collect(),
        Value::Array(values) => values.iter().map(short).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Nearness;
    use super::super::claims::tests::cell;
    use super::super::time_cell::tests::timed;
    use super::super::{claims, table1};
    use super::*;

    /// A secure, an integer and a real cell with everything that a cell can have.
    fn cells() -> Vec<Cell> {
        let mut secure = cell("secure-softmax-l2-prob-s1-e3", &[0.9, 0.1]);
        secure.attempts[0].epochs[0].plain_seconds = Some(1.234_567_89);
        secure.attempts[0].epochs[1].largest_logit = Some(f64::MAX);
        secure.attempts[0].logits_leave = Some(7);
        secure.attempts.push(cell("secure-softmax-l2-prob-s1-e3", &[0.9, 0.95, 0.96]).attempts.remove(0));
        let cost = secure.cost.get_or_insert_default();
        (cost.steps, cost.bytes) = (3, 1 << 40);
        let mut integer = cell("integer-softmax-l2-prob-s1-e3", &[0.9, 0.95, 0.96]);
        for (epoch, e) in integer.attempts[0].epochs.iter_mut().enumerate() {
            e.largest_gradient = Some(1.0 / 3.0);
            e.dead_units = vec![epoch, 2];
            let near = Nearness { error: 1.5, bound: 2.5, closest: 0.6, outside: 0 };
            e.nearness = [("logits".to_owned(), near), ("layer1/dW".to_owned(), near)].into();
        }
        // The range was left: nothing is proven, and the epochs have different fields.
        let mut left = integer.clone();
        left.id.seed = 2;
        left.attempts[0].epochs[2].nearness.clear();
        left.attempts[0].violations.insert("head/sum".into(), 3);
        left.drift = vec![0.25, 0.5];
        let real = cell("real-softmax-l2-s1-e3", &[0.9, 0.95, 0.96]);
        vec![secure, integer, left, real]
    }

    #[test]
    fn what_is_written_is_read_to_six_digits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        let cells = cells();
        let setup = &cells[0].setup;
        let given = Finished { times: vec![timed("softmax-l2-prob", 1.5)], ..Finished::new(setup, &cells) };
        std::fs::write(&path, Record::new(&given).json().unwrap()).unwrap();
        let read = Record::read(&path).unwrap();
        let mut expected = given.clone();
        expected.cells[0].attempts[0].epochs[0].plain_seconds = Some(1.234_57);
        assert_eq!(read, expected);
        assert_eq!(claims::judge(&read, &[]), claims::judge(&given, &[]));
        assert_eq!(table1::rows(&read.cells).len(), table1::rows(&cells).len());
        // Again and again the same bytes.
        let again = Record::new(&read).json().unwrap();
        assert_eq!(again, std::fs::read_to_string(&path).unwrap());
    }

    #[test]
    fn a_file_of_the_first_version_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        let cells = cells();
        let given = Finished::new(&cells[0].setup, &cells[1..]);
        let today = Record::new(&given).json().unwrap();
        let old = today
            .replace("\"schema\": 2", "\"schema\": 1")
            .replace("\"integer-", "\"model-")
            .replace("\"real-", "\"f64-");
        let old = old.replace("\"program\":\"difftest 0\",", "").replace("\"processor\":\"\",", "");
        std::fs::write(&path, old).unwrap();
        let mut read = Record::read(&path).unwrap();
        assert!(read.cells.iter().all(|c| c.program == "not recorded"), "{read:?}");
        read.cells.iter_mut().for_each(|c| c.program = "difftest 0".into());
        assert_eq!(read, given);
        assert_eq!(Record::new(&read).json().unwrap(), today);
    }

    #[test]
    fn twenty_epochs_of_the_grid_are_a_few_hundred_kilobytes() {
        let mut integer = cells().remove(1);
        integer.attempts[0] = cell("integer-softmax-l3-prob-s1-e20", &[0.912_34; 20]).attempts.remove(0);
        for e in &mut integer.attempts[0].epochs {
            (e.seconds, e.loss, e.largest_logit) = (12.345_678, Some(0.123_456_789), Some(23.456_789));
            let near = Nearness { error: 1.234_567_8, bound: 23.456_789, closest: 0.123_456_78, outside: 0 };
            e.nearness =
                ["logits", "head_gradient", "layer1/dW", "layer2/dW", "layer3/dW"].map(|t| (t.into(), near)).into();
        }
        let text = Record::new(&Finished::new(&integer.setup.clone(), &vec![integer; 75])).json().unwrap();
        assert!(text.len() < 400_000, "{} bytes", text.len());
    }

    #[test]
    fn damaged_files_are_refused_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.json");
        let cells = cells();
        let times = vec![timed("softmax-l2-prob", 1.5)];
        let good = Record::new(&Finished { times, ..Finished::new(&cells[0].setup, &cells) }).json().unwrap();
        for (text, words) in [
            (good[..200].to_owned(), "no record of results"),
            (good.replace("\"schema\": 2", "\"schema\": 9"), "schema 9"),
            (good.replace("\"machine\":0", "\"machine\":4"), "names no machine"),
            (good.replace("secure-softmax-l2", "secure-soft-l2"), "is no cell"),
            (good.replace("\"epochs\":3", "\"epochs\":4"), "epoch 4"),
            (good.replace("\"machine\":1", "\"machine\":4"), "timing cell softmax-l2-prob names no machine"),
            (good.replace("\"softmax-l2-prob\"", "\"softmax-l2\""), "is no timing cell"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Record::read(&path).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("--save") && error.lines().count() == 1, "{error}");
        }
        assert!(Record::read(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
