//! Placeholder crate root, filled in by the commits that follow.
pub mod kernel;
