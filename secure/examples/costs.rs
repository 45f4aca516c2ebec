//! Prints the table of what every protocol costs, `docs/costs.md`.

fn main() {
    print!("{}", secure::protocol::costs::markdown());
}
