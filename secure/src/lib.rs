//! Placeholder crate root, filled in by the commits that follow.
