//! The hot loops beside what they can be compared with: `cargo bench -p difftest-secure -F bench --bench kernel`.
//!
//! Matrix products are reported in multiply-adds per second, packing included, one thread. `f64` is
//! `matrixmultiply::dgemm` on the same shape, with AVX2 and FMA as in the plaintext side of this project, or with
//! AVX-512 under `-F bench,f64-avx512`.
//!
//! `cargo bench -q -p difftest-secure -F bench --bench kernel -- --ratios` prints the products alone as JSON: every
//! kernel and f64 in turn, the shortest of many runs of each, which other work on the machine disturbs least. Such
//! results are kept in `docs/benchmarks/`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use secure::kernel::{CtrKey, Kernel, View, from_bits, to_planes};
use std::hint::black_box;
use std::time::{Instant, SystemTime};

fn words(n: usize) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..n).map(|_| rng.random()).collect()
}

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|k| k.is_available())
}

/// Name, m, k, n, whether A and B are stored transposed.
type Shape = (&'static str, usize, usize, usize, bool, bool);

/// The products of a training step of 128 images: forward, weight gradients (A transposed), back-propagated gradients
/// (B transposed), with hidden layers of 128 and, as `only layer`, without; and a large batch.
const SHAPES: [Shape; 10] = [
    ("forward", 128, 784, 128, false, false),
    ("weight gradient", 784, 128, 128, true, false),
    ("last layer", 128, 128, 10, false, false),
    ("last weight gradient", 128, 128, 10, true, false),
    ("back to hidden", 128, 10, 128, false, true),
    ("hidden to hidden", 128, 128, 128, false, true),
    ("hidden weight gradient", 128, 128, 128, true, false),
    ("only layer", 128, 784, 10, false, false),
    ("only weight gradient", 784, 128, 10, true, false),
    ("large batch", 1000, 784, 128, false, false),
];

/// Operands of one shape in words and in f64, and the result in both.
struct Operands {
    shape: Shape,
    words: [Vec<u64>; 3],
    reals: [Vec<f64>; 3],
}

impl Operands {
    fn new(shape: Shape) -> Self {
        let (_, m, k, n, _, _) = shape;
        let words = [words(m * k), words(k * n), vec![0; m * n]];
        let reals = words.each_ref().map(|w| w.iter().map(|&w| w as f64).collect());
        Operands { shape, words, reals }
    }

    fn multiply(&mut self, kernel: Kernel) {
        let (_, m, k, n, a_t, b_t) = self.shape;
        let view = |data, rows, cols, t| if t { View::new(data, cols, rows).t() } else { View::new(data, rows, cols) };
        let [a, b, out] = &mut self.words;
        kernel.matmul(black_box(view(a, m, k, a_t)), view(b, k, n, b_t), out, false);
    }

    fn multiply_f64(&mut self) {
        let (_, m, k, n, a_t, b_t) = self.shape;
        let strides = |rows: usize, cols: usize, t: bool| if t { (1, rows as isize) } else { (cols as isize, 1) };
        let ((ra, ca), (rb, cb)) = (strides(m, k, a_t), strides(k, n, b_t));
        let [a, b, out] = black_box(&mut self.reals);
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        // SAFETY: the vectors have m k, k n and m n elements, and the strides are those of these shapes.
        unsafe { matrixmultiply::dgemm(m, k, n, 1.0, a, ra, ca, b, rb, cb, 0.0, out, n as isize, 1) }
    }

    fn multiply_adds(&self) -> usize {
        self.shape.1 * self.shape.2 * self.shape.3
    }
}

fn matmul(criterion: &mut Criterion) {
    for shape @ (name, m, k, n, _, _) in SHAPES {
        let mut operands = Operands::new(shape);
        let mut group = criterion.benchmark_group(format!("matmul {m}x{k}x{n} {name}"));
        group.throughput(Throughput::Elements(operands.multiply_adds() as u64));
        for kernel in available() {
            group.bench_function(BenchmarkId::new(kernel.name(), "product"), |bench| {
                bench.iter(|| operands.multiply(kernel));
            });
        }
        group.bench_function(BenchmarkId::new("f64", "dgemm"), |bench| bench.iter(|| operands.multiply_f64()));
        group.finish();
    }
}

/// Prints the rate of every kernel on every shape of a training step and its ratio to f64, as JSON.
fn ratios() {
    let kernels: Vec<Kernel> = available().collect();
    println!("{{\n\"date\": \"{}\",\n\"processor\": {:?},", date(), processor());
    println!(
        "\"kernel_chosen\": \"{}\",\n\"f64\": \"matrixmultiply::dgemm with {}\",",
        Kernel::best().name(),
        f64_vectors()
    );
    println!("\"unit\": \"G multiply-adds/s, one thread, packing included, shortest of 150 to 2000 runs in turn\",");
    println!("\"products\": [");
    let (_, shapes) = SHAPES.split_last().expect("the last one is the large batch");
    for (i, &shape) in shapes.iter().enumerate() {
        let (name, m, k, n, _, _) = shape;
        let mut operands = Operands::new(shape);
        let mut shortest = vec![f64::INFINITY; 1 + kernels.len()];
        // About as long for every shape.
        for _ in 0..(2_000_000_000 / operands.multiply_adds()).clamp(150, 2000) {
            for (which, shortest) in shortest.iter_mut().enumerate() {
                let start = Instant::now();
                match which.checked_sub(1) {
                    None => operands.multiply_f64(),
                    Some(kernel) => operands.multiply(kernels[kernel]),
                }
                *shortest = shortest.min(start.elapsed().as_secs_f64());
            }
        }
        let rate = |seconds: f64| operands.multiply_adds() as f64 / seconds / 1e9;
        let entry = |(kernel, &seconds): (&Kernel, &f64)| {
            format!(
                "\"{}\": {{\"rate\": {:.1}, \"of_f64\": {:.2}}}",
                kernel.name(),
                rate(seconds),
                shortest[0] / seconds
            )
        };
        let entries: Vec<String> = kernels.iter().zip(&shortest[1..]).map(entry).collect();
        let comma = if i + 1 < shapes.len() { "," } else { "" };
        print!("{{\"name\": \"{name}\", \"m\": {m}, \"k\": {k}, \"n\": {n}, \"f64\": {:.1}, ", rate(shortest[0]));
        println!("{}}}{comma}", entries.join(", "));
    }
    println!("]\n}}");
}

/// The vectors of `dgemm` in this build on this processor.
fn f64_vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("fma")) {
        (true, _) if cfg!(feature = "f64-avx512") => "AVX-512",
        (_, true) => "AVX2 and FMA",
        _ => "less than FMA",
    };
    #[cfg(not(target_arch = "x86_64"))]
    return if cfg!(target_arch = "aarch64") { "NEON" } else { "no vectors" };
}

/// The processor's name as the system gives it, with family and model where they say more than the name.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(format!("{name} {}", line.split_once(':')?.1.trim()))
    };
    let parts = ["model name", "cpu family", "model", "CPU implementer", "CPU part"].into_iter().filter_map(field);
    let parts: Vec<String> = parts.map(|p| p.trim_start_matches("model name ").to_owned()).collect();
    if parts.is_empty() { format!("{} on {}", std::env::consts::ARCH, std::env::consts::OS) } else { parts.join(", ") }
}

/// Today in UTC. Source: E. G. Richards, *Mapping Time* (1998), chapter 25, from the Julian day number.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let julian = seconds / 86400 + 2_440_588;
    let f = julian + 1401 + (4 * julian + 274_277) / 146_097 * 3 / 4 - 38;
    let e = 4 * f + 3;
    let h = 5 * (e % 1461 / 4) + 2;
    let (day, month) = (h % 153 / 5 + 1, (h / 153 + 2) % 12 + 1);
    format!("{:04}-{month:02}-{day:02}", e / 1461 - 4716 + (14 - month) / 12)
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

criterion_group!(benches, matmul, planes, streams);

fn main() {
    if std::env::args().any(|argument| argument == "--ratios") {
        return ratios();
    }
    let names: Vec<_> = available().map(Kernel::name).collect();
    let (chosen, vectors) = (Kernel::best().name(), f64_vectors());
    println!("processor: {}; kernels: {}; chosen: {chosen}; f64: dgemm with {vectors}", processor(), names.join(", "));
    benches();
    Criterion::default().configure_from_args().final_summary();
}
