//! The tensors of a training step, kept from one to the next, and the way back through the layers.

use super::dense::{self, Layer};
use ndarray::{Array1, Array2};

/// Tensors of a step, kept from one to the next. Index l - 1 holds layer l.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// X_l, the last being the logits.
    pub(super) outputs: Vec<Array2<f64>>,
    /// G_l.
    pub(super) gradients: Vec<Array2<f64>>,
    pub(super) dw: Vec<Array2<f64>>,
    pub(super) db: Vec<Array1<f64>>,
}

impl Scratch {
    /// Makes every tensor the size of this network and batch; does nothing if it has it.
    pub(super) fn fit(&mut self, layers: &[Layer], batch: usize) {
        let outputs = layers.iter().map(|l| (batch, l.weights.ncols()));
        if !self.outputs.iter().map(Array2::dim).eq(outputs.clone()) {
            self.outputs = outputs.clone().map(Array2::zeros).collect();
            self.gradients = outputs.map(Array2::zeros).collect();
        }
        if !self.dw.iter().map(Array2::dim).eq(layers.iter().map(|l| l.weights.dim())) {
            self.dw = layers.iter().map(|l| Array2::zeros(l.weights.dim())).collect();
            self.db = layers.iter().map(|l| Array1::zeros(l.weights.ncols())).collect();
        }
    }

    /// From G_n in `gradients` down to the updated weights.
    pub(super) fn descend(&mut self, layers: &mut [Layer], x: &Array2<f64>, rate: f64, momentum: f64) {
        for l in (0..layers.len()).rev() {
            let (below, here) = self.gradients.split_at_mut(l);
            let input = if l == 0 { x } else { &self.outputs[l - 1] };
            // Before the update: this layer's gradient passes through the weights that made the logits.
            if let Some(below) = below.last_mut() {
                dense::backward(&layers[l], &here[0], input, below);
            }
            let gradient = (&mut self.dw[l], &mut self.db[l]);
            dense::update(&mut layers[l], (input.view(), &here[0]), gradient, (rate, momentum));
        }
    }
}
