//! Z = T(X W + b) of every layer.

use crate::foreign::allowed::Truncations;
use crate::foreign::exact::product;
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;

/// The forward products.
pub struct Forward;

impl Operation for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn what(&self) -> &'static str {
        "pre-activations and logits, from the layer's input, weights and bias: one truncation a dot product or a term"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        (1..=view.layers()).map(|l| layer(view, l)).collect()
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let Some(l) = (1..=view.layers()).find(|&l| tensor == output(view, l).0) else { return Vec::new() };
        let name = |what: &str| format!("start/layer{l}/{what}");
        let (Some(x), Some(w)) = (view.get(&view.input_of(l)), view.get(&name("weights"))) else { return Vec::new() };
        let bias = view.get(&name("bias"));
        let mut list = Vec::new();
        let mut add = |cause, what: &str, x: &Number, w: &Number, bias: Option<&Number>| {
            list.push(Alternative { cause, what: what.into(), values: product(x, w, bias).to_reals() });
        };
        add("bias missing", "the bias is not added, or at a scale at which it cannot be seen", x, w, None);
        if let Some(Number::Units { v, scale }) = bias {
            let low = Number::Units { v: v.clone(), scale: 2 * scale };
            add("bias at another scale", "the bias is added at the scale of values, not of products", x, w, Some(&low));
        }
        if w.dim().0 == w.dim().1 {
            add("transposed", "the weights are transposed", x, &w.transposed(), bias);
        }
        if let (1, Some(previous)) = (l, view.previous_input.as_ref().filter(|p| p.dim() == x.dim())) {
            add("stale batch", "the input is that of the step before", previous, w, bias);
        }
        list
    }
}

/// The name of what is judged for layer `l`, and whether it is the activation because the trace has no pre-activation.
fn output(view: &View, l: usize) -> (String, bool) {
    let z = view.output_of(l);
    let activation = format!("layer{l}/activation");
    if view.get(&z).is_none() && view.get(&activation).is_some() { (activation, true) } else { (z, false) }
}

fn layer(view: &View, l: usize) -> Outcome {
    let (z, rectified) = output(view, l);
    let (x, w) = (view.input_of(l), format!("start/layer{l}/weights"));
    let lacks = view.missing(&[&x, &w, &z]);
    let (Some(input), Some(weights), Some(out)) = (view.get(&x), view.get(&w), view.get(&z)) else {
        return Outcome::Missing { tensor: z, lacks };
    };
    let expected = product(input, weights, view.get(&format!("start/layer{l}/bias")));
    // max(0, .) brings no two numbers further apart, so the bound of Z holds for the activation.
    let expected = if rectified { expected.relu() } else { expected };
    let mut judged = Judged::new(view.header, (Forward.name(), &z, view.step), out, &expected, Truncations::DotProduct);
    if rectified {
        // What max(0, .) has cut says nothing of coins.
        judged.fraction.clear();
    }
    Outcome::compared(judged)
}
