//! dW = X^T G and db = the column sums of G, of every layer.

use crate::foreign::allowed::Truncations;
use crate::foreign::exact::{Exact, Expected, column_sums, product};
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::{Alternative, Operation, Outcome};
use crate::foreign::view::View;

/// The gradients of weights and biases, summed over the batch.
pub struct WeightGradients;

impl Operation for WeightGradients {
    fn name(&self) -> &'static str {
        "gradients"
    }

    fn what(&self) -> &'static str {
        "dW and db, from the layer's input and the gradient of its output: exact at the scale of products, one \
            truncation below it"
    }

    fn judge(&self, view: &View) -> Vec<Outcome> {
        (1..=view.layers()).rev().flat_map(|l| [weights(view, l), bias(view, l)].into_iter().flatten()).collect()
    }

    fn alternatives(&self, view: &View, tensor: &str) -> Vec<Alternative> {
        let Some(l) = (1..=view.layers()).find(|&l| tensor == format!("layer{l}/dW")) else { return Vec::new() };
        let mut list = Vec::new();
        if let (1, Some(stale), Some(g)) = (l, view.previous_input.as_ref(), view.get(&view.gradient_of(l)))
            && stale.dim().0 == g.dim().0
        {
            let values = product(&stale.transposed(), g, None).to_reals();
            list.push(Alternative {
                cause: "stale batch",
                what: "the input is that of the step before".into(),
                values,
            });
        }
        list
    }
}

fn weights(view: &View, l: usize) -> Option<Outcome> {
    let (x, g, dw) = (view.input_of(l), view.gradient_of(l), format!("layer{l}/dW"));
    let lacks = view.missing(&[&x, &g, &dw]);
    let (Some(input), Some(gradient), Some(out)) = (view.get(&x), view.get(&g), view.get(&dw)) else {
        return Some(Outcome::Missing { tensor: dw, lacks });
    };
    let expected = product(&input.transposed(), gradient, None);
    Some(compare(view, &dw, out, &expected))
}

fn bias(view: &View, l: usize) -> Option<Outcome> {
    let (g, db) = (view.gradient_of(l), format!("layer{l}/db"));
    let (Some(gradient), Some(out)) = (view.get(&g), view.get(&db)) else {
        // A network without biases has no such gradient.
        view.get(&format!("start/layer{l}/bias"))?;
        return Some(Outcome::Missing { lacks: view.missing(&[&g, &db]), tensor: db });
    };
    Some(compare(view, &db, out, &column_sums(gradient)))
}

fn compare(view: &View, name: &str, out: &Number, expected: &Expected) -> Outcome {
    let at = (WeightGradients.name(), name, view.step);
    Outcome::compared(Judged::new(view.header, at, out, expected, truncations(out, expected)))
}

/// None where the result has the scale of the exact sum.
fn truncations(out: &Number, expected: &Expected) -> Truncations {
    match (out, &expected.exact) {
        (Number::Units { scale, .. }, Exact::Integer { scale: exact, .. }) if scale == exact => Truncations::None,
        _ => Truncations::DotProduct,
    }
}
