//! `error-bound`: every element of every probed tensor lies inside its proven bound around f64, or agrees with one outcome of the
//! comparisons it depends on.

use super::Outcome;
use crate::compare::{Comparison, place};
use crate::config::Config;
use crate::failure::{Failure, Sides};
use crate::model::execution_order;
use reference::spec::ProbePoint;
use std::collections::BTreeMap;

/// The verdict on all comparisons; `judged` steps were compared, the others not, for the reason given.
pub fn finish(
    config: &Config,
    tensors: &BTreeMap<ProbePoint, Comparison>,
    judged: usize,
    unjudged: Option<String>,
) -> Outcome {
    let sum = |of: fn(&Comparison) -> u64| tensors.values().map(of).sum::<u64>();
    let (elements, ambiguous, outside) = (sum(|c| c.elements), sum(|c| c.ambiguous), sum(|c| c.outside));
    let mut summary =
        format!("{outside} of {elements} elements of {judged} steps outside their bound, {ambiguous} ambiguous");
    if let Some(reason) = unjudged {
        summary.push_str("; ");
        summary.push_str(&reason);
    }
    // The first step, and within it the tensor that is computed first.
    let first = tensors
        .iter()
        .filter_map(|(p, c)| c.first_outside.as_ref().map(|f| (p, f)))
        .min_by_key(|(p, f)| (f.0, execution_order(p)));
    let failure = first.map(|(point, (step, e))| {
        let scale = point.scale(config.spec.fixed, config.spec.sgd.extra_velocity_bits);
        let unit = 2f64.powi(config.spec.fixed.fraction_bits as i32);
        Failure {
            check: "error-bound",
            at: format!("step {step}, {}", place(point, e.index)),
            sides: Sides { real: Some(e.real), integer: None, secure: Some(e.units), scale },
            what: format!(
                "error {:.4} units   bound {:.4} units of 2^-{}",
                e.error * unit,
                e.bound * unit,
                config.spec.fixed.fraction_bits
            ),
            repeat: format!("--step {step} --probe {point}"),
        }
        .text(config)
    });
    Outcome::new("error-bound", summary, failure)
}
