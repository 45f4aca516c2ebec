//! Every kernel of this machine against plain formulas: one table of shapes, one of values.

use super::*;
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The kernels to be tested, reported by name; the others with their reason.
fn kernels() -> Vec<Kernel> {
    for kernel in Kernel::ALL {
        match kernel.why_not() {
            None => println!("{}: tested", kernel.name()),
            Some(why) => println!("{}: not tested, {why}", kernel.name()),
        }
    }
    Kernel::ALL.into_iter().filter(|k| k.is_available()).collect()
}

const EDGES: [u64; 6] = [0, 1, 1 << 63, u64::MAX, 0x0000_0001_0000_0000, 0xffff_ffff];

/// A quarter boundary values, the rest random.
fn words(rng: &mut ChaCha8Rng, n: usize) -> Vec<u64> {
    (0..n)
        .map(|_| if rng.random_ratio(1, 4) { EDGES[rng.random_range(0..EDGES.len())] } else { rng.random() })
        .collect()
}

fn naive(a: View, b: View, old: Option<&[u64]>) -> Vec<u64> {
    let ((m, k), (_, n)) = (a.shape(), b.shape());
    (0..m * n)
        .map(|e| {
            let start = old.map_or(0, |old| old[e]);
            (0..k).fold(start, |sum, p| sum.wrapping_add(a.at(e / n, p).wrapping_mul(b.at(p, e % n))))
        })
        .collect()
}

/// Around the tiles (4 × 4, 3 × 8, 14 × 8, 16 × 8), the blocks (128, 256, 256), primes, empty, and the shapes of
/// training.
const SHAPES: [(usize, usize, usize); 28] = [
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (1, 1, 1),
    (1, 17, 1),
    (3, 5, 3),
    (4, 4, 4),
    (5, 3, 5),
    (7, 1, 15),
    (8, 2, 16),
    (9, 3, 17),
    (16, 16, 32),
    (15, 64, 31),
    (17, 65, 33),
    (13, 127, 10),
    (31, 61, 67),
    (127, 10, 129),
    (128, 128, 10),
    (129, 255, 16),
    (129, 256, 5),
    (2, 257, 130),
    (1, 513, 257),
    (128, 10, 128),
    (300, 7, 300),
    (10, 7, 259),
    (64, 784, 48),
    (131, 517, 19),
    (130, 517, 43),
];

/// Every kernel × shape × transposition × (overwrite, accumulate).
#[test]
fn matmul_is_exact() {
    let kernels = kernels();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (m, k, n) in SHAPES {
        for variant in 0..4 {
            let [a_t, b_t] = [1, 2].map(|bit| variant & bit != 0);
            let (a_rows, a_cols) = if a_t { (k, m) } else { (m, k) };
            let (b_rows, b_cols) = if b_t { (n, k) } else { (k, n) };
            let (a, b) = (words(&mut rng, m * k), words(&mut rng, k * n));
            let (a, b) = (View::new(&a, a_rows, a_cols), View::new(&b, b_rows, b_cols));
            let (a, b) = (if a_t { a.t() } else { a }, if b_t { b.t() } else { b });
            let old = words(&mut rng, m * n);
            for accumulate in [false, true] {
                let expected = naive(a, b, accumulate.then_some(&old));
                #[cfg(target_arch = "x86_64")]
                if m * k * n > 0 && accumulate == (variant % 3 == 0) && m * n < 40_000 {
                    // The AMX kernel with emulated instructions.
                    use amx::{emulated::Emulated, product};
                    for pieces in [1, 3] {
                        let mut out = old.clone();
                        product(|| Emulated, a, b, &mut out, Plan { accumulate, pieces });
                        assert!(out == expected, "emulated amx {m}x{k}x{n} variant {variant} in {pieces} pieces");
                    }
                }
                for &kernel in &kernels {
                    let context = format!("{} {m}x{k}x{n} variant {variant} accumulate {accumulate}", kernel.name());
                    let mut out = old.clone();
                    kernel.matmul(a, b, &mut out, accumulate);
                    assert!(out == expected, "{context}");
                }
            }
        }
    }
}

proptest! {
    /// (A0 + A1) (B0 + B1) accumulated from its four products is the product of the sums: linearity over the ring, at
    /// any shape.
    #[test]
    fn products_of_sums_expand(m in 1usize..50, k in 1usize..300, n in 1usize..50, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (a0, a1) = (words(&mut rng, m * k), words(&mut rng, m * k));
        let (b0, b1) = (words(&mut rng, k * n), words(&mut rng, k * n));
        for kernel in Kernel::ALL.into_iter().filter(|k| k.is_available()) {
            let (mut at_once, mut expanded) = (vec![0; m * n], vec![0; m * n]);
            let sum = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>();
            let (a, b) = (sum(&a0, &a1), sum(&b0, &b1));
            kernel.matmul(View::new(&a, m, k), View::new(&b, k, n), &mut at_once, false);
            for (a, b) in [(&a0, &b0), (&a0, &b1), (&a1, &b0), (&a1, &b1)] {
                kernel.matmul(View::new(a, m, k), View::new(b, k, n), &mut expanded, true);
            }
            prop_assert!(at_once == expanded, "{}", kernel.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Random shapes, transpositions and numbers of pieces, values with many at the edges: every kernel gives the
    /// portable one's bits.
    #[test]
    fn every_kernel_is_the_portable_one(
        (m, k, n) in (1usize..70, 1usize..530, 1usize..70),
        (a_t, b_t, accumulate) in any::<(bool, bool, bool)>(),
        pieces in 1usize..6,
        seed: u64,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [a, b, old] = [m * k, k * n, m * n].map(|len| words(&mut rng, len));
        let a = if a_t { View::new(&a, k, m).t() } else { View::new(&a, m, k) };
        let b = if b_t { View::new(&b, n, k).t() } else { View::new(&b, k, n) };
        let product = |kernel: Kernel, pieces| {
            let mut out = old.clone();
            kernel.matmul_in(pieces, a, b, &mut out, accumulate);
            out
        };
        let expected = product(Kernel::Portable, 1);
        for kernel in Kernel::ALL.into_iter().filter(|k| k.is_available()) {
            prop_assert!(product(kernel, pieces) == expected, "{}", kernel.name());
        }
    }
}

/// All limbs 255 at the deepest block: the accumulators' headroom (the emulation stops at an overflow).
#[test]
#[cfg(target_arch = "x86_64")]
fn amx_accumulators_do_not_overflow() {
    let (m, k, n) = (2, 2100, 3);
    let (a, b) = (vec![u64::MAX; m * k], vec![u64::MAX; k * n]);
    let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
    let mut out = vec![0; m * n];
    amx::product(|| amx::emulated::Emulated, a, b, &mut out, Plan { accumulate: false, pieces: 1 });
    assert_eq!(out, vec![k as u64; m * n]);
}

/// The tile instructions as they are assembled, carried out by a signal handler: random values and all limbs 255, one
/// and several depths of a tile.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn amx_instructions_are_right_where_they_trap() {
    use amx::trapped::{DOTS, Trapped};
    use std::sync::atomic::Ordering;
    if !Trapped::is_possible() {
        println!("not tested: this machine has the instructions, and other tests run them");
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for (m, k, n, pieces) in [(1, 1, 1, 1), (16, 64, 16, 1), (17, 130, 33, 2), (40, 1100, 20, 3)] {
        for random in [true, false] {
            let [a, b] = [m * k, k * n].map(|len| if random { words(&mut rng, len) } else { vec![u64::MAX; len] });
            let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
            let mut out = vec![0; m * n];
            let before = DOTS.load(Ordering::Relaxed);
            amx::product(Trapped::begin, a, b, &mut out, Plan { accumulate: false, pieces });
            assert!(out == naive(a, b, None), "{m}x{k}x{n}");
            assert!(DOTS.load(Ordering::Relaxed) >= before + 36, "{m}x{k}x{n} without the instructions");
        }
    }
}

#[test]
fn the_number_of_pieces_changes_nothing() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    // By depth, by rows over several blocks of depths, and transposed.
    for (m, k, n, by_depth) in [(307, 130, 120, true), (130, 600, 48, false), (400, 256, 12, false)] {
        let (a, b, old) = (words(&mut rng, m * k), words(&mut rng, k * n), words(&mut rng, m * n));
        let a = if by_depth { View::new(&a, k, m).t() } else { View::new(&a, m, k) };
        let b = View::new(&b, k, n);
        for accumulate in [false, true] {
            let expected = naive(a, b, accumulate.then_some(&old));
            for (kernel, pieces) in kernels().into_iter().flat_map(|k| [1, 2, 3, 7, 1000].map(|pieces| (k, pieces))) {
                let mut out = old.clone();
                kernel.matmul_in(pieces, a, b, &mut out, accumulate);
                assert!(out == expected, "{} {m}x{k}x{n} in {pieces} pieces", kernel.name());
            }
        }
    }
}

#[test]
fn selection_refuses_what_is_not_there() {
    assert_eq!(Kernel::by_name("portable"), Ok(Kernel::Portable));
    let unknown = Kernel::by_name("sse9").unwrap_err().to_string();
    assert!(unknown.contains("\"sse9\"") && unknown.contains("portable, neon, avx2, avx512, ifma, amx"), "{unknown}");
    for kernel in Kernel::ALL {
        assert_eq!(Kernel::by_name(kernel.name()).is_ok(), kernel.is_available());
        if let Some(why) = kernel.why_not() {
            let error = Kernel::by_name(kernel.name()).unwrap_err().to_string();
            assert!(error.contains(&format!("SECURE_KERNEL={}", kernel.name())) && error.contains(&why), "{error}");
            assert!(error.lines().count() == 1 && error.contains(Kernel::best().name()), "{error}");
        }
    }
    assert!(Kernel::best().is_available());
}

#[test]
fn planes_are_bits() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for n in [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 200, 513] {
        for (lo, bits) in [(0, 64), (0, 32), (0, 1), (63, 1), (16, 0), (64, 0), (5, 33), (31, 33), (7, 16), (32, 32)] {
            let values = words(&mut rng, n);
            let words = n.div_ceil(64);
            for kernel in kernels() {
                let what = format!("{}, n {n} bits {lo}+{bits}", kernel.name());
                let mut planes = vec![u64::MAX; bits as usize * words];
                kernel.to_planes(&values, lo, bits, &mut planes);
                for j in 0..bits as usize {
                    let plane = &planes[j * words..][..words];
                    for i in 0..64 * words {
                        let expected = values.get(i).map_or(0, |v| v >> (lo as usize + j) & 1);
                        assert_eq!(plane[i / 64] >> (i % 64) & 1, expected, "{what} plane {j} value {i}");
                    }
                    let mut back = vec![9; n];
                    kernel.from_bits(plane, &mut back);
                    assert!((0..n).all(|i| back[i] == values[i] >> (lo as usize + j) & 1), "{what} plane {j}");
                }
            }
        }
    }
}

/// FIPS 197, appendix C.1.
#[test]
fn the_stream_is_aes() {
    let key = std::array::from_fn(|i| i as u8);
    let plain: [u8; 16] = std::array::from_fn(|i| 0x11 * i as u8);
    let cipher = 0x5ac5_b470_80b7_cdd8_3004_7b6a_d8e0_c469_u128.to_le_bytes();
    let cipher = u128::from_le_bytes(cipher);
    for kernel in kernels() {
        let mut out = [0; 2];
        CtrKey::for_kernel(kernel, key).fill(u128::from_le_bytes(plain), &mut out);
        assert_eq!(out, [cipher as u64, (cipher >> 64) as u64], "{}", kernel.name());
    }
}

/// Every length around the steps, all four combinations, counters on both sides of a carry: against single blocks.
#[test]
fn every_stream_is_the_same() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let key = rng.random();
    for first in [0, 77, (1 << 64) - 1, (1 << 64) - 40, (9 << 64) - 33, u128::MAX - 5] {
        for n in [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 200, 1000] {
            let block = |i: usize| {
                let mut words = [0; 2];
                CtrKey::for_kernel(Kernel::Portable, key).fill(first.wrapping_add(i as u128 / 2), &mut words);
                words[i % 2]
            };
            let stream: Vec<u64> = (0..n).map(block).collect();
            let old = words(&mut rng, n);
            let combine = |f: fn(u64, u64) -> u64| old.iter().zip(&stream).map(|(&o, &s)| f(o, s)).collect::<Vec<_>>();
            for kernel in kernels() {
                let key = CtrKey::for_kernel(kernel, key);
                let run = |f: &dyn Fn(&mut [u64])| {
                    let mut out = old.clone();
                    f(&mut out);
                    out
                };
                let context = format!("{} {n} words from {first}", kernel.name());
                assert!(run(&|out| key.fill(first, out)) == stream, "{context}");
                assert!(run(&|out| key.add_fill(first, out)) == combine(u64::wrapping_add), "{context}");
                assert!(run(&|out| key.sub_fill(first, out)) == combine(u64::wrapping_sub), "{context}");
                assert!(run(&|out| key.xor_fill(first, out)) == combine(|a, b| a ^ b), "{context}");
            }
        }
    }
}
