//! Time of each protocol for an element, all three parties on this machine, and of one training step.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use secure::Result;
use secure::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits};
use secure::party::Party;
use secure::protocol::{argmax, compare, convert, divide, exponential, logarithm, multiply, select, truncate};
use secure::share::Share;
use secure::testing::{share, world};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use std::hint::black_box;

const ELEMENTS: usize = 1 << 14;

/// Runs `protocol` on a vector of small positive numbers, in a world of its own each time: thread start and set-up are
/// measured apart as `nothing`.
fn bench(
    c: &mut Criterion,
    name: &str,
    rounding: Rounding,
    protocol: impl AsyncFn(&Party, &Share) -> Result<Share> + Sync,
) {
    let values: Vec<i64> = (0..ELEMENTS as i64).map(|i| 1 + i * 37 % 650_000).collect();
    let x = share(ELEMENTS, 1, &values);
    let mut group = c.benchmark_group("protocol");
    group.sample_size(10).throughput(Throughput::Elements(ELEMENTS as u64));
    group.bench_function(BenchmarkId::new(name, rounding), |b| {
        b.iter(|| black_box(world(FixedSpec::default(), rounding, |p| p.run(protocol(p, &x[p.id.index()])))));
    });
    group.finish();
}

fn protocols(c: &mut Criterion) {
    bench(c, "nothing", Rounding::Probabilistic, async |_, x| Ok(x.clone()));
    bench(c, "multiply", Rounding::Probabilistic, async |p, x| multiply::multiply(p, x, x).await);
    for rounding in Rounding::ALL {
        bench(c, "truncate", rounding, async |p, x| truncate::truncate(p, x, 16, "bench").await);
        bench(c, "reciprocal", rounding, async |p, x| divide::reciprocal(p, x, p.fixed.full_range(), "bench").await);
        bench(c, "exponential", rounding, async |p, x| exponential::exponential(p, &x.scale(-1)).await);
        bench(c, "logarithm", rounding, async |p, x| logarithm::logarithm(p, x, p.fixed.full_range()).await);
    }
    bench(c, "compare", Rounding::Probabilistic, async |p, x| {
        convert::to_ring(p, &compare::sign(p, &x.clone().reshape(1, ELEMENTS)).await?).await
    });
    bench(c, "relu", Rounding::Probabilistic, async |p, x| {
        let x = x.clone().reshape(1, ELEMENTS);
        let positive = compare::sign(p, &x.scale(-1)).await?;
        Ok(select::select_with_bit(p, &positive, &x).await?.1)
    });
    bench(c, "maximum of 16", Rounding::Probabilistic, async |p, x| {
        argmax::maximum(p, &x.clone().reshape(ELEMENTS / 16, 16)).await
    });
}

fn training_step(c: &mut Criterion) {
    let mut group = c.benchmark_group("training step");
    group.sample_size(20);
    for (layers, rounding) in [1, 2, 3].into_iter().flat_map(|l| Rounding::ALL.map(|r| (l, r))) {
        let spec = TrainSpec {
            network: NetworkSpec::dense(784, 128, 10, layers),
            head: Head::Softmax,
            epsilon: 0.1,
            rounding,
            fixed: FixedSpec::default(),
            sgd: SgdSpec::default(),
        };
        let layer = |l| {
            let (rows, cols) = spec.network.shape(l);
            let weights = (0..(rows * cols) as i64).map(|i| i * 7919 % 5000 - 2500).collect();
            let zeros = |n| vec![0; n];
            LayerUnits { weights, bias: zeros(cols), weight_velocity: zeros(rows * cols), bias_velocity: zeros(cols) }
        };
        let mut engine = Engine::start(EngineConfig::new(spec.clone())).expect("engine");
        engine.load(&ParameterUnits { layers: (1..=layers).map(layer).collect() }).expect("load");
        let pixels: Vec<i64> = (0..128 * 784).map(|i| (i * 31 % 256) << 8).collect();
        let labels: Vec<usize> = (0..128).map(|i| i % 10).collect();
        engine.load_data(&pixels, &labels).expect("data");
        let batch: Vec<u32> = (0..128).collect();
        group.bench_function(BenchmarkId::new(format!("softmax, {layers} layers"), rounding), |b| {
            b.iter(|| engine.train(std::slice::from_ref(&batch)).expect("train"));
        });
    }
    group.finish();
}

criterion_group!(benches, protocols, training_step);
criterion_main!(benches);
