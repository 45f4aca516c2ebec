//! What runs disclose is what `docs/threat-model.md` lists, no more and no less. A process of its own, because what was
//! disclosed is noted for the whole process.

use difftest::config::{Config, Mode};
use difftest::functions::{self, Scope};
use difftest::run::head::HeadTrace;
use difftest::run::{free, lockstep};
use difftest::side::secure::Secure;
use fixtures::{Dataset, Split};
use ndarray::Array2;
use secure::engine::disclosed::{Disclosed, disclosed, message_steps};
use spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use std::collections::BTreeSet;
use std::path::Path;

#[path = "readers/client.rs"]
#[allow(dead_code)] // `readers` uses the rest.
mod client;

/// Eighty images of 2 x 3 pixels in four classes.
fn data() -> Dataset {
    let split = |n: u8| Split {
        images: (0..n as usize * 6).map(|k| (k * 53 % 256) as u8).collect(),
        labels: (0..n).map(|k| k % 4).collect(),
        height: 2,
        width: 3,
    };
    Dataset { train: split(80), test: split(20) }
}

fn spec_of(head: Head, rounding: Rounding) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec::dense(6, 5, 4, 2),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 16, ..SgdSpec::default() },
    }
}

/// Lock-step training, and the head on given logits, of every head and rounding.
fn training_and_heads() {
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            let spec = spec_of(head, rounding);
            let mut secure = Secure::start(spec.clone(), None, true).unwrap();
            let found = lockstep::run(&Config::new(spec.clone(), 2, 1), &data(), &mut secure, |_, _| ()).unwrap();
            assert!(found.checks.iter().all(|c| c.passed || c.name == "divergence"), "{head} {rounding}");
            let logits = Array2::from_shape_fn((3, 4), |(i, j)| (i as i64 * 3 - j as i64) << 15);
            assert!(HeadTrace::of(&spec, &logits, &[0, 1, 2], None).unwrap().bit_exact());
        }
    }
}

/// A free run, which ends with accuracies.
fn free_run() {
    for rounding in Rounding::ALL {
        let spec = spec_of(Head::Softmax, rounding);
        let config = Config { mode: Mode::Free, ..Config::new(spec.clone(), 5, 1) };
        let start = |_| Secure::start(spec.clone(), None, false);
        free::run(&config, &data(), None, &|_, _, _| false, start, |_| ()).unwrap();
    }
}

/// The cells of the first column of the table that follows a heading.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|s| s.starts_with(heading)).expect("the page has this heading");
    let rows = section.lines().filter(|l| l.starts_with("| ")).skip(2);
    let first = rows.filter_map(|row| row.split('|').nth(1));
    first.flat_map(|cell| cell.split(',')).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn the_page_of_the_threat_model_lists_what_runs_disclose() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/threat-model.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(disclosed().is_empty(), "nothing has run yet");

    training_and_heads();
    functions::table(&Scope { fixed: FixedSpec::default(), rounding: Rounding::Probabilistic, inputs_bits: 9 })
        .unwrap();
    free_run();
    // Training on shared data, predictions and times by the engine's own interface, and a restart from kept states.
    client::recorded();
    client::restarted();

    let names: BTreeSet<String> = disclosed().into_iter().map(|d| d.name().to_owned()).collect();
    assert_eq!(names, listed(&page, "Between client and parties"));
    assert_eq!(names.len(), Disclosed::ALL.len(), "every kind occurs");
    let steps: BTreeSet<String> = message_steps().into_iter().map(str::to_owned).collect();
    assert_eq!(steps, listed(&page, "Between parties"), "protocols that send messages");
    assert!(!steps.contains("reveal"), "nothing is opened to a party");
}
