//! The paper's claims, each judged from finished cells and from nothing else.
//!
//! *Uncertainty.* An accuracy carries its binomial standard error on the test rows; two differ where their distance
//! exceeds twice the standard error of the difference, as if the test rows were independent (they are shared, so this
//! errs towards "no difference"). With several seeds the standard error of their mean comes on top; of a single run, it
//! is not known what another would have given. Accuracy is, seed by seed, the secure side's, or the integer side's
//! where no secure cell is finished: it is the same arithmetic with other coins, and under nearest rounding the same
//! numbers. Seconds are the secure side's only: those of configurations timed by themselves ([`TimeCell::clean`]), or
//! else of whole grids on like and quiet machines ([`Cell::timed`]), with the standard error of the median over epochs.
//!
//! *Completeness.* A claim about every configuration does not hold if one contradicts it, and holds once none is
//! missing; a claim about some configuration holds by one, and does not hold once none is missing.
//!
//! | file | claims about |
//! | --- | --- |
//! | [`gradients`] | the size of the heads' gradients |
//! | [`accuracy`] | the replacements' accuracy beside softmax's |
//! | [`divergence`] | relu-grad with more than one layer |
//! | [`time`] | what the replacements and probabilistic rounding save |
//! | [`decline`] | accuracy that falls in late epochs |
//! | [`depth`] | two layers, three layers, long training |
//! | [`needs`] | table 2, column by column |

pub mod accuracy;
mod case;
pub mod decline;
pub mod depth;
pub mod divergence;
pub mod gradients;
pub mod needs;
pub mod time;

pub use case::{CONTRADICTS, Claim, EPOCHS, Evidence, Judgement, SUPPORTS};

#[cfg(doc)]
use super::cell::Cell;
use super::finished::Finished;
use super::table2;
#[cfg(doc)]
use super::time_cell::TimeCell;

/// All claims, in the paper's order.
pub fn judge(finished: &Finished, table2: &[table2::Row]) -> Vec<Claim> {
    let e = Evidence { setup: &finished.setup, cells: &finished.cells, times: &finished.times };
    let mut claims = vec![gradients::gradient_bound(&e), gradients::softmax_gradient(&e)];
    claims.extend([accuracy::RELU_PROB, accuracy::RELU_PROB_CUT].map(|which| accuracy::below_softmax(&e, which)));
    claims.push(accuracy::always_reduced(&e));
    claims.extend(divergence::READINGS.map(|reading| divergence::relu_grad(&e, reading)));
    claims.push(time::one_layer(&e));
    claims.push(time::more_layers(&e));
    claims.push(time::first_in_time(&e));
    claims.push(time::rounding_cost(&e));
    claims.push(decline::late_decline(&e));
    claims.push(decline::velocity_bits(&e));
    claims.extend([depth::third_layer(&e), depth::real_third_layer(&e)]);
    claims.extend([2, 3].map(|layers| depth::long_run(&e, layers)));
    claims.extend(needs::claims(table2));
    claims
}

#[cfg(test)]
pub(crate) mod tests;
