//! A side in training: one of the library's sides with the rows that it trains on. Plaintext sides show their steps as
//! traces; the secure side trains without opening anything, and shows its weights when it is asked for them.

use super::cell::{Cost, Id, Nearness, Sent, Side};
use super::data::Data;
use super::observed::{Observed, shown};
use super::{nearness, published};
use crate::error::Error;
use crate::generate;
use crate::parties::{Processes, processes};
use crate::run::free::Free;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::secure::Secure;
use crate::side::{Opens as _, Shows, Side as _, Trains as _};
use crate::timing::Stopwatch;
use reference::fixed::{Coins, LayerValues};
use reference::spec::TrainSpec;
use std::collections::BTreeMap;

/// One side in training.
pub struct Trainee<'d> {
    side: Trained,
    spec: TrainSpec,
    /// Whether no bound is proven for what it computes.
    unproven: bool,
    data: &'d Data,
}

enum Trained {
    Real(Real),
    /// It stops at the first operand out of range: from there on results depend on masks that it does not have.
    Integer(Integer),
    /// `plain` trains beside it, for its time only.
    Secure {
        secure: Secure,
        plain: Real,
        cost: Cost,
    },
}

impl<'d> Trainee<'d> {
    /// Starts a side from the seed's initial weights.
    ///
    /// # Errors
    /// A network that does not fit the format, a side that cannot start.
    pub fn start(id: &Id, spec: &TrainSpec, data: &'d Data) -> Result<Self, Error> {
        let start = generate::initial(spec, id.seed)?;
        let side = match id.side {
            Side::Real => Trained::Real(Real::new(spec.clone(), &start)?.showing(Shows::Only(shown))),
            Side::Integer => {
                let integer = Integer::with_coins(spec.clone(), Coins::seeded(id.seed))?.showing(Shows::Only(shown));
                let mut integer = if id.code { integer.with_gradient(published::relu_grad) } else { integer };
                integer.load(&start)?;
                Trained::Integer(integer)
            }
            Side::Secure => {
                let mut secure = Secure::start(spec.clone(), None, false)?;
                secure.load(&start)?;
                let rows: Vec<u32> = (0..data.train().len() as u32).collect();
                let units = generate::units(data.train(), &rows, spec.fixed);
                secure.share_data(&units, &generate::labels(data.train(), &rows))?;
                Trained::Secure { secure, plain: Real::new(spec.clone(), &start)?, cost: Cost::default() }
            }
        };
        Ok(Trainee { side, spec: spec.clone(), unproven: id.code, data })
    }

    /// Trains on these batches; `observed` sees what this side can show.
    ///
    /// # Errors
    /// A side that cannot go on.
    pub fn train(&mut self, batches: &[Vec<u32>], observed: &mut Observed) -> Result<(), Error> {
        let fixed = self.spec.fixed;
        let mut run = Free::new(&self.spec, batches.iter().map(|rows| generate::rows(self.data.train(), rows, fixed)));
        match &mut self.side {
            Trained::Real(real) => run.real = Some(real),
            Trained::Integer(integer) => run.integer = Some(integer),
            Trained::Secure { secure, cost, .. } => {
                // Seconds are compared with those of parties in this process only: others' are not measured.
                let watch = Stopwatch::start(match processes() {
                    Processes::Own => Processes::Own,
                    Processes::Here(_) | Processes::Unknown => Processes::Unknown,
                });
                let spent = secure.engine().train(batches)?;
                observed.trained(batches.len(), &watch.stop());
                charge(cost, batches.len(), &spent);
                return Ok(());
            }
        }
        for trace in run {
            observed.see(&trace?);
            if observed.left_range.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Test rows classified correctly.
    ///
    /// # Errors
    /// A side that cannot go on.
    pub fn correct(&mut self) -> Result<usize, Error> {
        match &mut self.side {
            Trained::Real(side) => side.correct(self.data.test()),
            Trained::Integer(side) => side.correct(self.data.test()),
            Trained::Secure { secure, .. } => secure.correct(self.data.test()),
        }
    }

    /// The weights as they are; the secure side opens them.
    ///
    /// # Errors
    /// A side that cannot go on.
    pub fn weights(&mut self) -> Result<Vec<LayerValues>, Error> {
        let parameters = match &mut self.side {
            Trained::Real(side) => return Ok(side.layers()),
            Trained::Integer(side) => side.parameters()?,
            Trained::Secure { secure, .. } => secure.parameters()?,
        };
        Ok(parameters.decode(self.spec.fixed, &self.spec.sgd))
    }

    /// The cost of training so far; `None` on sides that send nothing.
    pub fn cost(&self) -> Option<&Cost> {
        if let Trained::Secure { cost, .. } = &self.side { Some(cost) } else { None }
    }

    /// Seconds of the same steps in real numbers, on the secure side, which has the machine for itself.
    ///
    /// # Errors
    /// Shapes or labels that do not fit.
    pub fn plain_seconds(&mut self, batches: &[Vec<u32>]) -> Result<Option<f64>, Error> {
        let Trained::Secure { plain, .. } = &mut self.side else { return Ok(None) };
        let mut seconds = 0.0;
        for rows in batches {
            seconds += plain.train(&generate::rows(self.data.train(), rows, self.spec.fixed))?;
        }
        Ok(Some(seconds))
    }

    /// Error against real numbers and its bound in one step from the weights as they are; empty where nothing is
    /// proven. Training is not changed.
    ///
    /// # Errors
    /// A side that cannot go on.
    pub fn nearness(&mut self, rows: &[u32]) -> Result<BTreeMap<String, Nearness>, Error> {
        match &mut self.side {
            Trained::Integer(side) if !self.unproven => nearness::of(&self.spec, &side.parameters()?, self.data, rows),
            _ => Ok(BTreeMap::new()),
        }
    }
}

/// Adds what `steps` steps sent.
fn charge(cost: &mut Cost, steps: usize, spent: &secure::cost::Spent) {
    cost.steps += steps as u64;
    cost.rounds += spent.rounds;
    cost.messages += spent.messages;
    cost.bytes += spent.bytes;
    for (step, sent) in &spent.by_step {
        let Sent { rounds, bytes } = cost.by_protocol.entry(step.name().into()).or_default();
        *rounds += sent.rounds;
        *bytes += sent.bytes;
    }
}
