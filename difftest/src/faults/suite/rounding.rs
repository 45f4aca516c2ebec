//! Truncations: their results, and the probabilities of their coins.

use super::operands::{ROUNDINGS, anything, column};
use crate::explain::cause::Cause;
use crate::faults::cause::Evidence;
use crate::faults::harness::{ALARM, Harness};
use crate::faults::three_parties::{Output::Ring, run};
use crate::statistics;
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::fixed::truncate::{Unreduced, trunc};
use reference::spec::Rounding::Probabilistic;
use secure::client::roundings;
use secure::party::Party;
use secure::protocol::truncate::truncate;

pub(super) fn truncations(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    // The last one is longer than the pieces of 1024 elements in which a truncation works.
    for (shift, most) in [(1, 384), (7, 384), (16, 384), (31, 384), (39, 384), (61, 384), (16, 2048 + 192)] {
        let n = most - 64 * rng.random_range(0..3);
        let mut v: Vec<i64> =
            anything(rng, n).into_iter().map(|v| v >> u32::from(v.unsigned_abs() >= 1 << 62)).collect();
        for k in 0..60i64 {
            // Exact multiples, ties, and values large enough to wrap where something can.
            v[20 + k as usize] = ((k - 30) << shift) % (1 << 61);
            v[80 + k as usize] = (((k - 30) << shift) + (1 << (shift - 1))) % (1 << 61);
            v[140 + k as usize] = (1 << 61) + k * ((1 << 60) / 60);
        }
        for rounding in ROUNDINGS {
            harness.case(
                "truncate",
                &format!("{n} values by {shift} bits"),
                rounding,
                &[column(&v)],
                &Evidence::Truncation(shift),
                async |p: &Party, x| Ok(vec![Ring(truncate(p, &x[0], shift, "t").await?)]),
                |a| Ok(vec![trunc(a, "t", &Unreduced::new(v.iter().map(|v| i128::from(*v))), shift)?]),
            );
        }
    }
}

/// The coins of equal values with equal shares follow the fraction that is cut off, and do not depend on one another.
pub(super) fn coins(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    const N: usize = 2048;
    for shift in [16, 39] {
        if harness.finding.is_some() {
            return;
        }
        let v = (rng.random::<i64>() >> 4) % (1 << 50);
        let one = column(&[v]);
        let equal = one.map(|s| s.broadcast(N).transpose());
        let ran = run(harness.fixed, Probabilistic, None, |p| {
            p.run(async { Ok(vec![Ring(truncate(p, &equal[p.id.index()], shift, "t").await?)]) })
        });
        let ran = match ran {
            Ok(ran) => ran,
            Err(e) => return harness.found("protocol-error", "truncate", Cause::Protocol, e),
        };
        let [a, b, _] = ran.records;
        let coins = roundings(a.truncations, b.truncations, Probabilistic).into_iter().flat_map(|r| r.coins);
        let fraction = (v & ((1 << shift) - 1)) as f64 / (1u64 << shift) as f64;
        let up = coins.filter(|c| *c).count() as u64;
        harness.elements += N as u64;
        if statistics::binomial(N as u64, up, fraction) < ALARM {
            let detail =
                format!("{up} of {N} coins of a value whose fraction is {fraction:.6} round up, on the same shares");
            harness.found("rounding", "truncate", Cause::Rounding, detail);
        }
    }
}
