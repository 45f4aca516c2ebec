//! The gradient with respect to the output of layer l - 1: G' = M T(G W^T), M = \[Z > 0\].

use crate::foreign::allowed::Truncations;
use crate::foreign::exact::product;
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;
use ndarray::Array2;

/// The gradients of hidden activations.
pub struct Backward;

impl Operation for Backward {
    fn name(&self) -> &'static str {
        "backward"
    }

    fn what(&self) -> &'static str {
        "gradients of hidden layers, from the gradient above, its weights, and where the unit was active: one \
            truncation, exactly 0 elsewhere"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        (1..view.layers())
            .rev()
            .map(|l| {
                let (g, w) = (view.gradient_of(l + 1), format!("start/layer{}/weights", l + 1));
                let out = view.gradient_of(l);
                let lacks = view.missing(&[&g, &w, &out]);
                let (Some(above), Some(weights), Some(got)) = (view.get(&g), view.get(&w), view.get(&out)) else {
                    return Outcome::Missing { tensor: out, lacks };
                };
                let Some(active) = active(view, l).map(Number::positive) else {
                    return Outcome::Missing { tensor: out, lacks: vec![format!("layer{l}/pre_activation")] };
                };
                let expected = product(above, &weights.transposed(), None).masked(&active);
                let at = (self.name(), out.as_str(), view.step);
                let mut judged = Judged::new(view.header, at, got, &expected, Truncations::DotProduct);
                closed(&mut judged, &active);
                Outcome::compared(judged)
            })
            .collect()
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let Some(l) = (1..view.layers()).find(|&l| tensor == view.gradient_of(l)) else { return Vec::new() };
        let weights = view.get(&format!("start/layer{}/weights", l + 1));
        let (Some(above), Some(w), Some(z)) = (view.get(&view.gradient_of(l + 1)), weights, active(view, l)) else {
            return Vec::new();
        };
        let passed = product(above, &w.transposed(), None);
        let mut list = Vec::new();
        let mut add = |cause, what: &str, values| list.push(Alternative { cause, what: what.into(), values });
        let at_zero = z.reals().mapv(|z| z >= 0.0);
        add(">= for >", "the gradient passes where the unit is exactly 0", passed.clone().masked(&at_zero).to_reals());
        if w.dim().0 == w.dim().1 {
            let wrong = product(above, w, None).masked(&z.positive());
            add("transposed", "the gradient passes through the weights untransposed", wrong.to_reals());
        }
        add("mask forgotten", "the gradient passes where the unit was not active", passed.to_reals());
        list
    }
}

/// What tells where a unit was active: the pre-activation, or the activation.
fn active<'v>(view: &'v View, l: usize) -> Option<&'v Number> {
    view.get(&format!("layer{l}/pre_activation")).or_else(|| view.get(&format!("layer{l}/activation")))
}

/// An element of a unit that was not active is exactly 0: no rounding is allowed there.
fn closed(judged: &mut Judged, active: &Array2<bool>) {
    for (i, _) in active.iter().enumerate().filter(|(_, a)| !**a) {
        (judged.low[i], judged.high[i]) = (0.0, 0.0);
        if judged.error[i] != 0.0 && !judged.outside.contains(&i) {
            judged.outside.push(i);
        }
    }
    judged.outside.sort_unstable();
    if !judged.fraction.is_empty() {
        judged.fraction.iter_mut().zip(active).for_each(|(f, a)| *f = if *a { *f } else { 0.0 });
    }
}
