//! Carries, signs, bits in the ring, selections and maxima.

use super::operands::{anything, low_bits, odd, ordinary, share};
use crate::faults::cause::{Evidence, Row};
use crate::faults::harness::Harness;
use crate::faults::three_parties::Output::{Bits, Ring};
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::fixed as model;
use reference::spec::Rounding::Nearest;
use secure::id::PartyId;
use secure::party::Party;
use secure::protocol::adder::{carry, low_sum};
use secure::protocol::argmax::{argmax, maximum};
use secure::protocol::compare::sign;
use secure::protocol::convert::to_ring;
use secure::protocol::select::{select, select_sum, select_with_bit};
use secure::share::Planes;

pub(super) fn sums(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for width in [4, 5, 16, 31, 39, 61] {
        let n = 64 * rng.random_range(2..5);
        let mask = (1u64 << width) - 1;
        let a: Vec<u64> = (0..n).map(|_| rng.random::<u64>() & mask).collect();
        // Every other carry runs through all digits, or stops just short.
        let b: Vec<u64> = a
            .iter()
            .enumerate()
            .map(|(i, a)| [rng.random::<u64>() & mask, mask - a, (mask - a + 1) & mask][i % 3])
            .collect();
        let planes = |p: &Party, bits: u32| Planes::of(if p.id == PartyId::P0 { &a } else { &b }, 1, n, 0..bits);
        let low = width.min(5);
        harness.case(
            "adder",
            &format!("carry of {width} bits, sum of {low}"),
            Nearest,
            &[],
            &Evidence::Algebra,
            async |p: &Party, _| {
                Ok(vec![Bits(carry(p, &planes(p, width), width).await?), Bits(low_sum(p, &planes(p, low)).await?)])
            },
            |_| {
                let sum = |i: usize| u128::from(a[i]) + u128::from(b[i]);
                let carries = (0..n).map(|i| (sum(i) >> width) as i64).collect();
                let bits =
                    (0..low).flat_map(|k| (0..n).map(move |i| (k, i))).map(|(k, i)| (sum(i) >> k & 1) as i64).collect();
                Ok(vec![carries, bits])
            },
        );
    }
}

pub(super) fn signs(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for n in [192, 1 + rng.random_range(0..200)] {
        let x = ordinary(rng, n);
        harness.case(
            "compare",
            &format!("signs of {n} values"),
            Nearest,
            &[share(1, n, &x)],
            &Evidence::Threshold(x.clone()),
            async |p: &Party, v| Ok(vec![Bits(sign(p, &v[0]).await?)]),
            |_| Ok(vec![x.iter().map(|x| i64::from(*x < 0)).collect()]),
        );
    }
}

pub(super) fn bits(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for (blocks, len) in [(3, 128), (2, 1 + rng.random_range(0..100))] {
        let v: Vec<i64> = (0..blocks * len).map(|_| rng.random()).collect();
        harness.case(
            "convert",
            &format!("{blocks} blocks of {len} bits to the ring"),
            Nearest,
            &[share(blocks, len, &v)],
            &Evidence::Algebra,
            async |p: &Party, x| Ok(vec![Ring(to_ring(p, &low_bits(&x[0])).await?)]),
            |_| Ok(vec![odd(&v)]),
        );
    }
}

pub(super) fn selections(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for (blocks, len) in [(3, 128), (2, 1 + rng.random_range(0..100))] {
        let v: Vec<i64> = (0..blocks * len).map(|_| rng.random()).collect();
        let x = anything(rng, blocks * len);
        harness.case(
            "select",
            &format!("{blocks} rows of {len} values"),
            Nearest,
            &[share(blocks, len, &v), share(blocks, len, &x)],
            &Evidence::Algebra,
            async |p: &Party, s| {
                let b = low_bits(&s[0]);
                let (bit, product) = select_with_bit(p, &b, &s[1]).await?;
                let (alone, sum) = (select(p, &b, &s[1]).await?, select_sum(p, &b, &s[1]).await?);
                Ok(vec![Ring(bit), Ring(product), Ring(alone), Ring(sum)])
            },
            |_| {
                let bit = odd(&v);
                let product: Vec<i64> = bit.iter().zip(&x).map(|(b, x)| b * x).collect();
                let sum =
                    (0..len).map(|k| product[k..].iter().step_by(len).fold(0i64, |s, v| s.wrapping_add(*v))).collect();
                Ok(vec![bit, product.clone(), product, sum])
            },
        );
    }
}

pub(super) fn maxima(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for classes in [10, 2, 3, 8, 7] {
        let rows = 64;
        // Ties in every other row.
        let v: Vec<i64> = (0..rows * classes)
            .map(|i| if i / classes % 2 == 0 { rng.random_range(0..2) } else { rng.random_range(-1i64 << 24..1 << 24) })
            .collect();
        let tied = |r: &[i64]| r.iter().filter(|v| *v == r.iter().max().unwrap_or(&0)).count() > 1;
        let kinds = v.chunks(classes).map(|r| if tied(r) { Row::Edge } else { Row::Plain }).collect();
        harness.case(
            "argmax",
            &format!("{rows} rows of {classes}"),
            Nearest,
            &[share(rows, classes, &v)],
            &Evidence::Rows(kinds),
            async |p: &Party, x| {
                let winner = to_ring(p, &argmax(p, &x[0].transpose()).await?).await?.transpose();
                Ok(vec![Ring(winner), Ring(maximum(p, &x[0]).await?)])
            },
            |a| {
                let e = model::compare::argmax(a, "m", &v, classes);
                let max = model::compare::maximum(&v, &e, classes);
                Ok(vec![e, max])
            },
        );
    }
}
