//! Every message of every protocol is masked. On a share whose three components are zero a message is its mask and
//! nothing else, so it must look like one: no word twice, every bit set half of the time. A mask that is missing, that
//! cancels or that serves two messages shows here and nowhere in the results.

use crate::buffer::Words;
use crate::error::Result;
use crate::id::PartyId;
use crate::net::Channel;
use crate::net::recorded::{Message, Recorded, Transcript};
use crate::party::{Party, TruncationView};
use crate::protocol::adder::{carry, low_sum};
use crate::protocol::boolean::and;
use crate::protocol::convert::to_ring;
use crate::protocol::input::{bits_from_party_0, from_party_0};
use crate::protocol::multiply::multiply;
use crate::protocol::select::{select, select_with_bit};
use crate::protocol::truncate::{truncate, truncate_doubled};
use crate::share::{BitShare, Planes, Share};
use crate::testing::world_over;
use spec::{FixedSpec, Rounding};
use std::collections::{BTreeMap, HashSet};

/// Elements of every operand: a multiple of 64, so that no message ends in padding.
const N: usize = 1 << 15;

/// Words by who said them: "step from party i to j".
type Spoken = BTreeMap<String, Vec<u64>>;

/// What was said, and what each party noted of its truncations. The seeds are fixed, so that a verdict by chance cannot
/// come and go.
fn said(rounding: Rounding, program: impl AsyncFn(&Party) -> Result<()> + Sync) -> (Spoken, Vec<Vec<TruncationView>>) {
    let transcript = Transcript::default();
    let recorded = |id: PartyId, link| {
        let link = Recorded::new(link, id, transcript.clone());
        (Box::new(link) as Box<dyn Channel>, Some([7 + id.index() as u8; 16]))
    };
    let (.., records) = world_over(FixedSpec::default(), rounding, recorded, |p| p.run(program(p)));
    let messages = transcript.take();
    let (mut out, mut views) = (Spoken::new(), Vec::new());
    for (from, record) in PartyId::ALL.into_iter().zip(records) {
        views.push(record.truncations);
        for s in record.sent.iter().filter(|s| !s.words.is_empty()) {
            let sent = |m: &&Message| (m.from, m.exchange, m.to) == (from, s.exchange, s.to);
            let message = messages.iter().find(sent).expect("what was written was sent");
            let words = out.entry(format!("{} from party {from} to {}", s.step, s.to)).or_default();
            words.extend_from_slice(&message.words[s.words.clone()]);
        }
    }
    (out, views)
}

/// Words that must look random. By Hoeffding's inequality one of the 64 frequencies is further from 1/2 than `t` with a
/// probability below 2^-40.
fn looks_random(what: &str, said: &Spoken) {
    assert!(!said.is_empty(), "{what} says nothing");
    let mut seen = HashSet::new();
    for (name, words) in said {
        let n = words.len() as f64;
        let t = (47.0 * std::f64::consts::LN_2 / (2.0 * n)).sqrt();
        assert!(t < 0.25, "{what}, {name}: {n} words are too few to tell");
        for bit in 0..64 {
            let ones = words.iter().filter(|w| *w >> bit & 1 == 1).count() as f64;
            assert!((ones / n - 0.5).abs() <= t, "{what}, {name}: bit {bit} is set in {ones} of {n} words");
        }
        for w in words {
            assert!(seen.insert(w), "{what}, {name}: the word {w:#x} is said twice");
        }
    }
}

#[test]
fn messages_about_zeros_are_masks_and_nothing_else() {
    let zeros = || Share::zeros(1, N);
    let bits = || BitShare { blocks: 1, len: N, own: Words::zeros(N / 64), next: Words::zeros(N / 64) };
    let known = |p: &Party, n: usize| if p.id == PartyId::P0 { vec![0; n] } else { vec![] };
    let check = |what: &str, said: (Spoken, Vec<Vec<TruncationView>>)| looks_random(what, &said.0);

    let nearest = Rounding::Nearest;
    check("input", said(nearest, async |p| from_party_0(p, &known(p, N), N).await.map(drop)));
    check("input of bits", said(nearest, async |p| bits_from_party_0(p, &known(p, N / 64), 1, N).await.map(drop)));
    check("multiply", said(nearest, async |p| multiply(p, &zeros(), &zeros()).await.map(drop)));
    check("and", said(nearest, async |p| and(p, &bits(), &bits()).await.map(drop)));
    check("bit to ring", said(nearest, async |p| to_ring(p, &bits()).await.map(drop)));
    check("select", said(nearest, async |p| select(p, &bits(), &zeros()).await.map(drop)));
    check("select with bit", said(nearest, async |p| select_with_bit(p, &bits(), &zeros()).await.map(drop)));
    for width in [1, 4, 5, 17] {
        let planes = Planes::of(&vec![0; N], 1, N, 0..width);
        check("carry", said(nearest, async |p| carry(p, &planes, width).await.map(drop)));
    }
    let planes = Planes::of(&vec![0; N], 1, N, 0..5);
    check("low sum", said(nearest, async |p| low_sum(p, &planes).await.map(drop)));
    for rounding in Rounding::ALL {
        for shift in [1, 16, 17, 32, 39, 61] {
            check("truncate", said(rounding, async |p| truncate(p, &zeros(), shift, "t").await.map(drop)));
            let doubled =
                async |p: &Party| truncate_doubled(p, zeros().parts().into(), shift.min(60), "t").await.map(drop);
            check("truncate a product", said(rounding, doubled));
        }
    }
}

/// The bits that parties 0 and 1 exchange in a probabilistic truncation are random by themselves, the most significant
/// bits of uniform numbers. Their masks show only when those are taken away.
#[test]
fn the_borrow_of_a_truncation_is_masked_on_both_sides() {
    let (said, views) =
        said(Rounding::Probabilistic, async |p| truncate(p, &Share::zeros(1, N), 16, "t").await.map(drop));
    let most_significant = |party: usize| -> Vec<u64> {
        let word = |c: &[u64]| c.iter().enumerate().fold(0, |w, (k, v)| w | (v >> 63) << k);
        views[party][0].part.chunks(64).map(word).collect()
    };
    let masks = |from: usize, to: usize, own: Vec<u64>| -> Spoken {
        let name = format!("truncate from party {from} to {to}");
        Spoken::from([(name.clone(), said[&name].iter().zip(own).map(|(said, own)| said ^ own).collect())])
    };
    // Party 0 says NOT msb(x0) ^ a first, party 1 says msb(m) ^ b first.
    looks_random("the mask a", &masks(0, 1, most_significant(0).into_iter().map(|w| !w).collect()));
    looks_random("the mask b", &masks(1, 0, most_significant(1)));
}
