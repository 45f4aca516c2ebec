//! The protocols, one a file; each opens with what it computes, requires, costs and reveals.

pub mod adder;
pub mod argmax;
pub mod boolean;
pub mod compare;
pub mod convert;
pub mod divide;
pub mod exponential;
pub mod input;
pub mod logarithm;
pub mod matmul;
pub mod multiply;
pub mod normalise;
pub mod reveal;
pub mod select;
pub mod truncate;

#[cfg(test)]
mod tests {
    use super::{boolean, compare, convert, reveal, select};
    use crate::buffer::Words;
    use crate::cost::Cost;
    use crate::error::Result;
    use crate::party::Party;
    use crate::share::{BitShare, Share};
    use crate::testing::world;
    use spec::{FixedSpec, Rounding};

    /// Elements: whole words of bits.
    const N: usize = 640;

    fn costs(what: &str, cost: Cost, program: impl AsyncFn(&Party) -> Result<()> + Sync) {
        let (_, spent, _) = world(FixedSpec::default(), Rounding::Nearest, |p| p.run(program(p)));
        assert_eq!((spent.rounds, spent.bytes * 8), (cost.rounds, cost.bits_per_element * N as u64), "{what}");
    }

    #[test]
    fn a_protocol_costs_what_its_constant_says() {
        let zeros = || Share::zeros(1, N);
        let bits = || BitShare { blocks: 1, len: N, own: Words::zeros(N / 64), next: Words::zeros(N / 64) };
        costs("and", boolean::AND, async |p| boolean::and(p, &bits(), &bits()).await.map(drop));
        costs("reveal", reveal::REVEAL, async |p| reveal::reveal(p, &zeros()).await.map(drop));
        costs("to_ring", convert::TO_RING, async |p| convert::to_ring(p, &bits()).await.map(drop));
        costs("select", select::SELECT, async |p| select::select(p, &bits(), &zeros()).await.map(drop));
        let both = async |p: &Party| select::select_with_bit(p, &bits(), &zeros()).await.map(drop);
        costs("select_with_bit", select::SELECT_WITH_BIT, both);
        costs("sign", compare::sign_cost(32), async |p| compare::sign(p, &zeros()).await.map(drop));
    }
}
