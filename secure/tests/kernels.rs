//! A training of every head gives the same bytes on every kernel of this machine.

use secure::engine::{EngineConfig, ParameterUnits};
use secure::kernel::Kernel;
use secure::testing::Training;
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
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
    let mut training = Training::start(EngineConfig { seed: Some(3), ..EngineConfig::new(spec) }, 100);
    training.steps(2);
    training.engine.parameters().unwrap()
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
