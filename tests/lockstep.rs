//! Every head, rounding and depth in lock-step on real MNIST batches: the secure result is the integer model's, and
//! inside its bound.

use difftest::config::{Config, Training};
use difftest::run::lockstep;
use difftest::side::secure::Secure;
use fixtures::Dataset;
use reference::spec::{Head, Rounding, SgdSpec};
use std::sync::OnceLock;

/// MNIST with a short test set: accuracy is not the subject here.
fn data() -> &'static Dataset {
    static DATA: OnceLock<Dataset> = OnceLock::new();
    DATA.get_or_init(|| {
        let mut data = fixtures::mnist().unwrap();
        data.test.labels.truncate(100);
        data.test.images.truncate(100 * 784);
        data
    })
}

fn is_bit_exact_and_inside_its_bound(layers: usize, head: Head, rounding: Rounding) {
    let training = Training { head, layers, hidden: 128, rounding, epsilon: 0.1, sgd: SgdSpec::default() };
    let spec = training.spec(784).unwrap();
    let mut secure = Secure::start(spec.clone(), None, true).unwrap();
    let config = Config::new(spec, 3, 11);
    let found = lockstep::run(&config, data(), &mut secure, |_, _| ()).unwrap();
    for check in found.checks.iter().filter(|c| c.name != "divergence") {
        assert!(check.passed, "{}: {check:?}", config.command(""));
    }
    // A bound that is never nearly reached somewhere would prove little.
    let closest = found.distances.tensors.values().map(|c| c.closest).fold(0.0, f64::max);
    assert!((0.5..=1.0).contains(&closest), "{}: closest {closest}", config.command(""));
}

mod one_layer {
    use super::*;
    reference::spec::by_head!(is_bit_exact_and_inside_its_bound, 1);
}

mod two_layers {
    use super::*;
    reference::spec::by_head!(is_bit_exact_and_inside_its_bound, 2);
}

mod three_layers {
    use super::*;
    reference::spec::by_head!(is_bit_exact_and_inside_its_bound, 3);
}

#[test]
fn every_head_has_its_tests() {
    for heads in [one_layer::HEADS, two_layers::HEADS, three_layers::HEADS] {
        assert_eq!(heads, Head::ALL);
    }
}
