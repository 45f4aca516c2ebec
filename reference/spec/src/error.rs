/// The quantity of a specification that a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// The number of layers.
    Layers,
    /// The width of a layer.
    Width,
    /// The number of classes.
    Classes,
    /// The number of weights.
    Weights,
    /// The number of rows of a batch.
    Batch,
    /// The numbers of a batch in all layers.
    Numbers,
    /// The comparisons of two classes that softmax makes for a batch.
    Pairs,
    /// The learning rate.
    LearningRate,
    /// The momentum.
    Momentum,
    /// The extra bits of a velocity.
    VelocityBits,
    /// The threshold of `relu-prob` and `relu-prob-cut`.
    Epsilon,
    /// The fraction bits of a value.
    FractionBits,
    /// The bits of a value.
    ValueBits,
}

/// A specification that cannot be carried out. It prints as one line: the value that is wrong, and the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The quantity that is beyond its limit.
    pub quantity: Quantity,
    message: String,
}

impl Quantity {
    /// The error of a specification in which this quantity is beyond its limit: `message` names value and limit.
    pub fn refused(self, message: impl Into<String>) -> SpecError {
        SpecError { quantity: self, message: message.into() }
    }
}
