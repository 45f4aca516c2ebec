//! Every head, rounding and depth in lock-step on real MNIST batches: the secure result is the integer model's, and
//! inside its bound.

use difftest::config::{Config, Training};
use difftest::run::lockstep;
use difftest::side::secure::Secure;
use reference::spec::{Head, Rounding, SgdSpec};

#[test]
fn every_head_rounding_and_depth_is_bit_exact_and_inside_its_bound() {
    let mut data = fixtures::mnist().unwrap();
    // Accuracy is not the subject here.
    data.test.labels.truncate(100);
    data.test.images.truncate(100 * 784);
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            for layers in 1..=3 {
                let training = Training { head, layers, hidden: 128, rounding, epsilon: 0.1, sgd: SgdSpec::default() };
                let spec = training.spec(784).unwrap();
                let mut secure = Secure::start(spec.clone(), None, true).unwrap();
                let config = Config::new(spec, 3, 11);
                let found = lockstep::run(&config, &data, &mut secure, |_, _| ()).unwrap();
                for check in found.checks.iter().filter(|c| c.name != "divergence") {
                    assert!(check.passed, "{}: {check:?}", config.command(""));
                }
                // A bound that is never nearly reached somewhere would prove little.
                let closest = found.distances.tensors.values().map(|c| c.closest).fold(0.0, f64::max);
                assert!((0.5..=1.0).contains(&closest), "{}: closest {closest}", config.command(""));
            }
        }
    }
}
