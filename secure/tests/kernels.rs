//! A training of every head gives the same bytes on every kernel of this machine.

use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use secure::engine::{Engine, EngineConfig, LayerUnits, ParameterUnits};
use secure::kernel::Kernel;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

const NAME: &str = "every_kernel_trains_to_the_same_bytes";
const CHILD: &str = "KERNEL_TEST_CHILD";
const DIGEST: &str = "digest ";

fn trained(head: Head, rounding: Rounding) -> ParameterUnits {
    let spec = TrainSpec {
        network: NetworkSpec { widths: vec![97, 33, 10] },
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 70, ..SgdSpec::default() },
    };
    let units = |n: usize| (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect::<Vec<_>>();
    let layer = |l| {
        let (rows, cols) = spec.network.shape(l);
        LayerUnits {
            weights: units(rows * cols),
            bias: units(cols),
            weight_velocity: units(rows * cols),
            bias_velocity: units(cols),
        }
    };
    let parameters = ParameterUnits { layers: (1..=2).map(layer).collect() };
    let mut engine = Engine::start(EngineConfig { seed: Some(3), ..EngineConfig::new(spec) }).unwrap();
    engine.load(&parameters).unwrap();
    let labels: Vec<usize> = (0..100).map(|i| i * 7 % 10).collect();
    engine.load_data(&units(100 * 97), &labels).unwrap();
    let batch = |k: u32| (0..70).map(|i| (i * 3 + k) % 100).collect();
    engine.train(&[batch(0), batch(1)]).unwrap();
    engine.parameters().unwrap()
}

/// The kernel is chosen once per process, so each has a process of its own: this test again, asked for the digest.
#[test]
fn every_kernel_trains_to_the_same_bytes() {
    if std::env::var_os(CHILD).is_some() {
        let mut hasher = DefaultHasher::new();
        for rounding in Rounding::ALL {
            for head in Head::ALL {
                for layer in trained(head, rounding).layers {
                    (layer.weights, layer.bias, layer.weight_velocity, layer.bias_velocity).hash(&mut hasher);
                }
            }
        }
        println!("{DIGEST}{} {:016x}", Kernel::selected().name(), hasher.finish());
        return;
    }
    let digest = |kernel: Kernel| -> String {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").env("SECURE_KERNEL", kernel.name());
        let text = String::from_utf8(again.output().unwrap().stdout).unwrap();
        let wanted = format!("{DIGEST}{} ", kernel.name());
        let line = text.lines().find_map(|l| l.split_once(&wanted));
        line.unwrap_or_else(|| panic!("{}: {text}", kernel.name())).1.to_owned()
    };
    let portable = digest(Kernel::Portable);
    for kernel in Kernel::ALL.into_iter().filter(|k| k.is_available()) {
        assert_eq!(digest(kernel), portable, "{}", kernel.name());
    }
}
