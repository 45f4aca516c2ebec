//! Conjunctions and products: exact for any operand.

use super::operands::{anything, column, low_bits, share};
use crate::faults::cause::Evidence;
use crate::faults::harness::Harness;
use crate::faults::three_parties::Output::{Bits, Ring};
use rand::Rng;
use rand_chacha::ChaCha12Rng;
use reference::spec::Rounding::Nearest;
use secure::party::Party;
use secure::protocol::boolean::and_all;
use secure::protocol::matmul::{Left, Matrix, matmul_parts};
use secure::protocol::multiply::{dot_rows, multiply, multiply_by_row, reshare};
use secure::share::{Doubled, Factor};

pub(super) fn conjunctions(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for factors in [2, 3, 5, 8, 9] {
        let groups = 3;
        let len = 64 * rng.random_range(2..5);
        let blocks = factors * groups;
        // Mostly ones, so that a conjunction of many is often one.
        let v: Vec<i64> = (0..blocks * len).map(|_| i64::from(rng.random_bool(0.8))).collect();
        harness.case(
            "and",
            &format!("conjunction of {factors}"),
            Nearest,
            &[share(blocks, len, &v)],
            &Evidence::Algebra,
            async |p: &Party, x| Ok(vec![Bits(and_all(p, low_bits(&x[0]), groups).await?)]),
            |_| {
                let all = |i: usize| (0..factors).map(|k| v[k * groups * len + i]).product();
                Ok(vec![(0..groups * len).map(all).collect()])
            },
        );
    }
}

pub(super) fn products(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for (rows, cols) in [(16, 16), (8, rng.random_range(1..40))] {
        let (x, y, s) = (anything(rng, rows * cols), anything(rng, rows * cols), anything(rng, rows));
        harness.case(
            "multiply",
            &format!("products of {rows} x {cols} matrices"),
            Nearest,
            &[share(rows, cols, &x), share(rows, cols, &y), column(&s)],
            &Evidence::Algebra,
            async |p: &Party, v| {
                Ok(vec![
                    Ring(multiply(p, &v[0], &v[1]).await?),
                    Ring(multiply_by_row(p, &v[0], &v[2]).await?),
                    Ring(dot_rows(p, &v[0], &v[1]).await?),
                ])
            },
            |_| {
                let each: Vec<i64> = x.iter().zip(&y).map(|(a, b)| a.wrapping_mul(*b)).collect();
                let by_row = x.iter().enumerate().map(|(i, a)| a.wrapping_mul(s[i / cols])).collect();
                let dots = each.chunks(cols).map(|r| r.iter().copied().fold(0, i64::wrapping_add)).collect();
                Ok(vec![each, by_row, dots])
            },
        );
    }
}

pub(super) fn matrix_products(harness: &mut Harness, rng: &mut ChaCha12Rng) {
    for (rows, inner, cols) in [(16, 16, 12), (8, rng.random_range(1..200), 9)] {
        let (x, y) = (anything(rng, rows * inner), anything(rng, inner * cols));
        let z = anything(rng, rows * cols);
        harness.case(
            "matmul",
            &format!("twice the products of {rows} x {inner} and {inner} x {cols}"),
            Nearest,
            &[share(rows, inner, &x), share(inner, cols, &y), share(rows, cols, &z)],
            &Evidence::Algebra,
            async |p: &Party, v| {
                let Doubled(plain) = matmul_parts(p, &v[0], &v[1])?;
                let Doubled(left) = matmul_parts(p, Matrix::from(&v[0]).t(), &v[2])?;
                let Doubled(right) = matmul_parts(p, &v[2], Matrix::from(&v[1]).t())?;
                let factor = Factor::new(p.id, &v[0]);
                let Doubled(kept) = matmul_parts(p, &factor, &v[1])?;
                let Doubled(kept_left) = matmul_parts(p, Left::from(&factor).t(), &v[2])?;
                Ok(vec![
                    Ring(reshare(p, plain).await?),
                    Ring(reshare(p, left).await?),
                    Ring(reshare(p, right).await?),
                    Ring(reshare(p, kept).await?),
                    Ring(reshare(p, kept_left).await?),
                ])
            },
            |_| {
                let product = |(m, k, n): (usize, usize, usize),
                               a: &dyn Fn(usize, usize) -> i64,
                               b: &dyn Fn(usize, usize) -> i64| {
                    let term = |e: usize, q: usize| a(e / n, q).wrapping_mul(b(q, e % n)).wrapping_mul(2);
                    (0..m * n).map(|e| (0..k).map(|q| term(e, q)).fold(0, i64::wrapping_add)).collect::<Vec<i64>>()
                };
                let x = |r: usize, c: usize| x[r * inner + c];
                let y = |r: usize, c: usize| y[r * cols + c];
                let z = |r: usize, c: usize| z[r * cols + c];
                let plain = product((rows, inner, cols), &x, &y);
                let left = product((inner, rows, cols), &|r, c| x(c, r), &z);
                let right = product((rows, cols, inner), &z, &|r, c| y(c, r));
                Ok(vec![plain.clone(), left.clone(), right, plain, left])
            },
        );
    }
}
