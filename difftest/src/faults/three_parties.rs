//! Three parties for one protocol call, with everything they say on record.

use reference::spec::{FixedSpec, Rounding};
use secure::Result;
use secure::id::PartyId;
use secure::net::memory::network;
use secure::net::recorded::{Message, Recorded, Transcript};
use secure::party::{Party, Record};
use secure::prg::Seed;
use secure::share::{BitShare, Parts, Share};
use std::time::Duration;

/// A result of a protocol, as one party holds it.
#[derive(Debug, Clone)]
pub enum Output {
    /// A share of ring elements.
    Ring(Share),
    /// A share of bits.
    Bits(BitShare),
    /// An additive part.
    Parts(Parts),
    /// Words that both holders of a component must have alike: this party's own, then its next.
    Common([Vec<u64>; 2]),
}

/// The run of a protocol by three parties.
#[derive(Debug)]
pub struct Run {
    /// By party, one entry for each result of the protocol.
    pub outputs: [Vec<Output>; 3],
    /// The record of each party.
    pub records: [Record; 3],
    /// Every message between the parties.
    pub messages: Vec<Message>,
}

/// Runs `program` as three parties: with the streams 0, 1, 2 of `seeds`, or after a set-up with randomness from the
/// operating system.
///
/// # Errors
/// The first party's error that is not only another one's absence; a party that panicked is named.
pub fn run(
    fixed: FixedSpec,
    rounding: Rounding,
    seeds: Option<[Seed; 3]>,
    program: impl Fn(&Party) -> Result<Vec<Output>> + Sync,
) -> std::result::Result<Run, String> {
    let transcript = Transcript::default();
    let program = &program;
    let ended: Vec<_> = std::thread::scope(|scope| {
        let parties: Vec<_> = PartyId::ALL
            .into_iter()
            .zip(network(Duration::from_secs(10)))
            .map(|(id, link)| {
                let link = Box::new(Recorded::new(link, id, transcript.clone()));
                let party = std::thread::Builder::new().name(format!("party {id}"));
                party.spawn_scoped(scope, move || {
                    let p = match seeds {
                        Some(s) => Party::new(id, fixed, rounding, link, [s[id.index()], s[id.next().index()]]),
                        None => Party::connect(id, fixed, rounding, link, None)?,
                    };
                    p.record(true);
                    let outputs = program(&p)?;
                    Ok((outputs, p.record(false)))
                })
            })
            .collect();
        let joined = |p: std::io::Result<std::thread::ScopedJoinHandle<_>>| {
            p.map_err(|e| format!("the system gives no thread for a party: {e}")).map(|p| p.join())
        };
        parties.into_iter().map(joined).collect::<Vec<_>>()
    });
    let (mut outputs, mut records, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (id, one) in PartyId::ALL.into_iter().zip(ended) {
        match one? {
            Err(_) => return Err(format!("party {id} panicked")),
            Ok(Err(e)) => errors.push(e),
            Ok(Ok((out, record))) => {
                outputs.push(out);
                records.push(record);
            }
        }
    }
    if let Some(e) = secure::Error::cause(errors) {
        return Err(e.to_string());
    }
    let three = |_| "three parties answer".to_owned();
    Ok(Run {
        outputs: outputs.try_into().map_err(three)?,
        records: records.try_into().map_err(|_| "three parties answer".to_owned())?,
        messages: transcript.take(),
    })
}

/// The values behind one result: both copies of every component must agree.
///
/// # Errors
/// Names the component and the index where they do not.
pub fn open(outputs: [&Output; 3]) -> std::result::Result<Vec<i64>, String> {
    let components: Vec<[Vec<u64>; 2]> = match outputs {
        [Output::Parts(a), Output::Parts(b), Output::Parts(c)] => {
            let sum = |i: usize| a.part[i].wrapping_add(b.part[i]).wrapping_add(c.part[i]) as i64;
            return Ok((0..a.part.len()).map(sum).collect());
        }
        _ => outputs
            .iter()
            .map(|o| match o {
                Output::Ring(s) => [s.own.to_vec(), s.next.to_vec()],
                Output::Bits(b) => [unpacked(&b.own, b), unpacked(&b.next, b)],
                Output::Common(both) => both.clone(),
                Output::Parts(p) => [p.part.to_vec(), Vec::new()],
            })
            .collect(),
    };
    for i in 0..3 {
        let (holder, other) = (&components[i][1], &components[(i + 1) % 3][0]);
        if holder.len() != other.len() {
            return Err(format!(
                "the two copies of component {} have {} and {} words",
                (i + 1) % 3,
                holder.len(),
                other.len()
            ));
        }
        if let Some(at) = holder.iter().zip(other).position(|(a, b)| a != b) {
            return Err(format!("the two copies of component {} differ at index {at}", (i + 1) % 3));
        }
    }
    let join = match outputs[0] {
        Output::Bits(_) => |a: u64, b: u64| a ^ b,
        _ => u64::wrapping_add,
    };
    let [a, b, c] = [&components[0][0], &components[1][0], &components[2][0]];
    Ok((0..a.len()).map(|i| join(join(a[i], b[i]), c[i]) as i64).collect())
}

/// The bits as 0 / 1 words; what lies beyond a block's length means nothing.
fn unpacked(words: &[u64], b: &BitShare) -> Vec<u64> {
    let w = b.words();
    (0..b.blocks * b.len).map(|i| words[i / b.len * w + i % b.len / 64] >> (i % b.len % 64) & 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::masks;
    use secure::protocol::{input::deal, multiply::multiply, truncate::truncate};

    /// The masks of messages that are not on record are judged by nobody; the first round was not, once.
    #[test]
    fn every_word_of_every_round_is_on_record() {
        let x = deal(100, 1, &[3 << 16; 100], None).unwrap();
        for seeds in [None, Some([[1; 16], [2; 16], [3; 16]])] {
            for rounding in Rounding::ALL {
                let spent = std::sync::Mutex::new(0);
                let ran = run(FixedSpec::default(), rounding, seeds, |p| {
                    let x = &x[p.id.index()];
                    p.run(async { truncate(p, &multiply(p, x, x).await?, 16, "t").await })?;
                    *spent.lock().unwrap() += p.spent().bytes as usize;
                    Ok(vec![])
                })
                .unwrap();
                let sent = PartyId::ALL.into_iter().zip(&ran.records);
                let words = masks::words(&ran.messages, sent.flat_map(|(id, r)| r.sent.iter().map(move |s| (id, s))));
                let kept: usize = words.values().map(Vec::len).sum();
                assert_eq!(8 * kept, spent.into_inner().unwrap(), "{rounding}, seeds {seeds:?}");
            }
        }
    }
}
