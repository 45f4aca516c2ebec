//! The output heads: section 9 of the arithmetic, one function a head. Logits and labels (one-hot, scale 0) are (batch,
//! classes).

use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::party::Party;
use crate::protocol::argmax::maximum;
use crate::protocol::compare::sign;
use crate::protocol::convert::to_ring;
use crate::protocol::divide::{quotient, reciprocal};
use crate::protocol::exponential::exponential;
use crate::protocol::logarithm::logarithm;
use crate::protocol::multiply::{dot_rows, multiply, product_by_row_parts, reshare};
use crate::protocol::select::{select, select_with_bit};
use crate::share::same_shape;
use crate::share::{BitShare, Share};
use futures_util::try_join;
use spec::{Head, HeadPoint, ProbePoint};

const AT: &str = "head/divide";

/// The head's gradient, and the shares from which probabilities and loss are made.
pub struct HeadShare {
    /// G, (batch, classes), scale f.
    pub gradient: Share,
    /// Numerators of the probabilities.
    numerator: Share,
    /// The denominator of the probabilities, (batch, 1).
    denominator: Share,
    /// Softmax: its own quotients are the probabilities.
    quotient: Option<Share>,
    /// Softmax: d; the other heads: what is subtracted as a logarithm, before the labels select.
    loss_operand: Share,
}

/// The gradient of the loss with respect to the logits of a batch, (batch, classes), scale f. `epsilon` is in units.
///
/// # Errors
/// Shapes differ; those of the transport.
pub async fn gradient(p: &Party, head: Head, epsilon: i64, logits: &Share, y: &Share) -> Result<HeadShare> {
    same_shape("logits and labels", logits.shape(), y.shape())?;
    let out = match head {
        Head::Softmax => softmax(p, logits, y).await,
        Head::ReluGrad => relu_grad(p, logits, y).await,
        Head::ReluProb => relu_prob(p, epsilon, logits, y).await,
        Head::ReluProbCut => relu_prob_cut(p, epsilon, logits, y).await,
        Head::ReluEps => relu_eps(p, logits, y).await,
    }?;
    p.probe(ProbePoint::HeadGradient, &out.gradient);
    Ok(out)
}

fn probe(p: &Party, point: HeadPoint, share: &Share) {
    p.probe(ProbePoint::Head(point), share);
}

async fn softmax(p: &Party, x: &Share, y: &Share) -> Result<HeadShare> {
    let max = maximum(p, x).await?;
    let max = faulty!(MaximumOfBatch => maximum(p, &max.transpose()).await?.broadcast(x.rows).transpose(), max);
    probe(p, HeadPoint::Maximum, &max);
    let d = faulty!(NoMaximum => x.clone(), x.clone().minus(&max.broadcast(x.cols))?);
    let v = exponential(p, &d).await?;
    probe(p, HeadPoint::Exp, &v);
    let sum = v.sum_cols();
    probe(p, HeadPoint::Sum, &sum);
    let range = p.fixed.exp_sum_range(x.cols).unwrap_or(p.fixed.full_range());
    let prob = quotient(p, &v, &sum, range, AT).await?.quotient;
    probe(p, HeadPoint::Quotient, &prob);
    let one = faulty!(LabelScale => p.fixed.one() / 2, p.fixed.one());
    Ok(HeadShare {
        gradient: prob.clone().minus(&y.scale(one))?,
        numerator: v,
        denominator: sum,
        quotient: Some(prob),
        loss_operand: d,
    })
}

async fn relu_grad(p: &Party, x: &Share, y: &Share) -> Result<HeadShare> {
    let (rows, cols) = x.shape();
    let positive = above(p, x, 0).await?;
    let r = select(p, &positive, &x.clone().reshape(1, rows * cols)).await?.reshape(rows, cols);
    probe(p, HeadPoint::Positive, &r);
    let sum = r.sum_cols();
    probe(p, HeadPoint::Sum, &sum);
    let q = quotient(p, &r, &sum, p.fixed.full_range(), AT).await?.quotient;
    let q = faulty!(ReluGradZero => {
        let empty = to_ring(p, &sign(p, &sum.clone().plus_public(p.id, -1).transpose()).await?).await?;
        q.plus(&empty.transpose().scale(p.fixed.one() / cols as i64).broadcast(cols))?
    }, q);
    probe(p, HeadPoint::Quotient, &q);
    Ok(HeadShare {
        gradient: q.minus(&y.scale(p.fixed.one()))?,
        loss_operand: r.clone(),
        numerator: r,
        denominator: sum,
        quotient: None,
    })
}

async fn relu_prob(p: &Party, epsilon: i64, x: &Share, y: &Share) -> Result<HeadShare> {
    let (rows, cols) = x.shape();
    let flat = x.clone().reshape(1, rows * cols);
    let threshold = faulty!(EpsilonStrict => epsilon + 1, EpsilonDown => epsilon - 1, epsilon);
    // One batch of comparisons: [x > 0], then [x >= E] = NOT [x < E].
    let signs = sign(p, &flat.map(u64::wrapping_neg).stack(&flat.clone().plus_public(p.id, -threshold))?).await?;
    let (positive, reached) = (signs.gather([0]), signs.gather([1]).not(p.id));
    let positive = faulty!(SumCut => reached.clone(), positive);
    let (r, a, x_t) = try_join!(select(p, &positive, &flat), to_ring(p, &reached), dot_rows(p, x, y))?;
    let (r, a) = (r.reshape(rows, cols), a.reshape(rows, cols));
    thresholded(p, x_t, r, a, y).await
}

async fn relu_prob_cut(p: &Party, epsilon: i64, x: &Share, y: &Share) -> Result<HeadShare> {
    let (rows, cols) = x.shape();
    let reached = above(p, x, faulty!(ThresholdScale => epsilon >> 8, epsilon)).await?;
    let flat = x.clone().reshape(1, rows * cols);
    let ((a, r), x_t) = try_join!(select_with_bit(p, &reached, &flat), dot_rows(p, x, y))?;
    thresholded(p, x_t, r.reshape(rows, cols), a.reshape(rows, cols), y).await
}

/// The part that `relu-prob` and `relu-prob-cut` have in common, once r and a are known.
async fn thresholded(p: &Party, x_t: Share, r: Share, a: Share, y: &Share) -> Result<HeadShare> {
    let one = p.fixed.one();
    probe(p, HeadPoint::Positive, &r);
    let sum = r.sum_cols();
    probe(p, HeadPoint::Sum, &sum);
    let h = multiply(p, y, &a).await?;
    // z = a_t (x_t - 1) + 1: the true logit where it counts, 1 elsewhere.
    let z = multiply(p, &h.sum_cols(), &x_t.plus_public(p.id, -one)).await?.plus_public(p.id, one);
    let gradient = reciprocal_gradient(p, &sum, &z, &a, &h).await?;
    let unreached = y.clone().minus(&h)?;
    Ok(HeadShare {
        gradient: gradient.minus(&unreached.scale(one))?,
        loss_operand: r.clone(),
        numerator: r,
        denominator: sum,
        quotient: None,
    })
}

async fn relu_eps(p: &Party, x: &Share, y: &Share) -> Result<HeadShare> {
    let (rows, cols) = x.shape();
    let positive = above(p, x, 0).await?;
    let flat = x.clone().reshape(1, rows * cols);
    let (a, r) = select_with_bit(p, &positive, &flat).await?;
    let (a, r) = (a.reshape(rows, cols), r.reshape(rows, cols));
    probe(p, HeadPoint::Positive, &r);
    let (h, r_t) = try_join!(multiply(p, y, &a), dot_rows(p, y, &r))?;
    let sum = r.sum_cols().plus_public(p.id, cols as i64);
    probe(p, HeadPoint::Sum, &sum);
    let z = faulty!(Regulariser => r_t, r_t.plus_public(p.id, 1));
    let gradient = reciprocal_gradient(p, &sum, &z, &a, &h).await?;
    let regularised = r.plus_public(p.id, 1);
    Ok(HeadShare {
        gradient,
        loss_operand: regularised.clone(),
        numerator: regularised,
        denominator: sum,
        quotient: None,
    })
}

/// a / S - h / z with both reciprocals in one call.
async fn reciprocal_gradient(p: &Party, sum: &Share, z: &Share, a: &Share, h: &Share) -> Result<Share> {
    let rows = sum.rows;
    let both = reciprocal(p, &sum.clone().stack(z)?, p.fixed.full_range(), AT).await?;
    probe(p, HeadPoint::Reciprocal, &both);
    let (of_sum, of_z) = (both.row_range(0, rows), both.row_range(rows, 2 * rows));
    let mut parts = product_by_row_parts(p, a, &of_sum)?;
    parts.add_assign(&product_by_row_parts(p, h, &of_z.map(u64::wrapping_neg))?)?;
    reshare(p, parts).await
}

/// [x > threshold], one block.
async fn above(p: &Party, x: &Share, threshold: i64) -> Result<BitShare> {
    sign(p, &x.from_public(p.id, threshold).reshape(1, x.len())).await
}

/// The probabilities, (batch, classes), scale f; 1 / L where the denominator is zero.
///
/// # Errors
/// Those of the transport.
pub async fn probabilities(p: &Party, head: &HeadShare) -> Result<Share> {
    if let Some(own) = &head.quotient {
        return Ok(own.clone());
    }
    let classes = head.numerator.cols;
    let out = quotient(p, &head.numerator, &head.denominator, p.fixed.full_range(), "head/probability").await?;
    let positive = out.normalised.positive.ok_or_else(|| Error::misuse("the full range starts at 0"))?;
    let uniform = (p.fixed.one() as f64 / classes as f64).round() as i64;
    out.quotient.plus(&positive.from_public(p.id, 1).scale(uniform).broadcast(classes))
}

/// The loss of every row, (batch, 1), scale f, and whether it is finite (a bit, (batch, 1)); `None` if the head has no
/// loss.
///
/// # Errors
/// Those of the transport.
pub async fn loss(
    p: &Party,
    head: Head,
    epsilon: i64,
    out: &HeadShare,
    logits: &Share,
    y: &Share,
) -> Result<Option<(Share, Share)>> {
    if !head.has_loss() {
        return Ok(None);
    }
    let rows = logits.rows;
    let (of_true, x_t) = try_join!(dot_rows(p, y, &out.loss_operand), dot_rows(p, y, logits))?;
    if head == Head::Softmax {
        let range = p.fixed.exp_sum_range(logits.cols).unwrap_or(p.fixed.full_range());
        let log = logarithm(p, &out.denominator, range).await?;
        let always = Share::zeros(rows, 1).plus_public(p.id, 1);
        return Ok(Some((log.minus(&of_true)?, always)));
    }
    let finite = async {
        match head {
            Head::ReluEps => Ok(Share::zeros(rows, 1).plus_public(p.id, 1)),
            _ => {
                let threshold = if head == Head::ReluProb { 0 } else { epsilon };
                Ok(to_ring(p, &above(p, &x_t, threshold).await?).await?.reshape(rows, 1))
            }
        }
    };
    let operands = out.denominator.clone().stack(&of_true)?;
    let (logs, finite) = try_join!(logarithm(p, &operands, p.fixed.full_range()), finite)?;
    let loss = logs.row_range(0, rows).minus(&logs.row_range(rows, 2 * rows))?;
    Ok(Some((loss, finite)))
}
