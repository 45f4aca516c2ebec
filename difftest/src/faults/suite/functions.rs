//! Normalisation, division, exponential and logarithm.

use super::operands::{ROUNDINGS, column, positive, share};
use crate::faults::cause::Evidence;
use crate::faults::harness::Harness;
use crate::faults::three_parties::Output::Ring;
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::fixed as model;
use reference::spec::Rounding::Nearest;
use secure::party::Party;
use secure::protocol::divide::{quotient, reciprocal};
use secure::protocol::exponential::exponential;
use secure::protocol::logarithm::logarithm;
use secure::protocol::normalise::normalise;

pub(super) fn normalisations(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 128, 31);
    harness.case(
        "normalise",
        "128 integers",
        Nearest,
        &[column(&s)],
        &Evidence::Function(s.clone()),
        async |p: &Party, v| {
            let n = normalise(p, &v[0], p.fixed.full_range()).await?;
            let u = n.apply(p, &v[0]).await?;
            Ok(vec![Ring(n.scale), Ring(n.msb), Ring(u)])
        },
        |a| {
            let n = model::normalise::normalise(a, "n", &s, a.fixed.full_range());
            Ok(vec![n.factor, n.leading, n.scaled])
        },
    );
}

pub(super) fn divisions(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 128, 25);
    let x: Vec<i64> = s.iter().flat_map(|&s| [0, s, rng.random_range(0..=s)]).collect();
    for rounding in ROUNDINGS {
        harness.case(
            "divide",
            "128 reciprocals and 384 quotients",
            rounding,
            &[column(&s), share(s.len(), 3, &x)],
            &Evidence::Function(s.clone()),
            async |p: &Party, v| {
                let range = p.fixed.full_range();
                let r = reciprocal(p, &v[0], range, "r").await?;
                Ok(vec![Ring(r), Ring(quotient(p, &v[1], &v[0], range, "q").await?.quotient)])
            },
            |a| {
                let range = a.fixed.full_range();
                let r = model::divide::reciprocal(a, "r", &s, range)?;
                Ok(vec![r, model::divide::quotient(a, "q", &x, &s, range)?.0])
            },
        );
    }
}

pub(super) fn exponentials(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let cut = harness.fixed.exp_cut();
    let mut d: Vec<i64> = vec![0, -1, -2, -65536, 1 - cut, -cut, -cut - 1, -(1 << 20), -(1 << 31) + 1];
    d.extend(
        (d.len()..320).map(|i| if i % 4 == 0 { -rng.random_range(cut..1 << 31) } else { -rng.random_range(0..cut) }),
    );
    for rounding in ROUNDINGS {
        harness.case(
            "exponential",
            "320 values",
            rounding,
            &[column(&d)],
            &Evidence::Function(d.clone()),
            async |p: &Party, v| Ok(vec![Ring(exponential(p, &v[0]).await?)]),
            |a| Ok(vec![model::exponential::exp(a, &d)?]),
        );
    }
}

pub(super) fn logarithms(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 192, 31);
    for rounding in ROUNDINGS {
        harness.case(
            "logarithm",
            "192 values",
            rounding,
            &[column(&s)],
            &Evidence::Function(s.clone()),
            async |p: &Party, v| Ok(vec![Ring(logarithm(p, &v[0], p.fixed.full_range()).await?)]),
            |a| Ok(vec![model::logarithm::log(a, &s, a.fixed.full_range())?]),
        );
    }
}
