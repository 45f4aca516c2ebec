//! Numbers as the evaluation's texts write them.

use crate::count::counted;

/// A number of layers, in words.
pub fn layers_of(layers: usize) -> String {
    counted(layers, "layer")
}

/// A learning rate with three significant digits.
pub fn short(rate: f64) -> String {
    let text = format!("{rate:.2e}");
    text.parse::<f64>().map_or(text, |v| v.to_string())
}
