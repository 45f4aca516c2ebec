use crate::{Quantity, SpecError};
use serde::{Deserialize, Serialize};

/// Dense layers with ReLU between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    /// Input width, hidden widths, class count: n layers have n + 1 entries.
    pub widths: Vec<usize>,
}

impl NetworkSpec {
    /// Weights that a run on all sides holds in about 16 GiB.
    pub const MOST_WEIGHTS: u64 = 1 << 25;

    /// The paper's networks: `layers` dense layers, hidden layers of `hidden` units.
    pub fn dense(inputs: usize, hidden: usize, classes: usize, layers: usize) -> Self {
        let mut widths = vec![inputs];
        widths.extend(std::iter::repeat_n(hidden, layers.saturating_sub(1)));
        widths.push(classes);
        NetworkSpec { widths }
    }

    /// Number of dense layers.
    pub fn layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// (inputs, outputs) of layer `l`, counted from 1.
    pub fn shape(&self, l: usize) -> (usize, usize) {
        (self.widths[l - 1], self.widths[l])
    }

    /// L, the width of the last layer.
    pub fn classes(&self) -> usize {
        *self.widths.last().expect("validated: at least two widths")
    }

    /// Width of the data.
    pub fn inputs(&self) -> usize {
        self.widths[0]
    }

    /// Checks: at least one layer, no empty layer, at least two classes, sizes that memory allows.
    ///
    /// # Errors
    /// Names the layer and the limit.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.widths.len() < 2 {
            return Err(Quantity::Layers.refused("layers is 0; a network has at least 1"));
        }
        if let Some(l) = self.widths.iter().position(|&w| w == 0 || w > 1 << 20) {
            return Err(Quantity::Width.refused(format!(
                "width {l} is {}; widths are 1 to {}",
                self.widths[l],
                1 << 20
            )));
        }
        if self.classes() < 2 || self.classes() > 4096 {
            return Err(Quantity::Classes.refused(format!("class count is {}; it must be 2 to 4096", self.classes())));
        }
        let weights: u64 = self.widths.windows(2).map(|w| w[0] as u64 * w[1] as u64).sum();
        if weights > Self::MOST_WEIGHTS {
            return Err(Quantity::Weights
                .refused(format!("the network has {weights} weights; it may have {}", Self::MOST_WEIGHTS)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_network_that_no_memory_holds_is_refused_by_its_size() {
        assert_eq!(NetworkSpec::dense(784, 4096, 10, 3).validate(), Ok(()));
        let error = NetworkSpec::dense(784, 1 << 20, 10, 3).validate().unwrap_err();
        assert!(error.to_string().contains("weights; it may have 33554432"), "{error}");
    }
}
