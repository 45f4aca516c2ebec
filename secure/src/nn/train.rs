//! One training step, prediction, accuracy: weights stay shared from first to last.

use super::dense::{LayerShare, backward, forward, gradients, relu};
use super::heads::{self, HeadShare};
use super::sgd::update;
use crate::error::{Error, Result};
use crate::join::join_all;
use crate::party::Party;
use crate::protocol::argmax::argmax;
use crate::protocol::convert::to_ring;
use crate::protocol::matmul::Left;
use crate::protocol::multiply::dot_rows;
use crate::share::{Factor, Share};
use spec::{ProbePoint, TrainSpec};

/// The logits of a batch and what backward needs: activations, as factors of two products, and masks of the hidden
/// layers.
struct Forward {
    activations: Vec<Factor>,
    masks: Vec<Share>,
    logits: Share,
}

async fn run_forward(p: &Party, layers: &[LayerShare], x: Left<'_>) -> Result<Forward> {
    let n = layers.len();
    let (mut activations, mut masks): (Vec<Factor>, Vec<Share>) = (Vec::new(), Vec::new());
    for (l, layer) in (1..).zip(layers) {
        let input = activations.last().map_or(x, Left::from);
        let z = forward(p, input, layer, &format!("layer{l}/forward")).await?;
        if l == n {
            p.probe(ProbePoint::Logits, &z);
            return Ok(Forward { activations, masks, logits: z });
        }
        p.probe(ProbePoint::PreActivation(l), &z);
        let (mask, value) = relu(p, &z).await?;
        p.probe(ProbePoint::Activation(l), &value);
        activations.push(Factor::new(p.id, &value));
        masks.push(mask);
    }
    Err(Error::misuse("a network has at least one layer"))
}

/// One step of SGD on a batch: x (batch, in) at scale f, y one-hot (batch, classes) at scale 0. Returns what the loss
/// needs.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn step(
    p: &Party,
    spec: &TrainSpec,
    layers: &mut [LayerShare],
    x: Left<'_>,
    y: &Share,
) -> Result<(HeadShare, Share)> {
    let sgd = spec.sgd.units(spec.fixed).map_err(|e| Error::misuse(e.to_string()))?;
    let Forward { activations, masks, logits } = run_forward(p, layers, x).await?;
    p.head_runs(true);
    let head = heads::gradient(p, spec.head, spec.epsilon_units(), &logits, y).await;
    p.head_runs(false);
    let head = head?;
    let mut g = head.gradient.clone();
    let mut gradient_of = Vec::with_capacity(layers.len());
    for l in (1..=layers.len()).rev() {
        let input = if l == 1 { x } else { Left::from(&activations[l - 2]) };
        let (dw, db) = gradients(p, input, &g)?;
        p.probe_doubled(ProbePoint::WeightGradient(l), &dw);
        p.probe(ProbePoint::BiasGradient(l), &db);
        gradient_of.push((dw, db));
        if l > 1 {
            g = backward(p, &g, &layers[l - 1], &masks[l - 2], &format!("layer{l}/backward")).await?;
            p.probe(ProbePoint::ActivationGradient(l - 1), &g);
        }
    }
    // All layers' updates side by side, in the same rounds.
    let updates = (1..).zip(layers.iter_mut()).zip(gradient_of.into_iter().rev());
    join_all(updates.map(|((l, layer), (dw, db))| async move { update(p, l, layer, dw, &db, sgd).await })).await?;
    Ok((head, logits))
}

/// The logits of a batch, (batch, classes), scale f.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn logits(p: &Party, layers: &[LayerShare], x: Left<'_>) -> Result<Share> {
    Ok(run_forward(p, layers, x).await?.logits)
}

/// Indicators of the predicted class, (classes, batch): argmax of the logits, ties to the lowest index.
async fn predicted(p: &Party, layers: &[LayerShare], x: Left<'_>) -> Result<Share> {
    let logits = logits(p, layers, x).await?;
    to_ring(p, &argmax(p, &logits.transpose()).await?).await
}

/// The predicted classes, (1, batch): shares, which the client opens.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn predict(p: &Party, layers: &[LayerShare], x: Left<'_>) -> Result<Share> {
    let winner = predicted(p, layers, x).await?;
    let mut class = Share::zeros(1, winner.cols);
    for c in 0..winner.rows {
        class.add_assign(&winner.row_range(c, c + 1).scale(c as i64))?;
    }
    Ok(class)
}

/// The number of rows that are predicted as their label says, (1, 1): a share, which can be added up over pieces before
/// it is opened.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn count_correct(p: &Party, layers: &[LayerShare], x: Left<'_>, y: &Share) -> Result<Share> {
    let winner = predicted(p, layers, x).await?;
    let n = winner.len();
    dot_rows(p, &winner.reshape(1, n), &y.transpose().reshape(1, n)).await
}
