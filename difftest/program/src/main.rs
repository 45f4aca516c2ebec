//! The `difftest` program: the command line of the library `difftest`.

mod cli;
mod parties;

fn main() -> std::process::ExitCode {
    cli::main()
}
