//! Every check of a run passes an ordinary step, whatever the head, rounding and depth, and fails on a mistake that it
//! is there for.

use super::comparison;
use super::judge::{self, Judge};
use crate::config::{Config, Training};
use crate::generate;
use crate::run::lockstep::Lockstep;
use crate::side::secure::Secure;
use crate::trace::Trace;
use fixtures::Split;
use reference::spec::{Head, ProbePoint, Rounding, SgdSpec};

const BATCH: usize = 16;

/// One step of a small network, with what the checks of a run are made from.
struct Step {
    config: Config,
    split: Split,
    trace: Trace,
}

impl Step {
    fn of(head: Head, rounding: Rounding, layers: usize) -> Self {
        let sgd = SgdSpec { batch: BATCH, ..SgdSpec::default() };
        let training = Training { head, layers, hidden: 8, rounding, epsilon: 0.1, sgd };
        let config = Config::new(training.spec(16).unwrap(), 1, 1);
        let images = (0..40 * 16).map(|i| (i * 37 % 251) as u8).collect();
        let split = Split { images, labels: (0..40).map(|i| i % 10).collect(), height: 4, width: 4 };
        let rows = generate::batches(split.len(), BATCH, config.seed).next().unwrap();
        let batch = generate::rows(&split, &rows, config.spec.fixed);
        let start = (0, generate::initial(&config.spec, config.seed).unwrap());
        let mut secure = Secure::start(config.spec.clone(), None, true).unwrap();
        let mut run = Lockstep::new(&config.spec, start, std::iter::once(batch), &mut secure).unwrap();
        let trace = run.next().unwrap().unwrap();
        Step { config, split, trace }
    }

    /// The names of the checks that fail.
    fn failing(&self) -> Vec<&'static str> {
        let checks = judge::all(&self.config, Some(&self.split)).unwrap();
        let mut judge = Judge::new(&self.config, checks, comparison::elements(&self.config.spec));
        judge.see(&self.trace).unwrap();
        let outcomes = judge.finish();
        outcomes.iter().filter(|outcome| outcome.failure.is_some()).map(|outcome| outcome.name).collect()
    }
}

fn passes(layers: usize, head: Head, rounding: Rounding) {
    assert_eq!(Step::of(head, rounding, layers).failing(), [] as [&str; 0]);
}

/// Makes a test of each head and rounding for one depth, and the list of the heads.
macro_rules! depth {
    ($module:ident, $layers:literal; $($name:ident: $head:ident;)*) => {
        mod $module {
            $(mod $name {
                use reference::spec::{Head, Rounding};

                #[test]
                fn nearest() {
                    crate::check::tests::passes($layers, Head::$head, Rounding::Nearest);
                }

                #[test]
                fn probabilistic() {
                    crate::check::tests::passes($layers, Head::$head, Rounding::Probabilistic);
                }
            })*

            pub const HEADS: &[reference::spec::Head] = &[$(reference::spec::Head::$head,)*];
        }
    };
    ($module:ident, $layers:literal) => {
        depth! {
            $module, $layers;
            softmax: Softmax;
            relu_prob: ReluProb;
            relu_prob_cut: ReluProbCut;
            relu_grad: ReluGrad;
            relu_eps: ReluEps;
        }
    };
}

depth!(one_layer, 1);
depth!(two_layers, 2);
depth!(three_layers, 3);

/// Makes a test of each mistake, and the list of the checks that they are for.
macro_rules! mistakes {
    ($($check:ident: $mistake:expr;)*) => {
        mod fails {
            use super::*;

            $(#[test]
            fn $check() {
                let mistake: fn(&mut Trace) = $mistake;
                let mut step = Step::of(Head::Softmax, Rounding::Nearest, 2);
                mistake(&mut step.trace);
                let check = stringify!($check).replace('_', "-");
                assert!(step.failing().contains(&check.as_str()), "{:?}", step.failing());
            })*
        }

        const MISTAKES: &[&str] = &[$(stringify!($check),)*];
    };
}

mistakes! {
    encoding: |trace| trace.batch.units[[3, 5]] += 1;
    bit_exact: |trace| trace.tested.tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] += 1;
    error_bound: |trace| {
        // Alike on both fixed-point sides, so that only the real side can tell.
        for tensors in [&mut trace.tested.tensors, &mut trace.integer.tensors] {
            tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] += 1 << 10;
        }
    };
    gradient_bound: |trace| trace.real.tensors.get_mut(&ProbePoint::HeadGradient).unwrap()[[3, 5]] = 1.5;
    range: |trace| trace.violations.check("layer1/forward", 7, 1 << 70, &(0..=1));
}

#[test]
fn every_check_and_head_has_its_tests() {
    let config = Step::of(Head::Softmax, Rounding::Nearest, 1).config;
    let mut checks: Vec<String> =
        judge::all(&config, None).unwrap().iter().map(|check| check.name().replace('-', "_")).collect();
    let mut mistakes: Vec<String> = MISTAKES.iter().map(ToString::to_string).collect();
    checks.sort();
    mistakes.sort();
    assert_eq!(checks, mistakes, "left: the checks of a run; right: those with a mistake that they find");
    for heads in [one_layer::HEADS, two_layers::HEADS, three_layers::HEADS] {
        assert_eq!(heads, Head::ALL);
    }
}
