//! Training steps as files: the trace format of `docs/trace.md`.
//!
//! * [`header`]: what an engine says about itself: network, number format, rounding, claims;
//! * [`tensor`]: one named array, integers in units or floats;
//! * [`file`](mod@file): a whole trace, its names, and reading and writing by file type;
//! * [`npz`] and [`safetensors`]: the two containers;
//! * [`export`]: a step of one of this project's own sides as a trace; [`record`]: whole runs of the secure engine.
//!
//! Readers trust nothing: no memory is taken because a header asks for it, and every refusal is one line.

pub mod export;
pub mod file;
pub mod header;
pub mod npy;
pub mod npz;
pub mod record;
pub mod safetensors;
pub mod tensor;

pub use file::TraceFile;
pub use header::Header;
pub use tensor::{Tensor, Values};
