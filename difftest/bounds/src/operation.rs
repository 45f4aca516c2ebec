//! The operations between tensors: which tensor each one makes, and which ones depend on it.

use reference::spec::{HeadPoint, ProbePoint};

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
}
