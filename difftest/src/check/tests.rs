//! Every check of single steps passes an ordinary step, whatever the head, rounding and depth; every check of a run has
//! a test in which it passes and one in which it fails on a mistake that it is there for.

use super::divergence::{Divergence, Ending};
use super::judge::{self, Judge};
use super::{Check, Outcome, comparison};
use crate::chance::Chance;
use crate::config::{Config, Training, small};
use crate::error::Error;
use crate::experiment::rounding::tests as rounding_of;
use crate::experiment::transcript::tests as transcript_of;
use crate::run::lockstep::Lockstep;
use crate::side::secure::Secure;
use crate::trace::Trace;
use crate::{experiment, generate, run};
use fixtures::{Dataset, Split};
use reference::spec::{FixedSpec, Head, ProbePoint, Rounding, SgdSpec, TrainSpec};

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

    /// What every check of single steps says.
    fn outcomes(&self) -> Vec<Outcome> {
        let checks = judge::all(&self.config, Some(&self.split)).unwrap();
        let mut judge = Judge::new(&self.config, checks, comparison::elements(&self.config.spec));
        judge.see(&self.trace).unwrap();
        judge.finish()
    }
}

fn passes(layers: usize, head: Head, rounding: Rounding) {
    for outcome in Step::of(head, rounding, layers).outcomes() {
        assert!(outcome.passed, "{outcome:?}");
    }
}

mod one_layer {
    use super::*;
    spec::by_head!(passes, 1);
}

mod two_layers {
    use super::*;
    spec::by_head!(passes, 2);
}

mod three_layers {
    use super::*;
    spec::by_head!(passes, 3);
}

/// What the check with this name says of a step with a mistake.
fn of_step(check: &str, mistake: fn(&mut Trace)) -> Outcome {
    let mut step = Step::of(Head::Softmax, Rounding::Nearest, 2);
    mistake(&mut step.trace);
    step.outcomes().into_iter().find(|outcome| outcome.name == check).unwrap()
}

/// No mistake.
const RIGHT: fn(&mut Trace) = |_| ();

/// 4 x 4 images of ten classes, of which class c lights pixel c: some twenty steps tell them apart.
fn separable() -> Dataset {
    let split = || {
        let mut split = Split { images: vec![0; 400 * 16], labels: Vec::new(), height: 4, width: 4 };
        for row in 0..400 {
            split.images[row * 16 + row % 10] = 255;
            split.labels.push((row % 10) as u8);
        }
        split
    };
    Dataset { train: split(), test: split() }
}

/// A lock-step run of the parties on [`separable`] data, in a format that holds values below 16.
fn lockstep(learning_rate: f64, steps: usize) -> Vec<Outcome> {
    let sgd = SgdSpec { learning_rate, batch: BATCH, ..SgdSpec::default() };
    let training =
        Training { head: Head::Softmax, layers: 1, hidden: 8, rounding: Rounding::Nearest, epsilon: 0.1, sgd };
    let fixed = FixedSpec { fraction_bits: 16, value_bits: 21 };
    let config = Config::new(TrainSpec { fixed, ..training.spec(16).unwrap() }, steps, 1);
    let mut secure = Secure::start(config.spec.clone(), None, true).unwrap();
    run::lockstep::run(&config, &separable(), &mut secure, |_, _| ()).unwrap().checks
}

/// What `divergence` says of a run at this learning rate.
fn divergence(learning_rate: f64) -> Outcome {
    let outcomes = lockstep(learning_rate, 30);
    outcomes.into_iter().find(|outcome| outcome.name == "divergence").unwrap()
}

/// Makes of each check a test in which it passes and one in which it fails, and the list of their names.
macro_rules! verdicts {
    ($($check:ident: $passes:expr, $fails:expr;)*) => {
        $(mod $check {
            use super::*;

            #[test]
            fn passes() {
                let outcome: Outcome = $passes;
                assert_eq!((name(stringify!($check)), "PASS"), (outcome.name.into(), outcome.word()), "{outcome:?}");
            }

            #[test]
            fn fails() {
                let outcome: Outcome = $fails;
                assert_eq!((name(stringify!($check)), "FAIL"), (outcome.name.into(), outcome.word()), "{outcome:?}");
            }
        })*

        /// The checks that have both tests.
        const VERDICTS: &[&str] = &[$(stringify!($check),)*];
    };
}

/// The name on the report of the check that these tests call `check`.
fn name(check: &str) -> String {
    check.replace('_', "-")
}

verdicts! {
    encoding: of_step("encoding", RIGHT), of_step("encoding", |trace| trace.batch.units[[3, 5]] += 1);
    bit_exact: of_step("bit-exact", RIGHT), of_step("bit-exact", |trace| {
        trace.tested.tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] += 1;
    });
    error_bound: of_step("error-bound", RIGHT), of_step("error-bound", |trace| {
        // Alike on both fixed-point sides, so that only the real side can tell.
        for tensors in [&mut trace.tested.tensors, &mut trace.integer.tensors] {
            tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] += 1 << 10;
        }
    });
    gradient_bound: of_step("gradient-bound", RIGHT), of_step("gradient-bound", |trace| {
        trace.real.tensors.get_mut(&ProbePoint::HeadGradient).unwrap()[[3, 5]] = 1.5;
    });
    range: of_step("range", RIGHT), of_step("range", |trace| {
        trace.violations.check("layer1/forward", 7, 1 << 70, &(0..=1));
    });
    divergence: super::divergence(0.2), super::divergence(50.0);
    rounding: rounding_of::right_coins(), rounding_of::coins_that_always_round_down();
    transcript: transcript_of::a_right_run(), transcript_of::a_run_with_a_bit_that_is_never_masked();
}

/// The list is taken from what a run reports: a check that is added to it fails here until it has its two tests.
#[test]
fn every_check_of_a_run_has_a_test_that_passes_and_one_that_fails() {
    let mut checks: Vec<String> = lockstep(0.2, 1).iter().map(|outcome| outcome.name.into()).collect();
    let config = small(Head::ReluGrad, Rounding::Nearest);
    checks.extend(experiment::checks(&config).unwrap().iter().map(|outcome| outcome.name.to_string()));
    let verdicts: Vec<String> = VERDICTS.iter().map(|check| name(check)).collect();
    assert_eq!(checks, verdicts, "left: the checks of a run; right: those with tests");
}

#[test]
fn every_head_has_its_tests() {
    for heads in [one_layer::HEADS, two_layers::HEADS, three_layers::HEADS] {
        assert_eq!(heads, Head::ALL);
    }
}

/// A tensor that one side lacks, and coins that the integer side refuses, are what bit-exact is there for.
#[test]
fn a_tensor_that_a_side_lacks_is_a_mismatch() {
    let of = |mistake: fn(&mut Trace)| {
        let mut step = Step::of(Head::Softmax, Rounding::Nearest, 2);
        mistake(&mut step.trace);
        let mut check = Box::new(crate::check::bit_exact::BitExact::new(&step.config));
        check.see(&step.trace, None);
        let failed = check.failed();
        let outcome = check.finish();
        assert_eq!(failed, outcome.word() == "FAIL");
        (outcome.summary, outcome.failure.unwrap_or_default())
    };
    let (summary, failure) = of(|t| drop(t.tested.tensors.remove(&ProbePoint::Logits)));
    assert!(summary.contains("1 mismatch in ") && summary.ends_with(" of 1 step"), "{summary}");
    assert!(failure.contains("step 0, logits: only the integer side has this tensor"), "{failure}");
    let (summary, failure) = of(|t| drop(t.integer.tensors.remove(&ProbePoint::Logits)));
    assert!(summary.contains("1 mismatch in "), "{summary}");
    assert!(failure.contains("step 0, logits: only the secure side has this tensor"), "{failure}");
    let (summary, _) = of(|t| {
        let logits = t.tested.tensors.get_mut(&ProbePoint::Logits).unwrap();
        (logits[[3, 5]], logits[[4, 5]]) = (logits[[3, 5]] + 1, logits[[4, 5]] - 1);
    });
    assert!(summary.contains("2 mismatches in "), "{summary}");
    let (summary, failure) = of(|t| t.refused = Some(Error::Secure(secure::Error::misuse("as planted"))));
    assert!(summary.contains("1 mismatch in ") && failure.contains("step 0: secure side: as planted"), "{failure}");
}

/// The bounds are theorems about arithmetic that stays in range: no step is judged from the first that leaves it on.
#[test]
fn no_bound_is_judged_once_the_range_was_left() {
    let outcomes = lockstep(50.0, 30);
    let bound = outcomes.iter().find(|outcome| outcome.name == "error-bound").unwrap();
    let (_, from) = bound.summary.split_once("; not judged from step ").expect("the range is left");
    let first: usize = from.split(' ').next().unwrap().parse().unwrap();
    assert!(first > 0 && first < 29, "{}", bound.summary);
    let steps = crate::count::counted(first, "step");
    assert!(bound.summary.contains(&format!(" of {steps} outside")), "{}", bound.summary);
}

/// One violation is enough, and a step without bounds is open and does not pass.
#[test]
fn a_single_violation_leaves_the_step_without_bounds() {
    let outcome = of_step("error-bound", |trace| trace.violations.check("layer1/forward", 7, 1 << 70, &(0..=1)));
    assert_eq!(outcome.word(), "OPEN", "{outcome:?}");
    assert!(outcome.summary.contains("; not judged from step 0 on, where the range was left"), "{outcome:?}");
}

#[test]
fn a_judge_says_whether_a_check_has_failed_so_far_and_knows_its_tensors() {
    let failed = |mistake: fn(&mut Trace), probe: Option<&str>| {
        let mut step = Step::of(Head::Softmax, Rounding::Nearest, 2);
        mistake(&mut step.trace);
        step.config.only_probe = probe.map(str::to_owned);
        let checks = judge::all(&step.config, Some(&step.split)).unwrap();
        let mut judge = Judge::new(&step.config, checks, comparison::elements(&step.config.spec));
        assert!(!judge.failed(), "nothing was seen");
        judge.see(&step.trace).map(|_| judge.failed())
    };
    assert_eq!(failed(RIGHT, None).ok(), Some(false));
    assert_eq!(failed(|trace| trace.batch.units[[3, 5]] += 1, None).ok(), Some(true));
    assert_eq!(failed(|trace| trace.violations.check("logits", 7, 1 << 70, &(0..=1)), None).ok(), Some(true));
    assert_eq!(failed(RIGHT, Some("logits")).ok(), Some(false));
    assert!(failed(RIGHT, Some("no such tensor")).is_err());
}

/// Each side by its own tensors; a violation is the integer side's.
#[test]
fn every_side_has_its_own_verdict_on_its_training() {
    let of = |mistake: fn(&mut Trace)| {
        let mut step = Step::of(Head::Softmax, Rounding::Nearest, 2);
        mistake(&mut step.trace);
        let mut seen = Divergence::new(["real", "integer", "secure"], &step.config.spec);
        seen.see(&step.trace);
        let chance = Chance::balanced(10, 1000);
        let all = seen.verdicts(&Ending { accuracy: [0.9; 3], chance, steps: 1000, epoch: 1 });
        all.into_iter().map(|(side, verdict)| format!("{side} {verdict}")).collect::<Vec<_>>()
    };
    let trains = ["real trains", "integer trains", "secure trains"];
    assert_eq!(of(RIGHT), trains);
    let with = |k: usize, verdict: &str| {
        let mut all = trains.map(str::to_owned);
        all[k] = format!("{} {verdict}", trains[k].split(' ').next().unwrap());
        all
    };
    let grows = "grows (step 0: logits[3, 5] = 65536.0)";
    assert_eq!(of(|t| t.real.tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] = 65536.0), with(0, grows));
    assert_eq!(of(|t| t.integer.tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] = 1 << 32), with(1, grows));
    assert_eq!(of(|t| t.tested.tensors.get_mut(&ProbePoint::Logits).unwrap()[[3, 5]] = 1 << 32), with(2, grows));
    let left = of(|t| t.violations.check("layer1/forward", 7, 1 << 70, &(0..=1)));
    assert!(left[1].starts_with("integer range (step 0: layer1/forward"), "{left:?}");
    assert_eq!([&left[0], &left[2]], [trains[0], trains[2]]);
}

/// The statistical bound is judged beside the worst case, for every element that has one.
#[test]
fn both_bounds_are_judged_where_there_are_coins() {
    let summary = |rounding| {
        let outcomes = Step::of(Head::Softmax, rounding, 2).outcomes();
        outcomes.into_iter().find(|outcome| outcome.name == "error-bound").unwrap().summary
    };
    let both = summary(Rounding::Probabilistic);
    let (_, statistical) = both.split_once("; 0 of ").expect("the statistical bound is told of");
    let (elements, _) = statistical.split_once(" outside the statistical one").unwrap();
    let spec = Step::of(Head::Softmax, Rounding::Probabilistic, 2).config.spec;
    let inside_head = 16 * (1 + 10 + 1 + 10);
    assert_eq!(elements.parse::<u64>().unwrap(), comparison::elements(&spec) - inside_head, "{both}");
    assert!(!summary(Rounding::Nearest).contains("statistical"), "no coins, no chance");
}
