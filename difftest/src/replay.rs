//! Replay of one recorded step: the real side, the integer side on the recorded coins, and fresh parties, whose coins
//! are their own, judged by the checks of a lock-step run.

pub mod shrink;

use crate::check::judge::{self, Judge};
use crate::check::{Check, Outcome, comparison};
use crate::config::Config;
use crate::error::Error;
use crate::run::lockstep::Lockstep;
use crate::side::Opens;
use crate::side::recorded::Recorded;
use crate::trace::Trace;
use crate::trace::step_file::StepFile;
use reference::spec::{Rounding, TrainSpec};

/// The trace of the step as a side takes it.
///
/// # Errors
/// A file that does not fit its specification; a side that cannot go on.
fn trace<S: Opens>(file: &StepFile, side: &mut S) -> Result<Trace, Error> {
    let start = (file.step, file.start.clone());
    let mut run = Lockstep::new(&file.spec, start, std::iter::once(file.batch.clone()), side)?;
    let mut trace = run.next().expect("a run has a step for every batch")?;
    match trace.stopped.take() {
        Some(error) => Err(error),
        None => Ok(trace),
    }
}

/// The verdicts of those checks that `judge` the step.
fn judged(config: &Config, trace: &Trace, judge: impl Fn(&dyn Check) -> bool) -> Result<Vec<Outcome>, Error> {
    let checks = judge::all(config, None)?.into_iter().filter(|check| judge(check.as_ref())).collect();
    let mut judge = Judge::new(config, checks, comparison::elements(&trace.spec));
    judge.see(trace)?;
    Ok(judge.finish())
}

/// Judges the integer model on the recorded coins: it must be inside its bounds around the real side.
///
/// # Errors
/// Coins that do not fit the step.
pub fn recorded(file: &StepFile) -> Result<Vec<Outcome>, Error> {
    if file.spec.rounding == Rounding::Probabilistic && file.coins.is_empty() {
        return Ok(vec![Outcome::open(
            "recorded coins",
            "the trace has none, so only fresh parties are judged".into(),
        )]);
    }
    let mut side = Recorded::new(file.spec.clone(), file.coins.clone())?;
    let trace = trace(file, &mut side)?;
    // It would be compared with itself.
    judged(&file.config(), &trace, |check| check.name() != "bit-exact")
}

/// A secure run of the step by parties that `start` starts, against the integer and the real side; and the step with
/// the coins of that run.
///
/// # Errors
/// A side that cannot go on.
pub fn fresh<S: Opens>(
    file: &StepFile,
    start: &mut impl FnMut(&TrainSpec) -> Result<S, Error>,
) -> Result<(Vec<Outcome>, StepFile), Error> {
    let trace = trace(file, &mut start(&file.spec)?)?;
    // Coins that the integer side refuses leave nothing else to be judged.
    let checks = judged(&file.config(), &trace, |check| trace.complete() || check.name() == "bit-exact")?;
    let failures = checks.iter().filter_map(|c| c.failure.clone()).collect();
    let mut written = StepFile::new(&file.config(), &trace, failures).expect("a lock-step run has a common start");
    written.command.clone_from(&file.command);
    Ok((checks, written))
}

#[cfg(test)]
mod tests {
    use super::shrink::shrink;
    use super::*;
    use crate::compare::real;
    use crate::config::small as config;
    use crate::generate;
    use crate::side::secure::Secure;
    use crate::side::{Batch, Side, Step, Tensors};
    use crate::trace::header::{TraceRounding, Update};
    use crate::trace::{Tensor, TraceFile, Values};
    use ndarray::{Array2, Axis, s};
    use reference::fixed::{Parameters, Tape};
    use reference::spec::ProbePoint;
    use reference::spec::{Head, SgdSpec};

    /// One captured step of a small network, written and read again.
    fn saved(head: Head, rounding: Rounding) -> StepFile {
        let mut config = config(head, rounding);
        config.spec.sgd = SgdSpec { batch: 6, ..config.spec.sgd };
        let mut side = Secure::start(config.spec.clone(), None, true).unwrap();
        let units = Array2::from_shape_fn((6, 16), |(i, j)| ((i * 31 + j * 17) % 256 * 256) as i64);
        let batch = Batch { reals: units.mapv(|u| real(u, 16)), units, labels: vec![0, 1, 2, 3, 4, 5] };
        let start = (0, generate::initial(&config.spec, 1).unwrap());
        let run = Lockstep::new(&config.spec, start, std::iter::repeat_n(batch, 2), &mut side).unwrap();
        StepFile::new(&config, &run.last().unwrap().unwrap(), vec![]).unwrap()
    }

    fn start(spec: &TrainSpec) -> Result<Secure, Error> {
        Secure::start(spec.clone(), None, true)
    }

    /// A side that is one unit off in the first logit of every row with label 4.
    struct Planted(Secure);

    impl Side for Planted {
        type Value = i64;
        fn name(&self) -> &'static str {
            "secure"
        }
        fn load(&mut self, parameters: &Parameters) -> Result<(), Error> {
            self.0.load(parameters)
        }
        fn step(&mut self, batch: &Batch, tape: Tape) -> Result<Step<i64>, Error> {
            let mut done = self.0.step(batch, tape)?;
            let logits = done.tensors.get_mut(&ProbePoint::Logits).unwrap();
            batch.labels.iter().enumerate().filter(|(_, l)| **l == 4).for_each(|(row, _)| logits[[row, 0]] += 1);
            Ok(done)
        }
        fn correct(&mut self, batch: &Batch) -> Result<usize, Error> {
            self.0.correct(batch)
        }
    }

    impl Opens for Planted {
        fn parameters(&mut self) -> Result<Parameters, Error> {
            self.0.parameters()
        }
    }

    #[test]
    fn a_step_is_written_read_and_passes_again() {
        let dir = tempfile::tempdir().unwrap();
        for rounding in Rounding::ALL {
            let mut file = saved(Head::Softmax, rounding);
            assert_eq!((file.step, file.rows()), (1, 6));
            for name in ["step.npz", "step.safetensors"] {
                let path = dir.path().join(name);
                file.write(&path).unwrap();
                let read = StepFile::read(&path, None).unwrap();
                let judged = crate::foreign::judge(&TraceFile::read(&path).unwrap()).unwrap();
                assert!(judged.holds(false), "{:?}", judged.checks);
                file.path = path;
                assert_eq!(read, StepFile { computed: Tensors::new(), ..file.clone() });
                assert!(!read.coins.is_empty(), "{rounding}");
                for checks in [recorded(&read).unwrap(), fresh(&read, &mut start).unwrap().0] {
                    assert!(checks.iter().all(|c| c.passed), "{checks:?}");
                }
            }
        }
    }

    #[test]
    fn other_coins_than_the_recorded_give_another_result() {
        let mut file = saved(Head::Softmax, Rounding::Probabilistic);
        let mut rounded = file.coins.pop("layer2/forward").unwrap();
        rounded.coins.pop();
        file.coins.push("layer2/forward", rounded);
        assert!(recorded(&file).unwrap_err().to_string().contains("layer2/forward has 59 coins; it must have 60"));
    }

    #[test]
    fn a_failure_is_reduced_to_its_row_and_the_classes_it_needs_at_the_same_rate() {
        let file = saved(Head::ReluGrad, Rounding::Probabilistic);
        let mut planted = |spec: &TrainSpec| start(spec).map(Planted);
        let failed = fresh(&file, &mut planted).unwrap().0;
        assert!(failed.iter().any(|c| !c.passed));
        let small = shrink(&file, &failed, &mut planted).unwrap();
        // Label 4 has four classes before it; none of the five after it is left.
        assert_eq!((small.batch.labels.as_slice(), small.rows(), small.classes()), ([4].as_slice(), 1, 5));
        let columns = |f: &StepFile| f.start.layers.last().unwrap().weights.slice(s![.., ..5]).to_owned();
        assert_eq!(columns(&small), columns(&file), "the classes keep their weights");
        let rate = |f: &StepFile| f.spec.sgd.units(f.spec.fixed).unwrap();
        assert_eq!(rate(&small), rate(&file));
        assert!(small.failures[0].contains("logits[0, 0]"), "{:?}", small.failures);
        assert!(recorded(&small).unwrap().iter().all(|c| c.passed), "its coins are those of the small run");
    }

    #[test]
    fn a_part_has_the_columns_of_its_classes_and_every_label() {
        let file = saved(Head::Softmax, Rounding::Nearest);
        let part = file.part(&[1, 3], &[1, 3, 9]).unwrap();
        assert_eq!((part.batch.labels.as_slice(), part.classes()), ([0, 1].as_slice(), 3));
        let (whole, left) = (&file.start, &part.start);
        assert_eq!(left.layers[0], whole.layers[0], "hidden layers know no classes");
        assert_eq!(left.layers[1].weights, whole.layers[1].weights.select(Axis(1), &[1, 3, 9]));
        assert_eq!(left.layers[1].bias_velocity, whole.layers[1].bias_velocity.select(Axis(0), &[1, 3, 9]));
        assert_eq!(file.part(&[1, 2], &[1, 3]), None, "row 2 has label 2");
        assert_eq!(file.part(&[1], &[1]), None, "one class is nothing to learn");
    }

    #[test]
    fn a_failure_of_another_check_is_not_the_one_looked_for() {
        let file = saved(Head::Softmax, Rounding::Nearest);
        let other = Outcome::new("range", String::new(), Some("range".into()));
        let mut planted = |spec: &TrainSpec| start(spec).map(Planted);
        assert_eq!(shrink(&file, &[other], &mut planted).unwrap(), file);
    }

    #[test]
    fn a_file_that_is_no_step_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("step.npz");
        let good = saved(Head::Softmax, Rounding::Probabilistic).trace().unwrap();
        let units = |shape: &[usize]| {
            let values = Values::Units(vec![2; shape.iter().product()]);
            Tensor { shape: shape.to_vec(), values }
        };
        let refused = |change: &dyn Fn(&mut TraceFile)| {
            let mut file = good.clone();
            change(&mut file);
            file.write(&path).unwrap();
            let error = StepFile::read(&path, None).unwrap_err().to_string();
            assert!(error.contains("step.npz: ") && !error.contains('\n'), "{error}");
            error
        };
        let put =
            |name: &str, tensor: Tensor| refused(&|f| drop(f.tensors.insert(format!("step/1/{name}"), tensor.clone())));
        assert!(refused(&|f| f.header.version = 7).contains("version is 7"));
        let ten = Tensor { shape: vec![6], values: Values::Units(vec![0, 1, 10, 3, 4, 5]) };
        assert!(put("labels", ten).contains("label 10 of row 2"));
        assert!(put("labels", units(&[1])).contains("labels has shape [1]"));
        assert!(put("input", units(&[6, 2])).contains("input has shape [6, 2]"));
        assert!(put("start/layer2/bias", units(&[1])).contains("layer2/bias has shape [1]"));
        let reals = Tensor { shape: vec![6, 16], values: Values::Doubles(vec![0.5; 96]) };
        assert!(put("input", reals).contains("has reals"));
        assert!(put("coins/layer2/forward", units(&[60])).contains("a coin is the integer 0 or 1"));
        assert!(put("coins/layer2/forward#x", units(&[60])).contains("after # there must be a number"));
        assert!(put("wraps/layer2/forward", units(&[60])).contains("a wrap is a row of two integers"));
        assert!(refused(&|f| f.tensors.retain(|n, _| !n.contains("layer1/weights"))).contains("it lacks step/1/start"));
        assert!(refused(&|f| f.header.epsilon = 2.0).contains("epsilon is 2"));
        assert!(refused(&|f| f.header.update = Update::Ascent).contains("update"));
        assert!(refused(&|f| f.header.rounding = TraceRounding::Local).contains("rounding must be"));
        assert!(refused(&|f| f.header.learning_rate = None).contains("learning_rate must be there"));
        let none = StepFile::read(&dir.path().join("none.npz"), None).unwrap_err();
        assert!(none.to_string().contains("none.npz"));
    }

    #[test]
    fn one_step_of_several_is_chosen_by_its_number() {
        let mut trace = saved(Head::Softmax, Rounding::Nearest).trace().unwrap();
        let again: Vec<_> = trace.tensors.iter().map(|(n, t)| (n.replace("step/1/", "step/4/"), t.clone())).collect();
        trace.tensors.extend(again);
        assert!(StepFile::of(&trace, None).unwrap_err().contains("2 steps (1, 4, ..); choose one with --step"));
        assert!(StepFile::of(&trace, Some(2)).unwrap_err().contains("it has no step 2; it has 1, 4"));
        assert_eq!(StepFile::of(&trace, Some(4)).unwrap().step, 4);
    }

    #[test]
    fn a_step_without_coins_is_open_there() {
        let file = StepFile { coins: Tape::default(), ..saved(Head::Softmax, Rounding::Probabilistic) };
        assert_eq!(recorded(&file).unwrap()[0].word(), "OPEN");
        let checks = fresh(&file, &mut start).unwrap().0;
        assert!(checks.iter().all(|c| c.passed), "{checks:?}");
        let names: Vec<_> = checks.iter().map(|c| c.name).collect();
        assert_eq!(names, ["encoding", "bit-exact", "error-bound", "gradient-bound", "range"], "nothing is left out");
    }
}
