use super::heads::{self, Gradient, Rows};
use super::{Arithmetic, Coins, HeadUnits, ModelError, Monitor, Parameters, Probe, dense, sgd};
use ndarray::{Array1, Array2, Axis};
use spec::{ProbePoint, SgdUnits, TrainSpec};

/// A network in training, in units.
#[derive(Debug, Clone)]
pub struct Model {
    spec: TrainSpec,
    sgd: SgdUnits,
    parameters: Parameters,
    monitor: Monitor,
}

/// The gradient with respect to the logits of a batch.
pub type HeadGradient<'h> = &'h dyn Fn(&mut Arithmetic, Rows, Probe) -> Result<Gradient, ModelError>;

/// The operands that a backward pass needs.
struct Forward {
    /// X_0 .. X_{n-1}, each the input of a layer.
    inputs: Vec<Array2<i64>>,
    /// M_1 .. M_{n-1}.
    masks: Vec<Array2<i64>>,
    logits: Array2<i64>,
}

impl Model {
    /// A network of zeros.
    ///
    /// # Errors
    /// The first limit that the specification breaks.
    pub fn new(spec: TrainSpec) -> Result<Self, ModelError> {
        spec.validate()?;
        let (sgd, parameters) = (spec.sgd.units(spec.fixed)?, Parameters::zeros(&spec.network));
        Ok(Model { spec, sgd, parameters, monitor: Monitor::default() })
    }

    /// The specification that this model trains.
    pub fn spec(&self) -> &TrainSpec {
        &self.spec
    }

    /// Weights, biases and velocities.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Replaces weights, biases and velocities. Any integers will do: what is out of range is reported when it is used.
    ///
    /// # Errors
    /// Names the first tensor that does not fit the network.
    pub fn load(&mut self, parameters: Parameters) -> Result<(), ModelError> {
        parameters.check(&self.spec.network)?;
        self.parameters = parameters;
        Ok(())
    }

    /// The range violations since the model was made or the monitor last taken.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The monitor of operand ranges, to take or replace it.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// Logits, (rows of `x`, classes), of data (rows, inputs) in units. Does not ask a tape to be used up: a head may
    /// follow.
    ///
    /// # Errors
    /// The shape of `x`, or a tape that does not fit.
    pub fn forward(&mut self, x: &Array2<i64>, coins: &mut Coins) -> Result<Array2<i64>, ModelError> {
        let (mut a, spec, parameters) = self.arithmetic(coins);
        Ok(forward(&mut a, spec, parameters, x, &mut |_, _| ())?.logits)
    }

    /// The largest logit of every row, ties to the lowest index.
    ///
    /// # Errors
    /// Those of [`Self::forward`].
    pub fn predict(&mut self, x: &Array2<i64>, coins: &mut Coins) -> Result<Vec<usize>, ModelError> {
        let logits = self.forward(x, coins)?;
        let best =
            |row: ndarray::ArrayView1<i64>| (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best });
        Ok(logits.rows().into_iter().map(best).collect())
    }

    /// Probabilities, loss and gradient for logits (batch, classes) in units.
    ///
    /// # Errors
    /// Shapes, labels, or a tape that does not fit or has entries left.
    pub fn head(&mut self, logits: &Array2<i64>, labels: &[usize], coins: &mut Coins) -> Result<HeadUnits, ModelError> {
        let classes = self.spec.network.classes();
        if logits.ncols() != classes {
            return Err(shape("logits", logits, &[labels.len(), classes]));
        }
        let (mut a, spec, _) = self.arithmetic(coins);
        let logits = logits.as_standard_layout().into_owned();
        a.monitor.magnitude("logits", &logits, a.fixed.limit());
        let answer =
            heads::evaluate(&mut a, spec.head, spec.epsilon_units(), Rows::new(&logits, labels)?, &mut |_, _| ())?;
        a.monitor.magnitude("head_gradient", &answer.gradient, a.fixed.limit());
        coins.finish()?;
        Ok(answer)
    }

    /// One training step on data (batch, inputs) in units and their labels. Every tensor of [`ProbePoint`] is shown to
    /// `probe` as it is computed. On an error weights and velocities stay as they were.
    ///
    /// # Errors
    /// Shapes, labels, a batch of other than the specified size (the step size is per row of it), or a tape that does
    /// not fit or has entries left.
    pub fn step(
        &mut self,
        x: &Array2<i64>,
        labels: &[usize],
        coins: &mut Coins,
        probe: Probe,
    ) -> Result<(), ModelError> {
        let (head, epsilon) = (self.spec.head, self.spec.epsilon_units());
        self.step_with(x, labels, coins, probe, &|a, rows, probe| heads::gradient(a, head, epsilon, rows, probe))
    }

    /// One training step like [`Self::step`], with another gradient than the specified head's.
    ///
    /// # Errors
    /// Those of [`Self::step`], and the gradient's own.
    pub fn step_with(
        &mut self,
        x: &Array2<i64>,
        labels: &[usize],
        coins: &mut Coins,
        probe: Probe,
        gradient: HeadGradient,
    ) -> Result<(), ModelError> {
        let (batch, inputs) = (self.spec.sgd.batch, self.spec.network.inputs());
        if x.nrows() != batch {
            return Err(shape("data", x, &[batch, inputs]));
        }
        let units = self.sgd;
        let (mut a, spec, parameters) = self.arithmetic(coins);
        let Forward { inputs, masks, logits } = forward(&mut a, spec, parameters, x, probe)?;

        let head = gradient(&mut a, Rows::new(&logits, labels)?, probe)?;
        let mut g = dense::matrix(batch, logits.ncols(), head.gradient);
        a.monitor.magnitude("head_gradient", &g, a.fixed.limit());
        probe(ProbePoint::HeadGradient, &g);

        let mut layers = Vec::new();
        for l in (1..=parameters.layers.len()).rev() {
            let layer = &parameters.layers[l - 1];
            let (dw, db) = dense::weight_gradients(&mut a, l, &inputs[l - 1], &g);
            probe(ProbePoint::WeightGradient(l), &dw);
            probe(ProbePoint::BiasGradient(l), &row(&db));
            if l > 1 {
                g = dense::backward(&mut a, l, &g, &layer.weights, &masks[l - 2])?;
                probe(ProbePoint::ActivationGradient(l - 1), &g);
            }
            let next = sgd::update(&mut a, l, &units, layer, &dw, &db)?;
            probe(ProbePoint::WeightVelocity(l), &next.weight_velocity);
            probe(ProbePoint::BiasVelocity(l), &row(&next.bias_velocity));
            probe(ProbePoint::Weights(l), &next.weights);
            probe(ProbePoint::Bias(l), &row(&next.bias));
            layers.push(next);
        }
        coins.finish()?;
        layers.reverse();
        self.parameters = Parameters { layers };
        Ok(())
    }

    fn arithmetic<'a>(&'a mut self, coins: &'a mut Coins) -> (Arithmetic<'a>, &'a TrainSpec, &'a Parameters) {
        let Model { spec, parameters, monitor, .. } = self;
        (Arithmetic { fixed: spec.fixed, rounding: spec.rounding, coins, monitor }, spec, parameters)
    }
}

fn forward(
    a: &mut Arithmetic,
    spec: &TrainSpec,
    parameters: &Parameters,
    x: &Array2<i64>,
    probe: Probe,
) -> Result<Forward, ModelError> {
    if x.ncols() != spec.network.inputs() {
        return Err(shape("data", x, &[x.nrows(), spec.network.inputs()]));
    }
    a.monitor.magnitude("data", x, a.fixed.limit());
    let n = parameters.layers.len();
    let (mut inputs, mut masks) = (vec![x.clone()], vec![]);
    for (l, layer) in (1..n).zip(&parameters.layers) {
        let z = dense::forward(a, l, &inputs[l - 1], &layer.weights, &layer.bias)?;
        probe(ProbePoint::PreActivation(l), &z);
        let (mask, active) = dense::relu(a, l, &z);
        probe(ProbePoint::Activation(l), &active);
        inputs.push(active);
        masks.push(mask);
    }
    let last = &parameters.layers[n - 1];
    let logits = dense::forward(a, n, &inputs[n - 1], &last.weights, &last.bias)?;
    a.monitor.magnitude("logits", &logits, a.fixed.limit());
    probe(ProbePoint::Logits, &logits);
    Ok(Forward { inputs, masks, logits })
}

fn shape(what: &str, found: &Array2<i64>, expected: &[usize]) -> ModelError {
    ModelError::Shape { what: what.into(), found: found.shape().into(), expected: expected.into() }
}

/// A vector as the (1, n) matrix that probes see.
fn row(v: &Array1<i64>) -> Array2<i64> {
    v.clone().insert_axis(Axis(0))
}

#[cfg(test)]
mod tests;
