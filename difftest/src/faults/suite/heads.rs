//! The gradient of every output head.

use super::operands::{array, share};
use crate::faults::cause::{Evidence, Row};
use crate::faults::harness::Harness;
use crate::faults::three_parties::Output::Ring;
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::fixed as model;
use reference::spec::Head;
use reference::spec::Rounding::{self, Nearest, Probabilistic};
use secure::nn::heads;
use secure::party::Party;

/// The name of a head's place.
fn head_place(head: Head) -> &'static str {
    match head {
        Head::Softmax => "head/softmax",
        Head::ReluProb => "head/relu-prob",
        Head::ReluProbCut => "head/relu-prob-cut",
        Head::ReluGrad => "head/relu-grad",
        Head::ReluEps => "head/relu-eps",
    }
}

/// Rows with at most one special logit, and what is special about each. Where nothing is, logits are beyond every
/// threshold and from 1 on, where a reciprocal moves less than its operand.
fn logits(rng: &mut ChaCha12Rng, rows: usize, classes: usize, epsilon: i64, labels: &[usize]) -> (Vec<i64>, Vec<Row>) {
    let mut x: Vec<i64> = (0..rows * classes)
        .map(|_| {
            let size = rng.random_range(1 << 16..1 << 18);
            if rng.random_bool(0.7) { size } else { -size }
        })
        .collect();
    let mut kinds = vec![Row::Plain; rows];
    for (r, (x, &label)) in x.chunks_mut(classes).zip(labels).enumerate() {
        // Half of the special logits are the true class.
        let at = if r % 2 == 0 { label } else { (label + 1) % classes };
        x[(label + 2) % classes] = x[(label + 2) % classes].abs();
        let special = [
            (epsilon, Row::Edge),
            (epsilon - 1, Row::Beside),
            (epsilon / 2, Row::Beside),
            (0, Row::Edge),
            (epsilon / 400, Row::Beside),
        ];
        match r % 8 {
            k @ 0..=4 => (x[at], kinds[r]) = special[k],
            5 => {
                x.iter_mut().for_each(|v| *v = -v.abs());
                kinds[r] = Row::Edge;
            }
            _ => {}
        }
    }
    (x, kinds)
}

/// Rows whose largest logits stand at five heights, too far apart for exp to see one from another, 0 and both ends of
/// the range among them.
fn heights(rng: &mut ChaCha12Rng, rows: usize, classes: usize) -> (Vec<i64>, Vec<i64>) {
    let heights: Vec<i64> = (0..rows).map(|r| [0, -(1 << 20), 1 << 20, -(1 << 29), 1 << 29][r % 5]).collect();
    let mut x = Vec::with_capacity(rows * classes);
    for height in &heights {
        let top = rng.random_range(0..classes);
        x.extend((0..classes).map(|k| if k == top { *height } else { height - rng.random_range(0..1i64 << 18) }));
    }
    (x, heights)
}

pub(super) fn output_heads(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let (rows, classes) = (48, 10);
    let labels: Vec<usize> = (0..rows).map(|_| rng.random_range(0..classes)).collect();
    let (x, heights) = heights(rng, rows, classes);
    let what = format!("{rows} rows of {classes} logits at five heights");
    head_case(harness, Head::Softmax, &what, Nearest, &x, &labels, &Evidence::Heights(heights));
    for head in Head::ALL {
        for (rounding, rows, classes) in
            [(Nearest, 48, 10), (Probabilistic, 64, 4), (Probabilistic, 1 + rng.random_range(0..40), 10)]
        {
            let epsilon = harness.fixed.encode_up(0.1);
            let labels: Vec<usize> = (0..rows).map(|_| rng.random_range(0..classes)).collect();
            let (x, kinds) = logits(rng, rows, classes, epsilon, &labels);
            let what = format!("{rows} rows of {classes} logits");
            head_case(harness, head, &what, rounding, &x, &labels, &Evidence::Rows(kinds));
        }
    }
}

/// The gradient of one head on logits, a row for each label.
fn head_case(
    harness: &mut Harness,
    head: Head,
    what: &str,
    rounding: Rounding,
    x: &[i64],
    labels: &[usize],
    evidence: &Evidence,
) {
    let (rows, classes, epsilon) = (labels.len(), x.len() / labels.len(), harness.fixed.encode_up(0.1));
    let mut y = vec![0; x.len()];
    labels.iter().enumerate().for_each(|(r, &l)| y[r * classes + l] = 1);
    harness.case(
        head_place(head),
        what,
        rounding,
        &[share(rows, classes, x), share(rows, classes, &y)],
        evidence,
        async |p: &Party, v| Ok(vec![Ring(heads::gradient(p, head, epsilon, &v[0], &v[1]).await?.gradient)]),
        |a| {
            let x = array(x, rows);
            let rows = model::heads::Rows::new(&x, labels)?;
            Ok(vec![model::heads::gradient(a, head, epsilon, rows, &mut |_, _| ())?.gradient])
        },
    );
}
