//! Whether everything that one party receives is masked by randomness that it does not hold.
//!
//! A protocol runs twice with the same shares and the same two streams that the receiver holds, and with another third
//! stream. If every word sent to the receiver is masked by that stream, as the security of each protocol asks, then the
//! differences of the two runs' words are uniform and independent, whatever the words hide:
//!
//! * a word that stays the same has no mask, or a constant one;
//! * a bit position that is not balanced has a mask that is not uniform there;
//! * a difference that appears twice, up to its sign, belongs to a mask that was used twice. The receiver could
//!   subtract the two words and would see the difference of what they hide (a two-time pad). Words masked by exclusive
//!   or show it in the exclusive or, words masked by addition or subtraction in the difference modulo 2^64, so both are
//!   looked at, over all messages to the receiver together.

use crate::statistics::{bit_balance, repeats};
use secure::id::PartyId;
use secure::net::recorded::{Message, Sent};
use std::collections::BTreeMap;

/// The words of a recorded run by sender, receiver and protocol, in the order in which they were sent.
pub type Words = BTreeMap<(PartyId, PartyId, &'static str), Vec<u64>>;

/// Takes the messages of a run apart: `sent` tells which protocol wrote which words of which party's messages.
///
/// # Panics
/// If words that were sent are not recorded: what is not seen must not pass as masked.
pub fn words<'r>(messages: &[Message], sent: impl Iterator<Item = (PartyId, &'r Sent)>) -> Words {
    let at: BTreeMap<_, _> = messages.iter().map(|m| ((m.exchange, m.from, m.to), &m.words)).collect();
    let mut words = Words::new();
    for (from, s) in sent {
        let of_step = words.entry((from, s.to, s.step)).or_default();
        if !s.words.is_empty() {
            let part = at.get(&(s.exchange, from, s.to)).and_then(|words| words.get(s.words.clone()));
            of_step.extend(part.expect("every word that is sent is recorded"));
        }
    }
    words
}

/// The words that `to` received in both runs, by sender and protocol.
pub fn received(to: PartyId, first: &Words, again: &Words) -> Vec<Received> {
    let pair = |(key, words): (&(PartyId, PartyId, &'static str), &Vec<u64>)| Received {
        from: key.0,
        step: key.2,
        first: words.clone(),
        again: again.get(key).cloned().unwrap_or_default(),
    };
    first.iter().filter(|(key, _)| key.1 == to).map(pair).collect()
}

/// The words that one protocol sends to the receiver, in both runs.
#[derive(Debug, Clone)]
pub struct Received {
    /// The sender.
    pub from: PartyId,
    /// The protocol.
    pub step: &'static str,
    /// The words of the first run, in the order in which they were sent.
    pub first: Vec<u64>,
    /// The words of the run with another third stream.
    pub again: Vec<u64>,
}

/// Everything that was found out about one receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Words looked at.
    pub words: usize,
    /// The log2 of the smallest p-value of all tests.
    pub least: f64,
    /// The first test below the threshold, in words.
    pub leak: Option<String>,
}

/// Judges everything that `to` received. A test whose log2 p-value is below `threshold` is a leak.
///
/// Lengths must agree between the runs; where they do not, the shorter one counts (sizes are judged elsewhere).
pub fn judge(to: PartyId, received: &[Received], threshold: f64) -> Judged {
    let mut judged = Judged { words: 0, least: 0.0, leak: None };
    let mut note = |log2_p: f64, what: &dyn Fn() -> String| {
        judged.least = judged.least.min(log2_p);
        if log2_p < threshold && judged.leak.is_none() {
            judged.leak = Some(what());
        }
    };
    let (mut exclusive, mut differences) = (Vec::new(), Vec::new());
    for r in received {
        let start = exclusive.len();
        exclusive.extend(r.first.iter().zip(&r.again).map(|(a, b)| a ^ b));
        differences.extend(r.first.iter().zip(&r.again).map(|(a, b)| up_to_sign(a.wrapping_sub(*b))));
        let own = &exclusive[start..];
        let (n, equal) = (own.len(), own.iter().filter(|d| **d == 0).count());
        let whose = || format!("party {} to {to}, messages of \"{}\"", r.from, r.step);
        // One of n words is equal by chance with probability n 2^-64.
        note(equal as f64 * ((n.max(1) as f64).log2() - 64.0), &|| {
            format!(
                "{}: {equal} of {n} words do not depend on the randomness that the receiver lacks: their mask is \
                 missing or constant",
                whose()
            )
        });
        let balance = bit_balance(own);
        note(balance.log2_p, &|| {
            format!(
                "{}: bit {} changes with the randomness that the receiver lacks in {} of {n} words: the mask is not \
                 uniform there",
                whose(),
                balance.bit,
                balance.ones
            )
        });
    }
    for (list, kind, sign) in [(&exclusive, "exclusive or", 0.0), (&differences, "difference", 1.0)] {
        let found = repeats(list);
        // Up to its sign a difference has one bit less, so each repeat is twice as likely.
        note((found.log2_p + sign * found.repeated as f64).min(0.0), &|| {
            let (second, first) = found.first.expect("something repeats");
            format!(
                "{} and {}: {} of {} words have the {kind} with the other run of an earlier word: a mask is used twice",
                place(to, received, first),
                place(to, received, second),
                found.repeated,
                found.words
            )
        });
    }
    judged.words = exclusive.len();
    judged
}

/// The smaller of d and -d mod 2^64.
fn up_to_sign(d: u64) -> u64 {
    d.min(d.wrapping_neg())
}

/// Names the word at `index` of all that was received.
fn place(to: PartyId, received: &[Received], mut index: usize) -> String {
    for r in received {
        let n = r.first.len().min(r.again.len());
        if index < n {
            return format!("party {} to {to}, word {index} of \"{}\"", r.from, r.step);
        }
        index -= n;
    }
    format!("party {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    const N: usize = 4096;

    /// Words that hide `secret` under masks of two runs.
    fn received(step: &'static str, secret: &[u64], masks: [&[u64]; 2], hide: fn(u64, u64) -> u64) -> Received {
        let words = |mask: &[u64]| secret.iter().zip(mask).map(|(s, m)| hide(*s, *m)).collect();
        Received { from: PartyId::P0, step, first: words(masks[0]), again: words(masks[1]) }
    }

    fn random(seed: u64, n: usize) -> Vec<u64> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random()).collect()
    }

    #[test]
    fn fresh_masks_pass_whatever_they_hide() {
        for hide in [u64::wrapping_sub, u64::wrapping_add, |s: u64, m: u64| s ^ m] {
            let (a, b) = (random(1, 2 * N), random(2, 2 * N));
            let all = [
                received("zeros", &[0; N], [&a[..N], &b[..N]], hide),
                received("values", &random(3, N), [&a[N..], &b[N..]], hide),
            ];
            let judged = judge(PartyId::P1, &all, -40.0);
            assert_eq!((judged.words, judged.leak), (2 * N, None));
        }
    }

    #[test]
    fn a_mask_that_is_missing_or_not_uniform_is_a_leak() {
        let (secret, mut a, mut b) = (random(3, N), random(1, N), random(2, N));
        let leak = |a: &[u64], b: &[u64]| {
            judge(PartyId::P1, &[received("s", &secret, [a, b], u64::wrapping_add)], -40.0).leak.unwrap()
        };
        assert!(leak(&[7; N], &[7; N]).contains("missing or constant"));
        for mask in [&mut a, &mut b] {
            mask.iter_mut().for_each(|m| *m &= u64::MAX >> 32);
        }
        assert!(leak(&a, &b).contains("not uniform"), "32 of 64 bits");
    }

    /// The two leaks of a review: an offset of pieces that is forgotten, and one mask for two answers.
    #[test]
    fn a_mask_that_serves_twice_is_a_leak_whatever_it_hides() {
        let (a, b) = (random(1, N), random(2, N));
        let twice = |m: &[u64]| [&m[..N / 2], &m[..N / 2]].concat();
        let pieces = received("truncate", &random(3, N), [&twice(&a), &twice(&b)], u64::wrapping_sub);
        let leak = judge(PartyId::P1, &[pieces], -40.0).leak.unwrap();
        assert!(leak.contains(&format!("word 0 of \"truncate\" and party 0 to 1, word {} of", N / 2)), "{leak}");

        let xor = |s: u64, m: u64| s ^ m;
        let answers = [
            received("adder", &random(3, N), [&a, &b], xor),
            Received { from: PartyId::P2, ..received("adder", &random(4, N), [&a, &b], xor) },
        ];
        let leak = judge(PartyId::P0, &answers, -40.0).leak.unwrap();
        assert!(leak.contains("exclusive or") && leak.contains("party 2 to 0"), "{leak}");
        let negated = [
            received("a", &random(3, N), [&a, &b], u64::wrapping_add),
            received("b", &random(4, N), [&a, &b], u64::wrapping_sub),
        ];
        assert!(
            judge(PartyId::P0, &negated, -40.0).leak.unwrap().contains("difference"),
            "added here, subtracted there"
        );
    }
}
