//! The `difftest` program; everything but its allocator is in the library.

mod memory;

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> std::process::ExitCode {
    difftest::main()
}
