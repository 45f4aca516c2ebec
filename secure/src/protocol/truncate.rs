//! Truncation: division by 2^s with probabilistic or nearest rounding, without failure.
//!
//! computes   probabilistic: floor(V / 2^s) + c, P\[c = 1\] = (V mod 2^s) / 2^s exactly;
//!            nearest: floor((V + 2^(s-1)) / 2^s)
//! requires   -2^62 <= V < 2^62 (nearest: V + 2^(s-1) in that range), 1 <= s <= 61. Outside, the result may be low by
//!            2^(64-s). Of matrix products the double is known and divided by one bit more: half the range, s <= 60
//!            ([`truncate_doubled`])
//! cost       probabilistic, fused with a product: 3 rounds, 24 bytes + s + 2 bits an element; nearest: an s-bit carry
//!            and 2 rounds, for a product 16 bytes more and no more rounds ([`truncate_cost`],
//!            [`truncate_product_cost`], [`truncate_doubled_cost`])
//! error      probabilistic: in (-1, 1) units, mean 0; nearest: at most 1/2 unit
//! reveals    nothing by its messages; the probabilistic coin depends on what single parties know (see "The coin")
//! source     own variant of the two-party truncation with a helper; compare Dalskov, Escudero and Keller, *Secure
//!            evaluation of quantized neural networks* (PETS 2020)
//!
//! `probabilistic.rs` and `nearest.rs` hold the two protocols, message by message; `offset.rs` and `pack.rs` what they
//! share.
//!
//! # Shape of the value
//!
//! V' = V + 2^62 (nearest: + 2^(s-1)) is in [0, 2^63) and is brought into the form x0 - m mod 2^64, x0 known to party
//! 0. Then
//!
//! ```text
//! floor(V' / 2^s) = (x0 >> s) - (m >> s) + [x0 < m] 2^(64-s) - [x0 mod 2^s < m mod 2^s]
//! ```
//!
//! and because V' < 2^63, x0 < m exactly if msb(m) = 1 and msb(x0) = 0. So the borrow costs one AND of two privately
//! known bits, and only its lowest s bits count (it is multiplied by 2^(64-s)).
//!
//! Probabilistic rounding leaves the last bit out, nearest rounding computes it.
//!
//! # The coin
//!
//! c = [q < V mod 2^s] with q = x0 mod 2^s. Party 0 knows q. Party 1 knows m, and with it q as a function of V. Party 2
//! knows x0 as well where the operand is a replicated value ([`truncate()`]), for it then holds z_0 and r. So this is
//! not "V / 2^s, rounded by a coin that nobody knows" but the following ideal functionality, its leakage included:
//!
//! ```text
//! draw x0 uniform in Z_2^64; give x0 to party 0 (and to party 2 on a replicated value) and m = x0 - V' to party 1
//! share y = ceil((V - q) / 2^s)
//! ```
//!
//! All messages can be simulated from it, and x0 or m alone says nothing of V. But whoever knows q and sees y opened,
//! or a value that depends on y, weights for instance, learns more of V than y tells: 2^s values, all equally likely,
//! instead of a triangle over 2^(s+1), 0.72 bit an element; k truncations of one V, all opened, leave about 2^s / k
//! values. That is the known caveat of probabilistic truncation. Li et al. (USENIX Security 2023) showed that protocols
//! of its kind do not realise the functionality with a secret coin, Santos et al. (eprint 2024/1127) repair the proof
//! with a functionality that has such a leak, and issue 1494 of MP-SPDZ discusses what it means in practice. Nearest
//! rounding has no coin.

mod nearest;
mod offset;
mod pack;
mod probabilistic;
#[cfg(test)]
mod tests;

pub use nearest::{nearest_cost, nearest_product_cost};
pub use probabilistic::probabilistic_cost;

use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::party::Party;
use crate::share::{Doubled, Parts, Share};
use nearest::{nearest, two_sided};
use probabilistic::probabilistic;
use spec::Rounding;

/// The cost of [`truncate()`], an element.
pub const fn truncate_cost(rounding: Rounding, shift: u32) -> Cost {
    match rounding {
        Rounding::Probabilistic => probabilistic_cost(shift),
        Rounding::Nearest => nearest_cost(shift),
    }
}

/// The cost of [`truncate_product`], an element.
pub const fn truncate_product_cost(rounding: Rounding, shift: u32) -> Cost {
    match rounding {
        Rounding::Probabilistic => probabilistic_cost(shift),
        Rounding::Nearest => nearest_product_cost(shift),
    }
}

/// The cost of [`truncate_doubled`], an element.
pub const fn truncate_doubled_cost(rounding: Rounding, shift: u32) -> Cost {
    match rounding {
        Rounding::Probabilistic => probabilistic_cost(shift + 1),
        Rounding::Nearest => nearest_product_cost(shift),
    }
}

/// Truncates an unreduced product, given by its additive parts, by `shift` bits. `name` is the truncation's name in the
/// arithmetic specification, under which its coins are recorded.
///
/// # Errors
/// A shift outside 1..=61; those of the transport.
pub async fn truncate_product(p: &Party, parts: Parts, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    truncate_parts(p, parts, 0, shift, name.as_ref()).await
}

/// Truncates a matrix product, given by the additive parts of its double, by `shift` bits.
///
/// # Errors
/// A shift outside 1..=60; those of the transport.
pub async fn truncate_doubled(p: &Party, parts: Doubled, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    truncate_parts(p, parts.0, 1, shift, name.as_ref()).await
}

/// Truncates 2^`up` V by `up` bits more.
async fn truncate_parts(p: &Party, parts: Parts, up: u32, shift: u32, name: &str) -> Result<Share> {
    check(shift, up)?;
    match p.rounding {
        Rounding::Probabilistic => probabilistic(p, parts, shift + up, name).await,
        Rounding::Nearest => {
            let shape = (parts.rows, parts.cols);
            nearest(p, shape, two_sided(p, parts.part), up..shift + up, name).await
        }
    }
}

/// Truncates a replicated value by `shift` bits.
///
/// # Errors
/// A shift outside 1..=61; those of the transport.
pub async fn truncate(p: &Party, x: &Share, shift: u32, name: impl AsRef<str>) -> Result<Share> {
    check(shift, 0)?;
    match p.rounding {
        Rounding::Probabilistic => probabilistic(p, x.parts(), shift, name.as_ref()).await,
        Rounding::Nearest => {
            let known = async { Ok(x.two_sided(p.id)) };
            nearest(p, x.shape(), known, 0..shift, name.as_ref()).await
        }
    }
}

fn check(shift: u32, up: u32) -> Result<()> {
    let most = 61 - up;
    if (1..=most).contains(&shift) {
        return Ok(());
    }
    Err(Error::misuse(format!("truncation by {shift} bits; the ring allows 1 to {most}")))
}
