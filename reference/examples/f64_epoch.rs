//! Times one plaintext epoch of the paper's networks: 469 steps of 128 rows, 784 inputs, 128 hidden units, 10 classes,
//! on random data.
//!
//! `cargo run --release -p difftest-reference --example f64_epoch`; `RAYON_NUM_THREADS` sets the number of threads.

use ndarray::Array2;
use rand::{Rng, SeedableRng};
use reference::f64::Network;
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use std::time::Instant;

const STEPS: usize = 469;

fn main() -> Result<(), reference::f64::Error> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let x = Array2::from_shape_simple_fn((128, 784), || f64::from(rng.random_range(0..256)) / 256.0);
    let labels: Vec<usize> = (0..128).map(|_| rng.random_range(0..10)).collect();
    println!("layers    seconds   at the first decile of the step times (a quiet machine)");
    for layers in 1..=3 {
        let spec = TrainSpec {
            network: NetworkSpec::dense(784, 128, 10, layers),
            head: Head::Softmax,
            epsilon: 0.1,
            rounding: Rounding::Nearest,
            fixed: FixedSpec::default(),
            sgd: SgdSpec::default(),
        };
        let mut network = Network::glorot(&spec.network, 1)?;
        let mut seconds = Vec::new();
        for _ in 0..STEPS {
            let start = Instant::now();
            network.train_step(&spec, &x, &labels)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        let epoch: f64 = seconds.iter().sum();
        println!("{layers:6} {epoch:10.3} {:22.3}", seconds[STEPS / 10] * STEPS as f64);
    }
    Ok(())
}
