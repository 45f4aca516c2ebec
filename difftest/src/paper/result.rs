//! The findings of an evaluation: tables, claims and curves, from finished cells only; as text, JSON and CSV.

use super::cell::{Cell, Epoch, Nearness, Setup, Side};
use super::claims::{self, Claim};
use super::compared::Compared;
use super::explain::explained;
use super::finished::Finished;
use super::machine::{Machine, program};
use super::{table1, table2};
use crate::bound::sketch;
use crate::error::Error;
use reference::spec::NetworkSpec;
use serde::Serialize;

/// Version of `report.json`: raised when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 2;

/// One epoch of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The text of the cell's identity.
    pub cell: String,
    /// The number, counted from 1.
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
    /// The largest |logit|, real.
    pub largest_logit: Option<f64>,
    /// The largest |weight|, real.
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
    /// The cell in real numbers of the same configuration.
    pub with: String,
    /// The number, counted from 1.
    pub epoch: usize,
    /// Estimated root mean square of the differences of all weights, real; relative standard error 6 %.
    pub weights: f64,
    /// Difference of the accuracies, points.
    pub accuracy: f64,
}

/// Error of the integer side against real numbers beside its bound, in one step from the weights at the end of an
/// epoch; first attempts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// The text of the cell's identity.
    pub cell: String,
    /// The number, counted from 1.
    pub epoch: usize,
    /// The name of the tensor.
    pub tensor: String,
    /// The numbers, units of 2^-f.
    #[serde(flatten)]
    pub nearness: Nearness,
}

/// Everything that an evaluation found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// The version of the JSON, [`SCHEMA`].
    pub schema: u32,
    /// Name and version of the program that made the report; each cell has that of the program that trained it.
    pub program: String,
    /// Of all cells.
    pub setup: Setup,
    /// Where cells ran, each once.
    pub machines: Vec<Machine>,
    /// The texts of the finished cells.
    pub cells: Vec<String>,
    /// Configurations timed by themselves.
    pub times: Vec<String>,
    /// Table 1 beside the paper's.
    pub table1: Vec<Compared>,
    /// Table 1 by side, with what happened at each learning rate.
    pub sides: Vec<table1::Row>,
    /// The rows of table 2.
    pub table2: Vec<table2::Row>,
    /// The claims with their verdicts.
    pub claims: Vec<Claim>,
    /// The points of the curves, one an epoch.
    pub curves: Vec<Point>,
    /// Secure and integer against real numbers, first attempts.
    pub drift: Vec<Drift>,
    /// Error against its bound of each integer cell.
    pub nearness: Vec<Near>,
    /// The messages and bytes of a training step of each secure cell, by protocol.
    pub protocols: Vec<Protocol>,
}

/// A protocol's share of a training step of one cell, all parties.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Protocol {
    /// The text of the cell's identity.
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
    pub fn new(finished: &Finished) -> Result<Self, Error> {
        let table2 = table2::rows()?;
        let Finished { setup, cells, times } = finished;
        Ok(Findings {
            schema: SCHEMA,
            program: program(),
            machines: finished.machines(),
            cells: cells.iter().map(|c| c.id.to_string()).collect(),
            times: times.iter().map(|t| t.configuration.clone()).collect(),
            table1: explained(cells, times),
            sides: table1::rows(cells),
            claims: claims::judge(finished, &table2),
            table2,
            curves: cells.iter().flat_map(curve).collect(),
            drift: cells.iter().flat_map(|c| drift(c, cells)).collect(),
            nearness: cells.iter().flat_map(nearness).collect(),
            protocols: cells.iter().flat_map(protocols).collect(),
            setup: setup.clone(),
        })
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

/// How far a secure or integer cell is from the cell in real numbers of the same configuration, by epoch.
pub fn drift(cell: &Cell, cells: &[Cell]) -> Vec<Drift> {
    let partner = cell.id.on(Side::Real);
    let Some(real) = cells.iter().find(|c| c.id == partner && cell.id.side != Side::Real) else { return Vec::new() };
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

#[cfg(test)]
mod tests {
    use super::super::claims::tests::cell;
    use super::*;
    use serde_json::Value;

    #[test]
    fn drift_is_told_against_real_numbers_and_costs_by_the_step() {
        let mut secure = cell("secure-softmax-l1-prob-s1-e2", &[0.5, 0.7]);
        let mut real = cell("real-softmax-l1-s1-e2", &[0.5, 0.6]);
        secure.attempts[0].epochs[1].sketch = vec![1.0; sketch::WIDTH];
        real.attempts[0].epochs[1].sketch = vec![0.0; sketch::WIDTH];
        let cost = secure.cost.get_or_insert_default();
        (cost.steps, cost.rounds, cost.bytes) = (10, 400, 1000);
        cost.by_protocol.insert("adder".into(), super::super::cell::Sent { rounds: 70, bytes: 500 });
        let found = Findings::new(&Finished::new(&secure.setup.clone(), &[real, secure])).unwrap();
        let [drift] = &found.drift[..] else { panic!("{:?}", found.drift) };
        assert_eq!((drift.epoch, (drift.accuracy * 10.0).round()), (2, 100.0));
        assert!((drift.weights - (1.0f64 / 7850.0).sqrt()).abs() < 1e-12);
        let told: Vec<_> = found.protocols.iter().map(|p| (p.protocol.as_str(), p.rounds, p.bytes)).collect();
        assert_eq!(told, [("all", 40.0, 100.0), ("adder", 7.0, 50.0)]);

        let dir = tempfile::tempdir().unwrap();
        super::super::report::write(&found, dir.path()).unwrap();
        let json: Value = serde_json::from_slice(&std::fs::read(dir.path().join("report.json")).unwrap()).unwrap();
        assert_eq!((&json["schema"], json["table2"].as_array().unwrap().len()), (&Value::from(2), 5));
        let curves = std::fs::read_to_string(dir.path().join("curves.csv")).unwrap();
        assert_eq!(curves.lines().count(), 5, "{curves}");
        assert!(super::super::text::text(&found).contains("not tested"));
    }
}
