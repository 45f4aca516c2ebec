//! The operations that can be judged, in the order in which a step computes them.

pub mod backward;
pub mod block;
pub mod forward;
pub mod gradients;
pub mod head;
pub mod head_parts;
pub mod relu;
pub mod update;

use super::outcome::Operation;

/// Every operation of a step, in order of execution.
pub fn all() -> [&'static dyn Operation; 8] {
    [
        &forward::Forward,
        &relu::Relu,
        &head_parts::HeadParts,
        &head::HeadGradient,
        &backward::Backward,
        &gradients::WeightGradients,
        &update::Velocity,
        &update::Weights,
    ]
}
