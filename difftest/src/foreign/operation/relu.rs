//! X = max(0, Z) of every hidden layer: a selection, exact.

use crate::foreign::allowed::Truncations;
use crate::foreign::exact::{Exact, Expected};
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Operation, Outcome};
use crate::foreign::view::View;

/// The activations of the hidden layers.
pub struct Relu;

impl Operation for Relu {
    fn name(&self) -> &'static str {
        "relu"
    }

    fn what(&self) -> &'static str {
        "activations, from pre-activations: exact"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        (1..view.layers())
            .filter_map(|l| {
                let (z, x) = (format!("layer{l}/pre_activation"), format!("layer{l}/activation"));
                let lacks = view.missing(&[&z, &x]);
                let (Some(before), Some(after)) = (view.get(&z), view.get(&x)) else {
                    // An activation without a pre-activation is judged with the product that it is made of.
                    let with_product = view.get(&x).is_some();
                    return (!with_product).then_some(Outcome::Missing { tensor: x, lacks });
                };
                let at = (self.name(), x.as_str(), view.step);
                Some(Outcome::compared(Judged::new(view.header, at, after, &rectified(before), Truncations::None)))
            })
            .collect()
    }
}

fn rectified(z: &Number) -> Expected {
    exactly(&z.masked(&z.positive()))
}

/// A tensor as what another must be equal to.
pub fn exactly(number: &Number) -> Expected {
    match number {
        Number::Units { v, scale } => Expected::integers(v.dim(), v.iter().map(|&v| i128::from(v)).collect(), *scale),
        Number::Reals { v, half_ulp } => {
            let values: Vec<f64> = v.iter().copied().collect();
            let slack = values.iter().map(|v| v.abs() * half_ulp).collect();
            let magnitude = values.iter().map(|v| v.abs()).collect();
            Expected { dim: v.dim(), exact: Exact::Real { v: values, slack }, magnitude, terms: 1 }
        }
    }
}
