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
use reference::spec::TrainSpec;

/// The trace of the step as a side takes it.
///
/// # Errors
/// A file that does not fit its specification; a side that cannot go on.
fn trace<S: Opens>(file: &StepFile, side: &mut S) -> Result<Trace, Error> {
    let start = (file.step, file.parameters().map_err(|what| file.refuse(what))?);
    let mut run = Lockstep::new(&file.spec, start, std::iter::once(file.rows()), side)?;
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

/// The integer model on the recorded coins, inside its bounds around the real side?
///
/// # Errors
/// Coins that do not fit the step.
pub fn recorded(file: &StepFile) -> Result<Vec<Outcome>, Error> {
    let mut side = Recorded::new(file.spec.clone(), file.tape().map_err(|what| file.refuse(what))?)?;
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
    use crate::side::{Batch, Side, Step};
    use ndarray::{Array2, Axis, s};
    use reference::fixed::{Parameters, Tape};
    use reference::spec::ProbePoint;
    use reference::spec::{Head, Rounding, SgdSpec};

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
            assert_eq!((file.step, file.batch()), (1, 6));
            let path = dir.path().join("step.json");
            std::fs::write(&path, file.json()).unwrap();
            let read = StepFile::read(&path).unwrap();
            file.path = path;
            assert_eq!(read, file);
            assert!(!read.tape().unwrap().is_empty(), "{rounding}");
            for checks in [recorded(&read).unwrap(), fresh(&read, &mut start).unwrap().0] {
                assert!(checks.iter().all(|c| c.passed), "{checks:?}");
            }
        }
    }

    #[test]
    fn other_coins_than_the_recorded_give_another_result() {
        let mut file = saved(Head::Softmax, Rounding::Probabilistic);
        file.forget_a_coin("layer2/forward");
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
        assert_eq!((small.labels.as_slice(), small.batch(), small.classes()), ([4].as_slice(), 1, 5));
        let columns =
            |f: &StepFile| f.parameters().unwrap().layers.last().unwrap().weights.slice(s![.., ..5]).to_owned();
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
        assert_eq!((part.labels.as_slice(), part.classes()), ([0, 1].as_slice(), 3));
        let (whole, left) = (file.parameters().unwrap(), part.parameters().unwrap());
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
        let path = dir.path().join("step.json");
        let good: serde_json::Value = serde_json::from_str(&saved(Head::Softmax, Rounding::Nearest).json()).unwrap();
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = good.clone();
            change(&mut value);
            std::fs::write(&path, value.to_string()).unwrap();
            let error = StepFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("step.json: ") && !error.contains('\n'), "{error}");
            error
        };
        assert!(refused(&|v| v["schema"] = 7.into()).contains("schema 7"));
        assert!(refused(&|v| v["labels"][2] = 10.into()).contains("label 10 of row 2"));
        assert!(refused(&|v| v["labels"] = serde_json::json!([1])).contains("1 label;"));
        assert!(refused(&|v| v["rows"][1] = serde_json::json!([1, 2])).contains("row 1 has 2 values"));
        assert!(refused(&|v| v["layers"][1]["bias"] = serde_json::json!([1])).contains("layer2/bias has 1"));
        assert!(refused(&|v| v["layers"] = serde_json::json!([])).contains("0 layers"));
        assert!(refused(&|v| v["tape"][0]["coins"] = "0g".into()).contains("hexadecimal"));
        assert!(refused(&|v| v["spec"]["epsilon"] = 2.into()).contains("epsilon is 2"));
        assert!(refused(&|v| v["more"] = 1.into()).contains("unknown field"));
        assert!(StepFile::read(&dir.path().join("none.json")).unwrap_err().to_string().contains("none.json"));
    }
}
