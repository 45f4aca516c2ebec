//! [`reference::fixed`] as a side.

use super::{Batch, Opens, Probe, Shows, Side, Step, Tensors};
use crate::error::Error;
use ndarray::Array2;
use reference::fixed::heads::{Gradient, Rows};
use reference::fixed::{
    Arithmetic, Coins, Model as Fixed, ModelError, Monitor, Parameters, Probe as See, Replayed, Tape,
};
use reference::spec::TrainSpec;

/// A gradient of a head, (batch, classes) of logits at scale f, in place of the specified head's.
pub type HeadGradient = fn(&mut Arithmetic, Rows, See) -> Result<Gradient, ModelError>;

/// Plaintext training in integers, with the coins of a tape, or with its own.
#[derive(Debug)]
pub struct Integer {
    model: Fixed,
    own: Option<Coins>,
    gradient: Option<HeadGradient>,
    shows: Shows,
    /// Range violations of the last step.
    pub violations: Monitor,
    /// The tensors that the last step computed before it was refused; empty after a step that ended.
    pub unfinished: Tensors<i64>,
    /// The truncations of the last replayed step, up to where it was refused.
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
            gradient: None,
            shows: Shows::Everything,
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

    /// Trains with this gradient instead of the specified head's.
    pub fn with_gradient(self, gradient: HeadGradient) -> Self {
        Integer { gradient: Some(gradient), ..self }
    }

    /// Changes which tensors its steps show.
    pub fn showing(self, shows: Shows) -> Self {
        Integer { shows, ..self }
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
        let mut replay = Coins::Observed { tape, seen: Vec::new() };
        let coins = self.own.as_mut().unwrap_or(&mut replay);
        let mut probe = Probe::start(self.shows);
        let see = &mut |point, tensor: &Array2<i64>| probe.see(point, tensor);
        let (x, labels) = (&batch.units, &batch.labels);
        let done = match self.gradient {
            Some(gradient) => self.model.step_with(x, labels, coins, see, &gradient),
            None => self.model.step(x, labels, coins, see),
        };
        let spent = probe.spent();
        self.violations = self.model.monitor_mut().take();
        self.replayed = match replay {
            Coins::Observed { seen, .. } => seen,
            _ => Vec::new(),
        };
        if let Err(refusal) = done {
            self.unfinished = probe.tensors;
            return Err(refusal.into());
        }
        Ok(Step { tensors: probe.tensors, tape: Tape::default(), spent })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        // Evaluation has coins of its own, so that it does not change the training, and its violations are none of the
        // training's.
        let seen = self.model.monitor_mut().take();
        let predicted = self.model.predict(&batch.units, &mut Coins::seeded(0));
        *self.model.monitor_mut() = seen;
        Ok(predicted?.iter().zip(&batch.labels).filter(|(p, l)| p == l).count())
    }
}
