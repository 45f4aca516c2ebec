use crate::FixedSpec;
use serde::{Deserialize, Serialize};

/// A named tensor of one training step that can be compared between the three sides. Layers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

impl ProbePoint {
    /// The scale of the integers at this point.
    pub fn scale(&self, fixed: FixedSpec, extra_velocity_bits: u32) -> u32 {
        match self {
            ProbePoint::WeightGradient(_) => 2 * fixed.fraction_bits,
            ProbePoint::WeightVelocity(_) | ProbePoint::BiasVelocity(_) => fixed.fraction_bits + extra_velocity_bits,
            _ => fixed.fraction_bits,
        }
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
