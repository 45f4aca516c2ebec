//! Dense layers and the update of their parameters.

use super::operands::{ROUNDINGS, array, flat, share};
use crate::faults::cause::Evidence;
use crate::faults::harness::Harness;
use crate::faults::three_parties::Output::{self, Ring};
use ndarray::Array1;
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::fixed::{self as model, Arithmetic, LayerUnits, ModelError};
use reference::spec::Rounding::{self, Nearest};
use reference::spec::SgdSpec;
use secure::nn::dense::{self, LayerShare};
use secure::nn::sgd;
use secure::party::Party;
use secure::protocol::matmul::Left;
use secure::share::{Doubled, Share};

/// Weights and bias as a layer at rest.
fn layer(weights: &Share, bias: &Share) -> LayerShare {
    let at_rest = |s: &Share| Share::zeros(s.rows, s.cols);
    LayerShare {
        weight_velocity: at_rest(weights),
        bias_velocity: at_rest(bias),
        weights: weights.clone(),
        bias: bias.clone(),
    }
}

/// Operands of dense layers. The weights are square, so that a transposition too many still multiplies.
struct Dense {
    rows: usize,
    width: usize,
    /// Inputs of the layer, rows x width.
    x: Vec<i64>,
    /// Weights, width x width.
    w: Vec<i64>,
    /// Bias, width.
    b: Vec<i64>,
    /// Gradients with respect to the outputs, rows x width.
    g: Vec<i64>,
    /// Pre-activations, rows x width; every third is -1, 0 or 1.
    z: Vec<i64>,
}

impl Dense {
    fn draw(rng: &mut ChaCha12Rng) -> Self {
        let (rows, width) = (16 * rng.random_range(1..3), 12);
        let mut draw = |n: usize, bits: u32| -> Vec<i64> {
            (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect()
        };
        let (x, w, b, g) = (draw(rows * width, 18), draw(width * width, 17), draw(width, 28), draw(rows * width, 16));
        let z = draw(rows * width, 20).into_iter().enumerate().map(|(i, v)| if i % 3 == 0 { v % 2 } else { v });
        Dense { rows, width, x, w, b, g, z: z.collect() }
    }

    fn share(&self, v: &[i64]) -> [Share; 3] {
        share(self.rows, self.width, v)
    }

    fn parameters(&self) -> [[Share; 3]; 2] {
        [share(self.width, self.width, &self.w), share(1, self.width, &self.b)]
    }

    fn forward(&self, harness: &mut Harness, rounding: Rounding, what: &str, x: &[i64]) {
        let [w, b] = self.parameters();
        harness.case(
            "dense/forward",
            what,
            rounding,
            &[self.share(x), w, b],
            &Evidence::Proportional,
            async |p: &Party, v| {
                let z = dense::forward(p, Left::from(&v[0]), &layer(&v[1], &v[2]), "layer1/forward").await?;
                Ok(vec![Ring(z)])
            },
            |a| {
                let (w, b) = (array(&self.w, self.width), Array1::from(self.b.clone()));
                Ok(vec![flat(model::dense::forward(a, 1, &array(x, self.rows), &w, &b)?)])
            },
        );
    }

    fn backward(&self, harness: &mut Harness, rounding: Rounding) {
        let [w, b] = self.parameters();
        let bits: Vec<i64> = self.x.iter().map(|x| x & 1).collect();
        harness.case(
            "dense/backward",
            "backward",
            rounding,
            &[self.share(&self.g), w, b, self.share(&bits)],
            &Evidence::Proportional,
            async |p: &Party, v| {
                Ok(vec![Ring(dense::backward(p, &v[0], &layer(&v[1], &v[2]), &v[3], "layer2/backward").await?)])
            },
            |a| {
                let (g, w) = (array(&self.g, self.rows), array(&self.w, self.width));
                Ok(vec![flat(model::dense::backward(a, 2, &g, &w, &array(&bits, self.rows))?)])
            },
        );
    }

    fn relu(&self, harness: &mut Harness) {
        harness.case(
            "dense/relu",
            "ReLU and its derivative",
            Nearest,
            &[self.share(&self.z)],
            &Evidence::Threshold(self.z.clone()),
            async |p: &Party, v| {
                let (mask, value) = dense::relu(p, &v[0]).await?;
                Ok(vec![Ring(mask), Ring(value)])
            },
            |a| {
                let (mask, value) = model::dense::relu(a, 1, &array(&self.z, self.rows));
                Ok(vec![flat(mask), flat(value)])
            },
        );
    }

    fn gradients(&self, harness: &mut Harness) {
        harness.case(
            "dense/gradients",
            "gradients of weights and bias",
            Nearest,
            &[self.share(&self.x), self.share(&self.g)],
            &Evidence::Algebra,
            async |p: &Party, v| {
                let (Doubled(twice_dw), db) = dense::gradients(p, Left::from(&v[0]), &v[1])?;
                Ok(vec![Output::Parts(twice_dw), Ring(db)])
            },
            |a| {
                let (x, g) = (array(&self.x, self.rows), array(&self.g, self.rows));
                let (dw, db) = model::dense::weight_gradients(a, 1, &x, &g);
                Ok(vec![flat(dw.mapv(|v| v << 1)), db.to_vec()])
            },
        );
    }
}

pub(super) fn layers(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let dense = Dense::draw(rng);
    for rounding in ROUNDINGS {
        dense.forward(harness, rounding, "forward on data 0", &vec![0; dense.x.len()]);
        dense.forward(harness, rounding, "forward", &dense.x);
        dense.backward(harness, rounding);
    }
    dense.relu(harness);
    dense.gradients(harness);
}

pub(super) fn updates(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let units = SgdSpec::default().units(harness.fixed).expect("the paper's rate");
    let (rows, cols) = (16, 16);
    let mut draw =
        |n: usize, bits: u32| -> Vec<i64> { (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect() };
    let (w, v, dw) = (draw(rows * cols, 17), draw(rows * cols, 16), draw(rows * cols, 44));
    let (b, vb, db) = (draw(cols, 17), draw(cols, 16), draw(cols, 28));
    let zero = |v: &[i64]| vec![0; v.len()];
    let cases = [
        ("velocity from gradient", zero(&v), zero(&vb), dw.clone(), db.clone()),
        ("velocity from velocity", v.clone(), vb.clone(), zero(&dw), zero(&db)),
        ("weights", v, vb, dw, db),
    ];
    for rounding in ROUNDINGS {
        for (what, v, vb, dw, db) in &cases {
            harness.case(
                "sgd",
                what,
                rounding,
                &[
                    share(rows, cols, &w),
                    share(1, cols, &b),
                    share(rows, cols, v),
                    share(1, cols, vb),
                    share(rows, cols, dw),
                    share(1, cols, db),
                ],
                &Evidence::Proportional,
                async |p: &Party, s| {
                    let mut layer = LayerShare {
                        weights: s[0].clone(),
                        bias: s[1].clone(),
                        weight_velocity: s[2].clone(),
                        bias_velocity: s[3].clone(),
                    };
                    sgd::update(p, 1, &mut layer, s[4].parts().into(), &s[5], units).await?;
                    let LayerShare { weights, bias, weight_velocity, bias_velocity } = layer;
                    Ok([weight_velocity, bias_velocity, weights, bias].map(Ring).into())
                },
                |a: &mut Arithmetic| -> Result<_, ModelError> {
                    let layer = LayerUnits {
                        weights: array(&w, rows),
                        bias: Array1::from(b.clone()),
                        weight_velocity: array(v, rows),
                        bias_velocity: Array1::from(vb.clone()),
                    };
                    let next = model::sgd::update(a, 1, &units, &layer, &array(dw, rows), &Array1::from(db.clone()))?;
                    Ok(vec![
                        flat(next.weight_velocity),
                        next.bias_velocity.to_vec(),
                        flat(next.weights),
                        next.bias.to_vec(),
                    ])
                },
            );
        }
    }
}
