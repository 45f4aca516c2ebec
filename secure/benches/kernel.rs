//! The hot loops beside what they can be compared with: `cargo bench -p difftest-secure --bench kernel`.
//!
//! Matrix products are reported in multiply-adds per second, packing included, one thread; `f64` is `matrixmultiply::dgemm` on the same shape.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use secure::kernel::{Bits, CtrKey, Kernel, View, from_bits, lowest_bits, to_planes};
use std::hint::black_box;

fn words(n: usize) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..n).map(|_| rng.random()).collect()
}

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|k| k.is_available())
}

/// The products of a training step: forward, weight gradient (A transposed), gradient of the inputs (B transposed), a large batch.
const SHAPES: [(&str, usize, usize, usize, bool, bool); 7] = [
    ("forward", 128, 784, 128, false, false),
    ("weight gradient", 784, 128, 128, true, false),
    ("last layer", 128, 128, 10, false, false),
    ("last weight gradient", 128, 128, 10, true, false),
    ("back to hidden", 128, 10, 128, false, true),
    ("hidden to hidden", 128, 128, 128, false, true),
    ("large batch", 1000, 784, 128, false, false),
];

fn matmul(criterion: &mut Criterion) {
    for (name, m, k, n, a_t, b_t) in SHAPES {
        let mut group = criterion.benchmark_group(format!("matmul {m}x{k}x{n} {name}"));
        group.throughput(Throughput::Elements((m * k * n) as u64));
        let (a, b) = (words(m * k), words(k * n));
        let view = |data, rows, cols, t| if t { View::new(data, cols, rows).t() } else { View::new(data, rows, cols) };
        let mut out = vec![0; m * n];
        for kernel in available() {
            let (x, y) = (view(&a, m, k, a_t), view(&b, k, n, b_t));
            group.bench_function(BenchmarkId::new(kernel.name(), "product"), |bench| {
                bench.iter(|| kernel.matmul(black_box(x), y, &mut out, false));
            });
        }
        let real = |words: &[u64]| words.iter().map(|&w| w as f64).collect::<Vec<f64>>();
        let (a, b, mut out) = (real(&a), real(&b), vec![0.0; m * n]);
        let strides = |rows: usize, cols: usize, t: bool| if t { (1, rows as isize) } else { (cols as isize, 1) };
        let ((ra, ca), (rb, cb)) = (strides(m, k, a_t), strides(k, n, b_t));
        group.bench_function(BenchmarkId::new("f64", "dgemm"), |bench| {
            bench.iter(|| {
                let (a, b, out) = (black_box(&a), &b, &mut out);
                // SAFETY: the slices have m k, k n and m n elements, and the strides are those of these shapes.
                unsafe {
                    matrixmultiply::dgemm(
                        m,
                        k,
                        n,
                        1.0,
                        a.as_ptr(),
                        ra,
                        ca,
                        b.as_ptr(),
                        rb,
                        cb,
                        0.0,
                        out.as_mut_ptr(),
                        n as isize,
                        1,
                    )
                }
            });
        });
        group.finish();
    }
}

/// As many bit-adds as the product of the same shape has multiply-adds.
fn bit_products(criterion: &mut Criterion) {
    for (name, m, k, n, _, b_t) in SHAPES {
        let mut group = criterion.benchmark_group(format!("bits {m}x{k}x{n} {name}"));
        group.throughput(Throughput::Elements((m * k * n) as u64));
        let (values, b) = (words(m * k), words(k * n));
        let mut packed = vec![0; m * Bits::words_for(k)];
        lowest_bits(&values, k, &mut packed);
        let bits = Bits::new(&packed, m, k);
        let view = if b_t { View::new(&b, n, k).t() } else { View::new(&b, k, n) };
        let mut out = vec![0; m * n];
        for kernel in available() {
            group.bench_function(BenchmarkId::new(kernel.name(), "product"), |bench| {
                bench.iter(|| kernel.bit_matmul_in(1, black_box(bits), view, &mut out));
            });
        }
        let (mut lowest, mut turned) = (packed.clone(), vec![0; k * Bits::words_for(m)]);
        group.bench_function("lowest bits", |bench| bench.iter(|| lowest_bits(black_box(&values), k, &mut lowest)));
        group.bench_function("transpose", |bench| bench.iter(|| black_box(bits).transpose(&mut turned)));
        group.finish();
    }
}

fn planes(criterion: &mut Criterion) {
    let values = words(16384);
    let mut group = criterion.benchmark_group("planes 16384x32");
    group.throughput(Throughput::Elements(16384));
    let mut planes = vec![0; 32 * 256];
    let mut bits = vec![0; 16384];
    for kernel in available() {
        group.bench_function(BenchmarkId::new(kernel.name(), "to planes"), |bench| {
            bench.iter(|| kernel.to_planes(black_box(&values), 0, 32, &mut planes));
        });
        group.bench_function(BenchmarkId::new(kernel.name(), "from bits"), |bench| {
            bench.iter(|| kernel.from_bits(black_box(&values[..256]), &mut bits));
        });
    }
    group.finish();
    // The free functions are these with the selected kernel.
    to_planes(&values, 0, 32, &mut planes);
    from_bits(&planes[..256], &mut bits);
}

fn streams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("AES-128 counter mode, 16384 words");
    group.throughput(Throughput::Bytes(8 * 16384));
    let mut out = vec![0; 16384];
    for kernel in available() {
        let key = CtrKey::for_kernel(kernel, [7; 16]);
        group.bench_function(BenchmarkId::new(kernel.name(), "fill"), |bench| bench.iter(|| key.fill(9, &mut out)));
        group.bench_function(BenchmarkId::new(kernel.name(), "add"), |bench| bench.iter(|| key.add_fill(9, &mut out)));
    }
    group.finish();
}

criterion_group!(benches, matmul, bit_products, planes, streams);
criterion_main!(benches);
