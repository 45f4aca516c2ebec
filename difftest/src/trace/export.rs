//! Steps of this project's own fixed-point sides as a trace: every tensor that a step probes, with all that went into
//! it.

use super::file::TraceFile;
use super::header::{Claim, Claims, FORMAT, Header, Numbers, TraceRounding, Truncation, Update, VERSION};
use super::tensor::{Tensor, Values};
use crate::bound::rules::Errors;
use crate::error::Error;
use crate::side::{Batch, Tensors};
use reference::fixed::Parameters;
use reference::spec::{NetworkSpec, ProbePoint, Rounding, SgdSpec, TrainSpec};
use std::collections::BTreeMap;

/// The secure engine's name in its own traces.
pub const ENGINE: &str = "difftest secure";

/// The header of a run of `engine` under `spec`, with the error bounds of the arithmetic as claims.
///
/// # Errors
/// Rates that cannot be encoded.
pub fn header(engine: &str, spec: &TrainSpec) -> Result<Header, Error> {
    let units = spec.sgd.units(spec.fixed)?;
    let errors = Errors::new(spec.rounding, spec.fixed);
    let mut scales = BTreeMap::from([("dW".to_owned(), 2 * spec.fixed.fraction_bits)]);
    if units.extra > 0 {
        for name in ["weight_velocity", "bias_velocity"] {
            scales.insert(name.into(), spec.fixed.fraction_bits + units.extra);
        }
    }
    let exp = Claim {
        absolute_units: errors.exp_absolute / errors.unit,
        relative: errors.exp_relative,
        relative_per_argument: errors.exp_argument,
    };
    let division =
        Claim { absolute_units: errors.truncate / errors.unit, relative: errors.inverse, relative_per_argument: 0.0 };
    Ok(Header {
        format: FORMAT.into(),
        version: VERSION,
        engine: engine.into(),
        engine_version: Some(env!("CARGO_PKG_VERSION").into()),
        head: Some(spec.head),
        widths: spec.network.widths.clone(),
        batch: spec.sgd.batch,
        learning_rate: Some(spec.sgd.learning_rate),
        momentum: spec.sgd.momentum,
        epsilon: spec.epsilon,
        epsilon_units: Some(spec.epsilon_units()),
        numbers: Numbers::Fixed,
        fraction_bits: Some(spec.fixed.fraction_bits),
        value_bits: spec.fixed.value_bits,
        ring_bits: 64,
        rounding: match spec.rounding {
            Rounding::Nearest => TraceRounding::Nearest,
            Rounding::Probabilistic => TraceRounding::Probabilistic,
        },
        ties_up: true,
        truncation_error: None,
        truncation: Truncation::DotProduct,
        update: Update::Fused,
        coded_rate: Some(units.real_rate()),
        coded_momentum: Some(units.real_momentum()),
        pixel_scale: None,
        scales,
        claims: Claims { exp: Some(exp), division: Some(division), log: None },
        recorded: None,
        seed: None,
        failures: Vec::new(),
    })
}

/// The specification that a header of this project's own arithmetic describes: [`header`] the other way round.
///
/// # Errors
/// Names the field by which the header is that of another arithmetic, or breaks a limit of this one.
pub fn spec(header: &Header) -> Result<TrainSpec, String> {
    let other = |field: &str, must: &str| format!("header: {field} must be {must} for a step that is run again here");
    if header.numbers != Numbers::Fixed || header.ring_bits != 64 {
        return Err(other("numbers and ring_bits", "\"fixed\" and 64"));
    }
    if header.truncation != Truncation::DotProduct || header.update != Update::Fused {
        return Err(other("truncation and update", "\"dot-product\" and \"fused\""));
    }
    let rounding = match header.rounding {
        TraceRounding::Nearest => Rounding::Nearest,
        TraceRounding::Probabilistic => Rounding::Probabilistic,
        _ => return Err(other("rounding", "\"nearest\" or \"probabilistic\"")),
    };
    let fixed = header.fixed();
    let velocity = header.scale("weight_velocity");
    let spec = TrainSpec {
        network: NetworkSpec { widths: header.widths.clone() },
        head: header.head.ok_or_else(|| other("head", "there"))?,
        epsilon: header.epsilon,
        rounding,
        fixed,
        sgd: SgdSpec {
            learning_rate: header.learning_rate.ok_or_else(|| other("learning_rate", "there"))?,
            momentum: header.momentum,
            batch: header.batch,
            extra_velocity_bits: velocity
                .checked_sub(fixed.fraction_bits)
                .ok_or_else(|| other("the scale of velocities", "fraction_bits or more"))?,
        },
    };
    spec.validate().map_err(|e| format!("header: {e}"))?;
    Ok(spec)
}

impl TraceFile {
    /// A trace without steps.
    pub fn new(header: Header) -> Self {
        TraceFile { header, tensors: BTreeMap::new() }
    }

    /// Adds step `step`: the parameters it started from, its batch, and the tensors that it computed.
    pub fn record(&mut self, step: usize, start: &Parameters, batch: &Batch, tensors: &Tensors<i64>) {
        let mut put = |name: &str, tensor: Tensor| {
            self.tensors.insert(format!("step/{step}/{name}"), tensor);
        };
        for (l, layer) in (1..).zip(&start.layers) {
            put(&format!("start/layer{l}/weights"), Tensor::units(&layer.weights));
            put(&format!("start/layer{l}/bias"), Tensor::units(&layer.bias));
            put(&format!("start/layer{l}/weight_velocity"), Tensor::units(&layer.weight_velocity));
            put(&format!("start/layer{l}/bias_velocity"), Tensor::units(&layer.bias_velocity));
        }
        put("input", Tensor::units(&batch.units));
        let labels = batch.labels.iter().map(|&l| l as i64).collect::<Vec<_>>();
        put("labels", Tensor { shape: vec![labels.len()], values: Values::Units(labels) });
        for (point, tensor) in tensors {
            put(&name(point), Tensor::units(tensor));
        }
    }
}

/// The name of a probe in a trace: the probe's own.
pub fn name(point: &ProbePoint) -> String {
    point.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing;
    use reference::spec::Head;

    #[test]
    fn a_step_of_another_arithmetic_is_not_run_again() {
        let refused = |change: fn(&mut Header)| {
            let mut header = testing::trace(Head::Softmax, Rounding::Nearest, 1, 1).header;
            assert!(spec(&header).is_ok());
            change(&mut header);
            spec(&header).unwrap_err()
        };
        assert!(refused(|h| h.numbers = Numbers::Float64).contains("numbers and ring_bits must be"));
        assert!(refused(|h| h.ring_bits = 32).contains("numbers and ring_bits must be"));
        assert!(refused(|h| h.truncation = Truncation::Term).contains("truncation and update must be"));
        assert!(refused(|h| h.update = Update::Separate).contains("truncation and update must be"));
    }
}
