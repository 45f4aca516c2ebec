//! The weight update, one truncation a weight and step: section 12 of the arithmetic, with its headroom.

use super::dense::LayerShare;
use crate::error::Result;
use crate::fault::faulty;
use crate::kernel::wide_fn;
use crate::party::Party;
use crate::protocol::truncate::{truncate, truncate_doubled};
use crate::share::{Doubled, Share};
use futures_util::try_join;
use spec::{ProbePoint, SgdUnits};

wide_fn! {
    /// 2 g becomes 2 (M v - c g), given 2 M.
    fn momentum_and_gradient(g: &mut [u64], v: &[u64], momentum: u64, rate: u64) {
        g.iter_mut().zip(v).for_each(|(g, v)| *g = v.wrapping_mul(momentum).wrapping_sub(g.wrapping_mul(rate)));
    }
}

/// Updates velocity and weights of layer `l`: V <- trunc(M V - c dW 2^x, s), W <- W + V, weights and bias side by side.
///
/// # Errors
/// Shapes do not fit; those of the transport.
pub async fn update(p: &Party, l: usize, layer: &mut LayerShare, dw: Doubled, db: &Share, sgd: SgdUnits) -> Result<()> {
    let f = p.fixed.fraction_bits;
    let unreduced = |velocity: &Share, mut gradient: Doubled, extra_scale: u32| -> Doubled {
        let momentum = faulty!(
            MomentumTwice => ((sgd.momentum as u128).pow(2) >> sgd.shift) as u64,
            sgd.momentum as u64
        );
        let coded = sgd.rate as u64;
        let rate = faulty!(BatchSize => 2 * coded, RateDown => coded - 1, coded) << extra_scale;
        momentum_and_gradient(&mut gradient.0.part, &velocity.own, 2 * momentum, rate);
        gradient
    };
    let w = unreduced(&layer.weight_velocity, dw, sgd.extra);
    let b = unreduced(&layer.bias_velocity, db.parts().into(), f + sgd.extra);
    let at = |what: &str| format!("layer{l}/{what}");
    (layer.weight_velocity, layer.bias_velocity) = try_join!(
        truncate_doubled(p, w, sgd.shift, at("update/weights")),
        truncate_doubled(p, b, sgd.shift, at("update/bias"))
    )?;
    p.probe(ProbePoint::WeightVelocity(l), &layer.weight_velocity);
    p.probe(ProbePoint::BiasVelocity(l), &layer.bias_velocity);
    if sgd.extra == 0 {
        layer.weights.add_assign(&layer.weight_velocity)?;
        layer.bias.add_assign(&layer.bias_velocity)?;
    } else {
        let (dw, db) = try_join!(
            truncate(p, &layer.weight_velocity, sgd.extra, at("velocity/weights")),
            truncate(p, &layer.bias_velocity, sgd.extra, at("velocity/bias"))
        )?;
        layer.weights.add_assign(&dw)?;
        layer.bias.add_assign(&db)?;
    }
    p.probe(ProbePoint::Weights(l), &layer.weights);
    p.probe(ProbePoint::Bias(l), &layer.bias);
    Ok(())
}
