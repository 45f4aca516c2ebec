//! The coins of a recorded step as a side: the integer model replays them.

use super::integer::Integer;
use super::{Batch, Opens, Side, Step};
use crate::error::Error;
use reference::fixed::{Parameters, Tape};
use reference::spec::TrainSpec;

/// Takes one step on recorded coins.
#[derive(Debug)]
pub struct Recorded {
    integer: Integer,
    coins: Tape,
}

impl Recorded {
    /// The side that draws these coins.
    ///
    /// # Errors
    /// An invalid specification.
    pub fn new(spec: TrainSpec, coins: Tape) -> Result<Self, Error> {
        Ok(Recorded { integer: Integer::replaying(spec)?, coins })
    }
}

impl Side for Recorded {
    type Value = i64;

    fn name(&self) -> &'static str {
        "integer"
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        self.integer.load(parameters)
    }

    fn step(&mut self, batch: &Batch, _: Tape) -> Result<Step<i64>, Error> {
        let done = self.integer.step(batch, self.coins.clone())?;
        Ok(Step { tape: self.coins.clone(), ..done })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        self.integer.correct(batch)
    }
}

impl Opens for Recorded {
    fn parameters(&mut self) -> Result<Parameters, Error> {
        self.integer.parameters()
    }
}
