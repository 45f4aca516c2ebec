//! A stack of dense layers with ReLU between them: shapes, forward, prediction.

use super::argmax::largest;
use super::dense::{self, Layer};
use super::scratch::Scratch;
use super::{Error, RealHead, check_labels};
use crate::batches::glorot_uniform;
use ndarray::{Array1, Array2, ArrayView2};
use spec::{NetworkSpec, Quantity};

/// The network in training. `layers` may be replaced or written at any time: every call checks the shapes it uses.
#[derive(Debug, Clone)]
pub struct Network {
    /// From the data to the logits.
    pub layers: Vec<Layer>,
    pub(super) scratch: Scratch,
}

impl Network {
    /// From layers made elsewhere.
    ///
    /// # Errors
    /// No layer, a width outside the limits of [`NetworkSpec`], or shapes that do not follow one another.
    pub fn new(layers: Vec<Layer>) -> Result<Self, Error> {
        let network = Network { layers, scratch: Scratch::default() };
        network.shapes()?;
        Ok(network)
    }

    /// [Glorot-uniform](glorot_uniform) weights, zero biases, everything at rest.
    ///
    /// # Errors
    /// The limits of [`NetworkSpec::validate`].
    pub fn glorot(spec: &NetworkSpec, seed: u64) -> Result<Self, Error> {
        spec.validate()?;
        let at_rest = |weights: Array2<f64>| {
            let bias = Array1::zeros(weights.ncols());
            dense::at_rest(weights, bias)
        };
        Self::new(glorot_uniform(spec, seed).into_iter().map(at_rest).collect())
    }

    /// Widths from the data to the logits, after checking that every tensor of every layer fits its neighbours.
    ///
    /// # Errors
    /// The first tensor that does not fit.
    pub fn shapes(&self) -> Result<NetworkSpec, Error> {
        let first =
            self.layers.first().ok_or_else(|| Quantity::Layers.refused("layers is 0; a network has at least 1"))?;
        let mut widths = vec![first.weights.nrows()];
        for (l, layer) in self.layers.iter().enumerate() {
            let (inputs, outputs) = (widths[l], layer.weights.ncols());
            let fits = |what: &str, found, expected| {
                let what = || format!("{what} of layer {}", l + 1);
                if found == expected { Ok(()) } else { Err(Error::Shape { what: what(), found, expected }) }
            };
            fits("weights", layer.weights.dim(), (inputs, outputs))?;
            fits("weight velocity", layer.weight_velocity.dim(), (inputs, outputs))?;
            fits("bias", (1, layer.bias.len()), (1, outputs))?;
            fits("bias velocity", (1, layer.bias_velocity.len()), (1, outputs))?;
            widths.push(outputs);
        }
        let spec = NetworkSpec { widths };
        spec.validate()?;
        Ok(spec)
    }

    /// Logits (batch, L) of data (batch, in).
    ///
    /// # Errors
    /// Shapes that do not fit.
    pub fn forward(&self, x: &Array2<f64>) -> Result<Array2<f64>, Error> {
        self.check_data(x)?;
        let forward = |layer: &Layer, x: ArrayView2<f64>| {
            let mut z = Array2::zeros((x.nrows(), layer.weights.ncols()));
            dense::forward(layer, x, &mut z);
            z
        };
        let mut z = forward(&self.layers[0], x.view());
        for layer in &self.layers[1..] {
            dense::relu(&mut z);
            z = forward(layer, z.view());
        }
        Ok(z)
    }

    /// The class of each row: argmax of its logits, for every head.
    ///
    /// # Errors
    /// Shapes that do not fit.
    pub fn predict(&self, x: &Array2<f64>) -> Result<Vec<usize>, Error> {
        Ok(predictions(&self.forward(x)?))
    }

    /// Share of rows predicted right, in \[0, 1\].
    ///
    /// # Errors
    /// Shapes or labels that do not fit, or no row at all.
    pub fn accuracy(&self, x: &Array2<f64>, labels: &[usize]) -> Result<f64, Error> {
        let logits = self.forward(x)?;
        check_labels(logits.dim(), labels)?;
        if labels.is_empty() {
            return Err(Error::Empty);
        }
        let right = predictions(&logits).iter().zip(labels).filter(|(p, l)| p == l).count();
        Ok(right as f64 / labels.len() as f64)
    }

    /// [`RealHead::mean_loss`] of the logits of these rows.
    ///
    /// # Errors
    /// Shapes or labels that do not fit, or no row at all.
    pub fn mean_loss(&self, head: &RealHead, x: &Array2<f64>, labels: &[usize]) -> Result<Option<f64>, Error> {
        head.mean_loss(&self.forward(x)?, labels)
    }

    /// The shapes, and that `x` has as many columns as the first layer reads.
    pub(super) fn check_data(&self, x: &Array2<f64>) -> Result<NetworkSpec, Error> {
        let spec = self.shapes()?;
        let expected = (x.nrows(), spec.inputs());
        if x.dim() != expected {
            return Err(Error::Shape { what: "the data".into(), found: x.dim(), expected });
        }
        Ok(spec)
    }
}

fn predictions(logits: &Array2<f64>) -> Vec<usize> {
    logits.rows().into_iter().map(|row| largest(row.iter().copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use spec::Head;

    fn network() -> Network {
        let first = dense::at_rest(array![[1.0, -1.0], [2.0, 0.0]], array![0.0, 0.5]);
        let second = dense::at_rest(array![[1.0, 0.0, -1.0], [0.0, 2.0, 1.0]], array![0.0, 0.0, 0.25]);
        Network::new(vec![first, second]).unwrap()
    }

    #[test]
    fn forward_by_hand() {
        let x = array![[1.0, 1.0], [-1.0, 0.0]];
        let logits = network().forward(&x).unwrap();
        assert_eq!(logits, array![[3.0, 0.0, -2.75], [0.0, 3.0, 1.75]]);
        assert_eq!(network().predict(&x).unwrap(), [0, 1]);
        assert_eq!(network().accuracy(&x, &[0, 2]).unwrap(), 0.5);
        assert_eq!(network().mean_loss(&RealHead::paper(Head::ReluGrad), &x, &[0, 1]).unwrap(), None);
        assert_eq!(network().mean_loss(&RealHead::paper(Head::ReluProb), &x, &[0, 0]).unwrap(), Some(f64::INFINITY));
    }

    #[test]
    fn glorot_fills_its_interval_and_follows_the_seed() {
        let spec = NetworkSpec::dense(784, 128, 10, 2);
        let network = Network::glorot(&spec, 1).unwrap();
        for (layer, limit) in network.layers.iter().zip([(6.0f64 / 912.0).sqrt(), (6.0f64 / 138.0).sqrt()]) {
            let largest = layer.weights.iter().fold(0.0f64, |m, w| m.max(w.abs()));
            assert!(largest <= limit && largest > 0.99 * limit, "{largest} of {limit}");
            let mean = layer.weights.mean().unwrap();
            assert!(mean.abs() < 5.0 * limit / (3.0 * layer.weights.len() as f64).sqrt(), "{mean}");
            assert!(layer.bias.iter().chain(&layer.weight_velocity).all(|&v| v == 0.0));
        }
        assert_eq!(Network::glorot(&spec, 1).unwrap().layers, network.layers);
        assert_ne!(Network::glorot(&spec, 2).unwrap().layers, network.layers);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |result: Result<Array2<f64>, Error>| result.unwrap_err().to_string();
        assert_eq!(error(network().forward(&Array2::zeros((4, 3)))), "the data is 4x3; it must be 4x2");
        let mut broken = network();
        broken.layers[1].weights = Array2::zeros((5, 3));
        assert_eq!(error(broken.forward(&Array2::zeros((1, 2)))), "weights of layer 2 is 5x3; it must be 2x3");
        let mut broken = network();
        broken.layers[0].bias_velocity = Array1::zeros(7);
        assert_eq!(error(broken.forward(&Array2::zeros((1, 2)))), "bias velocity of layer 1 is 1x7; it must be 1x2");
        assert!(Network::new(vec![]).unwrap_err().to_string().contains("at least 1"));
        assert!(Network::new(vec![dense::at_rest(Array2::zeros((0, 2)), Array1::zeros(2))]).is_err());
        let x = Array2::zeros((2, 2));
        assert_eq!(network().accuracy(&x, &[0]).unwrap_err(), Error::LabelCount { rows: 2, labels: 1 });
        assert_eq!(network().accuracy(&x, &[0, 3]).unwrap_err(), Error::Label { row: 1, label: 3, classes: 3 });
        assert_eq!(network().accuracy(&Array2::zeros((0, 2)), &[]).unwrap_err(), Error::Empty);
        assert_eq!(network().forward(&Array2::zeros((0, 2))).unwrap().dim(), (0, 3));
    }
}
