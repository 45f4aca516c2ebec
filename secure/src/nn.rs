//! Training on shares: layers, heads, weight update, one step.

pub mod dense;
pub mod heads;
pub mod sgd;
pub mod train;
