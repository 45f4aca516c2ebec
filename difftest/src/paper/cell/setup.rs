//! The settings of an evaluation, and the specification of each of its cells.

use super::id::{Id, RATE_UNIT};
use crate::error::Error;
use reference::spec::{FixedSpec, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use serde::{Deserialize, Serialize};

/// The settings that all cells of one evaluation have in common. Cells with different setups are never put into one
/// table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Width of the data.
    pub inputs: usize,
    /// ReLU units of a hidden layer.
    pub hidden: usize,
    /// The number of classes.
    pub classes: usize,
    /// The threshold eps, real.
    pub epsilon: f64,
    /// Learning rate of the first attempt.
    pub learning_rate: f64,
    /// The momentum, real.
    pub momentum: f64,
    /// Rows of a step.
    pub batch: usize,
    /// How often the rate is halved at most.
    pub restarts: usize,
    /// Rows of an epoch.
    pub train_rows: usize,
    /// Rows that accuracy is measured on.
    pub test_rows: usize,
    /// SHA-256 of all pixels and labels used.
    pub data: String,
}

impl Setup {
    /// The specification of a cell at a learning rate. The real side takes its regulariser and the encoding of its
    /// start from the format.
    ///
    /// # Errors
    /// The first limit that is broken; a rate that rounds to 0 in fixed point is one.
    pub fn spec(&self, id: &Id, learning_rate: f64) -> Result<TrainSpec, Error> {
        let spec = TrainSpec {
            network: NetworkSpec::dense(self.inputs, self.hidden, self.classes, id.layers),
            head: id.head,
            epsilon: self.epsilon,
            rounding: id.rounding.unwrap_or(Rounding::Nearest),
            fixed: FixedSpec::default(),
            sgd: SgdSpec {
                learning_rate,
                momentum: self.momentum,
                batch: self.batch,
                extra_velocity_bits: id.velocity_bits,
            },
        };
        spec.validate()?;
        Ok(spec)
    }

    /// The learning rate of a cell's first attempt.
    pub fn first_rate(&self, id: &Id) -> f64 {
        id.rate.map_or(self.learning_rate, |r| f64::from(r) * RATE_UNIT)
    }

    /// The first setting in which two setups differ: its name and both values.
    pub fn difference(&self, other: &Setup) -> Option<String> {
        let fields = |s| serde_json::to_value(s).ok().and_then(|v| v.as_object().cloned()).unwrap_or_default();
        let (mine, theirs) = (fields(self), fields(other));
        let differs = mine.into_iter().find(|(name, value)| theirs.get(name) != Some(value));
        differs
            .map(|(name, value)| format!("{name} {value} against {}", theirs.get(&name).cloned().unwrap_or_default()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A setup that a test can run in a moment.
    pub(crate) fn setup() -> Setup {
        Setup {
            inputs: 784,
            hidden: 16,
            classes: 10,
            epsilon: 0.1,
            learning_rate: 0.01,
            momentum: 0.9,
            batch: 16,
            restarts: 3,
            train_rows: 64,
            test_rows: 50,
            data: "test".into(),
        }
    }

    #[test]
    fn setups_name_what_differs() {
        assert_eq!(setup().difference(&setup()), None);
        let other = Setup { restarts: 4, ..setup() };
        assert_eq!(setup().difference(&other).unwrap(), "restarts 3 against 4");
    }
}
