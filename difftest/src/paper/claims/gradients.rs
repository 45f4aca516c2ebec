//! Claims about the size of the heads' gradients.

use super::super::cell::{Cell, Side};
use super::case::{Cases, Claim, Evidence};
use reference::fixed::divide::{quotient_error_units, reciprocal_error_units};
use reference::spec::{FixedSpec, Head, Rounding};

impl Evidence<'_> {
    fn largest_gradient(&self, side: Side, head: Head, rounding: Option<Rounding>) -> Option<f64> {
        let fits = |c: &&Cell| !c.id.code && c.id.side == side && c.id.head == head && c.id.rounding == rounding;
        let epochs = self.cells.iter().filter(fits).flat_map(|c| &c.attempts).flat_map(|a| &a.epochs);
        epochs.filter_map(|e| e.largest_gradient).reduce(f64::max)
    }
}

/// |gradient| <= 1/eps of the heads with a threshold.
pub fn gradient_bound(e: &Evidence) -> Claim {
    let limit = 1.0 / e.setup.epsilon;
    let mut cases = Cases::new(
        "gradient-bound",
        "section 2, the bound on the gradient of ReLU probability",
        format!("The gradient of relu-prob, cut at eps, lies between -1/eps and 1/eps; here 1/eps = {limit}."),
        "The largest gradient of any step: at most 1/eps in real numbers, and in fixed point beyond it by no more than \
         the reciprocal's proven error.",
    );
    for head in [Head::ReluProb, Head::ReluProbCut] {
        match e.largest_gradient(Side::Real, head, None) {
            Some(g) => cases.case(g <= limit, format!("real {head}: largest {g:.6}")),
            None => cases.missing(format!("real {head}")),
        }
        for rounding in Rounding::ALL {
            let one = FixedSpec::default().one() as f64;
            let allowed = limit + reciprocal_error_units(rounding, limit * one) / one;
            match e.largest_gradient(Side::Integer, head, Some(rounding)) {
                Some(g) => {
                    let numbers = format!("integer {head} {rounding}: largest {g:.6}, allowed {allowed:.6}");
                    cases.case(g <= allowed, numbers);
                }
                None => cases.missing(format!("integer {head} {rounding}")),
            }
        }
    }
    cases.finish("real or integer cells of relu-prob")
}

/// |gradient| < 1 of softmax.
pub fn softmax_gradient(e: &Evidence) -> Claim {
    let mut cases = Cases::new(
        "softmax-gradient",
        "section 2, before the bound on ReLU probability",
        "The gradient of softmax is certain to lie strictly between -1 and 1.",
        "The largest gradient of any step. A probability below 2^-54 (real numbers) or half a unit (fixed point) \
         rounds to the end of the interval.",
    );
    for (side, rounding) in
        [(Side::Real, None), (Side::Integer, Some(Rounding::ALL[0])), (Side::Integer, Some(Rounding::ALL[1]))]
    {
        let which = rounding.map_or(String::new(), |r| format!(" {r}"));
        match e.largest_gradient(side, Head::Softmax, rounding) {
            Some(g) => {
                let limit = rounded_limit(rounding);
                cases.case(g <= limit, format!("{side}{which}: largest {g:.9}, rounded limit {limit:.9}"));
            }
            None => cases.missing(format!("{side}{which}")),
        }
    }
    cases.finish("real or integer cells of softmax")
}

/// 1, and in fixed point the proven error of a quotient more.
fn rounded_limit(rounding: Option<Rounding>) -> f64 {
    let fixed = FixedSpec::default();
    1.0 + rounding.map_or(0.0, |r| quotient_error_units(fixed, r) / fixed.one() as f64)
}
