//! Opening a share to all parties.
//!
//! computes   x_0 + x_1 + x_2 at every party
//! cost       1 round, 24 bytes an element, all parties ([`REVEAL`])
//! reveals    the value, and nothing else

use crate::cost::Cost;
use crate::error::Result;
use crate::id::Neighbour;
use crate::party::Party;
use crate::share::Share;
use crate::step::Step;

/// The cost of [`reveal`], an element.
pub const REVEAL: Cost = Cost { rounds: 1, bits_per_element: 3 * 64 };

/// Opens x to all three parties, in row-major order. Party i lacks component i - 1, which party i - 1 holds as its own.
///
/// # Errors
/// Those of the transport.
pub async fn reveal(p: &Party, x: &Share) -> Result<Vec<i64>> {
    const STEP: Step = Step::Reveal;
    p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&x.own));
    let received = p.receive(STEP, [x.len(), 0]).await;
    let missing = received.from(Neighbour::Previous);
    Ok((0..x.len()).map(|i| x.own[i].wrapping_add(x.next[i]).wrapping_add(missing[i]) as i64).collect())
}
