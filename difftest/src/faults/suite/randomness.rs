//! The streams that mask everything, and inputs that a party shares with them.

use super::operands::anything;
use crate::explain::cause::Cause;
use crate::faults::cause::Evidence;
use crate::faults::harness::{ALARM, Harness};
use crate::faults::three_parties::{self, Output, run};
use crate::statistics::{bit_balance, repeats};
use Output::{Bits, Common, Ring};
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::spec::Rounding::Nearest;
use secure::id::PartyId;
use secure::party::Party;
use secure::protocol::input::{bits_from_party_0, from_party_0};

pub(super) fn streams(harness: &mut Harness, _: &mut ChaCha12Rng) {
    const N: usize = 512;
    // The same tickets at all parties: two purposes of one call, and another call.
    let draw = |p: &Party| -> secure::Result<Vec<Output>> {
        let tickets = [p.call_id(), p.call_id()];
        let of = |c: usize| {
            let mut out = vec![0; 3 * N];
            for (k, out) in out.chunks_mut(N).enumerate() {
                p.stream(c).add(tickets[k / 2], (k % 2) as u8, out);
            }
            out
        };
        Ok(vec![Common([of(p.id.index()), of((p.id.index() + 1) % 3)])])
    };
    if harness.finding.is_some() {
        return;
    }
    let at = "prg";
    let runs = run(harness.fixed, Nearest, None, draw).and_then(|a| Ok((a, run(harness.fixed, Nearest, None, draw)?)));
    let (a, b) = match runs {
        Ok(runs) => runs,
        Err(e) => return harness.found("protocol-error", at, Cause::Protocol, e),
    };
    let [p, q, r] = &a.outputs;
    if let Err(e) = three_parties::open([&p[0], &q[0], &r[0]]) {
        return harness.found("replicas", at, Cause::Protocol, format!("streams: {e}"));
    }
    for (i, (a, b)) in a.outputs.iter().zip(&b.outputs).enumerate() {
        let (Common([a, _]), Common([b, _])) = (&a[0], &b[0]) else { continue };
        harness.words += a.len() as u64;
        let (balance, repeated) = (bit_balance(a), repeats(a));
        let both: Vec<u64> = a.iter().zip(b).map(|(a, b)| a ^ b).collect();
        let detail = if both.iter().all(|d| *d == 0) {
            "two set-ups draw the same words: the seeds are constant".to_owned()
        } else if balance.log2_p < ALARM {
            format!("bit {} is set in {} of {} words", balance.bit, balance.ones, balance.words)
        } else if repeated.log2_p < ALARM {
            format!("{} of {} words repeat earlier ones: two calls draw the same", repeated.repeated, repeated.words)
        } else {
            continue;
        };
        harness.found("transcript", at, Cause::Protocol, format!("stream {i}: {detail}"));
    }
}

pub(super) fn inputs(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for n in [64, 1 + rng.random_range(0..200)] {
        let v = anything(rng, n);
        let words: Vec<u64> = v.iter().map(|v| *v as u64).collect();
        harness.case(
            "input",
            &format!("{n} values and {n} words of bits of party 0"),
            Nearest,
            &[],
            &Evidence::Algebra,
            async |p: &Party, _| {
                let mine = if p.id == PartyId::P0 { &words[..] } else { &[] };
                Ok(vec![Ring(from_party_0(p, mine, n).await?), Bits(bits_from_party_0(p, mine, 1, 64 * n).await?)])
            },
            |_| {
                let bits = words.iter().flat_map(|w| (0..64).map(move |k| (w >> k & 1) as i64)).collect();
                Ok(vec![v.clone(), bits])
            },
        );
    }
}
