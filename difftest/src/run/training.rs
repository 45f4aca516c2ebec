//! How the training of every side went, gathered over the steps of a run: divergence, health and cost.

use crate::check::divergence::{Divergence, Ending, Verdict};
use crate::error::Error;
use crate::explain::health::Health;
use crate::side::Spent;
use crate::trace::Trace;
use reference::spec::TrainSpec;

/// The evidence of a run's training so far, in the order real, integer, tested.
#[derive(Debug)]
pub struct Training {
    /// Evidence for what became of each side.
    pub divergence: Divergence,
    /// Losses, largest values and updates of each side.
    pub health: [Health; 3],
    /// Sums over all complete steps.
    pub spent: [Spent; 3],
    /// The number of steps begun.
    pub steps: usize,
}

impl Training {
    /// Nothing seen yet of the sides with these names.
    pub fn new(names: [&'static str; 3], spec: &TrainSpec) -> Self {
        let health = names.map(|name| Health::new(name, spec));
        Training { divergence: Divergence::new(names, spec), health, spent: [Spent::default(); 3], steps: 0 }
    }

    /// Looks at one step.
    ///
    /// # Errors
    /// Labels that do not fit.
    pub fn see(&mut self, trace: &Trace) -> Result<(), Error> {
        self.steps += 1;
        if !trace.complete() {
            return Ok(());
        }
        self.divergence.see(trace);
        for (total, one) in self.spent.iter_mut().zip(trace.spent()) {
            *total += one;
        }
        let (spec, labels) = (&trace.spec, &trace.batch.labels);
        let [real, integer, tested] = &mut self.health;
        real.reals(spec, labels, &trace.real.tensors)?;
        integer.units(spec, labels, &trace.integer.tensors)?;
        tested.units(spec, labels, &trace.tested.tensors)
    }

    /// The verdict on each side, and its health with the accuracy at the end.
    pub fn finish(mut self, end: &Ending) -> (Vec<(&'static str, Verdict)>, [Health; 3]) {
        for (health, accuracy) in self.health.iter_mut().zip(end.accuracy) {
            health.accuracy = accuracy;
        }
        (self.divergence.verdicts(end), self.health)
    }
}
