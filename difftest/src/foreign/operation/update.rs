//! The weight update, in the form that the header states.

use super::relu::exactly;
use crate::foreign::allowed::Truncations;
use crate::foreign::exact::{Exact, Expected, combination};
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;
use crate::trace::header::{Header, Numbers, Update};

/// The velocities of all layers.
pub struct Velocity;

/// The weights and biases.
pub struct Weights;

/// (gradient, velocity, value) of the two tensors of a layer.
const PAIRS: [(&str, &str, &str); 2] = [("dW", "weight_velocity", "weights"), ("db", "bias_velocity", "bias")];

/// The factors of an update as the engine has them, and how far they may be from the header's where it does not say.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Factor of the velocity.
    pub momentum: f64,
    /// Factor of the gradient in the velocity.
    pub gradient: f64,
    /// Factor of the velocity in the weights.
    pub velocity: f64,
    /// How far the momentum may be from the header's.
    pub momentum_off: f64,
    /// How far the gradient's factor may be from the header's.
    pub gradient_off: f64,
    /// How far the velocity's factor may be from the header's.
    pub velocity_off: f64,
}

impl Rates {
    /// From the header; `None` without a learning rate.
    pub fn of(header: &Header) -> Option<Self> {
        let rate = header.learning_rate?;
        let half = if header.numbers == Numbers::Fixed { header.unit() / 2.0 } else { 0.0 };
        let float = if header.numbers == Numbers::Float32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let off = |coded: Option<f64>, value: f64| if coded.is_some() { 0.0 } else { half + value * float };
        let (momentum, batch) = (header.coded_momentum.unwrap_or(header.momentum), header.batch as f64);
        let momentum_off = if header.momentum == 0.0 { 0.0 } else { off(header.coded_momentum, momentum) };
        Some(match header.update {
            Update::Fused | Update::Separate => {
                let gradient = header.coded_rate.unwrap_or(rate / batch);
                let gradient_off = off(header.coded_rate, gradient);
                Rates { momentum, gradient: -gradient, velocity: 1.0, momentum_off, gradient_off, velocity_off: 0.0 }
            }
            Update::Ascent => {
                let velocity = header.coded_rate.unwrap_or(rate);
                let velocity_off = off(header.coded_rate, velocity);
                let gradient_off = if header.batch == 1 { 0.0 } else { half + float / batch };
                Rates { momentum, gradient: 1.0 / batch, velocity: -velocity, momentum_off, gradient_off, velocity_off }
            }
        })
    }
}

impl Operation for Velocity {
    fn name(&self) -> &'static str {
        "velocity"
    }

    fn what(&self) -> &'static str {
        "velocities, from the velocities before and the gradients: truncated as the header's form of the update says"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        if view.header.momentum == 0.0 && velocities(view).next().is_none() {
            return Vec::new();
        }
        each(view, |view, l, (gradient, velocity, _)| {
            let names =
                [format!("start/layer{l}/{velocity}"), format!("layer{l}/{gradient}"), format!("layer{l}/{velocity}")];
            let lacks = view.missing(&[&names[0], &names[1], &names[2]]);
            let (Some(v), Some(g), Some(out)) = (view.get(&names[0]), view.get(&names[1]), view.get(&names[2])) else {
                return Some(Outcome::Missing { tensor: names[2].clone(), lacks });
            };
            let Some(rates) = Rates::of(view.header) else {
                return Some(Outcome::Missing { tensor: names[2].clone(), lacks: vec!["header learning_rate".into()] });
            };
            let expected = loosened(
                combination(rates.momentum, v, rates.gradient, g),
                &[(v, rates.momentum_off), (g, rates.gradient_off)],
            );
            let at = (self.name(), names[2].as_str(), view.step);
            Some(Outcome::compared(Judged::new(view.header, at, out, &expected, truncations(view.header))))
        })
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let Some((l, pair)) = find(view, tensor) else { return Vec::new() };
        let (before, gradient) =
            (view.get(&format!("start/layer{l}/{}", pair.1)), view.get(&format!("layer{l}/{}", pair.0)));
        let (Some(rates), Some(v), Some(g)) = (Rates::of(view.header), before, gradient) else { return Vec::new() };
        let (m, r) = (rates.momentum, rates.gradient);
        let unit = view.header.unit();
        let batch = view.header.batch as f64;
        let mistakes: [(&'static str, &str, f64, f64); 9] = [
            ("momentum twice", "the velocity is multiplied by momentum twice", m * m, r),
            ("momentum missing", "the velocity is not multiplied by momentum", 1.0, r),
            ("velocity forgotten", "the velocity before is left out", 0.0, r),
            ("sign", "the gradient is added instead of subtracted", m, -r),
            ("factor 2", "the gradient is divided by half the batch size", m, 2.0 * r),
            ("factor 1/2", "the gradient is divided by twice the batch size", m, r / 2.0),
            ("factor batch", "the gradient is not divided by the batch size", m, r * batch),
            ("factor 1/batch", "the gradient is divided by the batch size twice", m, r / batch),
            ("gradient damped", "the gradient is multiplied by 1 - momentum", m, r * (1.0 - m)),
        ];
        let mut list: Vec<_> = mistakes
            .iter()
            .map(|&(cause, what, m, r)| Alternative {
                cause,
                what: what.into(),
                values: combination(m, v, r, g).to_reals(),
            })
            .collect();
        list.extend(rate_off(view.header, rates, v, g, unit));
        list
    }
}

/// The learning rate encoded one unit of its own too low or too high.
fn rate_off(header: &Header, rates: Rates, v: &Number, g: &Number, unit: f64) -> Vec<Alternative> {
    let Some(coded) = header.coded_rate.filter(|c| *c > 0.0) else { return Vec::new() };
    // The unit of the encoding: the lowest bit that is set, or that of values.
    let lowest = (0..=100).map(|s| 2f64.powi(-s)).find(|u| (coded / u).fract() == 0.0).unwrap_or(unit);
    [("low", -lowest), ("high", lowest)]
        .into_iter()
        .map(|(way, off)| Alternative {
            cause: "rate off by one",
            what: format!("the learning rate is encoded one unit {way}"),
            values: combination(rates.momentum, v, rates.gradient - off, g).to_reals(),
        })
        .collect()
}

impl Operation for Weights {
    fn name(&self) -> &'static str {
        "weights"
    }

    fn what(&self) -> &'static str {
        "weights and biases, from those before and the velocities (or, without momentum, the gradients)"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        let with_velocity = view.header.momentum != 0.0 || velocities(view).next().is_some();
        each(view, |view, l, (gradient, velocity, value)| {
            let moved = format!("layer{l}/{}", if with_velocity { velocity } else { gradient });
            let names = [format!("start/layer{l}/{value}"), moved, format!("layer{l}/{value}")];
            let lacks = view.missing(&[&names[0], &names[1], &names[2]]);
            let (Some(w), Some(v), Some(out)) = (view.get(&names[0]), view.get(&names[1]), view.get(&names[2])) else {
                return Some(Outcome::Missing { tensor: names[2].clone(), lacks });
            };
            let Some(rates) = Rates::of(view.header) else {
                return Some(Outcome::Missing { tensor: names[2].clone(), lacks: vec!["header learning_rate".into()] });
            };
            let (factor, off) = if with_velocity {
                (rates.velocity, rates.velocity_off)
            } else if view.header.update == Update::Ascent {
                (rates.velocity * rates.gradient, rates.velocity_off + rates.gradient_off)
            } else {
                (rates.gradient, rates.gradient_off)
            };
            let expected = loosened(combination(1.0, w, factor, v), &[(v, off)]);
            let whole = match (out, &expected.exact) {
                (Number::Units { scale, .. }, Exact::Integer { scale: exact, .. }) => scale == exact,
                _ => false,
            };
            let count = if whole { 0 } else { 1 };
            let subtracted = if view.header.update == Update::Fused { 0 } else { count };
            let at = (self.name(), names[2].as_str(), view.step);
            let truncations = Truncations::Subtracted { count, subtracted };
            Some(Outcome::compared(Judged::new(view.header, at, out, &expected, truncations)))
        })
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let Some((l, pair)) = find(view, tensor) else { return Vec::new() };
        let (before, moved) =
            (view.get(&format!("start/layer{l}/{}", pair.2)), view.get(&format!("layer{l}/{}", pair.1)));
        let (Some(rates), Some(w), Some(v)) = (Rates::of(view.header), before, moved) else { return Vec::new() };
        [
            ("sign", "the velocity has the wrong sign", -rates.velocity),
            ("factor 2", "the velocity is added twice", 2.0 * rates.velocity),
        ]
        .into_iter()
        .map(|(cause, what, factor)| Alternative {
            cause,
            what: what.into(),
            values: combination(1.0, w, factor, v).to_reals(),
        })
        .chain([Alternative {
            cause: "not updated",
            what: "the tensor is what it was before the step".into(),
            values: exactly(w).to_reals(),
        }])
        .collect()
    }
}

/// Velocities of the trace.
fn velocities<'v>(view: &'v View) -> impl Iterator<Item = usize> + 'v {
    (1..=view.layers()).filter(|l| view.get(&format!("layer{l}/weight_velocity")).is_some())
}

/// Every tensor of every layer; networks without biases have only half of them.
fn each(view: &View, judge: impl Fn(&View, usize, (&str, &str, &str)) -> Option<Outcome>) -> Vec<Outcome> {
    (1..=view.layers())
        .flat_map(|l| PAIRS.into_iter().map(move |pair| (l, pair)))
        .filter(|(l, pair)| {
            let names = [format!("start/layer{l}/bias"), format!("layer{l}/bias"), format!("layer{l}/db")];
            pair.2 == "weights" || names.iter().any(|name| view.get(name).is_some())
        })
        .filter_map(|(l, pair)| judge(view, l, pair))
        .collect()
}

/// The layer and the names of a velocity, weight or bias.
fn find(view: &View, tensor: &str) -> Option<(usize, (&'static str, &'static str, &'static str))> {
    (1..=view.layers())
        .flat_map(|l| PAIRS.into_iter().map(move |pair| (l, pair)))
        .find(|(l, p)| [p.1, p.2].iter().any(|what| tensor == format!("layer{l}/{what}")))
}

fn truncations(header: &Header) -> Truncations {
    let subtracted = usize::from(header.update == Update::Separate);
    Truncations::Subtracted { count: velocity_truncations(header), subtracted }
}

/// The number of truncations of a velocity.
pub fn velocity_truncations(header: &Header) -> usize {
    let first = usize::from(header.momentum != 0.0);
    match header.update {
        Update::Fused => 1,
        Update::Separate => 1 + first,
        Update::Ascent => first + usize::from(header.batch != 1),
    }
}

/// Adds what the factors' encodings may contribute, where the header does not state them.
fn loosened(mut expected: Expected, parts: &[(&Number, f64)]) -> Expected {
    if parts.iter().all(|p| p.1 == 0.0) {
        return expected;
    }
    let mut slack = match &expected.exact {
        Exact::Real { slack, .. } => slack.clone(),
        Exact::Integer { v, .. } => vec![0.0; v.len()],
    };
    for (number, off) in parts {
        slack.iter_mut().zip(number.reals().iter()).for_each(|(s, v)| *s += v.abs() * off);
    }
    expected.exact = Exact::Real { v: expected.to_reals(), slack };
    expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing;
    use reference::spec::{Head, Rounding};

    #[test]
    fn a_velocity_is_truncated_once_for_every_product() {
        let mut header = testing::trace(Head::Softmax, Rounding::Nearest, 1, 1).header;
        let mut of = |update, momentum, batch| {
            (header.update, header.momentum, header.batch) = (update, momentum, batch);
            velocity_truncations(&header)
        };
        for (momentum, batch) in [(0.9, 16), (0.0, 16), (0.9, 1), (0.0, 1)] {
            assert_eq!(of(Update::Fused, momentum, batch), 1, "one of the sum");
        }
        assert_eq!(
            [of(Update::Separate, 0.9, 16), of(Update::Separate, 0.0, 16), of(Update::Separate, 0.9, 1)],
            [2, 1, 2]
        );
        assert_eq!([of(Update::Ascent, 0.9, 16), of(Update::Ascent, 0.0, 16)], [2, 1]);
        assert_eq!([of(Update::Ascent, 0.9, 1), of(Update::Ascent, 0.0, 1)], [1, 0], "nothing divides by one row");
    }
}
