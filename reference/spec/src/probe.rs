use crate::FixedSpec;
use serde::{Deserialize, Serialize};

/// A named tensor of one training step that can be compared between the three sides. Layers count from 1.
///
/// Points are ordered as a step computes them (forward, head, backward from the last layer, update), so that of several
/// tensors that differ the first is the cause of the later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProbePoint {
    /// Z_l of a hidden layer, (batch, out), scale f.
    PreActivation(usize),
    /// X_l = ReLU(Z_l), (batch, out), scale f.
    Activation(usize),
    /// Z_n, (batch, classes), scale f.
    Logits,
    /// An intermediate of the head.
    Head(HeadPoint),
    /// G, (batch, classes), scale f.
    HeadGradient,
    /// G_{l} of hidden layer l after its mask, (batch, out), scale f.
    ActivationGradient(usize),
    /// dW_l, (in, out), scale 2f (unreduced).
    WeightGradient(usize),
    /// db_l, (1, out), scale f.
    BiasGradient(usize),
    /// V_W of layer l after the update, (in, out), scale f + extra velocity bits.
    WeightVelocity(usize),
    /// V_b of layer l after the update, (1, out), scale f + extra velocity bits.
    BiasVelocity(usize),
    /// W_l after the update, (in, out), scale f.
    Weights(usize),
    /// b_l after the update, (1, out), scale f.
    Bias(usize),
}

/// An intermediate tensor of a head, in the names of section 9 of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HeadPoint {
    /// softmax: max, (batch, 1), scale f.
    Maximum,
    /// softmax: v = exp(x - max), (batch, classes), scale f.
    Exp,
    /// S or T, (batch, 1), scale f.
    Sum,
    /// relu heads: r = ReLU(x), or a x for `relu-prob-cut`, (batch, classes), scale f.
    Positive,
    /// relu-prob, relu-prob-cut, relu-eps: reciprocals of S (or T), then of z, (2 batch, 1), scale f.
    Reciprocal,
    /// softmax, relu-grad: p or q, (batch, classes), scale f.
    Quotient,
}

/// The probe points of one parameter tensor: its gradient, and its velocity and value after the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterPoints {
    /// The gradient of the loss.
    pub gradient: ProbePoint,
    /// The velocity after the update.
    pub velocity: ProbePoint,
    /// The value after the update.
    pub value: ProbePoint,
}

impl ParameterPoints {
    /// The points of the weights of layer `l`.
    pub const fn weights(l: usize) -> Self {
        let (gradient, velocity) = (ProbePoint::WeightGradient(l), ProbePoint::WeightVelocity(l));
        ParameterPoints { gradient, velocity, value: ProbePoint::Weights(l) }
    }

    /// The points of the bias of layer `l`.
    pub const fn bias(l: usize) -> Self {
        let (gradient, velocity) = (ProbePoint::BiasGradient(l), ProbePoint::BiasVelocity(l));
        ParameterPoints { gradient, velocity, value: ProbePoint::Bias(l) }
    }
}

impl ProbePoint {
    /// Part of the step, layer in the order of the walk, place within the layer.
    fn order(&self) -> (u8, usize, u8) {
        let backward = |layer: usize, place| (4, usize::MAX - layer, place);
        match *self {
            ProbePoint::PreActivation(l) => (0, l, 0),
            ProbePoint::Activation(l) => (0, l, 1),
            ProbePoint::Logits => (1, 0, 0),
            ProbePoint::Head(HeadPoint::Maximum) => (2, 0, 0),
            ProbePoint::Head(HeadPoint::Positive) => (2, 0, 1),
            ProbePoint::Head(HeadPoint::Exp) => (2, 1, 0),
            ProbePoint::Head(HeadPoint::Sum) => (2, 2, 0),
            ProbePoint::Head(HeadPoint::Quotient) => (2, 3, 0),
            ProbePoint::Head(HeadPoint::Reciprocal) => (2, 3, 1),
            ProbePoint::HeadGradient => (3, 0, 0),
            ProbePoint::WeightGradient(l) => backward(l, 0),
            ProbePoint::BiasGradient(l) => backward(l, 1),
            // It is made by layer l + 1, after that layer's own gradients.
            ProbePoint::ActivationGradient(l) => backward(l + 1, 2),
            ProbePoint::WeightVelocity(l) => (5, l, 0),
            ProbePoint::BiasVelocity(l) => (5, l, 1),
            ProbePoint::Weights(l) => (5, l, 2),
            ProbePoint::Bias(l) => (5, l, 3),
        }
    }

    /// The layer that the update makes this tensor for; `None` for what is computed before the update.
    pub fn updated_layer(&self) -> Option<usize> {
        match *self {
            ProbePoint::WeightVelocity(l)
            | ProbePoint::BiasVelocity(l)
            | ProbePoint::Weights(l)
            | ProbePoint::Bias(l) => Some(l),
            _ => None,
        }
    }

    /// The scale of the integers at this point.
    pub fn scale(&self, fixed: FixedSpec, extra_velocity_bits: u32) -> u32 {
        match self {
            ProbePoint::WeightGradient(_) => 2 * fixed.fraction_bits,
            ProbePoint::WeightVelocity(_) | ProbePoint::BiasVelocity(_) => fixed.fraction_bits + extra_velocity_bits,
            _ => fixed.fraction_bits,
        }
    }
}

impl Ord for ProbePoint {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for ProbePoint {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for ProbePoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            ProbePoint::PreActivation(l) => format!("layer{l}/pre_activation"),
            ProbePoint::Activation(l) => format!("layer{l}/activation"),
            ProbePoint::Logits => "logits".into(),
            ProbePoint::Head(HeadPoint::Maximum) => "head/maximum".into(),
            ProbePoint::Head(HeadPoint::Exp) => "head/exp".into(),
            ProbePoint::Head(HeadPoint::Sum) => "head/sum".into(),
            ProbePoint::Head(HeadPoint::Positive) => "head/positive".into(),
            ProbePoint::Head(HeadPoint::Reciprocal) => "head/reciprocal".into(),
            ProbePoint::Head(HeadPoint::Quotient) => "head/quotient".into(),
            ProbePoint::HeadGradient => "head_gradient".into(),
            ProbePoint::ActivationGradient(l) => format!("layer{l}/activation_gradient"),
            ProbePoint::WeightGradient(l) => format!("layer{l}/dW"),
            ProbePoint::BiasGradient(l) => format!("layer{l}/db"),
            ProbePoint::WeightVelocity(l) => format!("layer{l}/weight_velocity"),
            ProbePoint::BiasVelocity(l) => format!("layer{l}/bias_velocity"),
            ProbePoint::Weights(l) => format!("layer{l}/weights"),
            ProbePoint::Bias(l) => format!("layer{l}/bias"),
        };
        f.pad(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProbePoint::*;

    #[test]
    fn points_are_ordered_as_a_step_computes_them() {
        let head = |p| Head(p);
        let step = [
            PreActivation(1),
            Activation(1),
            PreActivation(2),
            Activation(2),
            Logits,
            head(HeadPoint::Maximum),
            head(HeadPoint::Exp),
            head(HeadPoint::Sum),
            head(HeadPoint::Quotient),
            HeadGradient,
            WeightGradient(3),
            BiasGradient(3),
            ActivationGradient(2),
            WeightGradient(2),
            BiasGradient(2),
            ActivationGradient(1),
            WeightGradient(1),
            BiasGradient(1),
            WeightVelocity(1),
            BiasVelocity(1),
            Weights(1),
            Bias(1),
            WeightVelocity(2),
        ];
        assert!(step.is_sorted_by(|a, b| a < b));
        assert!(head(HeadPoint::Positive) < head(HeadPoint::Sum) && head(HeadPoint::Sum) < head(HeadPoint::Reciprocal));
        // Equal in order means equal: what a map of points needs.
        assert!(
            head(HeadPoint::Maximum) != head(HeadPoint::Positive)
                && head(HeadPoint::Quotient) != head(HeadPoint::Reciprocal)
        );
        assert_eq!((Bias(2).updated_layer(), Logits.updated_layer()), (Some(2), None));
    }
}
