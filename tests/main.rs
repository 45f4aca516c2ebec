//! The tests of the program, in one binary: each is linked with the whole library, which takes longer than most of
//! them run. Planted faults are planted for a whole process, so `faults.rs` is a binary of its own.

mod architecture;
mod benchmarks;
mod check;
mod checkpoint;
mod command_line;
mod common;
mod documents;
mod first_sentences;
mod functions;
mod inputs;
mod lockstep;
mod paper;
mod parties;
mod replay;
mod restart;
