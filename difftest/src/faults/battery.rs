//! Every protocol and layer on its own, in the order in which they are built from one another: the first that fails is
//! where the fault is. Operands are boundary values first, then random ones from a seed.

use super::cause::{Evidence, Row};
use super::lab::{ALARM, Lab};
use super::world::{Output, run};
use crate::explain::cause::Cause;
use crate::statistics::{self, bit_balance, repeats};
use ndarray::{Array1, Array2};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use reference::fixed::truncate::{Unreduced, trunc};
use reference::fixed::{self as model, Arithmetic, LayerUnits, ModelError};
use reference::spec::{Head, Rounding, SgdSpec};
use secure::buffer::Words;
use secure::client::roundings;
use secure::id::PartyId;
use secure::nn::dense::{self, LayerShare};
use secure::nn::{heads, sgd};
use secure::party::Party;
use secure::protocol::adder::{carry, low_sum};
use secure::protocol::argmax::{argmax, maximum};
use secure::protocol::boolean::and_all;
use secure::protocol::compare::sign;
use secure::protocol::convert::to_ring;
use secure::protocol::divide::{quotient, reciprocal};
use secure::protocol::exponential::exponential;
use secure::protocol::input::{bits_from_party_0, deal, from_party_0};
use secure::protocol::logarithm::logarithm;
use secure::protocol::matmul::{Left, Matrix, matmul_parts};
use secure::protocol::multiply::{dot_rows, multiply, multiply_by_row, reshare};
use secure::protocol::normalise::normalise;
use secure::protocol::select::{select, select_sum, select_with_bit};
use secure::protocol::truncate::truncate;
use secure::share::{BitShare, Doubled, Factor, Planes, Share};

use Output::{Bits, Common, Ring};
use Rounding::{Nearest, Probabilistic};

/// A stage: its place, and the cases that judge it.
pub type Stage = fn(&mut Lab, &mut ChaCha12Rng);

/// Nearest first: without coins, values themselves are compared.
const ROUNDINGS: [Rounding; 2] = [Nearest, Probabilistic];

/// Dependencies first.
pub const STAGES: &[Stage] = &[
    streams,
    inputs,
    conjunctions,
    products,
    matrix_products,
    sums,
    signs,
    bits,
    selections,
    truncations,
    coins,
    normalisations,
    divisions,
    exponentials,
    logarithms,
    maxima,
    layers,
    output_heads,
    updates,
];

/// Runs every stage up to the first finding, on operands from `seed`.
pub fn judge(lab: &mut Lab, seed: u64) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    for stage in STAGES {
        stage(lab, &mut rng);
    }
}

fn share(rows: usize, cols: usize, units: &[i64]) -> [Share; 3] {
    deal(rows, cols, units, None).expect("the operating system gives randomness")
}

fn column(units: &[i64]) -> [Share; 3] {
    share(units.len(), 1, units)
}

/// `n` ring elements of every size, both signs, the edges first.
fn anything(rng: &mut ChaCha12Rng, n: usize) -> Vec<i64> {
    let edges = [
        0,
        1,
        -1,
        2,
        -2,
        1 << 16,
        -(1 << 16),
        1 << 30,
        -(1 << 30),
        (1 << 31) - 1,
        1 << 46,
        -(1 << 46),
        1 << 61,
        -(1 << 61),
    ];
    (0..n).map(|i| edges.get(i).copied().unwrap_or_else(|| rng.random::<i64>() >> rng.random_range(0..63))).collect()
}

/// `n` ordinary values of every size, the edges first.
fn ordinary(rng: &mut ChaCha12Rng, n: usize) -> Vec<i64> {
    anything(rng, n).into_iter().map(|v| if v.unsigned_abs() >= 1 << 31 { v >> 33 } else { v }).collect()
}

/// The lowest bits of a share as shared bits, a block for each row: the exclusive or of the components' lowest bits is
/// that of their sum.
fn low_bits(x: &Share) -> BitShare {
    let (blocks, len) = x.shape();
    let words = len.div_ceil(64);
    let pack = |v: &[u64]| {
        let mut out = Words::zeros(blocks * words);
        for (i, w) in v.iter().enumerate() {
            out[i / len * words + i % len / 64] |= (w & 1) << (i % len % 64);
        }
        out
    };
    BitShare { blocks, len, own: pack(&x.own), next: pack(&x.next) }
}

fn odd(v: &[i64]) -> Vec<i64> {
    v.iter().map(|v| v & 1).collect()
}

fn streams(lab: &mut Lab, _: &mut ChaCha12Rng) {
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
    if lab.finding.is_some() {
        return;
    }
    let at = "prg";
    let runs = run(lab.fixed, Nearest, None, draw).and_then(|a| Ok((a, run(lab.fixed, Nearest, None, draw)?)));
    let (a, b) = match runs {
        Ok(runs) => runs,
        Err(e) => return lab.found("protocol-error", at, Cause::Protocol, e),
    };
    let [p, q, r] = &a.outputs;
    if let Err(e) = super::world::open([&p[0], &q[0], &r[0]]) {
        return lab.found("replicas", at, Cause::Protocol, format!("streams: {e}"));
    }
    for (i, (a, b)) in a.outputs.iter().zip(&b.outputs).enumerate() {
        let (Common([a, _]), Common([b, _])) = (&a[0], &b[0]) else { continue };
        lab.words += a.len() as u64;
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
        lab.found("transcript", at, Cause::Protocol, format!("stream {i}: {detail}"));
    }
}

fn inputs(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for n in [64, 1 + rng.random_range(0..200)] {
        let v = anything(rng, n);
        let words: Vec<u64> = v.iter().map(|v| *v as u64).collect();
        lab.case(
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

fn conjunctions(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for factors in [2, 3, 5, 8, 9] {
        let groups = 3;
        let len = 64 * rng.random_range(2..5);
        let blocks = factors * groups;
        // Mostly ones, so that a conjunction of many is often one.
        let v: Vec<i64> = (0..blocks * len).map(|_| i64::from(rng.random_bool(0.8))).collect();
        lab.case(
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

fn products(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for (rows, cols) in [(16, 16), (8, rng.random_range(1..40))] {
        let (x, y, s) = (anything(rng, rows * cols), anything(rng, rows * cols), anything(rng, rows));
        lab.case(
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

fn matrix_products(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for (rows, inner, cols) in [(16, 16, 12), (8, rng.random_range(1..200), 9)] {
        let (x, y) = (anything(rng, rows * inner), anything(rng, inner * cols));
        let z = anything(rng, rows * cols);
        lab.case(
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

fn sums(lab: &mut Lab, rng: &mut ChaCha12Rng) {
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
        lab.case(
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

fn signs(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for n in [192, 1 + rng.random_range(0..200)] {
        let x = ordinary(rng, n);
        lab.case(
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

fn bits(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for (blocks, len) in [(3, 128), (2, 1 + rng.random_range(0..100))] {
        let v: Vec<i64> = (0..blocks * len).map(|_| rng.random()).collect();
        lab.case(
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

fn selections(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for (blocks, len) in [(3, 128), (2, 1 + rng.random_range(0..100))] {
        let v: Vec<i64> = (0..blocks * len).map(|_| rng.random()).collect();
        let x = anything(rng, blocks * len);
        lab.case(
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

fn truncations(lab: &mut Lab, rng: &mut ChaCha12Rng) {
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
            lab.case(
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
fn coins(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    const N: usize = 2048;
    for shift in [16, 39] {
        if lab.finding.is_some() {
            return;
        }
        let v = (rng.random::<i64>() >> 4) % (1 << 50);
        let one = column(&[v]);
        let equal = one.map(|s| s.broadcast(N).transpose());
        let ran = run(lab.fixed, Probabilistic, None, |p| {
            p.run(async { Ok(vec![Ring(truncate(p, &equal[p.id.index()], shift, "t").await?)]) })
        });
        let ran = match ran {
            Ok(ran) => ran,
            Err(e) => return lab.found("protocol-error", "truncate", Cause::Protocol, e),
        };
        let [a, b, _] = ran.records;
        let coins = roundings(a.truncations, b.truncations, Probabilistic).into_iter().flat_map(|r| r.coins);
        let fraction = (v & ((1 << shift) - 1)) as f64 / (1u64 << shift) as f64;
        let up = coins.filter(|c| *c).count() as u64;
        lab.elements += N as u64;
        if statistics::binomial(N as u64, up, fraction) < ALARM {
            let detail =
                format!("{up} of {N} coins of a value whose fraction is {fraction:.6} round up, on the same shares");
            lab.found("rounding", "truncate", Cause::Rounding, detail);
        }
    }
}

/// Positive integers below 2^bits, zero, powers of two and their neighbours first.
fn positive(rng: &mut ChaCha12Rng, n: usize, bits: u32) -> Vec<i64> {
    let mut v = vec![1, 0, 2, 3];
    v.extend((2..bits).flat_map(|k| [(1i64 << k) - 1, 1 << k, (1 << k) + 1]));
    while v.len() < n {
        let size = rng.random_range(1..bits);
        v.push(rng.random_range(1..1i64 << size));
    }
    v.truncate(n);
    v
}

fn normalisations(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 128, 31);
    lab.case(
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

fn divisions(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 128, 25);
    let x: Vec<i64> = s.iter().flat_map(|&s| [0, s, rng.random_range(0..=s)]).collect();
    for rounding in ROUNDINGS {
        lab.case(
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

fn exponentials(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let cut = lab.fixed.exp_cut();
    let mut d: Vec<i64> = vec![0, -1, -2, -65536, 1 - cut, -cut, -cut - 1, -(1 << 20), -(1 << 31) + 1];
    d.extend(
        (d.len()..320).map(|i| if i % 4 == 0 { -rng.random_range(cut..1 << 31) } else { -rng.random_range(0..cut) }),
    );
    for rounding in ROUNDINGS {
        lab.case(
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

fn logarithms(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let s = positive(rng, 192, 31);
    for rounding in ROUNDINGS {
        lab.case(
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

fn maxima(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    for classes in [10, 2, 3, 8, 7] {
        let rows = 64;
        // Ties in every other row.
        let v: Vec<i64> = (0..rows * classes)
            .map(|i| if i / classes % 2 == 0 { rng.random_range(0..2) } else { rng.random_range(-1i64 << 24..1 << 24) })
            .collect();
        let tied = |r: &[i64]| r.iter().filter(|v| *v == r.iter().max().unwrap_or(&0)).count() > 1;
        let kinds = v.chunks(classes).map(|r| if tied(r) { Row::Edge } else { Row::Plain }).collect();
        lab.case(
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

fn array(v: &[i64], rows: usize) -> Array2<i64> {
    Array2::from_shape_vec((rows, v.len() / rows), v.to_vec()).expect("whole rows")
}

fn flat(m: Array2<i64>) -> Vec<i64> {
    m.into_raw_vec_and_offset().0
}

/// Weights and bias as a layer at rest.
fn layer(weights: &Share, bias: &Share) -> LayerShare {
    let at_rest = |s: &Share| Share::zeros(s.rows, s.cols);
    LayerShare {
        weight_velocity: at_rest(weights),
        bias_velocity: at_rest(bias),
        weights: weights.clone(),
        bias: bias.clone(),
    }
}

fn layers(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    // Square weights, so that a transposition too many still multiplies.
    let (rows, width) = (16 * rng.random_range(1..3), 12);
    let mut draw =
        |n: usize, bits: u32| -> Vec<i64> { (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect() };
    let (x, w, b, g) = (draw(rows * width, 18), draw(width * width, 17), draw(width, 28), draw(rows * width, 16));
    let z: Vec<i64> =
        draw(rows * width, 20).into_iter().enumerate().map(|(i, v)| if i % 3 == 0 { v % 2 } else { v }).collect();
    let bits: Vec<i64> = x.iter().map(|x| x & 1).collect();
    for rounding in ROUNDINGS {
        for (what, x) in [("forward on data 0", &vec![0; rows * width]), ("forward", &x)] {
            lab.case(
                "dense/forward",
                what,
                rounding,
                &[share(rows, width, x), share(width, width, &w), share(1, width, &b)],
                &Evidence::Proportional,
                async |p: &Party, v| {
                    Ok(vec![Ring(dense::forward(p, Left::from(&v[0]), &layer(&v[1], &v[2]), "layer1/forward").await?)])
                },
                |a| {
                    Ok(vec![flat(model::dense::forward(
                        a,
                        1,
                        &array(x, rows),
                        &array(&w, width),
                        &Array1::from(b.clone()),
                    )?)])
                },
            );
        }
        lab.case(
            "dense/backward",
            "backward",
            rounding,
            &[share(rows, width, &g), share(width, width, &w), share(1, width, &b), share(rows, width, &bits)],
            &Evidence::Proportional,
            async |p: &Party, v| {
                Ok(vec![Ring(dense::backward(p, &v[0], &layer(&v[1], &v[2]), &v[3], "layer2/backward").await?)])
            },
            |a| Ok(vec![flat(model::dense::backward(a, 2, &array(&g, rows), &array(&w, width), &array(&bits, rows))?)]),
        );
    }
    lab.case(
        "dense/relu",
        "ReLU and its derivative",
        Nearest,
        &[share(rows, width, &z)],
        &Evidence::Threshold(z.clone()),
        async |p: &Party, v| {
            let (mask, value) = dense::relu(p, &v[0]).await?;
            Ok(vec![Ring(mask), Ring(value)])
        },
        |a| {
            let (mask, value) = model::dense::relu(a, 1, &array(&z, rows));
            Ok(vec![flat(mask), flat(value)])
        },
    );
    lab.case(
        "dense/gradients",
        "gradients of weights and bias",
        Nearest,
        &[share(rows, width, &x), share(rows, width, &g)],
        &Evidence::Algebra,
        async |p: &Party, v| {
            let (Doubled(twice_dw), db) = dense::gradients(p, Left::from(&v[0]), &v[1])?;
            Ok(vec![Output::Parts(twice_dw), Ring(db)])
        },
        |a| {
            let (dw, db) = model::dense::weight_gradients(a, 1, &array(&x, rows), &array(&g, rows));
            Ok(vec![flat(dw.mapv(|v| v << 1)), db.to_vec()])
        },
    );
}

/// The name of a head's place.
fn head_place(head: Head) -> &'static str {
    match head {
        Head::Softmax => "head/softmax",
        Head::ReluProb => "head/relu-prob",
        Head::ReluProbCut => "head/relu-prob-cut",
        Head::ReluGrad => "head/relu-grad",
        Head::ReluEps => "head/relu-eps",
    }
}

/// Rows with at most one special logit, and what is special about each. Where nothing is, logits are beyond every
/// threshold and from 1 on, where a reciprocal moves less than its operand.
fn logits(rng: &mut ChaCha12Rng, rows: usize, classes: usize, epsilon: i64, labels: &[usize]) -> (Vec<i64>, Vec<Row>) {
    let mut x: Vec<i64> = (0..rows * classes)
        .map(|_| {
            let size = rng.random_range(1 << 16..1 << 18);
            if rng.random_bool(0.7) { size } else { -size }
        })
        .collect();
    let mut kinds = vec![Row::Plain; rows];
    for (r, (x, &label)) in x.chunks_mut(classes).zip(labels).enumerate() {
        // Half of the special logits are the true class.
        let at = if r % 2 == 0 { label } else { (label + 1) % classes };
        x[(label + 2) % classes] = x[(label + 2) % classes].abs();
        let special = [
            (epsilon, Row::Edge),
            (epsilon - 1, Row::Beside),
            (epsilon / 2, Row::Beside),
            (0, Row::Edge),
            (epsilon / 400, Row::Beside),
        ];
        match r % 8 {
            k @ 0..=4 => (x[at], kinds[r]) = special[k],
            5 => {
                x.iter_mut().for_each(|v| *v = -v.abs());
                kinds[r] = Row::Edge;
            }
            _ => {}
        }
    }
    (x, kinds)
}

/// Rows whose largest logits stand at five heights, too far apart for exp to see one from another, 0 and both ends of
/// the range among them.
fn heights(rng: &mut ChaCha12Rng, rows: usize, classes: usize) -> (Vec<i64>, Vec<i64>) {
    let heights: Vec<i64> = (0..rows).map(|r| [0, -(1 << 20), 1 << 20, -(1 << 29), 1 << 29][r % 5]).collect();
    let mut x = Vec::with_capacity(rows * classes);
    for height in &heights {
        let top = rng.random_range(0..classes);
        x.extend((0..classes).map(|k| if k == top { *height } else { height - rng.random_range(0..1i64 << 18) }));
    }
    (x, heights)
}

fn output_heads(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let (rows, classes) = (48, 10);
    let labels: Vec<usize> = (0..rows).map(|_| rng.random_range(0..classes)).collect();
    let (x, heights) = heights(rng, rows, classes);
    let what = format!("{rows} rows of {classes} logits at five heights");
    head_case(lab, Head::Softmax, &what, Nearest, &x, &labels, &Evidence::Heights(heights));
    for head in Head::ALL {
        for (rounding, rows, classes) in
            [(Nearest, 48, 10), (Probabilistic, 64, 4), (Probabilistic, 1 + rng.random_range(0..40), 10)]
        {
            let epsilon = lab.fixed.encode_up(0.1);
            let labels: Vec<usize> = (0..rows).map(|_| rng.random_range(0..classes)).collect();
            let (x, kinds) = logits(rng, rows, classes, epsilon, &labels);
            let what = format!("{rows} rows of {classes} logits");
            head_case(lab, head, &what, rounding, &x, &labels, &Evidence::Rows(kinds));
        }
    }
}

/// The gradient of one head on logits, a row for each label.
fn head_case(
    lab: &mut Lab,
    head: Head,
    what: &str,
    rounding: Rounding,
    x: &[i64],
    labels: &[usize],
    evidence: &Evidence,
) {
    let (rows, classes, epsilon) = (labels.len(), x.len() / labels.len(), lab.fixed.encode_up(0.1));
    let mut y = vec![0; x.len()];
    labels.iter().enumerate().for_each(|(r, &l)| y[r * classes + l] = 1);
    lab.case(
        head_place(head),
        what,
        rounding,
        &[share(rows, classes, x), share(rows, classes, &y)],
        evidence,
        async |p: &Party, v| Ok(vec![Ring(heads::gradient(p, head, epsilon, &v[0], &v[1]).await?.gradient)]),
        |a| {
            let x = array(x, rows);
            let rows = model::heads::Rows::new(&x, labels)?;
            Ok(vec![model::heads::gradient(a, head, epsilon, rows, &mut |_, _| ())?.gradient])
        },
    );
}

fn updates(lab: &mut Lab, rng: &mut ChaCha12Rng) {
    let units = SgdSpec::default().units(lab.fixed).expect("the paper's rate");
    let (rows, cols) = (16, 16);
    let mut draw =
        |n: usize, bits: u32| -> Vec<i64> { (0..n).map(|_| rng.random_range(-(1i64 << bits)..1 << bits)).collect() };
    let (w, v, dw) = (draw(rows * cols, 17), draw(rows * cols, 16), draw(rows * cols, 44));
    let (b, vb, db) = (draw(cols, 17), draw(cols, 16), draw(cols, 28));
    let zero = |v: &[i64]| vec![0; v.len()];
    let cases = [
        ("velocity from gradient", zero(&v), zero(&vb), dw.clone(), db.clone()),
        ("velocity from velocity", v.clone(), vb.clone(), zero(&dw), zero(&db)),
        ("weights", v, vb, dw, db),
    ];
    for rounding in ROUNDINGS {
        for (what, v, vb, dw, db) in &cases {
            lab.case(
                "sgd",
                what,
                rounding,
                &[
                    share(rows, cols, &w),
                    share(1, cols, &b),
                    share(rows, cols, v),
                    share(1, cols, vb),
                    share(rows, cols, dw),
                    share(1, cols, db),
                ],
                &Evidence::Proportional,
                async |p: &Party, s| {
                    let mut layer = LayerShare {
                        weights: s[0].clone(),
                        bias: s[1].clone(),
                        weight_velocity: s[2].clone(),
                        bias_velocity: s[3].clone(),
                    };
                    sgd::update(p, 1, &mut layer, s[4].parts().into(), &s[5], units).await?;
                    let LayerShare { weights, bias, weight_velocity, bias_velocity } = layer;
                    Ok([weight_velocity, bias_velocity, weights, bias].map(Ring).into())
                },
                |a: &mut Arithmetic| -> Result<_, ModelError> {
                    let layer = LayerUnits {
                        weights: array(&w, rows),
                        bias: Array1::from(b.clone()),
                        weight_velocity: array(v, rows),
                        bias_velocity: Array1::from(vb.clone()),
                    };
                    let next = model::sgd::update(a, 1, &units, &layer, &array(dw, rows), &Array1::from(db.clone()))?;
                    Ok(vec![
                        flat(next.weight_velocity),
                        next.bias_velocity.to_vec(),
                        flat(next.weights),
                        next.bias.to_vec(),
                    ])
                },
            );
        }
    }
}
