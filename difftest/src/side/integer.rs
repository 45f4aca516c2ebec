//! [`reference::fixed`] as a side.

use super::{Batch, Opens, Side, Spent, Step, Tensors};
use crate::error::Error;
use reference::fixed::{Coins, Model as Fixed, Monitor, Parameters, Replayed, Tape};
use reference::spec::TrainSpec;
use std::time::Instant;

/// Plaintext training in integers, with the coins of a tape, or with its own.
#[derive(Debug)]
pub struct Integer {
    model: Fixed,
    own: Option<Coins>,
    /// Range violations of the last step.
    pub violations: Monitor,
    /// What the last step computed before it was refused; empty after a step that ended.
    pub unfinished: Tensors<i64>,
    /// What the last replayed step truncated, up to where it was refused.
    pub replayed: Vec<Replayed>,
}

impl Integer {
    /// Replays the tapes that it is given.
    ///
    /// # Errors
    /// An invalid specification.
    pub fn replaying(spec: TrainSpec) -> Result<Self, Error> {
        Ok(Integer {
            model: Fixed::new(spec)?,
            own: None,
            violations: Monitor::default(),
            unfinished: Tensors::new(),
            replayed: Vec::new(),
        })
    }

    /// Draws coins of its own from now on, whatever it is given; those that it draws already go on.
    pub fn draw(&mut self, seed: u64) {
        self.own.get_or_insert_with(|| Coins::seeded(seed));
    }

    /// Uses these coins whatever it is given.
    ///
    /// # Errors
    /// An invalid specification.
    pub fn with_coins(spec: TrainSpec, coins: Coins) -> Result<Self, Error> {
        Ok(Integer { own: Some(coins), ..Self::replaying(spec)? })
    }
}

impl Opens for Integer {
    fn parameters(&mut self) -> Result<Parameters, Error> {
        Ok(self.model.parameters().clone())
    }
}

impl Side for Integer {
    type Value = i64;

    fn name(&self) -> &'static str {
        "integer"
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        Ok(self.model.load(parameters.clone())?)
    }

    fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
        let mut tensors = Tensors::new();
        let mut replay = Coins::Observed { tape, seen: Vec::new() };
        let coins = self.own.as_mut().unwrap_or(&mut replay);
        let start = Instant::now();
        let mut probe = |point, tensor: &ndarray::Array2<i64>| {
            tensors.insert(point, tensor.clone());
        };
        let done = self.model.step(&batch.units, &batch.labels, coins, &mut probe);
        self.violations = self.model.monitor_mut().take();
        self.replayed = match replay {
            Coins::Observed { seen, .. } => seen,
            _ => Vec::new(),
        };
        if let Err(refusal) = done {
            self.unfinished = tensors;
            return Err(refusal.into());
        }
        let spent = Spent { seconds: start.elapsed().as_secs_f64(), ..Spent::default() };
        Ok(Step { tensors, tape: Tape::default(), spent })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        let predicted = self.model.predict(&batch.units, &mut Coins::seeded(0))?;
        Ok(predicted.iter().zip(&batch.labels).filter(|(p, l)| p == l).count())
    }
}
