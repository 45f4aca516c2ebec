//! An engine of your own, held to the integer model and to the proven bounds: `cargo run --example my_engine`, and the
//! tests at the end.
//!
//! It trains one layer in integers under nearest rounding. Forward pass, backward pass and update are its own, written
//! from the arithmetic's sections 4, 11 and 12; the head is borrowed from the reference. What it has to do for the
//! comparison is to implement [`Side`] and [`Opens`], and to show its tensors by their probe points.

use difftest::config::{Config, Training};
use difftest::error::Error;
use difftest::run::lockstep::{self, Findings};
use difftest::side::{Batch, Opens, Side, Spent, Step, Tensors};
use ndarray::{Array2, Axis};
use reference::fixed::heads::{Rows, gradient};
use reference::fixed::{Arithmetic, Coins, LayerUnits, Monitor, Parameters, Tape};
use reference::spec::{Head, ProbePoint, Rounding, SgdSpec, TrainSpec};

struct Mine {
    spec: TrainSpec,
    layer: LayerUnits,
    /// 1 rounds to nearest. A fault that engines have shipped with is 0: it rounds down.
    half: i64,
}

impl Mine {
    fn truncate(&self, units: Array2<i64>, bits: u32) -> Array2<i64> {
        units.mapv(|v| (v + (self.half << (bits - 1))) >> bits)
    }

    fn logits(&self, x: &Array2<i64>) -> Array2<i64> {
        let f = self.spec.fixed.fraction_bits;
        self.truncate(x.dot(&self.layer.weights) + self.layer.bias.mapv(|b| b << f), f)
    }
}

impl Side for Mine {
    type Value = i64;

    fn name(&self) -> &'static str {
        "mine"
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
        self.layer = parameters.layers[0].clone();
        Ok(())
    }

    fn step(&mut self, batch: &Batch, _: Tape) -> Result<Step<i64>, Error> {
        let TrainSpec { fixed, rounding, head, ref sgd, .. } = self.spec;
        let (sgd, f) = (sgd.units(fixed)?, fixed.fraction_bits);
        let z = self.logits(&batch.units);
        let mut tensors = Tensors::from([(ProbePoint::Logits, z.clone())]);
        let (coins, monitor) = (&mut Coins::Tape(Tape::default()), &mut Monitor::default());
        let mut see = |point, tensor: &Array2<i64>| drop(tensors.insert(point, tensor.clone()));
        let rows = Rows::new(&z, &batch.labels)?;
        let g = gradient(&mut Arithmetic { fixed, rounding, coins, monitor }, head, 0, rows, &mut see)?.gradient;
        let g = Array2::from_shape_vec(z.dim(), g).expect("a gradient for every logit");
        let (dw, db) = (batch.units.t().dot(&g), g.sum_axis(Axis(0)).insert_axis(Axis(0)));
        let next = |v: &Array2<i64>, d: &Array2<i64>| self.truncate(v * sgd.momentum - d * sgd.rate, sgd.shift);
        let row = |v: &ndarray::Array1<i64>| v.clone().insert_axis(Axis(0));
        let vw = next(&self.layer.weight_velocity, &dw);
        let vb = next(&row(&self.layer.bias_velocity), &db.mapv(|d| d << f));
        let (w, b) = (&self.layer.weights + &vw, row(&self.layer.bias) + &vb);
        self.layer = LayerUnits {
            weights: w.clone(),
            bias: b.row(0).to_owned(),
            weight_velocity: vw.clone(),
            bias_velocity: vb.row(0).to_owned(),
        };
        tensors.extend([(ProbePoint::HeadGradient, g), (ProbePoint::WeightGradient(1), dw)]);
        tensors.extend([(ProbePoint::BiasGradient(1), db), (ProbePoint::WeightVelocity(1), vw)]);
        tensors.extend([(ProbePoint::BiasVelocity(1), vb), (ProbePoint::Weights(1), w), (ProbePoint::Bias(1), b)]);
        Ok(Step { tensors, tape: Tape::default(), spent: Spent::default() })
    }

    fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
        let z = self.logits(&batch.units);
        let right = |(row, &label): (ndarray::ArrayView1<i64>, &usize)| row.iter().all(|z| *z <= row[label]);
        Ok(z.rows().into_iter().zip(&batch.labels).filter(|&pair| right(pair)).count())
    }
}

impl Opens for Mine {
    fn parameters(&mut self) -> Result<Parameters, Error> {
        Ok(Parameters { layers: vec![self.layer.clone()] })
    }
}

/// Three steps on MNIST in lock-step with the reference.
fn compare(half: i64) -> Result<Findings, Error> {
    let data = fixtures::mnist()?;
    let sgd = SgdSpec { batch: 16, ..SgdSpec::default() };
    let (head, rounding) = (Head::Softmax, Rounding::Nearest);
    let training = Training { head, layers: 1, hidden: 1, rounding, epsilon: 0.1, sgd };
    let config = Config::new(training.spec(data.train.inputs())?, 3, 1);
    let layer = difftest::generate::initial(&config.spec, 1)?.layers.remove(0);
    lockstep::run(&config, &data, &mut Mine { spec: config.spec.clone(), layer, half }, |_, _| ())
}

fn main() -> Result<(), Error> {
    for check in compare(1)?.checks {
        print!("{}", check.line());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mine_is_the_integer_model_and_inside_its_bounds() {
        for check in compare(1).unwrap().checks.iter().filter(|check| check.name != "divergence") {
            assert!(check.passed, "{check:?}");
        }
    }

    #[test]
    fn a_forgotten_half_is_named_with_step_tensor_and_distance() {
        let found = compare(0).unwrap();
        let bit_exact = found.checks.iter().find(|check| check.name == "bit-exact").unwrap();
        let failure = bit_exact.failure.as_ref().expect("it rounds down");
        assert!(failure.contains("step 0, logits[") && failure.contains("mine - integer = -1 units"), "{failure}");
    }
}
