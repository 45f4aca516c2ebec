//! The operations between tensors: which tensor each one makes, and the first that secure and the integer model feed
//! differently.
//!
//! Every truncation has a name, and both sides can show what they truncated: the integer model as it replays the coins,
//! the secure side from the views of two parties put together. A fault is thus narrowed from a tensor to the operation
//! that made it.

use reference::fixed::Replayed;
use reference::spec::{HeadPoint, ProbePoint};

/// The operands of one truncation on the secure side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The name of the truncation in the arithmetic.
    pub name: String,
    /// V of every element, modulo 2^64.
    pub operands: Vec<i64>,
}

/// A truncation whose operands differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// The name of the truncation in the arithmetic.
    pub name: String,
    /// Flat index of the first operand that differs.
    pub index: usize,
    /// The operand that the integer model truncates there.
    pub integer: i64,
    /// The operand that the secure side truncates there.
    pub secure: i64,
}

impl std::fmt::Display for FirstDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FirstDifference { name, index, integer, secure } = self;
        write!(f, "{name} is given {secure} at [{index}] by secure, {integer} by the integer model")
    }
}

/// The tensor that an operation of the arithmetic (a truncation, or another name of the integer model's monitor) makes
/// or leads to first, in a network of `layers` layers; `None` for the data, and for a name that is none of them.
pub fn tensor_of(operation: &str, layers: usize) -> Option<ProbePoint> {
    let layer = operation.strip_prefix("layer").and_then(|o| o.split_once('/'));
    if let Some((l, rest)) = layer.and_then(|(l, rest)| Some((l.parse::<usize>().ok()?, rest))) {
        return Some(match rest {
            "forward" if l == layers => ProbePoint::Logits,
            "forward" => ProbePoint::PreActivation(l),
            "relu" => ProbePoint::Activation(l),
            "dW" => ProbePoint::WeightGradient(l),
            "db" => ProbePoint::BiasGradient(l),
            "backward" => ProbePoint::ActivationGradient(l.saturating_sub(1)),
            "activation_gradient" => ProbePoint::ActivationGradient(l),
            "update/weights" | "weight_velocity" => ProbePoint::WeightVelocity(l),
            "update/bias" | "bias_velocity" => ProbePoint::BiasVelocity(l),
            "velocity/weights" | "weights" => ProbePoint::Weights(l),
            "velocity/bias" | "bias" => ProbePoint::Bias(l),
            _ => return None,
        });
    }
    Some(match operation {
        "data" => return None,
        "logits" => ProbePoint::Logits,
        "head_gradient" => ProbePoint::HeadGradient,
        head if head.starts_with("head/exp") => ProbePoint::Head(HeadPoint::Exp),
        head if head.starts_with("head/divide") => ProbePoint::Head(HeadPoint::Quotient),
        _ => ProbePoint::Head(HeadPoint::Maximum),
    })
}

/// Whether what goes into `operation` enters the tensor at `point`.
pub fn affects(operation: &str, point: &ProbePoint, layers: usize) -> bool {
    let Some(first) = tensor_of(operation, layers) else { return true };
    // An update concerns its own layer only.
    *point >= first && first.updated_layer().is_none_or(|layer| point.updated_layer() == Some(layer))
}

/// The first truncation, as a step computes them, whose operands differ. One that only one side has, or with other
/// elements, is left to the comparison of tensors and coins.
pub fn first(integer: &[Replayed], secure: &[Truncated], layers: usize) -> Option<FirstDifference> {
    let parted = |i: &Replayed| {
        let s = secure.iter().find(|s| s.name == i.name && s.operands.len() == i.operands.len())?;
        let index = i.operands.iter().zip(&s.operands).position(|(a, b)| a != b)?;
        Some(FirstDifference { name: i.name.clone(), index, integer: i.operands[index], secure: s.operands[index] })
    };
    // Of several truncations on the way to one tensor, the model's order decides: `min_by_key` keeps the first.
    integer.iter().filter_map(parted).min_by_key(|p| tensor_of(&p.name, layers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_affects_what_is_computed_after_it() {
        assert!(affects("layer1/update/weights", &ProbePoint::Weights(1), 2));
        assert!(!affects("layer1/update/weights", &ProbePoint::Weights(2), 2));
        assert!(!affects("layer1/dW", &ProbePoint::WeightGradient(2), 2), "backward runs from the last layer");
        assert!(affects("data", &ProbePoint::PreActivation(1), 2));
        assert_eq!(tensor_of("layer2/forward", 2), Some(ProbePoint::Logits));
        assert_eq!(tensor_of("head/divide/w16", 2), Some(ProbePoint::Head(HeadPoint::Quotient)));
    }

    #[test]
    fn the_first_operand_that_differs_is_named_in_the_order_of_the_step() {
        let integer =
            |name: &str, v: &[i64]| Replayed { name: name.into(), shift: 16, operands: v.to_vec(), coins: vec![] };
        let secure = |name: &str, v: &[i64]| Truncated { name: name.into(), operands: v.to_vec() };
        let model = [
            integer("layer1/forward", &[1, 2]),
            integer("head/exp/square", &[3, 4]),
            integer("head/exp/scale", &[5]),
            integer("layer2/update/weights", &[6]),
            integer("layer2/backward", &[7, 8, 9]),
        ];
        let mut other: Vec<_> = model.iter().map(|m| secure(&m.name, &m.operands)).collect();
        assert_eq!(first(&model, &other, 2), None);
        (other[3].operands[0], other[4].operands[2]) = (0, 0);
        let found = first(&model, &other, 2).unwrap();
        assert_eq!((found.name.as_str(), found.index, found.integer, found.secure), ("layer2/backward", 2, 9, 0));
        (other[1].operands[1], other[2].operands[0]) = (40, 50);
        let text = first(&model, &other, 2).unwrap().to_string();
        assert_eq!(text, "head/exp/square is given 40 at [1] by secure, 4 by the integer model");
    }
}
