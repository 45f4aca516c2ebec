//! Weights, biases and their velocities in units, and the way from and to real numbers.

use super::ModelError;
use ndarray::{Array, Array1, Array2, Dimension};
use spec::{FixedSpec, Layer, NetworkSpec, SgdSpec};

/// One layer in units.
pub type LayerUnits = Layer<Array2<i64>, Array1<i64>>;

/// One layer in real numbers.
pub type LayerValues = Layer<Array2<f64>, Array1<f64>>;

/// All layers in units, the first layer first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// Layer l is `layers[l - 1]`.
    pub layers: Vec<LayerUnits>,
}

/// round(v 2^scale), ties away from zero, of every element.
///
/// # Errors
/// Names the first element, in row-major order, that is not finite or whose magnitude reaches 2^(K-1-f) in real terms.
pub fn encode<D: Dimension>(
    what: &str,
    v: &Array<f64, D>,
    fixed: FixedSpec,
    scale: u32,
) -> Result<Array<i64, D>, ModelError> {
    let limit = fixed.limit() << (scale - fixed.fraction_bits);
    let factor = 2f64.powi(scale as i32);
    // Multiplying by a power of two is exact.
    match v.iter().position(|v| v.is_nan() || (v * factor).round().abs() >= limit as f64) {
        None => Ok(v.mapv(|v| (v * factor).round() as i64)),
        Some(index) => Err(ModelError::Encode {
            what: what.into(),
            index,
            value: *v.iter().nth(index).expect("found above"),
            fraction_bits: fixed.fraction_bits,
            limit: fixed.limit() as f64 / fixed.one() as f64,
        }),
    }
}

/// V / 2^scale of every element, to the nearest f64.
pub fn decode<D: Dimension>(v: &Array<i64, D>, scale: u32) -> Array<f64, D> {
    v.mapv(|v| v as f64 / 2f64.powi(scale as i32))
}

impl Parameters {
    /// Parameters of the network's shapes, all zero.
    pub fn zeros(network: &NetworkSpec) -> Self {
        let layer = |l| {
            let (inputs, outputs) = network.shape(l);
            let (matrix, row) = (Array2::zeros((inputs, outputs)), Array1::zeros(outputs));
            LayerUnits { weights: matrix.clone(), bias: row.clone(), weight_velocity: matrix, bias_velocity: row }
        };
        Parameters { layers: (1..=network.layers()).map(layer).collect() }
    }

    /// From real numbers.
    ///
    /// # Errors
    /// Names the first tensor and element that is not finite or does not fit: nothing ever wraps.
    pub fn encode(layers: &[LayerValues], fixed: FixedSpec, sgd: &SgdSpec) -> Result<Self, ModelError> {
        let (f, fx) = (fixed.fraction_bits, fixed.fraction_bits + sgd.extra_velocity_bits);
        let layer = |(i, v): (usize, &LayerValues)| {
            let name = |what| format!("layer{}/{what}", i + 1);
            Ok(LayerUnits {
                weights: encode(&name("weights"), &v.weights, fixed, f)?,
                bias: encode(&name("bias"), &v.bias, fixed, f)?,
                weight_velocity: encode(&name("weight_velocity"), &v.weight_velocity, fixed, fx)?,
                bias_velocity: encode(&name("bias_velocity"), &v.bias_velocity, fixed, fx)?,
            })
        };
        Ok(Parameters { layers: layers.iter().enumerate().map(layer).collect::<Result<_, ModelError>>()? })
    }

    /// To real numbers.
    pub fn decode(&self, fixed: FixedSpec, sgd: &SgdSpec) -> Vec<LayerValues> {
        let (f, fx) = (fixed.fraction_bits, fixed.fraction_bits + sgd.extra_velocity_bits);
        let layer = |v: &LayerUnits| LayerValues {
            weights: decode(&v.weights, f),
            bias: decode(&v.bias, f),
            weight_velocity: decode(&v.weight_velocity, fx),
            bias_velocity: decode(&v.bias_velocity, fx),
        };
        self.layers.iter().map(layer).collect()
    }

    /// Checks the shape of every tensor.
    ///
    /// # Errors
    /// Names the first tensor that does not fit the network.
    pub fn check(&self, network: &NetworkSpec) -> Result<(), ModelError> {
        let same = |what: String, found: &[usize], expected: &[usize]| match found == expected {
            true => Ok(()),
            false => Err(ModelError::Shape { what, found: found.into(), expected: expected.into() }),
        };
        same("the list of layers".into(), &[self.layers.len()], &[network.layers()])?;
        for (i, layer) in self.layers.iter().enumerate() {
            let (l, (inputs, outputs)) = (i + 1, network.shape(i + 1));
            same(format!("layer{l}/weights"), layer.weights.shape(), &[inputs, outputs])?;
            same(format!("layer{l}/bias"), layer.bias.shape(), &[outputs])?;
            same(format!("layer{l}/weight_velocity"), layer.weight_velocity.shape(), &[inputs, outputs])?;
            same(format!("layer{l}/bias_velocity"), layer.bias_velocity.shape(), &[outputs])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_away_from_zero_and_what_does_not_fit_is_named() {
        let fixed = FixedSpec::default();
        let units = |v: f64| encode("w", &Array1::from(vec![0.0, v]), fixed, 16).map(|v| v[1]);
        assert_eq!(units(2.5 / 65536.0), Ok(3));
        assert_eq!(units(-2.5 / 65536.0), Ok(-3));
        assert_eq!(units(32768.0 - 1.0 / 65536.0), Ok((1 << 31) - 1));
        let nearest = 32768.0 - 0.5 / 65536.0;
        let refused = [32768.0, -32768.0, nearest, f64::INFINITY].map(|v| (v, v.to_string()));
        for (v, text) in refused.into_iter().chain([(-1.5e300, "-1.5e300".into())]) {
            let error = units(v).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("w[1] is {text}; with 16 fraction bits magnitudes must be below 32768")
            );
        }
        assert!(matches!(units(f64::NAN), Err(ModelError::Encode { index: 1, .. })));
    }

    #[test]
    fn a_wrong_shape_is_named() {
        let network = NetworkSpec::dense(3, 4, 2, 2);
        let mut p = Parameters::zeros(&network);
        assert_eq!(p.check(&network), Ok(()));
        p.layers[1].bias = Array1::zeros(3);
        assert_eq!(p.check(&network).unwrap_err().to_string(), "layer2/bias has shape [3]; it must be [2]");
        p.layers.pop();
        assert_eq!(p.check(&network).unwrap_err().to_string(), "the list of layers has shape [1]; it must be [2]");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(v in prop::collection::vec(-1000.0f64..1000.0, 4), extra in 0u32..=12) {
            let sgd = SgdSpec { extra_velocity_bits: extra, ..SgdSpec::default() };
            let (matrix, row) = (Array2::from_shape_vec((2, 2), v.clone()).unwrap(), Array1::from(v[..2].to_vec()));
            let (weights, bias) = (matrix.clone(), row.clone());
            let layer = LayerValues { weights, bias, weight_velocity: matrix, bias_velocity: row };
            let units = Parameters::encode(&[layer], FixedSpec::default(), &sgd).unwrap();
            let back = units.decode(FixedSpec::default(), &sgd);
            prop_assert_eq!(&Parameters::encode(&back, FixedSpec::default(), &sgd).unwrap(), &units);
            for (v, back) in v.iter().zip(&back[0].weights) {
                prop_assert!((v - back).abs() <= 0.5 / 65536.0);
            }
        }
    }
}
