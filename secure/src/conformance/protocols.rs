//! Every protocol, one test for each rounding. Protocols without a truncation do not depend on the rounding, and must
//! not.

use super::conform;
use super::operands::{anything, bits, divisors, exponents, rng};
use crate::id::PartyId;
use crate::nn::dense;
use crate::party::Party;
use crate::protocol;
use crate::protocol::convert::to_ring;
use crate::protocol::input::{bits_from_party_0, from_party_0};
use crate::protocol::matmul::{Left, matmul_parts};
use crate::protocol::multiply::{dot_rows, multiply_by_row, reshare};
use crate::protocol::select::{select_sum, select_with_bit};
use crate::share::{Doubled, Planes, Share};
use crate::testing::share;
use ndarray::{Array1, Array2};
use rand::Rng;
use reference::fixed::{self, truncate::Unreduced};
use spec::Rounding;

/// Makes the tests of every protocol, named like its file, and the list of them.
macro_rules! compared {
    ($($protocol:ident: $case:ident;)*) => {
        $(mod $protocol {
            use super::*;
            spec::by_rounding!($case);
        })*

        pub const COMPARED: &[&str] = &[$(stringify!($protocol),)*];
    };
}

compared! {
    adder: carries;
    argmax: maxima;
    boolean: conjunctions;
    compare: signs;
    convert: bits_in_the_ring;
    divide: quotients;
    exponential: exponentials;
    input: inputs;
    logarithm: logarithms;
    matmul: matrix_products;
    multiply: products;
    normalise: powers_of_two;
    reveal: revealed;
    select: selections;
    truncate: truncations;
}

/// Dense layers, which are no protocol of their own.
mod dense_layer {
    use super::*;
    spec::by_rounding!(dense_layers);
}

/// Words that only party 0 knows.
fn known<'w>(p: &Party, words: &'w [u64]) -> &'w [u64] {
    if p.id == PartyId::P0 { words } else { &[] }
}

fn carries(rounding: Rounding) {
    let mut rng = rng();
    for width in [1, 4, 5, 16, 31, 61] {
        let mask = (1u64 << width) - 1;
        let a: Vec<u64> = (0..192).map(|_| rng.random::<u64>() & mask).collect();
        // Every other carry runs through all digits, or stops just short.
        let other = |(i, a): (usize, &u64)| [rng.random::<u64>() & mask, mask - a, (mask - a + 1) & mask][i % 3];
        let b: Vec<u64> = a.iter().enumerate().map(other).collect();
        let planes = |p: &Party| Planes::of(if p.id == PartyId::P0 { &a } else { &b }, 1, a.len(), 0..width);
        conform(
            rounding,
            &format!("carry of {width} bits"),
            &[],
            async |p: &Party, _: &[Share]| {
                Ok([to_ring(p, &protocol::adder::carry(p, &planes(p), width).await?).await?])
            },
            |_| [a.iter().zip(&b).map(|(a, b)| ((a + b) >> width) as i64).collect()],
        );
    }
}

fn maxima(rounding: Rounding) {
    let v = anything(7 * 100);
    let x = share(100, 7, &v);
    conform(
        rounding,
        "maximum",
        &[x],
        async |p: &Party, x: &[Share]| {
            let winner = to_ring(p, &protocol::argmax::argmax(p, &x[0].transpose()).await?).await?.transpose();
            Ok([winner, protocol::argmax::maximum(p, &x[0]).await?])
        },
        |a| {
            let e = fixed::compare::argmax(a, "m", &v, 7);
            let maximum = fixed::compare::maximum(&v, &e, 7);
            [e, maximum]
        },
    );
}

fn conjunctions(rounding: Rounding) {
    for factors in [2, 3, 5, 9] {
        let (groups, len) = (3, 128);
        let (words, all) = bits(factors * groups, len);
        conform(
            rounding,
            &format!("conjunction of {factors}"),
            &[],
            async |p: &Party, _: &[Share]| {
                let bits = bits_from_party_0(p, known(p, &words), factors * groups, len).await?;
                Ok([to_ring(p, &protocol::boolean::and_all(p, bits, groups).await?).await?])
            },
            |_| {
                let all = |i: usize| (0..factors).map(|k| all[k * groups * len + i]).product();
                [(0..groups * len).map(all).collect()]
            },
        );
    }
}

fn signs(rounding: Rounding) {
    let v = anything(300);
    conform(
        rounding,
        "sign",
        &[share(1, v.len(), &v)],
        async |p: &Party, x: &[Share]| Ok([to_ring(p, &protocol::compare::sign(p, &x[0]).await?).await?]),
        |a| [v.iter().map(|&v| fixed::compare::sign(v, a.fixed.value_bits)).collect()],
    );
}

fn bits_in_the_ring(rounding: Rounding) {
    let (words, bits) = bits(3, 128);
    conform(
        rounding,
        "bits in the ring",
        &[],
        async |p: &Party, _: &[Share]| Ok([to_ring(p, &bits_from_party_0(p, known(p, &words), 3, 128).await?).await?]),
        |_| [bits.clone()],
    );
}

fn quotients(rounding: Rounding) {
    let s = divisors();
    let n = s.len();
    let mut rng = rng();
    let x: Vec<i64> = s.iter().flat_map(|&s| [0, s, rng.random_range(0..=s)]).collect();
    conform(
        rounding,
        "divide",
        &[share(n, 1, &s), share(n, 3, &x)],
        async |p: &Party, v: &[Share]| {
            let range = p.fixed.full_range();
            let r = protocol::divide::reciprocal(p, &v[0], range, "r").await?;
            Ok([r, protocol::divide::quotient(p, &v[1], &v[0], range, "q").await?.quotient])
        },
        |a| {
            let range = a.fixed.full_range();
            let r = fixed::divide::reciprocal(a, "r", &s, range).unwrap();
            [r, fixed::divide::quotient(a, "q", &x, &s, range).unwrap().0]
        },
    );
}

/// On its domain and anywhere.
fn exponentials(rounding: Rounding) {
    let d = exponents();
    conform(
        rounding,
        "exp",
        &[share(d.len(), 1, &d)],
        async |p: &Party, x: &[Share]| Ok([protocol::exponential::exponential(p, &x[0]).await?]),
        |a| [fixed::exponential::exp(a, &d).unwrap()],
    );
}

fn inputs(rounding: Rounding) {
    let v = anything(131);
    let words: Vec<u64> = v.iter().map(|v| *v as u64).collect();
    conform(
        rounding,
        "input of party 0",
        &[],
        async |p: &Party, _: &[Share]| Ok([from_party_0(p, known(p, &words), words.len()).await?]),
        |_| [v.clone()],
    );
}

fn logarithms(rounding: Rounding) {
    let s = divisors();
    conform(
        rounding,
        "logarithm",
        &[share(s.len(), 1, &s)],
        async |p: &Party, v: &[Share]| Ok([protocol::logarithm::logarithm(p, &v[0], p.fixed.full_range()).await?]),
        |a| [fixed::logarithm::log(a, &s, a.fixed.full_range()).unwrap()],
    );
}

/// Twice the product: what is known of a matrix product is its double.
fn matrix_products(rounding: Rounding) {
    let (rows, inner, cols) = (7, 33, 5);
    let (x, y) = (anything(rows * inner), anything(inner * cols));
    conform(
        rounding,
        "matrix product",
        &[share(rows, inner, &x), share(inner, cols, &y)],
        async |p: &Party, v: &[Share]| {
            let Doubled(twice) = matmul_parts(p, &v[0], &v[1])?;
            Ok([reshare(p, twice).await?])
        },
        |_| {
            let term = |i: usize, j: usize, k: usize| x[i * inner + k].wrapping_mul(y[k * cols + j]).wrapping_mul(2);
            let element = |e: usize| (0..inner).fold(0i64, |s, k| s.wrapping_add(term(e / cols, e % cols, k)));
            [(0..rows * cols).map(element).collect()]
        },
    );
}

fn products(rounding: Rounding) {
    let (rows, cols) = (9, 13);
    let mut x = anything(rows * cols);
    let (y, s) = (x.clone(), anything(rows));
    x.reverse();
    conform(
        rounding,
        "products",
        &[share(rows, cols, &x), share(rows, cols, &y), share(rows, 1, &s)],
        async |p: &Party, v: &[Share]| {
            let each = protocol::multiply::multiply(p, &v[0], &v[1]).await?;
            Ok([each, multiply_by_row(p, &v[0], &v[2]).await?, dot_rows(p, &v[0], &v[1]).await?])
        },
        |_| {
            let each: Vec<i64> = x.iter().zip(&y).map(|(a, b)| a.wrapping_mul(*b)).collect();
            let by_row = x.iter().enumerate().map(|(i, a)| a.wrapping_mul(s[i / cols])).collect();
            let dots = each.chunks(cols).map(|r| r.iter().copied().fold(0, i64::wrapping_add)).collect();
            [each, by_row, dots]
        },
    );
}

fn powers_of_two(rounding: Rounding) {
    let s = divisors();
    conform(
        rounding,
        "normalise",
        &[share(s.len(), 1, &s)],
        async |p: &Party, v: &[Share]| {
            let n = protocol::normalise::normalise(p, &v[0], p.fixed.full_range()).await?;
            let scaled = n.apply(p, &v[0]).await?;
            Ok([n.scale, n.msb, scaled])
        },
        |a| {
            let n = fixed::normalise::normalise(a, "n", &s, a.fixed.full_range());
            [n.factor, n.leading, n.scaled]
        },
    );
}

fn revealed(rounding: Rounding) {
    let v = anything(100);
    conform(
        rounding,
        "reveal",
        &[share(1, v.len(), &v)],
        async |p: &Party, x: &[Share]| {
            assert_eq!(protocol::reveal::reveal(p, &x[0]).await?, v, "party {}", p.id);
            Ok([x[0].clone()])
        },
        |_| [v.clone()],
    );
}

fn selections(rounding: Rounding) {
    let (blocks, len) = (3, 128);
    let (words, b) = bits(blocks, len);
    let x = anything(blocks * len);
    conform(
        rounding,
        "select",
        &[share(blocks, len, &x)],
        async |p: &Party, v: &[Share]| {
            let b = bits_from_party_0(p, known(p, &words), blocks, len).await?;
            let (bit, product) = select_with_bit(p, &b, &v[0]).await?;
            let alone = protocol::select::select(p, &b, &v[0]).await?;
            Ok([bit, product, alone, select_sum(p, &b, &v[0]).await?])
        },
        |_| {
            let product: Vec<i64> = b.iter().zip(&x).map(|(b, x)| b * x).collect();
            let sum =
                (0..len).map(|k| product[k..].iter().step_by(len).fold(0i64, |s, v| s.wrapping_add(*v))).collect();
            [b.clone(), product.clone(), product, sum]
        },
    );
}

/// In range and out of it.
fn truncations(rounding: Rounding) {
    let v = anything(400);
    for shift in [1, 7, 16, 31, 39, 44, 61] {
        conform(
            rounding,
            "truncate",
            &[share(v.len(), 1, &v)],
            async |p: &Party, x: &[Share]| Ok([protocol::truncate::truncate(p, &x[0], shift, "t").await?]),
            |a| [fixed::truncate::trunc(a, "t", &Unreduced::new(v.iter().map(|v| i128::from(*v))), shift).unwrap()],
        );
    }
}

fn dense_layers(rounding: Rounding) {
    let (rows, inner, cols) = (5, 9, 4);
    let mut rng = rng();
    let mut random =
        |n: usize, bits: u32| -> Vec<i64> { (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect() };
    for bits in [18, 33, 62] {
        let (x, w, b) = (random(rows * inner, bits), random(inner * cols, bits), random(cols, bits));
        let array = |v: &[i64], r: usize, c: usize| Array2::from_shape_vec((r, c), v.to_vec()).unwrap();
        let bits: Vec<i64> = x.iter().map(|x| x & 1).collect();
        let inputs = [share(rows, inner, &x), share(inner, cols, &w), share(1, cols, &b), share(rows, inner, &bits)];
        conform(
            rounding,
            "dense",
            &inputs,
            async |p: &Party, v: &[Share]| {
                let zero = Share::zeros(1, 1);
                let layer = dense::LayerShare {
                    weights: v[1].clone(),
                    bias: v[2].clone(),
                    weight_velocity: zero.clone(),
                    bias_velocity: zero,
                };
                let z = dense::forward(p, Left::from(&v[0]), &layer, "layer1/forward").await?;
                let (mask, value) = dense::relu(p, &z).await?;
                let back = dense::backward(p, &z, &layer, &v[3], "layer1/backward").await?;
                Ok([z, mask, value, back])
            },
            |a| {
                let (x, w, b) = (array(&x, rows, inner), array(&w, inner, cols), Array1::from(b.clone()));
                let z = fixed::dense::forward(a, 1, &x, &w, &b).unwrap();
                let (mask, value) = fixed::dense::relu(a, 1, &z);
                let back = fixed::dense::backward(a, 1, &z, &w, &array(&bits, rows, inner)).unwrap();
                [z, mask, value, back].map(|m| m.into_raw_vec_and_offset().0)
            },
        );
    }
}
