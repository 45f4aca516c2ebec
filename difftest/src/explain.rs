//! Explanations of what a comparison finds: why two sides differ, where they differ first, and whether each side
//! learns.

pub mod cause;
pub mod health;
pub mod origin;
