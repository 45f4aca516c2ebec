//! One step of gradient descent with momentum: sections 11 and 12 of the arithmetic, in reals.
//!
//! computes   dW_l = X_{l-1}^T G_l summed over the batch; v <- momentum v - lr/batch dW; w <- w + v
//! requires   as many rows as [`SgdSpec::batch`](spec::SgdSpec): the last batch of an epoch wraps around to stay full
//! speed      an epoch of the paper's 2-layer network (469 steps of 128x784x128x10) takes 0.57 s on one core, 0.46 s of
//!            it in the two large products; `cargo run --release -p difftest-reference --example f64_epoch` measures it
//!            on this machine

use super::dense;
use super::{Error, Network, RealHead, check_labels};
use ndarray::{Array1, Array2, Axis};
use spec::{ProbePoint, Quantity, TrainSpec};

type Probe<'a> = dyn FnMut(ProbePoint, &Array2<f64>) + 'a;

impl Network {
    /// One step on data (batch, in), reporting every [`ProbePoint`] of it in real numbers. Row vectors have shape (1,
    /// n); gradients of the weights are sums over the batch, as in the arithmetic.
    ///
    /// # Errors
    /// Shapes, labels or batch size that do not fit the network and the specification; nothing is changed then.
    pub fn step(
        &mut self,
        spec: &TrainSpec,
        x: &Array2<f64>,
        labels: &[usize],
        probe: &mut dyn FnMut(ProbePoint, &Array2<f64>),
    ) -> Result<(), Error> {
        self.run(spec, x, labels, Some(probe))
    }

    /// Takes one training step, bit for bit as with probes but without them. Returns the logits it started from,
    /// (batch, L).
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn train_step(&mut self, spec: &TrainSpec, x: &Array2<f64>, labels: &[usize]) -> Result<&Array2<f64>, Error> {
        self.run(spec, x, labels, None)?;
        Ok(self.scratch.outputs.last().expect("a network has at least one layer"))
    }

    fn run(
        &mut self,
        spec: &TrainSpec,
        x: &Array2<f64>,
        labels: &[usize],
        mut probe: Option<&mut Probe>,
    ) -> Result<(), Error> {
        self.check_step(spec, x, labels)?;
        let head = RealHead::of(spec);
        let Network { layers, scratch } = self;
        let n = layers.len();
        scratch.fit(layers, x.nrows());

        for l in 0..n {
            let (before, here) = scratch.outputs.split_at_mut(l);
            let z = &mut here[0];
            dense::forward(&layers[l], before.last().unwrap_or(x).view(), z);
            if l + 1 < n {
                report(&mut probe, ProbePoint::PreActivation(l + 1), z);
                dense::relu(z);
                report(&mut probe, ProbePoint::Activation(l + 1), z);
            }
        }
        let logits = &scratch.outputs[n - 1];
        report(&mut probe, ProbePoint::Logits, logits);
        if let Some(probe) = &mut probe {
            for (point, value) in head.intermediates(logits, labels) {
                probe(ProbePoint::Head(point), &value);
            }
        }
        head.batch_gradient_into(logits, labels, &mut scratch.gradients[n - 1]);
        report(&mut probe, ProbePoint::HeadGradient, &scratch.gradients[n - 1]);

        scratch.descend(layers, x, spec.sgd.learning_rate / spec.sgd.batch as f64, spec.sgd.momentum);
        if let Some(probe) = probe {
            let row = |v: &Array1<f64>| v.clone().insert_axis(Axis(0));
            for l in (1..=n).rev() {
                probe(ProbePoint::WeightGradient(l), &scratch.dw[l - 1]);
                probe(ProbePoint::BiasGradient(l), &row(&scratch.db[l - 1]));
                if l > 1 {
                    probe(ProbePoint::ActivationGradient(l - 1), &scratch.gradients[l - 2]);
                }
            }
            for (l, layer) in layers.iter().enumerate() {
                probe(ProbePoint::WeightVelocity(l + 1), &layer.weight_velocity);
                probe(ProbePoint::BiasVelocity(l + 1), &row(&layer.bias_velocity));
                probe(ProbePoint::Weights(l + 1), &layer.weights);
                probe(ProbePoint::Bias(l + 1), &row(&layer.bias));
            }
        }
        Ok(())
    }

    fn check_step(&self, spec: &TrainSpec, x: &Array2<f64>, labels: &[usize]) -> Result<(), Error> {
        spec.validate()?;
        let (found, asked) = (self.shapes()?.widths, &spec.network.widths);
        if found != *asked {
            let what = format!("the network has widths {found:?}; the specification asks for {asked:?}");
            return Err(Quantity::Width.refused(what).into());
        }
        let expected = (spec.sgd.batch, spec.network.inputs());
        if x.dim() != expected {
            return Err(Error::Shape { what: "the batch".into(), found: x.dim(), expected });
        }
        check_labels((x.nrows(), spec.network.classes()), labels)
    }
}

fn report(probe: &mut Option<&mut Probe>, point: ProbePoint, value: &Array2<f64>) {
    if let Some(probe) = probe {
        probe(point, value);
    }
}

#[cfg(test)]
mod tests;
