//! What an evaluation found: tables, claims and curves, from finished cells only; as text, JSON and CSV.

use super::cell::{Cell, Epoch, Id, Machine, Nearness, Setup, Side};
use super::claims::{self, Claim};
use super::{sketch, table1, table2};
use crate::error::Error;
use crate::output;
#[cfg(feature = "html")]
use crate::report;
use reference::spec::{NetworkSpec, Rounding};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Version of `report.json`: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// One epoch of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Which cell.
    pub cell: String,
    /// From 1.
    pub attempt: usize,
    /// Of the attempt.
    pub learning_rate: f64,
    /// From 1, in this attempt.
    pub epoch: usize,
    /// Seconds of training up to its end, earlier attempts included.
    pub seconds: f64,
    /// Test accuracy, percent.
    pub accuracy: f64,
    /// Mean training loss of rows with a finite loss.
    pub loss: Option<f64>,
    /// Training rows with an infinite loss.
    pub infinite_losses: Option<usize>,
    /// Largest |logit|.
    pub largest_logit: Option<f64>,
    /// Largest |weight|.
    pub largest_weight: Option<f64>,
    /// Largest |gradient| of the head.
    pub largest_gradient: Option<f64>,
    /// Dead units, all hidden layers.
    pub dead_units: Option<usize>,
}

/// How far two sides have come apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// The cell that is compared.
    pub cell: String,
    /// The f64 cell of the same configuration.
    pub with: String,
    /// From 1.
    pub epoch: usize,
    /// Estimated root mean square of the differences of all weights, real; relative standard error 6 %.
    pub weights: f64,
    /// Difference of the accuracies, points.
    pub accuracy: f64,
}

/// Error of the integer model against f64 beside its bound, in one step from the weights at the end of an epoch; first attempts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Which cell.
    pub cell: String,
    /// From 1.
    pub epoch: usize,
    /// Which tensor.
    pub tensor: String,
    /// The numbers, units of 2^-f.
    #[serde(flatten)]
    pub nearness: Nearness,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Of all cells.
    pub setup: Setup,
    /// Where cells ran, each once.
    pub machines: Vec<Machine>,
    /// Finished cells.
    pub cells: Vec<String>,
    /// Table 1.
    pub table1: Vec<table1::Row>,
    /// Table 2.
    pub table2: Vec<table2::Row>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Every epoch.
    pub curves: Vec<Point>,
    /// Secure and model against f64, first attempts.
    pub drift: Vec<Drift>,
    /// Error against its bound of each model cell.
    pub nearness: Vec<Near>,
    /// What a training step of each secure cell sent, by protocol.
    pub protocols: Vec<Protocol>,
}

/// A protocol's share of a training step of one cell, all parties.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Protocol {
    /// Which cell.
    pub cell: String,
    /// Name of the protocol; `all` for the whole step.
    pub protocol: String,
    /// Rounds a step in which it takes part; protocols share rounds, so these do not add up.
    pub rounds: f64,
    /// Bytes a step.
    pub bytes: f64,
}

impl Findings {
    /// From finished cells of one setup.
    ///
    /// # Errors
    /// Table 2 needs three parties for a moment, which may fail to start.
    pub fn new(setup: Setup, cells: &[Cell]) -> Result<Self, Error> {
        Ok(Findings {
            schema: SCHEMA,
            machines: machines(cells),
            cells: cells.iter().map(|c| c.id.to_string()).collect(),
            table1: table1::rows(cells),
            table2: table2::rows()?,
            claims: claims::judge(&setup, cells),
            curves: cells.iter().flat_map(curve).collect(),
            drift: cells.iter().flat_map(|c| drift(c, cells)).collect(),
            nearness: cells.iter().flat_map(nearness).collect(),
            protocols: cells.iter().flat_map(protocols).collect(),
            setup,
        })
    }

    /// Writes `report.json`, the CSVs and `report.html` into `dir`.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::Usage(format!("report.json: {e}")))?;
        output::write(&dir.join("report.json"), (json + "\n").as_bytes())?;
        let rates: Vec<_> = self.table1.iter().flat_map(|r| &r.rates).collect();
        for (name, text) in [
            ("table1.csv", csv(&self.table1)),
            ("rates.csv", csv(&rates)),
            ("table2.csv", csv(&self.table2)),
            ("claims.csv", csv(&self.claims)),
            ("curves.csv", csv(&self.curves)),
            ("drift.csv", csv(&self.drift)),
            ("nearness.csv", csv(&self.nearness)),
            ("protocols.csv", csv(&self.protocols)),
        ] {
            output::write(&dir.join(name), text.as_bytes())?;
        }
        #[cfg(feature = "html")]
        output::write(&dir.join("report.html"), report::html::paper(self).as_bytes())?;
        Ok(())
    }

    /// Table 1 and the claims, for a terminal.
    pub fn text(&self) -> String {
        let mut out = String::from("\nTable 1: seconds of an epoch, test accuracy in % after epochs ");
        out.push_str(&table1::checkpoints().map(|e| e.to_string()).join(", "));
        out.push_str(&format!(
            "\n{:7} {:6} {:8} {:14} {:>9} {:>7} {:>7} {:>7} {:>7}  outcome\n",
            "side", "layers", "rounding", "head", "s/epoch", "", "", "", ""
        ));
        for r in &self.table1 {
            let number = |v: Option<table1::Measured>| v.map_or("-".into(), |m| format!("{:.2}", m.value));
            let [a, b, c, d] = r.accuracy.map(number);
            let rounding = r.rounding.map_or("-", Rounding::name);
            let (side, head, layers, seconds) = (r.side, r.head, r.layers, number(r.seconds_per_epoch));
            let extra =
                if r.velocity_bits > 0 { format!(" (velocity bits {})", r.velocity_bits) } else { String::new() };
            let outcome = &r.outcome;
            out.push_str(&format!(
                "{side:7} {layers:6} {rounding:8} {head:14} {seconds:>9} {a:>7} {b:>7} {c:>7} {d:>7}  {outcome}{extra}\n"
            ));
        }
        out.push_str("\nClaims\n");
        for claim in &self.claims {
            out.push_str(&format!("{:10} {}: {}\n", claim.verdict.to_string(), claim.name, claim.statement));
            claim.numbers.iter().for_each(|n| out.push_str(&format!("{:10}   {n}\n", "")));
        }
        out
    }
}

fn curve(cell: &Cell) -> Vec<Point> {
    let mut seconds = 0.0;
    let mut points = Vec::new();
    for (attempt, a) in (1..).zip(&cell.attempts) {
        for (epoch, e) in (1..).zip(&a.epochs) {
            seconds += e.seconds;
            points.push(Point {
                cell: cell.id.to_string(),
                attempt,
                learning_rate: a.learning_rate,
                epoch,
                seconds,
                accuracy: 100.0 * e.accuracy(&cell.setup),
                loss: e.loss,
                infinite_losses: e.infinite_losses,
                largest_logit: e.largest_logit,
                largest_weight: e.largest_weight,
                largest_gradient: e.largest_gradient,
                dead_units: Some(e.dead_units.iter().sum()),
            });
        }
    }
    points
}

fn nearness(cell: &Cell) -> impl Iterator<Item = Near> {
    let near = |(epoch, e): (usize, &Epoch)| -> Vec<Near> {
        let row = |(tensor, n): (&String, &Nearness)| Near {
            cell: cell.id.to_string(),
            epoch,
            tensor: tensor.clone(),
            nearness: *n,
        };
        e.nearness.iter().map(row).collect()
    };
    (1..).zip(&cell.attempts[0].epochs).flat_map(near)
}

/// Where cells ran, each once.
pub fn machines(cells: &[Cell]) -> Vec<Machine> {
    let mut machines: Vec<Machine> = Vec::new();
    for cell in cells {
        if !machines.contains(&cell.machine) {
            machines.push(cell.machine.clone());
        }
    }
    machines
}

/// How far a secure or model cell is from the f64 cell of the same configuration, by epoch.
pub fn drift(cell: &Cell, cells: &[Cell]) -> Vec<Drift> {
    let partner = Id { side: Side::F64, rounding: None, velocity_bits: 0, ..cell.id.clone() };
    let Some(real) = cells.iter().find(|c| c.id == partner && cell.id.side != Side::F64) else { return Vec::new() };
    let setup = &cell.setup;
    let network = NetworkSpec::dense(setup.inputs, setup.hidden, setup.classes, cell.id.layers);
    let weights: usize = (1..=network.layers()).map(|l| network.shape(l)).map(|(i, o)| (i + 1) * o).sum();
    let epochs = (1..).zip(cell.attempts[0].epochs.iter().zip(&real.attempts[0].epochs));
    epochs
        .filter_map(|(epoch, (ours, theirs))| {
            Some(Drift {
                cell: cell.id.to_string(),
                with: real.id.to_string(),
                epoch,
                weights: sketch::distance(&ours.sketch, &theirs.sketch, weights)?,
                accuracy: 100.0 * (ours.accuracy(setup) - theirs.accuracy(setup)),
            })
        })
        .collect()
}

fn protocols(cell: &Cell) -> Vec<Protocol> {
    let Some(cost) = cell.cost.as_ref().filter(|c| c.steps > 0) else { return Vec::new() };
    let per_step = |n: u64| n as f64 / cost.steps as f64;
    let row = |protocol: &str, rounds, bytes| Protocol {
        cell: cell.id.to_string(),
        protocol: protocol.into(),
        rounds: per_step(rounds),
        bytes: per_step(bytes),
    };
    let parts = cost.by_protocol.iter().map(|(name, s)| row(name, s.rounds, s.bytes));
    std::iter::once(row("all", cost.rounds, cost.bytes)).chain(parts).collect()
}

/// Rows as CSV (RFC 4180): nested fields are named `outer.inner`, elements of lists by their position; lists of records are left out, they have
/// files of their own. An empty field is a value that is not available.
pub fn csv<T: Serialize>(rows: &[T]) -> String {
    let mut table: Vec<Vec<(String, String)>> = Vec::new();
    for row in rows {
        let mut fields = Vec::new();
        if let Ok(value) = serde_json::to_value(row) {
            flatten(String::new(), &value, &mut fields);
        }
        table.push(fields);
    }
    // Lists may differ in length from row to row: all columns, in order of first appearance.
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in table.iter().flatten() {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    // A null list or record has no columns of its own.
    columns.retain(|c| !columns_inside(c, &table));
    let line = |cells: Vec<&str>| cells.into_iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n";
    let mut out = line(columns.iter().map(String::as_str).collect());
    for row in &table {
        let field = |c: &String| row.iter().find(|(name, _)| name == c).map_or("", |(_, v)| v.as_str());
        out.push_str(&line(columns.iter().map(field).collect()));
    }
    out
}

fn columns_inside(column: &str, table: &[Vec<(String, String)>]) -> bool {
    table.iter().flatten().any(|(name, _)| name.strip_prefix(column).is_some_and(|rest| rest.starts_with('.')))
}

fn flatten(name: String, value: &Value, fields: &mut Vec<(String, String)>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(inner(k), v, fields)),
        Value::Array(items) if items.iter().any(|i| i.get("cell").is_some()) => {}
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| flatten(inner(&i.to_string()), v, fields)),
        Value::Null => fields.push((name, String::new())),
        Value::String(s) => fields.push((name, s.clone())),
        other => fields.push((name, other.to_string())),
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::*;

    #[test]
    fn csv_quotes_and_flattens() {
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
            pair: [Option<f64>; 2],
            measured: Option<table1::Measured>,
        }
        let measured = Some(table1::Measured { value: 1.5, error: 0.25 });
        let rows = [
            Row { name: "a,\"b\"", pair: [Some(1.0), None], measured: None },
            Row { name: "c", pair: [None, Some(2.0)], measured },
        ];
        assert_eq!(
            csv(&rows),
            "name,pair.0,pair.1,measured.error,measured.value\r\n\"a,\"\"b\"\"\",1.0,,,\r\nc,,2.0,0.25,1.5\r\n"
        );
    }

    #[test]
    fn drift_is_told_against_f64_and_costs_by_the_step() {
        let mut secure = cell("secure-softmax-l1-prob-s1-e2", &[0.5, 0.7]);
        let mut real = cell("f64-softmax-l1-s1-e2", &[0.5, 0.6]);
        secure.attempts[0].epochs[1].sketch = vec![1.0; sketch::WIDTH];
        real.attempts[0].epochs[1].sketch = vec![0.0; sketch::WIDTH];
        let cost = secure.cost.get_or_insert_default();
        (cost.steps, cost.rounds, cost.bytes) = (10, 400, 1000);
        cost.by_protocol.insert("adder".into(), super::super::cell::Sent { rounds: 70, bytes: 500 });
        let found = Findings::new(secure.setup.clone(), &[real, secure]).unwrap();
        let [drift] = &found.drift[..] else { panic!("{:?}", found.drift) };
        assert_eq!((drift.epoch, (drift.accuracy * 10.0).round()), (2, 100.0));
        assert!((drift.weights - (1.0f64 / 7850.0).sqrt()).abs() < 1e-12);
        let told: Vec<_> = found.protocols.iter().map(|p| (p.protocol.as_str(), p.rounds, p.bytes)).collect();
        assert_eq!(told, [("all", 40.0, 100.0), ("adder", 7.0, 50.0)]);

        let dir = tempfile::tempdir().unwrap();
        found.write(dir.path()).unwrap();
        let json: Value = serde_json::from_slice(&std::fs::read(dir.path().join("report.json")).unwrap()).unwrap();
        assert_eq!((&json["schema"], json["table2"].as_array().unwrap().len()), (&Value::from(1), 5));
        let curves = std::fs::read_to_string(dir.path().join("curves.csv")).unwrap();
        assert_eq!(curves.lines().count(), 5, "{curves}");
        assert!(found.text().contains("NOT TESTED"));
    }
}
