//! A dense layer and ReLU: sections 4 and 11 of the arithmetic.

use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::party::Party;
use crate::protocol::compare::sign;
use crate::protocol::matmul::{Left, Matrix, matmul_parts};
use crate::protocol::multiply::multiply;
use crate::protocol::select::select_with_bit;
use crate::protocol::truncate::truncate_doubled;
use crate::share::{Doubled, Share};

/// The shared parameters of one layer; biases have the shape (1, out).
pub type LayerShare = spec::Layer<Share>;

/// The pre-activations trunc(x W + (b << f), f), (batch, out), scale f: one truncated product.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn forward(p: &Party, x: Left<'_>, layer: &LayerShare, name: &str) -> Result<Share> {
    let f = p.fixed.fraction_bits;
    let mut z = matmul_parts(p, x, &layer.weights)?;
    let cols = z.0.cols;
    if layer.bias.len() != cols {
        return Err(Error::misuse(format!("bias has {} elements, the layer {cols} outputs", layer.bias.len())));
    }
    for row in z.0.part.chunks_exact_mut(cols.max(1)) {
        // The product is doubled.
        let shift = faulty!(BiasShift => 1, 1 + f);
        row.iter_mut().zip(&layer.bias.own).for_each(|(z, b)| *z = z.wrapping_add(b << shift));
    }
    let z = truncate_doubled(p, z, f, name).await?;
    Ok(faulty!(Unit => z.plus_public(p.id, 1), z))
}

/// The mask \[z > 0\] as ring elements, and ReLU(z) = mask z, both in the shape of z.
///
/// # Errors
/// Those of the transport.
pub async fn relu(p: &Party, z: &Share) -> Result<(Share, Share)> {
    let (rows, cols) = z.shape();
    let z = z.clone().reshape(1, rows * cols);
    let below = z.map(u64::wrapping_neg);
    let below = faulty!(ReluAtZero => below.plus_public(p.id, -1), below);
    let positive = sign(p, &below).await?;
    let (mask, value) = select_with_bit(p, &positive, &z).await?;
    Ok((mask.reshape(rows, cols), value.reshape(rows, cols)))
}

/// The gradient with respect to the pre-activations of the layer below: mask * trunc(g W^T, f), (batch, in), scale f.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn backward(p: &Party, g: &Share, layer: &LayerShare, mask: &Share, name: &str) -> Result<Share> {
    let weights = Matrix::from(&layer.weights);
    let parts = matmul_parts(p, g, faulty!(NotTransposed => weights, weights.t()))?;
    let through = truncate_doubled(p, parts, p.fixed.fraction_bits, name).await?;
    faulty!(MaskForgotten => Ok(through), multiply(p, mask, &through).await)
}

/// The gradients of weights and bias: dW = x^T g, (in, out), unreduced, as additive parts of its double, and db, the
/// column sums of g, (1, out), scale f.
///
/// # Errors
/// Shapes do not fit.
pub fn gradients(p: &Party, x: Left<'_>, g: &Share) -> Result<(Doubled, Share)> {
    let db = faulty!(BiasGradient => g.sum_rows().scale(0), g.sum_rows());
    Ok((matmul_parts(p, x.t(), g)?, db))
}
