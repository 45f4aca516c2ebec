//! Weight update: momentum and learning rate in one truncation a weight.
//!
//! computes   V = trunc(M V - (c dW << x), s), W += V, or W += trunc(V, x) with x extra velocity bits; the same for
//!            biases
//! requires   |M V - (c dW << x)| < 2^61 (real |V| < 2^(60-s-f-x) and |dW| < 2^(50-2f-x) suffice: section 12), |V| <
//!            2^(K-1+x), |W| < 2^(K-1)
//! error      one truncation of V a step, at scale f + x; with x > 0 one more in W
//! source     arithmetic, section 12

use super::dense::matrix;
use super::truncate::{trunc, trunc_doubled};
use super::{Arithmetic, LayerUnits, ModelError, Unreduced};
use ndarray::{Array1, Array2};
use spec::SgdUnits;

/// Layer `l` after one step with gradients dW (scale 2f) and db (scale f).
///
/// # Errors
/// Those of [`trunc`].
pub fn update(
    a: &mut Arithmetic,
    l: usize,
    sgd: &SgdUnits,
    layer: &LayerUnits,
    dw: &Array2<i64>,
    db: &Array1<i64>,
) -> Result<LayerUnits, ModelError> {
    let (inputs, outputs) = layer.weights.dim();
    let weights = &layer.weights.as_standard_layout();
    let velocity = &layer.weight_velocity.as_standard_layout();
    let (weights, weight_velocity) =
        tensor(a, l, "weights", sgd, sgd.extra, flat(weights), flat(velocity), flat(&dw.as_standard_layout()))?;
    let (b, v, db) = (layer.bias.to_vec(), layer.bias_velocity.to_vec(), db.to_vec());
    // db has scale f, dW 2f.
    let (bias, bias_velocity) = tensor(a, l, "bias", sgd, sgd.extra + a.fixed.fraction_bits, &b, &v, &db)?;
    Ok(LayerUnits {
        weights: matrix(inputs, outputs, weights),
        bias: bias.into(),
        weight_velocity: matrix(inputs, outputs, weight_velocity),
        bias_velocity: bias_velocity.into(),
    })
}

fn flat<'v>(v: &'v ndarray::CowArray<i64, ndarray::Ix2>) -> &'v [i64] {
    v.as_slice().unwrap_or(&[])
}

/// (W, V) of one tensor, whose gradient is brought to the scale of M V by `raise` bits.
#[allow(clippy::too_many_arguments)]
fn tensor(
    a: &mut Arithmetic,
    l: usize,
    what: &str,
    sgd: &SgdUnits,
    raise: u32,
    w: &[i64],
    v: &[i64],
    gradient: &[i64],
) -> Result<(Vec<i64>, Vec<i64>), ModelError> {
    let next = |(&v, &g): (&i64, &i64)| {
        i128::from(sgd.momentum) * i128::from(v) - ((i128::from(sgd.rate) * i128::from(g)) << raise)
    };
    let operand = Unreduced::new(v.iter().zip(gradient).map(next));
    let v = trunc_doubled(a, &format!("layer{l}/update/{what}"), &operand, sgd.shift)?;
    let velocity = if what == "weights" { "weight_velocity" } else { "bias_velocity" };
    a.monitor.magnitude(&format!("layer{l}/{velocity}"), &v, a.fixed.limit() << sgd.extra);
    let step = match sgd.extra {
        0 => None,
        x => Some(trunc(a, &format!("layer{l}/velocity/{what}"), &Unreduced::new(v.iter().map(|&v| v.into())), x)?),
    };
    let w: Vec<i64> = w.iter().zip(step.as_ref().unwrap_or(&v)).map(|(w, v)| w.wrapping_add(*v)).collect();
    a.monitor.magnitude(&format!("layer{l}/{what}"), &w, a.fixed.limit());
    Ok((w, v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::testing::World;
    use spec::Rounding::{Nearest, Probabilistic};
    use spec::{FixedSpec, SgdSpec};

    fn layer(v: &[i64], extra: u32) -> LayerUnits {
        let row = |v: &[i64]| matrix(1, v.len(), v.to_vec());
        let raised: Vec<i64> = v.iter().map(|v| v << extra).collect();
        LayerUnits {
            weights: row(&vec![1000; v.len()]),
            bias: vec![7; v.len()].into(),
            weight_velocity: row(&raised),
            bias_velocity: raised.into(),
        }
    }

    #[test]
    fn the_update_is_the_real_one_to_a_truncation() {
        for extra in [0, 8] {
            let spec = SgdSpec { extra_velocity_bits: extra, ..SgdSpec::default() };
            let sgd = spec.units(FixedSpec::default()).unwrap();
            let (rate, momentum) = (sgd.real_rate(), sgd.real_momentum());
            // With eight extra bits a velocity of 8191 units is the largest whose term is sure to be in range.
            let v = [0, 1, -1, 5000, -5000, 8191];
            let dw = [1i64 << 40, -(1 << 40), 3, 0, 123_456_789_012, 1 << 35];
            let db = [1i64 << 22, -77, 3, 0, 12_345, 1 << 20];
            for rounding in [Nearest, Probabilistic] {
                let mut world = World::new(rounding);
                let old = layer(&v, extra);
                let new =
                    update(&mut world.arithmetic(), 2, &sgd, &old, &matrix(1, 6, dw.to_vec()), &db.to_vec().into())
                        .unwrap();
                let h = super::super::truncate::error_units(rounding);
                for i in 0..6 {
                    let lift = 2f64.powi(extra as i32);
                    let exact = |gradient: f64| (momentum * v[i] as f64 - rate * gradient) * lift;
                    for (found, gradient) in
                        [(new.weight_velocity[[0, i]], dw[i] as f64 / 65536.0), (new.bias_velocity[i], db[i] as f64)]
                    {
                        assert!((found as f64 - exact(gradient)).abs() <= h + 1e-6, "extra {extra}, {i}: {found}");
                    }
                    let moved = (new.weights[[0, i]] - 1000) as f64 - new.weight_velocity[[0, i]] as f64 / lift;
                    assert!(moved.abs() <= if extra == 0 { 0.0 } else { h }, "{moved}");
                }
                assert_eq!(world.monitor.total(), 0);
            }
        }
    }

    /// The trap of nearest rounding: round(0.9 v) = v for |v| <= 4, and the cure.
    #[test]
    fn nearest_rounding_keeps_small_velocities_for_ever_and_extra_bits_let_them_decay() {
        let none = (matrix(1, 9, vec![0; 9]), Array1::zeros(9));
        for extra in [0, 8] {
            let sgd = SgdSpec { extra_velocity_bits: extra, ..SgdSpec::default() }.units(FixedSpec::default()).unwrap();
            let mut world = World::new(Nearest);
            let mut state = layer(&[-6, -5, -4, -1, 0, 1, 4, 5, 6], extra);
            for _ in 0..200 {
                state = update(&mut world.arithmetic(), 1, &sgd, &state, &none.0, &none.1).unwrap();
            }
            let left = state.weight_velocity.into_raw_vec_and_offset().0;
            match extra {
                // M is just below 0.9 2^39, so that 5 decays to 4.
                0 => assert_eq!(left, [-4, -4, -4, -1, 0, 1, 4, 4, 4]),
                _ => assert!(left.iter().all(|v| v.abs() <= 5), "{left:?} units of 2^-24"),
            }
        }
    }

    #[test]
    fn values_beyond_the_range_are_reported_by_name() {
        let sgd = SgdSpec { learning_rate: 1.0, batch: 1, ..SgdSpec::default() }.units(FixedSpec::default()).unwrap();
        let mut world = World::new(Nearest);
        let none = (matrix(1, 1, vec![0]), Array1::zeros(1));
        update(&mut world.arithmetic(), 1, &sgd, &layer(&[(1 << 31) * 10 / 9 + 2], 0), &none.0, &none.1).unwrap();
        let found = world.monitor.take();
        let names: Vec<_> = found.counts().keys().map(String::as_str).collect();
        assert_eq!(names, ["layer1/bias", "layer1/bias_velocity", "layer1/weight_velocity", "layer1/weights"]);
    }

    /// The operand's edges, +-2^61, by the gradient's term alone: c = 655, and nearest's half is 2^38.
    #[test]
    fn a_gradient_beyond_the_headroom_is_reported() {
        let sgd = SgdSpec::default().units(FixedSpec::default()).unwrap();
        let mut world = World::new(Nearest);
        let last = (1i64 << 61) / 655;
        for (dw, violations) in [(last, 0), (last + 1, 1), (-(last - (1 << 29)), 0), (-last, 1)] {
            let old = layer(&[0], 0);
            update(&mut world.arithmetic(), 1, &sgd, &old, &matrix(1, 1, vec![dw]), &Array1::zeros(1)).unwrap();
            let found = world.monitor.take().counts().get("layer1/update/weights").copied().unwrap_or(0);
            assert_eq!(found, violations, "{dw}");
        }
    }

    #[test]
    fn a_velocity_beyond_the_headroom_is_reported() {
        let sgd = SgdSpec::default().units(FixedSpec::default()).unwrap();
        let mut world = World::new(Nearest);
        let none = (matrix(1, 1, vec![0]), Array1::zeros(1));
        for (v, violations) in [((1 << 22) - 1, 0), ((1 << 22) * 10 / 9 - 1, 0), ((1 << 22) * 10 / 9 + 1, 2)] {
            update(&mut world.arithmetic(), 1, &sgd, &layer(&[v], 0), &none.0, &none.1).unwrap();
            assert_eq!(world.monitor.take().total(), violations, "{v}: weights and bias");
        }
    }
}
