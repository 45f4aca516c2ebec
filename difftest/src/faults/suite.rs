//! Every protocol and layer on its own, in the order in which they are built from one another: the first that fails is
//! where the fault is. Operands are boundary values first, then random ones from a seed.

mod algebra;
mod comparison;
mod functions;
mod heads;
mod layers;
mod operands;
mod randomness;
mod rounding;

use super::harness::Harness;
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

/// A stage: its place, and the cases that judge it.
pub type Stage = fn(&mut Harness, &mut ChaCha12Rng);

/// The stages of the suite, those that others depend on first.
pub const STAGES: &[Stage] = &[
    randomness::streams,
    randomness::inputs,
    algebra::conjunctions,
    algebra::products,
    algebra::matrix_products,
    comparison::sums,
    comparison::signs,
    comparison::bits,
    comparison::selections,
    rounding::truncations,
    rounding::coins,
    functions::normalisations,
    functions::divisions,
    functions::exponentials,
    functions::logarithms,
    comparison::maxima,
    layers::layers,
    heads::output_heads,
    layers::updates,
];

/// Runs every stage up to the first finding, on operands from `seed`.
pub fn judge(harness: &mut Harness, seed: u64) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    for stage in STAGES {
        stage(harness, &mut rng);
    }
}
