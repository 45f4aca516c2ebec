//! The `difftest` program; everything is in the library.

fn main() -> std::process::ExitCode {
    difftest::main()
}
