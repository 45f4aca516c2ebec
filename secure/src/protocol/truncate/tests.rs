//! Both roundings against integer arithmetic: exact values, recorded coins, their frequencies, costs and refusals.

use super::pack::{PIECE, pack, packed_words, unpack};
use super::*;
use crate::buffer::Words;
use crate::testing::{open, share, world};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use spec::FixedSpec;

/// Boundary values first, both signs, then exact multiples and ties, then random ones of every size.
fn operands(shift: u32) -> Vec<i64> {
    let mut v: Vec<i64> = vec![0];
    for m in [1, 2, 1 << 16, 1 << 31, 1 << 46, 1 << 61, (1 << 62) - (1 << (shift - 1)) - 1] {
        v.extend([m, -m, m - 1, 1 - m]);
    }
    for k in [-5i64, -1, 0, 1, 7] {
        let multiple = k << shift;
        let half = 1i64 << (shift - 1);
        v.extend([multiple, multiple + half, multiple + half - 1, multiple - 1, multiple + 1]);
    }
    let mut rng = ChaCha12Rng::seed_from_u64(u64::from(shift));
    v.extend((0..500).map(|i| rng.random::<i64>() >> (2 + i % 60)));
    v.retain(|x| i128::from(*x).abs() < (1 << 62) - (1i128 << (shift - 1)));
    v
}

#[test]
fn nearest_is_exact_for_every_shift() {
    for shift in [1, 2, 3, 4, 5, 11, 16, 17, 27, 39, 44, 50, 60] {
        let v = operands(shift);
        let x = share(v.len(), 1, &v);
        let (y, spent, _) =
            world(FixedSpec::default(), Rounding::Nearest, |p| p.run(truncate(p, &x[p.id.index()], shift, "t")));
        let want: Vec<i64> = v.iter().map(|x| ((i128::from(*x) + (1i128 << (shift - 1))) >> shift) as i64).collect();
        assert_eq!(open(&y), want, "shift {shift}");
        assert_eq!(spent.rounds, nearest_cost(shift).rounds, "shift {shift}");
    }
}

#[test]
fn probabilistic_gives_the_floor_plus_the_recorded_coin() {
    for shift in [1, 2, 11, 16, 29, 32, 39, 44, 60] {
        let v = operands(shift);
        let x = share(v.len(), 1, &v);
        let (y, spent, records) =
            world(FixedSpec::default(), Rounding::Probabilistic, |p| p.run(truncate(p, &x[p.id.index()], shift, "t")));
        assert_eq!(spent.rounds, probabilistic_cost(shift).rounds);
        let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
        let low = |v: u64| v & ((1 << shift) - 1);
        for (i, y) in open(&y).into_iter().enumerate() {
            let coin = i64::from(low(x0[i]) < low(m[i]));
            assert_eq!(y, (v[i] >> shift) + coin, "{} >> {shift}", v[i]);
            assert!(coin == 0 || low(v[i] as u64) != 0, "an exact multiple never moves");
        }
    }
}

/// Around the length of a piece and the widths of packed words, replicated and as a product: floor plus the recorded
/// coin.
#[test]
fn long_vectors_are_truncated_element_by_element() {
    let mut rng = ChaCha12Rng::seed_from_u64(11);
    for n in [PIECE - 1, PIECE, PIECE + 1, PIECE + 63, 2 * PIECE + 63] {
        let v: Vec<i64> = (0..n).map(|i| rng.random::<i64>() >> (2 + i % 50)).collect();
        let x = share(1, n, &v);
        for shift in [1, 15, 16, 17, 31, 32, 33, 39, 61] {
            for product in [false, true] {
                let (y, _, records) = world(FixedSpec::default(), Rounding::Probabilistic, |p| {
                    let x = &x[p.id.index()];
                    p.run(async {
                        match product {
                            true => truncate_product(p, x.parts(), shift, "t").await,
                            false => truncate(p, x, shift, "t").await,
                        }
                    })
                });
                let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
                let low = |v: u64| v & ((1 << shift) - 1);
                let want: Vec<i64> = (0..n).map(|i| (v[i] >> shift) + i64::from(low(x0[i]) < low(m[i]))).collect();
                assert_eq!(open(&y), want, "{n} elements, shift {shift}");
            }
            let (y, ..) =
                world(FixedSpec::default(), Rounding::Nearest, |p| p.run(truncate(p, &x[p.id.index()], shift, "t")));
            let half = 1i128 << (shift - 1);
            let want: Vec<i64> = v.iter().map(|&v| ((i128::from(v) + half) >> shift) as i64).collect();
            let inside = |v: &i64| i128::from(*v) + half < 1 << 62;
            let all = open(&y).into_iter().zip(want).zip(&v).filter(|(_, v)| inside(v));
            all.for_each(|((y, want), v)| assert_eq!(y, want, "{v} >> {shift}, nearest, {n} elements"));
        }
    }
}

/// Half the range, both edges, exactly as undoubled: the value itself and, under probabilistic rounding, the recorded
/// coin.
#[test]
fn a_doubled_value_is_truncated_as_the_value_itself() {
    for shift in [1, 2, 16, 39, 60] {
        let half = 1i128 << (shift - 1);
        let mut v: Vec<i64> = operands(shift).into_iter().map(|v| v >> 1).collect();
        v.retain(|&v| i128::from(v) + half < 1 << 61);
        v.extend([-(1 << 61), ((1i128 << 61) - half - 1) as i64]);
        let x = share(v.len(), 1, &v);
        for rounding in Rounding::ALL {
            let (y, spent, records) = world(FixedSpec::default(), rounding, |p| {
                p.run(truncate_doubled(p, x[p.id.index()].parts().into(), shift, "t"))
            });
            let (x0, m) = (&records[0].truncations[0].part, &records[1].truncations[0].part);
            let low = |v: u64| v & ((2 << shift) - 1);
            let want = |i: usize| match rounding {
                Rounding::Probabilistic => (v[i] >> shift) + i64::from(low(x0[i]) < low(m[i])),
                Rounding::Nearest => ((i128::from(v[i]) + half) >> shift) as i64,
            };
            assert_eq!(open(&y), (0..v.len()).map(want).collect::<Vec<_>>(), "{rounding}, shift {shift}");
            assert_eq!(spent.rounds, truncate_doubled_cost(rounding, shift).rounds, "{rounding}, shift {shift}");
        }
    }
}

#[test]
fn numbers_are_packed_into_as_many_bits_as_they_have() {
    let mut rng = ChaCha12Rng::seed_from_u64(3);
    for width in 1..=61 {
        for n in [1, 7, 64, 65, PIECE - 1, PIECE] {
            let values: Vec<u64> = (0..n).map(|_| rng.random()).collect();
            let mut packed = Words::default();
            pack(&values, width, &mut packed);
            assert_eq!(packed.len(), packed_words(n, width), "{n} of {width} bits");
            assert!(n % 64 > 0 || packed.len() * 64 == n * width as usize, "{n} of {width} bits");
            let mut back = vec![u64::MAX; n];
            unpack(&packed, width, &mut back);
            let low = |all: &[u64]| all.iter().map(|v| v & ((1 << width) - 1)).collect::<Vec<_>>();
            assert_eq!(low(&back), low(&values), "{n} of {width} bits");
        }
    }
    assert_eq!(packed_words(2 * PIECE + 65, 17), 32 * 17 + 65);
}

#[test]
fn a_shift_that_the_ring_does_not_allow_is_refused() {
    let x = share(1, 2, &[3 << 16, -5]);
    for rounding in Rounding::ALL {
        for shift in [0, 62, 64] {
            let (refused, ..) = world(FixedSpec::default(), rounding, |p| {
                let x = &x[p.id.index()];
                let product = p.run(truncate_product(p, x.parts(), shift, "t"));
                let doubled = p.run(truncate_doubled(p, x.parts().into(), shift.clamp(0, 61), "t"));
                Ok([product, doubled, p.run(truncate(p, x, shift, "t"))].iter().all(Result::is_err))
            });
            assert_eq!(refused, [true; 3], "{rounding}, shift {shift}");
        }
    }
}

/// ln n!, by Stirling's series: relative error below 1e-16 for n >= 30.
fn ln_factorial(n: f64) -> f64 {
    if n < 30.0 {
        return (2..=n as u64).map(|k| (k as f64).ln()).sum();
    }
    let r = 1.0 / n;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + r / 12.0 - r.powi(3) / 360.0 + r.powi(5) / 1260.0
}

/// P(X as far out as k on its side) for X binomial (n, p): the exact tail, summed from k outwards.
fn binomial_tail(n: u64, k: u64, p: f64) -> f64 {
    let (n_f, k_f) = (n as f64, k as f64);
    let choose = ln_factorial(n_f) - ln_factorial(k_f) - ln_factorial(n_f - k_f);
    let mut term = (choose + k_f * p.ln() + (n_f - k_f) * (-p).ln_1p()).exp();
    let odds = p / (1.0 - p);
    let (mut sum, mut i) = (0.0, k_f);
    let upwards = k_f >= n_f * p;
    while term > 0.0 && term > sum * 1e-18 {
        sum += term;
        term *= if upwards { (n_f - i) / (i + 1.0) * odds } else { i / (n_f - i + 1.0) / odds };
        i += if upwards { 1.0 } else { -1.0 };
    }
    sum
}

#[test]
fn the_binomial_tail_is_exact_where_it_can_be_counted() {
    // Of the 1024 outcomes of ten fair coins, 176 have three heads or fewer.
    assert!((binomial_tail(10, 3, 0.5) - 176.0 / 1024.0).abs() < 1e-12);
    assert!((binomial_tail(10, 7, 0.5) - 176.0 / 1024.0).abs() < 1e-12);
    assert!((binomial_tail(10, 0, 0.25) - 0.75f64.powi(10)).abs() < 1e-12);
}

/// 2^22 truncations at each magnitude: floor or floor + 1 only, and the number of those that round up has an exact
/// binomial tail above 2^-40.
#[test]
fn four_million_truncations_never_fail_and_round_up_as_often_as_they_should() {
    const N: usize = 1 << 18;
    for value in [3i64 << 14, -(1 << 30) + 77, (1 << 46) + 12345, -(1 << 46) - 1, (1 << 61) + 54321, -(1 << 61) + 3] {
        let v = vec![value; N];
        let fraction = (value & 0xffff) as f64 / 65536.0;
        let mut up = 0usize;
        for _ in 0..16 {
            let x = share(N, 1, &v);
            let (y, ..) =
                world(FixedSpec::default(), Rounding::Probabilistic, |p| p.run(truncate(p, &x[p.id.index()], 16, "t")));
            for y in open(&y) {
                let c = y - (value >> 16);
                assert!(c == 0 || c == 1, "{value}: {y}");
                up += c as usize;
            }
        }
        let tail = binomial_tail(16 * N as u64, up as u64, fraction);
        assert!(tail > 2f64.powi(-40), "{value}: {up} of {} rounded up, expected {fraction}: tail {tail:e}", 16 * N);
    }
}
