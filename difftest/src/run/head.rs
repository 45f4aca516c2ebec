//! One evaluation of an output head on given logits: by the three parties, and by the integer model on the coins that
//! they drew.

use crate::error::Error;
use crate::side::flat;
use crate::side::secure::tape;
use ndarray::Array2;
use reference::fixed::heads::HeadUnits;
use reference::fixed::{Coins, Model, Monitor};
use reference::spec::TrainSpec;
use secure::engine::EngineConfig;
use secure::opened::HeadReport;

/// The answers of both fixed-point sides to one batch of logits.
#[derive(Debug)]
pub struct HeadTrace {
    /// The integer side's answer, or why it cannot have drawn the parties' coins.
    pub integer: Result<HeadUnits, Error>,
    /// The secure side's answer, opened.
    pub secure: HeadReport,
    /// Operands of the integer side that left their range.
    pub violations: Monitor,
}

impl HeadTrace {
    /// Evaluates the head of `spec` on `logits`, (rows, classes), scale f. With `insecure_seed` the parties' randomness
    /// follows from it.
    ///
    /// # Errors
    /// Shapes or labels that do not fit; parties that cannot go on.
    pub fn of(
        spec: &TrainSpec,
        logits: &Array2<i64>,
        labels: &[usize],
        insecure_seed: Option<u64>,
    ) -> Result<Self, Error> {
        let config = EngineConfig { seed: insecure_seed, record: true, ..EngineConfig::new(spec.clone()) };
        let mut engine = crate::parties::start(config)?;
        let mut secure = engine.head(&flat(logits), logits.ncols(), labels)?;
        let mut model = Model::new(spec.clone())?;
        let mut coins = Coins::Tape(tape(std::mem::take(&mut secure.rounding)));
        let integer = model.head(logits, labels, &mut coins).map_err(Error::from);
        Ok(HeadTrace { integer, secure, violations: model.monitor_mut().take() })
    }

    /// Whether both answers are the same, bit for bit.
    pub fn bit_exact(&self) -> bool {
        self.integer.as_ref().is_ok_and(|integer| {
            integer.gradient.iter().eq(&self.secure.gradient)
                && integer.probabilities.iter().eq(&self.secure.probabilities)
                && integer.loss == self.secure.loss
        })
    }
}
