//! Radii of velocities and weights after an update in the form that the header states.
//!
//! The f64 side keeps V' = m V - r G, W' = W + V'. An engine of the form `ascent` keeps -V / learning rate instead, so
//! its velocities are multiplied by [`Update::turn`] before they are compared. With M, c, the engine's factors, dv, dg,
//! dw the radii before and T a truncation:
//!
//! | operation | rule |
//! | --- | --- |
//! | V | \|M\| dv + \|v\| \|M - m\| + \|c\| dg + \|G\| \|c - r\| + T for each truncation |
//! | W | dw + dv', times the encoded rate over the real one, + \|v'\| \|its error\| + T for each truncation |

use super::truncation_units;
use crate::bound::rules::gamma;
use crate::foreign::operation::update::{Rates, velocity_truncations};
use crate::trace::header::{Header, Update as Form};
use ndarray::{Array2, Zip};

/// The rules of one trace.
#[derive(Debug, Clone, Copy)]
pub struct Update {
    /// The f64 side's velocity is the engine's times this.
    pub turn: f64,
    momentum: f64,
    momentum_off: f64,
    /// Of the gradient, in the f64 side's velocity.
    gradient: f64,
    gradient_off: f64,
    /// The encoded factor of the velocity in the weights over the real one, and the distance from 1.
    step: f64,
    step_off: f64,
    velocity_truncation: f64,
    weight_truncation: f64,
}

impl Update {
    /// From the header; `None` without a learning rate or a rounding that has a bound. `with_velocity`: whether the
    /// engine keeps velocities.
    pub fn of(header: &Header, with_velocity: bool) -> Option<Self> {
        let rates = Rates::of(header)?;
        let (rate, batch) = (header.learning_rate?, header.batch as f64);
        let truncation = |scale: u32| truncation_units(header).map(|units| units * 2f64.powi(-(scale as i32)));
        let (value, velocity) = (header.scale("weights"), header.scale("weight_velocity"));
        let ascent = header.update == Form::Ascent;
        let turn = if ascent { -rate } else { 1.0 };
        let wanted = if ascent { 1.0 / batch } else { -rate / batch };
        let off = (rates.gradient - wanted).abs() + rates.gradient_off;
        let step = (rates.velocity / turn).abs();
        let (velocities, weights) = match (with_velocity, ascent) {
            (true, _) => (velocity_truncations(header), usize::from(ascent || velocity > value)),
            (false, _) => (0, 1),
        };
        Some(Update {
            turn,
            momentum: rates.momentum,
            momentum_off: (rates.momentum - header.momentum).abs() + rates.momentum_off,
            gradient: (turn * rates.gradient).abs(),
            gradient_off: turn.abs() * off,
            step,
            step_off: (step - 1.0).abs() + rates.velocity_off / turn.abs(),
            velocity_truncation: turn.abs() * velocities as f64 * truncation(velocity)?,
            weight_truncation: weights as f64 * truncation(value)?,
        })
    }

    /// The radius of a velocity after the update: from the velocity and the gradient before, each with its radius.
    pub fn velocity(
        &self,
        (v, dv): (&Array2<f64>, &Array2<f64>),
        (g, dg): (&Array2<f64>, &Array2<f64>),
    ) -> Array2<f64> {
        Zip::from(v).and(dv).and(g).and(dg).map_collect(|v, dv, g, dg| {
            let (kept, added) = (self.momentum * (v.abs() + dv), self.gradient * (g.abs() + dg));
            let off = v.abs() * self.momentum_off + g.abs() * self.gradient_off;
            let radius =
                self.momentum * dv + self.gradient * dg + off + self.momentum_off * dv + self.gradient_off * dg;
            outward(radius + self.velocity_truncation + gamma(8) * (kept + added))
        })
    }

    /// The radius of a weight after the update: from the weight before and the new velocity, each with its radius.
    pub fn weight(&self, (w, dw): (&Array2<f64>, &Array2<f64>), (v, dv): (&Array2<f64>, &Array2<f64>)) -> Array2<f64> {
        Zip::from(w).and(dw).and(v).and(dv).map_collect(|w, dw, v, dv| {
            let moved = (self.step + self.step_off) * dv + v.abs() * self.step_off;
            outward(dw + moved + self.weight_truncation + gamma(8) * (w.abs() + v.abs()))
        })
    }
}

/// Rounds up a handful of non-negative terms.
fn outward(v: f64) -> f64 {
    v * (1.0 + gamma(32))
}
