//! The `difftest` program: the command line of the library `difftest`, and an allocator that says when memory is
//! refused.

mod cli;
mod error;
mod interrupt;
mod memory;
mod parties;
#[cfg(test)]
mod readers;

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> std::process::ExitCode {
    cli::main()
}
