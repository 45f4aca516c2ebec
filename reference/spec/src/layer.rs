//! The parameters of one dense layer, in whatever they are held: reals, units, shares, names.

use serde::{Deserialize, Serialize};

/// Weights and bias of a dense layer, and the velocity of each. `M` holds a matrix, (in, out), and `R` a row, (out).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer<M, R = M> {
    /// The weights W, (in, out). In units their scale is f.
    pub weights: M,
    /// The bias b, (out). In units its scale is f.
    pub bias: R,
    /// The velocity V_W of the weights, (in, out). In units its scale is f + extra velocity bits.
    pub weight_velocity: M,
    /// The velocity V_b of the bias, (out). In units its scale is f + extra velocity bits.
    pub bias_velocity: R,
}

/// The names of a layer's parameters, in the order of its fields and of every file.
pub const LAYER_NAMES: [&str; 4] = ["weights", "bias", "weight_velocity", "bias_velocity"];

impl<M, R> Layer<M, R> {
    /// A layer of other matrices and rows, made from these one by one.
    pub fn map<N, S>(&self, matrix: impl Fn(&M) -> N, row: impl Fn(&R) -> S) -> Layer<N, S> {
        Layer {
            weights: matrix(&self.weights),
            bias: row(&self.bias),
            weight_velocity: matrix(&self.weight_velocity),
            bias_velocity: row(&self.bias_velocity),
        }
    }
}

impl<T> Layer<T> {
    /// The four parameters, in the order of [`LAYER_NAMES`].
    pub fn each(&self) -> [&T; 4] {
        [&self.weights, &self.bias, &self.weight_velocity, &self.bias_velocity]
    }
}

impl<T> From<[T; 4]> for Layer<T> {
    /// The four parameters, in the order of [`LAYER_NAMES`].
    fn from([weights, bias, weight_velocity, bias_velocity]: [T; 4]) -> Self {
        Layer { weights, bias, weight_velocity, bias_velocity }
    }
}
