//! The client outside of the three parties puts together the parts that each of them hands it: shares to values, views
//! of truncations to roundings.
//!
//! Nothing here runs at a party. The two copies of every component must agree; where they do not, no value is made up.

use crate::error::{Error, Result};
use crate::id::PartyId;
use crate::net::recorded::Sent;
use crate::nn::dense::LayerShare;
use crate::opened::{LayerUnits, ParameterUnits, Probe, RoundingRecord};
use crate::party::{Probed, Record, TruncationView};
use crate::share::{Doubled, Share};
use spec::{LAYER_NAMES, ProbePoint, Rounding};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Which protocols wrote which words of the parties' messages.
pub(crate) fn sent(records: &mut [Record]) -> Vec<(PartyId, Sent)> {
    let of_each = PartyId::ALL.into_iter().zip(records);
    of_each.flat_map(|(id, record)| std::mem::take(&mut record.sent).into_iter().map(move |sent| (id, sent))).collect()
}

/// The first party that drew the same randomness twice, and where.
pub(crate) fn reused(records: &[Record]) -> Option<String> {
    let of_each = PartyId::ALL.into_iter().zip(records);
    of_each.filter_map(|(id, r)| r.reused.map(|(call, p)| format!("party {id}, call {}, purpose {p}", call.0))).next()
}

/// Whether every receiver declared of each message what its sender wrote: the same protocols, in the same order, the
/// same words each.
///
/// # Errors
/// Names the first exchange in which they differ, with both declarations.
pub(crate) fn check_messages(records: &[Record]) -> Result<()> {
    type Declared = BTreeMap<(u64, PartyId, PartyId), Vec<(&'static str, Range<usize>)>>;
    let (mut written, mut expected) = (Declared::new(), Declared::new());
    for (id, record) in PartyId::ALL.into_iter().zip(records) {
        for s in record.sent.iter().filter(|s| !s.words.is_empty()) {
            written.entry((s.exchange, id, s.to)).or_default().push((s.step, s.words.clone()));
        }
        for e in record.expected.iter().filter(|e| !e.words.is_empty()) {
            expected.entry((e.exchange, e.from, id)).or_default().push((e.step, e.words.clone()));
        }
    }
    [&mut written, &mut expected].into_iter().flat_map(|d| d.values_mut()).for_each(join_neighbours);
    let all: BTreeSet<_> = written.keys().chain(expected.keys()).collect();
    match all.into_iter().find(|at| written.get(at) != expected.get(at)) {
        None => Ok(()),
        Some(at @ &(exchange, from, to)) => {
            let (wrote, wants) = (written.get(at), expected.get(at));
            let (step, ..) = wants.or(wrote).and_then(|d| d.first()).map_or(("nothing", 0..0), Clone::clone);
            let what = format!("party {from} wrote {wrote:?} in exchange {exchange}, which expects {wants:?}");
            Err(Error::PeerMisbehaved { party: to, step: step.to_owned(), what })
        }
    }
}

/// Ranges of one protocol that meet are one range: a sender may write in two goes what its receiver takes in one.
fn join_neighbours(declared: &mut Vec<(&'static str, Range<usize>)>) {
    declared.dedup_by(|later, first| {
        let meet = later.0 == first.0 && later.1.start == first.1.end;
        if meet {
            first.1.end = later.1.end;
        }
        meet
    });
}

/// Opens probes (both copies of every share component must agree) and derives the rounding from the views of parties 0
/// and 1.
pub(crate) fn put_together(records: Vec<Record>, rounding: Rounding) -> Result<(Vec<Probe>, Vec<RoundingRecord>)> {
    let [r0, r1, r2]: [Record; 3] = records.try_into().map_err(|_| Error::misuse("three parties record"))?;
    check_alike([&r0, &r1, &r2])?;
    let mut probes = Vec::with_capacity(r0.probes.len());
    for (((point, a), (_, b)), (_, c)) in r0.probes.into_iter().zip(r1.probes).zip(r2.probes) {
        let (rows, cols, units) = match (a, b, c) {
            (Probed::Share(a), Probed::Share(b), Probed::Share(c)) => {
                let shares = [a, b, c];
                let units = reconstruct(&shares).map_err(|how| differ(point, how))?;
                (shares[0].rows, shares[0].cols, units)
            }
            (Probed::Doubled(Doubled(a)), Probed::Doubled(Doubled(b)), Probed::Doubled(Doubled(c))) => {
                let sum = |i: usize| a.part[i].wrapping_add(b.part[i]).wrapping_add(c.part[i]) as i64 >> 1;
                (a.rows, a.cols, (0..a.part.len()).map(sum).collect())
            }
            _ => return Err(Error::misuse(format!("{point}: the parties probed different kinds of share"))),
        };
        probes.push(Probe { point, rows, cols, units });
    }
    Ok((probes, roundings(r0.truncations, r1.truncations, rounding)))
}

/// Whether the parties handed out probes of the same tensors in the same shapes, and views of the same truncations:
/// what comes from another process may be anything.
fn check_alike(records: [&Record; 3]) -> Result<()> {
    let [first, others @ ..] = records;
    let alike = |(mine, theirs): (&(ProbePoint, Probed), &(ProbePoint, Probed))| {
        let shape = |probed: &Probed| match probed {
            Probed::Share(share) => (0, share.shape()),
            Probed::Doubled(Doubled(parts)) => (1, (parts.rows, parts.cols)),
        };
        mine.0 == theirs.0 && shape(&mine.1) == shape(&theirs.1)
    };
    for other in others {
        let same = first.probes.len() == other.probes.len() && first.probes.iter().zip(&other.probes).all(alike);
        if !same {
            return Err(differ("probes", "the parties hand out different tensors".into()));
        }
    }
    let views = |r: &Record| -> Vec<(String, u32, usize)> {
        r.truncations.iter().map(|t| (t.name.clone(), t.shift, t.part.len())).collect()
    };
    let own = views(first);
    if own != views(others[0]) {
        return Err(differ("truncations", "parties 0 and 1 hand out views of different truncations".into()));
    }
    match own.iter().find(|(_, shift, _)| !(1..62).contains(shift)) {
        Some((name, shift, _)) => Err(differ(name, format!("no truncation cuts {shift} bits off"))),
        None => Ok(()),
    }
}

/// The rounding of every truncation from the views of parties 0 and 1, whose truncations are the same and cut 1 to 61
/// bits off.
pub fn roundings(
    views_0: Vec<TruncationView>,
    views_1: Vec<TruncationView>,
    rounding: Rounding,
) -> Vec<RoundingRecord> {
    views_0
        .into_iter()
        .zip(views_1)
        .map(|(a, b)| {
            let s = a.shift;
            let low = |v: u64| v & ((1 << s) - 1);
            // x_0 - m is what is truncated, the offset that keeps it positive, and nearest's half.
            let added = match rounding {
                Rounding::Probabilistic => 1 << 62,
                Rounding::Nearest => (1 << 62) + (1 << (s - 1)),
            };
            let operands =
                a.part.iter().zip(&b.part).map(|(x, m)| x.wrapping_sub(*m).wrapping_sub(added) as i64).collect();
            let coins = match rounding {
                Rounding::Probabilistic => a.part.iter().zip(&b.part).map(|(x, m)| low(*x) < low(*m)).collect(),
                Rounding::Nearest => Vec::new(),
            };
            let wraps = a.part.iter().zip(&b.part).enumerate().filter_map(|(i, (&x, &m))| {
                let borrow = i8::from(m >> 63 == 1 && x >> 63 == 0) - i8::from(x < m);
                (borrow != 0).then_some((i, borrow))
            });
            RoundingRecord { wraps: wraps.collect(), name: a.name, shift: s, coins, operands }
        })
        .collect()
}

/// The tensors of a layer, with their names.
pub(crate) fn tensors(layer: &LayerShare) -> [(&'static str, &Share); 4] {
    let shares = layer.each();
    std::array::from_fn(|k| (LAYER_NAMES[k], shares[k]))
}

/// Whether the shares have one shape and the two copies of every component agree.
fn agree(shares: [&Share; 3]) -> std::result::Result<(), String> {
    if shares.iter().any(|s| s.shape() != shares[0].shape()) {
        return Err(format!("the parties' shares have the shapes {:?}", shares.map(Share::shape)));
    }
    for i in 0..3 {
        let (holder, other) = (shares[i], shares[(i + 1) % 3]);
        if let Some(at) = holder.next.iter().zip(&other.own).position(|(a, b)| a != b) {
            return Err(format!("the two copies of component {} differ at index {at}", (i + 1) % 3));
        }
    }
    Ok(())
}

/// Whether the parties' shares of parameters have the same shapes and their copies agree.
///
/// # Errors
/// Names the first tensor, component and index that differ.
pub fn check_replicas(shares: &[Vec<LayerShare>; 3]) -> std::result::Result<(), String> {
    let [a, b, c] = shares;
    if a.len() != b.len() || a.len() != c.len() {
        return Err("the parties' shares are of different numbers of layers".into());
    }
    for (l, ((a, b), c)) in (1..).zip(a.iter().zip(b).zip(c)) {
        for (((name, a), (_, b)), (_, c)) in tensors(a).into_iter().zip(tensors(b)).zip(tensors(c)) {
            agree([a, b, c]).map_err(|what| format!("layer{l}/{name}: {what}"))?;
        }
    }
    Ok(())
}

/// The value behind three shares.
///
/// # Errors
/// Shares of different shapes, or two copies of a component that differ: names the component and the first index.
pub fn reconstruct(shares: &[Share; 3]) -> std::result::Result<Vec<i64>, String> {
    agree(shares.each_ref())?;
    Ok(sum(shares.each_ref()))
}

/// The three components added up.
fn sum([a, b, c]: [&Share; 3]) -> Vec<i64> {
    (0..a.len()).map(|i| a.own[i].wrapping_add(b.own[i]).wrapping_add(c.own[i]) as i64).collect()
}

/// The parameters behind the parties' shares.
///
/// # Errors
/// Two copies of a component differ.
pub fn open_parameters(shares: &[Vec<LayerShare>; 3]) -> Result<ParameterUnits> {
    check_replicas(shares).map_err(|what| differ("parameters", what))?;
    let [a, b, c] = shares;
    let layers = a.iter().zip(b).zip(c).map(|((a, b), c)| {
        let (a, b, c) = (a.each(), b.each(), c.each());
        LayerUnits::from(std::array::from_fn(|k| sum([a[k], b[k], c[k]])))
    });
    Ok(ParameterUnits { layers: layers.collect() })
}

/// Two copies of a component differ: one of their holders is wrong, and nobody can tell which.
pub(crate) fn differ(what: impl ToString, how: String) -> Error {
    Error::PeerMisbehaved { party: PartyId::P0, step: what.to_string(), what: how }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::recorded::Expected;

    /// Party 0 writes to party 1 as `written` says; party 1 expects `expected`.
    fn records(written: &[(&'static str, Range<usize>)], expected: &[(&'static str, Range<usize>)]) -> [Record; 3] {
        let mut records: [Record; 3] = Default::default();
        let sent = |(step, words): &(&'static str, Range<usize>)| Sent {
            exchange: 4,
            to: PartyId::P1,
            step,
            words: words.clone(),
        };
        records[0].sent = written.iter().map(sent).collect();
        let wants = |(step, words): &(&'static str, Range<usize>)| Expected {
            exchange: 4,
            from: PartyId::P0,
            step,
            words: words.clone(),
        };
        records[1].expected = expected.iter().map(wants).collect();
        records
    }

    #[test]
    fn a_receiver_must_declare_what_its_sender_wrote() {
        let written = [("select", 0..5), ("select", 5..5), ("select", 5..8), ("adder", 8..9)];
        check_messages(&records(&written, &[("select", 0..8), ("adder", 8..9)])).unwrap();
        for other in [
            &[("adder", 0..1), ("select", 1..9)][..],
            &[("select", 0..7), ("adder", 7..9)],
            &[("select", 0..9)],
            &[("select", 0..8)],
            &[],
        ] {
            let error = check_messages(&records(&written, other)).unwrap_err().to_string();
            assert!(error.contains("party 0 wrote") && error.contains("exchange 4"), "{error}");
        }
    }

    #[test]
    fn shares_do_not_print_their_words() {
        let share = crate::testing::share(1, 2, &[77, -5]);
        let text = format!("{share:?} {:?}", crate::buffer::Words::from(&[123_456_789][..]));
        assert!(
            text.contains("2 words") && !text.contains("123456789") && !text.contains(&share[0].own[0].to_string())
        );
    }
}
