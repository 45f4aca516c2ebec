//! Sharing what one side knows.
//!
//! * [`deal`], [`deal_keyed`]: a client outside the three parties splits a secret; each party is handed its two
//!   components.
//! * [`from_party_0`], [`bits_from_party_0`]: party 0 shares a value. Component 0 is stream 0, which parties 2 and 0
//!   have in common; party 0 sends component 1 to party 1; component 2 is zero.
//!
//! cost       1 round, 8 bytes (1 bit) an element, sent by party 0 ([`FROM_PARTY_0`], [`BITS_FROM_PARTY_0`])
//! reveals    nothing: the message is masked with stream 0, which party 1 does not have

use crate::buffer::Words;
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::fault::faulty;
use crate::id::Neighbour;
use crate::id::PartyId;
use crate::party::Party;
use crate::prg::{CallId, Seed, Stream, fresh_seed, seed_of};
use crate::share::{BitShare, Share};
use crate::step::Step;
use serde::{Deserialize, Serialize};

/// The cost of [`from_party_0`], an element.
pub const FROM_PARTY_0: Cost = Cost { rounds: 1, bits_per_element: 64 };
/// The cost of [`bits_from_party_0`], a bit.
pub const BITS_FROM_PARTY_0: Cost = Cost { rounds: 1, bits_per_element: 1 };

/// A component of a share on its way to a party that holds it.
#[derive(Serialize, Deserialize)]
enum Component {
    /// The words that this key gives: 16 bytes in place of 8 an element. It serves this component alone.
    Key(Seed),
    /// The words themselves.
    Words(Words),
}

impl Component {
    fn words(self, n: usize) -> Words {
        match self {
            Component::Key(key) => Stream::new(key).words(CallId(0), 0, n),
            Component::Words(words) => words,
        }
    }
}

/// One party's share of a dealt secret as it travels: two components, of which those that are nothing but randomness
/// are keys.
#[derive(Serialize, Deserialize)]
pub struct Dealt {
    rows: usize,
    cols: usize,
    own: Component,
    next: Component,
}

impl Dealt {
    /// Rows and columns of the secret.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Expands the keys to the share.
    ///
    /// # Errors
    /// A component that does not have as many words as the secret has elements.
    pub fn share(self) -> Result<Share> {
        let n = self.rows.checked_mul(self.cols).filter(|&n| n <= MOST_DEALT);
        let n = n.ok_or_else(|| Error::misuse(format!("a dealt matrix of {} x {}", self.rows, self.cols)))?;
        let (own, next) = (self.own.words(n), self.next.words(n));
        if own.len() != n || next.len() != n {
            let lengths = format!("{} and {}", own.len(), next.len());
            return Err(Error::misuse(format!("a dealt matrix of {n} elements has components of {lengths} words")));
        }
        Ok(Share::new(self.rows, self.cols, own, next))
    }
}

/// Elements that one dealt matrix may have: what a key expands to must not take all of a party's memory.
const MOST_DEALT: usize = 1 << 28;

/// Splits a matrix of ring units for the three parties, with randomness from `seed` or from the operating system.
/// Components 0 and 1 are random and travel as keys, component 2 makes up the difference: party 0 is handed 32 bytes,
/// parties 1 and 2 16 bytes and the words.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn deal_keyed(rows: usize, cols: usize, units: &[i64], seed: Option<Seed>) -> Result<[Dealt; 3]> {
    debug_assert_eq!(units.len(), rows * cols);
    let keys = match seed {
        Some(seed) => [0, 1].map(|k| {
            let words = Stream::new(seed).words(CallId(0), k, 2);
            seed_of([words[0], words[1]])
        }),
        None => [fresh_seed()?, fresh_seed()?],
    };
    let [x0, x1] = keys.map(|key| Component::Key(key).words(units.len()));
    let x2: Words = (0..units.len()).map(|i| (units[i] as u64).wrapping_sub(x0[i]).wrapping_sub(x1[i])).collect();
    let dealt = |own, next| Dealt { rows, cols, own, next };
    Ok([
        dealt(Component::Key(keys[0]), Component::Key(keys[1])),
        dealt(Component::Key(keys[1]), Component::Words(x2.clone())),
        dealt(Component::Words(x2), Component::Key(keys[0])),
    ])
}

/// Splits a matrix of ring units into the three parties' shares, as [`deal_keyed`] does.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn deal(rows: usize, cols: usize, units: &[i64], seed: Option<Seed>) -> Result<[Share; 3]> {
    let [a, b, c] = deal_keyed(rows, cols, units, seed)?;
    Ok([a.share()?, b.share()?, c.share()?])
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
    const STEP: Step = Step::Input;
    let t = p.call_id();
    let mask = || faulty!(InputUnmasked => Words::zeros(n), p.stream(0).words(t, 0, n));
    Ok(match p.id {
        PartyId::P0 => {
            let x0 = mask();
            let x1: Words = words.iter().zip(&x0).map(|(v, m)| less(*v, *m)).collect();
            p.send(STEP, Neighbour::Next, |m| m.extend_from_slice(&x1));
            p.receive(STEP, [0, 0]).await;
            (x0, x1)
        }
        PartyId::P1 => (p.receive(STEP, [n, 0]).await.take(Neighbour::Previous), Words::zeros(n)),
        PartyId::P2 => {
            p.receive(STEP, [0, 0]).await;
            (Words::zeros(n), mask())
        }
    })
}
