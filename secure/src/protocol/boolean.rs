//! Conjunction of bit vectors, and of many of them.
//!
//! computes   x AND y, 64 bits a word
//! cost       1 round, 3 bits an element, all parties ([`AND`]); a conjunction of n vectors takes ceil(log2 n) rounds
//! reveals    nothing: every message is masked with a fresh sharing of zero
//! source     Araki et al. (CCS 2016), over Z_2

use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::Result;
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::party::Party;
use crate::share::BitShare;
use crate::step::Step;

/// The cost of [`and`], a bit.
pub const AND: Cost = Cost { rounds: 1, bits_per_element: 3 };

/// The cost of [`and_all`] of `factors` blocks, an element of the result.
pub const fn and_all_cost(factors: u64) -> Cost {
    let mut cost = Cost::FREE;
    let mut left = factors;
    while left > 1 {
        cost = cost.then(AND.times(left / 2));
        left = left.div_ceil(2);
    }
    cost
}

/// The conjunction x AND y, bit by bit: (blocks, len) as x and y.
///
/// # Errors
/// Those of the transport.
pub async fn and(p: &Party, x: &BitShare, y: &BitShare) -> Result<BitShare> {
    const STEP: Step = Step::And;
    debug_assert_eq!((x.blocks, x.len), (y.blocks, y.len));
    let cross = |i: usize| faulty!(AndCrossTerm => 0, x.next[i] & y.own[i]);
    let mut own: Words = (0..x.own.len()).map(|i| (x.own[i] & (y.own[i] ^ y.next[i])) ^ cross(i)).collect();
    let (i, t) = (p.id.index(), p.call_id());
    for component in [(i + 1) % 3, i] {
        faulty!(AndUnmasked => (), p.stream(component).xor(t, 0, &mut own));
    }
    p.send(STEP, Neighbour::Previous, |m| m.extend_from_slice(&own));
    let next = p.receive(STEP, [0, own.len()]).await.take(Neighbour::Next);
    Ok(BitShare { blocks: x.blocks, len: x.len, own, next })
}

/// The conjunction of `groups` groups of `factors` blocks each: factor k of group g is block k * groups + g. One block
/// a group.
///
/// # Errors
/// Those of the transport.
pub async fn and_all(p: &Party, bits: BitShare, groups: usize) -> Result<BitShare> {
    let mut bits = bits;
    while bits.blocks > groups {
        let factors = bits.blocks / groups;
        let half = factors / 2;
        let left = bits.gather(0..half * groups);
        let right = bits.gather(half * groups..2 * half * groups);
        let rest = bits.gather(2 * half * groups..bits.blocks);
        bits = and(p, &left, &right).await?;
        bits = faulty!(AndOdd => bits, bits.append(&rest));
    }
    Ok(bits)
}
