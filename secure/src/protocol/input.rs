//! Sharing what one side knows.
//!
//! * [`deal`]: a client outside the three parties splits a secret; each party is handed its two components.
//! * [`from_party_0`], [`bits_from_party_0`]: party 0 shares a value. Component 0 is stream 0, which parties 2 and 0 have in
//!   common; party 0 sends component 1 to party 1; component 2 is zero.
//!
//! cost       1 round, 8 bytes (1 bit) an element, sent by party 0
//! reveals    nothing: the message is masked with stream 0, which party 1 does not have

use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::net::Neighbour;
use crate::party::{Party, PartyId};
use crate::prg::{Stream, Ticket, fresh_seed};
use crate::share::{BitShare, Share};
use crate::words::Words;

/// Splits a matrix of ring units into the three parties' shares, with randomness from `seed` or from the operating system.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn deal(rows: usize, cols: usize, units: &[i64], seed: Option<[u8; 16]>) -> Result<[Share; 3]> {
    debug_assert_eq!(units.len(), rows * cols);
    let stream = Stream::new(match seed {
        Some(s) => s,
        None => fresh_seed()?,
    });
    let x0 = stream.words(Ticket(0), 0, units.len());
    let x1 = stream.words(Ticket(0), 1, units.len());
    let x2: Words = (0..units.len()).map(|i| (units[i] as u64).wrapping_sub(x0[i]).wrapping_sub(x1[i])).collect();
    Ok([
        Share::new(rows, cols, x0.clone(), x1.clone()),
        Share::new(rows, cols, x1, x2.clone()),
        Share::new(rows, cols, x2, x0),
    ])
}

/// Shares party 0's `values` (the other parties pass an empty slice and the same `n`), as a column.
///
/// # Errors
/// Those of the transport.
pub async fn from_party_0(p: &Party, values: &[u64], n: usize) -> Result<Share> {
    let (own, next) = components(p, values, n, u64::wrapping_sub).await?;
    Ok(Share::new(n, 1, own, next))
}

/// Shares party 0's bit vectors (the other parties pass an empty slice and the same shape).
///
/// # Errors
/// Those of the transport.
pub async fn bits_from_party_0(p: &Party, bits: &[u64], blocks: usize, len: usize) -> Result<BitShare> {
    let (own, next) = components(p, bits, blocks * len.div_ceil(64), |v, mask| v ^ mask).await?;
    Ok(BitShare { blocks, len, own, next })
}

/// This party's two components of party 0's `n` words; `less` takes the mask away from a word.
async fn components(p: &Party, words: &[u64], n: usize, less: fn(u64, u64) -> u64) -> Result<(Words, Words)> {
    const STEP: &str = "input";
    let t = p.ticket();
    let mask = || if planted(Fault::InputUnmasked) { Words::zeros(n) } else { p.stream(0).words(t, 0, n) };
    Ok(match p.id {
        PartyId::P0 => {
            let x0 = mask();
            let x1: Words = words.iter().zip(&x0).map(|(v, m)| less(*v, *m)).collect();
            p.say(STEP, Neighbour::Next, |m| m.extend_from_slice(&x1));
            p.hear(STEP, [0, 0]).await;
            (x0, x1)
        }
        PartyId::P1 => (p.hear(STEP, [n, 0]).await.take(Neighbour::Previous), Words::zeros(n)),
        PartyId::P2 => {
            p.hear(STEP, [0, 0]).await;
            (Words::zeros(n), mask())
        }
    })
}
