//! The protocols, one a file; each opens with what it computes, requires, costs and reveals.

pub mod adder;
pub mod argmax;
pub mod boolean;
pub mod compare;
pub mod convert;
pub mod divide;
pub mod exponential;
pub mod input;
pub mod logarithm;
pub mod multiply;
pub mod normalise;
pub mod reveal;
pub mod select;
pub mod truncate;
