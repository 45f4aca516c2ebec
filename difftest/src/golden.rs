//! Recorded results: what each head, rounding and depth gave when the record was made, so that a change of any result
//! is noticed and has to be accepted by name.
//!
//! A record holds the complete configuration; logits, head gradient and biases in full, f64 with 17 significant digits;
//! of the large tensors SHA-256 digests of the integers, one for each [`BLOCK`] elements, and sums in f64. With nearest
//! rounding the integers are the secure engine's; with probabilistic rounding, whose coins are fresh in every secure
//! run, the integer model's with a seeded coin stream (`bit-exact` ties the two together).
//!
//! Integers and digests are compared exactly. f64 values may differ in the last digits between processors (fused
//! multiply-add, `exp`), so they are compared to 1e-12 relative to the largest of their tensor.

use crate::config::Training;
use crate::error::{Error, FileKind, Malformed};
use crate::generate;
use crate::input;
use crate::output;
use crate::run::free::Free;
use crate::side::integer::Integer;
use crate::side::real::Real;
use crate::side::secure::Secure;
use crate::side::{Side, flat};
use crate::trace::Trace;
use fixtures::Dataset;
use ndarray::Array2;
use reference::fixed::Coins;
use reference::spec::{Head, ProbePoint, Rounding, SgdSpec, TrainSpec};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Elements of one digest.
pub const BLOCK: usize = 1024;
/// Version of a record.
const SCHEMA: u32 = 1;
/// The largest record that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Tensors up to this size are recorded in full.
const IN_FULL: usize = 160;
/// Distance of two f64 values, relative to the largest of the tensor, that processors may cause.
const F64_TOLERANCE: f64 = 1e-12;
/// Seed of batches, weights and recorded coins.
const SEED: u64 = 2020;
/// Steps of a case; the last one is recorded.
const STEPS: usize = 3;

/// One recorded run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    training: Training,
}

/// Every head, rounding and depth from 1 to 3 layers.
pub fn cases() -> Vec<Case> {
    let sgd = SgdSpec { batch: 8, ..SgdSpec::default() };
    let mut cases = Vec::new();
    for head in Head::ALL {
        for rounding in Rounding::ALL {
            for layers in 1..=3 {
                cases.push(Case { training: Training { head, layers, hidden: 16, rounding, epsilon: 0.1, sgd } });
            }
        }
    }
    cases
}

/// One tensor of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    tensor: String,
    rows: usize,
    columns: usize,
    /// Scale of the integers.
    scale: u32,
    /// SHA-256 of each block of integers, 8 bytes each, little-endian.
    sha256: Vec<String>,
    /// All integers, for small tensors.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    integers: Option<Vec<i64>>,
    /// All f64 values with 17 significant digits, for small tensors.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    reals: Option<Vec<String>>,
    /// Sum of the f64 values, and of their magnitudes.
    sums: [String; 2],
}

/// A record file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Golden {
    schema: u32,
    source: String,
    accept: String,
    config: TrainSpec,
    seed: u64,
    steps: usize,
    integers_from: String,
    /// In the order of computation: the first change is the cause of the others.
    tensors: Vec<Record>,
}

impl Case {
    /// Name of the case, and of its file without `.json`.
    pub fn name(&self) -> String {
        let Training { head, rounding, layers, .. } = self.training;
        format!("{head}-{rounding}-{layers}")
    }

    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.json", self.name()))
    }

    /// The last step.
    fn run(&self, data: &Dataset) -> Result<Trace, Error> {
        let spec = self.training.spec(data.train.inputs())?;
        let start = generate::initial(&spec, SEED)?;
        let mut real = Real::new(spec.clone(), &start)?;
        let mut fixed: Box<dyn Side<Value = i64>> = match spec.rounding {
            Rounding::Nearest => Box::new(Secure::start(spec.clone(), None, true)?),
            Rounding::Probabilistic => Box::new(Integer::with_coins(spec.clone(), Coins::seeded(SEED))?),
        };
        fixed.load(&start)?;
        let rows = generate::batches(data.train.len(), spec.sgd.batch, SEED).take(STEPS);
        let mut run = Free::new(&spec, rows.map(|rows| generate::rows(&data.train, &rows, spec.fixed)));
        run.real = Some(&mut real);
        run.tested = Some(&mut *fixed);
        let mut last = None;
        for trace in run.by_ref() {
            last = Some(trace?);
        }
        Ok(last.expect("a case has steps"))
    }

    fn record(&self, data: &Dataset) -> Result<Golden, Error> {
        let Trace { spec, real, tested, .. } = self.run(data)?;
        let (reals, integers) = (real.tensors, tested.tensors);
        let tensors = integers
            .iter()
            .map(|(point, units)| {
                let scale = point.scale(spec.fixed, spec.sgd.extra_velocity_bits);
                record(point, scale, units, &reals[point])
            })
            .collect();
        let integers_from = match spec.rounding {
            Rounding::Nearest => "secure engine".to_owned(),
            Rounding::Probabilistic => format!("integer model, ChaCha12 coins of seed {SEED}"),
        };
        Ok(Golden {
            schema: SCHEMA,
            source: "MNIST as shipped; tensors of the last step; each side trains on its own from the same start"
                .into(),
            accept: "difftest fixtures generate".into(),
            config: spec,
            seed: SEED,
            steps: STEPS,
            integers_from,
            tensors,
        })
    }
}

fn digits(v: f64) -> String {
    format!("{v:.16e}")
}

fn record(point: &ProbePoint, scale: u32, units: &Array2<i64>, reals: &Array2<f64>) -> Record {
    let flat = flat(units);
    let small = flat.len() <= IN_FULL;
    let sha256 = flat
        .chunks(BLOCK)
        .map(|block| {
            let bytes: Vec<u8> = block.iter().flat_map(|v| v.to_le_bytes()).collect();
            Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
        })
        .collect();
    Record {
        tensor: point.to_string(),
        rows: units.nrows(),
        columns: units.ncols(),
        scale,
        sha256,
        integers: small.then(|| flat.into_owned()),
        reals: small.then(|| reals.iter().map(|&v| digits(v)).collect()),
        sums: [digits(reals.sum()), digits(reals.iter().map(|v| v.abs()).sum())],
    }
}

/// Runs a case on `data`, which is MNIST as shipped, and records it.
///
/// # Errors
/// A side that cannot go on, or a file that cannot be written.
pub fn generate(case: &Case, data: &Dataset, dir: &Path) -> Result<(), Error> {
    let mut text =
        serde_json::to_string_pretty(&case.record(data)?).expect("strings, numbers and lists always have a JSON form");
    text.push('\n');
    output::write(&case.path(dir), text.as_bytes())
}

/// Runs a case on `data` again. `None`: as recorded; otherwise the first tensor and index that changed.
///
/// # Errors
/// A side that cannot go on, or a record that cannot be read.
pub fn verify(case: &Case, data: &Dataset, dir: &Path) -> Result<Option<String>, Error> {
    let path = case.path(dir);
    let recorded = parse(&path, &input::file(&path, MAX_BYTES)?)?;
    Ok(difference(&recorded, &case.record(data)?))
}

/// The first difference between two records, given as the text of their files: the older one, called `path`, and
/// today's.
///
/// # Errors
/// A text that is no record.
pub fn difference_of_texts(path: &Path, recorded: &str, now: &str) -> Result<Option<String>, Error> {
    Ok(difference(&parse(path, recorded)?, &parse(path, now)?))
}

/// A record from the text of a file that is called `path`.
fn parse(path: &Path, text: &str) -> Result<Golden, Error> {
    let bad = |what: String| Error::from(Malformed::new(FileKind::Golden, path, what));
    let recorded: Golden = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if recorded.schema != SCHEMA {
        return Err(bad(format!("schema {}; this program reads {SCHEMA}", recorded.schema)));
    }
    Ok(recorded)
}

/// The first difference, in words.
fn difference(recorded: &Golden, now: &Golden) -> Option<String> {
    if recorded.config != now.config || (recorded.seed, recorded.steps) != (now.seed, now.steps) {
        return Some("the configuration is another one".into());
    }
    let names = |g: &Golden| g.tensors.iter().map(|t| t.tensor.clone()).collect::<Vec<_>>();
    let (was, is) = (names(recorded), names(now));
    if was != is {
        return Some(format!("the tensors are {}; they were {}", is.join(", "), was.join(", ")));
    }
    recorded.tensors.iter().zip(&now.tensors).find_map(|(was, is)| changed(was, is))
}

fn changed(was: &Record, is: &Record) -> Option<String> {
    let name = &was.tensor;
    if (was.rows, was.columns, was.scale) != (is.rows, is.columns, is.scale) {
        return Some(format!(
            "{name} is {}x{} at scale {}; it was {}x{} at scale {}",
            is.rows, is.columns, is.scale, was.rows, was.columns, was.scale
        ));
    }
    let kept = |r: &Record| (r.integers.as_ref().map(Vec::len), r.reals.as_ref().map(Vec::len), r.sha256.len());
    if kept(was) != kept(is) {
        return Some(format!("{name} is kept as {:?} integers, reals and digests; it was {:?}", kept(is), kept(was)));
    }
    let index = |flat: usize| format!("[{}, {}]", flat / was.columns, flat % was.columns);
    if let (Some(a), Some(b)) = (&was.integers, &is.integers)
        && let Some(at) = a.iter().zip(b).position(|(a, b)| a != b)
    {
        return Some(format!("{name}{}: integer {} was {}", index(at), b[at], a[at]));
    }
    if let Some(block) = was.sha256.iter().zip(&is.sha256).position(|(a, b)| a != b) {
        let last = ((block + 1) * BLOCK).min(was.rows * was.columns) - 1;
        return Some(format!("{name}{} to {}: the integers changed", index(block * BLOCK), index(last)));
    }
    let number = |s: &String| s.parse::<f64>().unwrap_or(f64::NAN);
    // Infinities agree with themselves and are no measure for other values; a NaN agrees with nothing.
    let near = |a: f64, b: f64, scale: f64| a == b || scale.is_finite() && (a - b).abs() <= F64_TOLERANCE * scale;
    if let (Some(a), Some(b)) = (&was.reals, &is.reals) {
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(number).collect(), b.iter().map(number).collect());
        let scale = a.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
        if let Some(at) = a.iter().zip(&b).position(|(&a, &b)| !near(a, b, scale)) {
            return Some(format!("{name}{}: real {} was {}", index(at), digits(b[at]), digits(a[at])));
        }
    }
    let magnitude = number(&was.sums[1]);
    (0..2).find(|&k| !near(number(&was.sums[k]), number(&is.sums[k]), magnitude)).map(|k| {
        let what = ["sum", "sum of magnitudes"][k];
        format!("{name}: the {what} of its real values is {}; it was {}", is.sums[k], was.sums[k])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn golden(logits: Array2<i64>, dw: Array2<i64>) -> Golden {
        let real = |t: &Array2<i64>| t.mapv(|v| v as f64 / 3.0);
        let tensors = vec![
            record(&ProbePoint::Logits, 16, &logits, &real(&logits)),
            record(&ProbePoint::WeightGradient(1), 32, &dw, &real(&dw)),
        ];
        let config = cases()[0].training.spec(784).unwrap();
        let text = String::new;
        Golden {
            schema: SCHEMA,
            source: text(),
            accept: text(),
            config,
            seed: 1,
            steps: 1,
            integers_from: text(),
            tensors,
        }
    }

    #[test]
    fn the_first_change_is_named_by_tensor_and_index() {
        let (logits, dw) = (array![[1, 2], [3, 4]], Array2::from_shape_fn((50, 30), |(i, j)| (i * j) as i64));
        let was = golden(logits.clone(), dw.clone());
        assert_eq!(difference(&was, &golden(logits.clone(), dw.clone())), None);
        let with = |at, tensor: &Array2<i64>| {
            let mut tensor = tensor.clone();
            tensor[at] += 1;
            tensor
        };
        let name = |g: Golden| difference(&was, &g).expect("a change is noticed");
        assert_eq!(name(golden(with([1, 0], &logits), with([0, 0], &dw))), "logits[1, 0]: integer 4 was 3");
        assert_eq!(
            name(golden(logits.clone(), with([40, 29], &dw))),
            "layer1/dW[34, 4] to [49, 29]: the integers changed"
        );
        let mut real = was.clone();
        real.tensors[0].reals.as_mut().unwrap()[2] = digits(1.0 + 1e-9);
        assert!(name(real).starts_with("logits[1, 0]: real 1.00000000100000"));
        let mut real = was.clone();
        real.tensors[1].sums[0] = digits(0.0);
        assert!(name(real).starts_with("layer1/dW: the sum of its real values"));
    }

    #[test]
    fn every_head_rounding_and_depth_has_a_record_of_its_own() {
        let names: std::collections::BTreeSet<_> = cases().iter().map(Case::name).collect();
        assert_eq!(names.len(), Head::ALL.len() * Rounding::ALL.len() * 3);
    }

    #[test]
    fn seventeen_digits_bring_every_f64_back() {
        for v in [0.1, -1.0 / 3.0, 5e-324, f64::MAX, 0.0] {
            assert_eq!(digits(v).parse::<f64>().unwrap(), v);
        }
    }

    /// Of a tensor of 50 x 30 integers and one of 2 x 2.
    fn recorded() -> Golden {
        golden(array![[1, -6], [3, 4]], Array2::from_shape_fn((50, 30), |(i, j)| (i * j) as i64))
    }

    #[test]
    fn another_run_or_another_form_of_a_tensor_is_no_agreement() {
        let changed = |change: fn(&mut Golden)| {
            let mut now = recorded();
            change(&mut now);
            difference(&recorded(), &now).expect("a change is noticed")
        };
        let another: [fn(&mut Golden); 3] = [|g| g.config.epsilon *= 2.0, |g| g.seed += 1, |g| g.steps += 1];
        for change in another {
            assert_eq!(changed(change), "the configuration is another one");
        }
        assert_eq!(changed(|g| g.tensors.truncate(1)), "the tensors are logits; they were logits, layer1/dW");
        let text = "logits is 4x1 at scale 16; it was 2x2 at scale 16";
        assert_eq!(changed(|g| (g.tensors[0].rows, g.tensors[0].columns) = (4, 1)), text);
        let text = "logits is 2x2 at scale 17; it was 2x2 at scale 16";
        assert_eq!(changed(|g| g.tensors[0].scale = 17), text);
        for drop in [
            |r: &mut Record| r.integers = None,
            |r: &mut Record| r.reals = None,
            |r: &mut Record| {
                r.sha256.pop();
            },
        ] {
            let mut now = recorded();
            drop(&mut now.tensors[0]);
            let text = difference(&recorded(), &now).expect("something is missing");
            assert!(text.starts_with("logits is kept as ") && text.ends_with("it was (Some(4), Some(4), 1)"), "{text}");
        }
        let text = changed(|g| g.tensors[1].sha256[0].clear());
        assert_eq!(text, "layer1/dW[0, 0] to [34, 3]: the integers changed");
        let full = |n| record(&ProbePoint::Logits, 16, &Array2::zeros((1, n)), &Array2::zeros((1, n))).integers;
        assert!(full(IN_FULL).is_some() && full(IN_FULL + 1).is_none());
    }

    /// Relative to the largest finite magnitude of the tensor, which here is 2, of a negative number.
    #[test]
    fn real_values_agree_to_the_tolerance_and_an_infinity_with_itself_alone() {
        let of = |reals: [f64; 4], now: [f64; 4]| {
            let (mut was, mut is) = (recorded(), recorded());
            was.tensors[0].reals = Some(reals.map(digits).to_vec());
            is.tensors[0].reals = Some(now.map(digits).to_vec());
            difference(&was, &is)
        };
        let was = [1.0 / 3.0, -2.0, 1.0, 4.0 / 3.0];
        assert_eq!(of(was, was), None);
        let nearly = |off: f64| [was[0], was[1], was[2] + off, was[3]];
        assert_eq!(of(was, nearly(1.9e-12)), None);
        assert_eq!(of(was, nearly(-1.9e-12)), None);
        assert!(of(was, nearly(2.1e-12)).is_some_and(|text| text.starts_with("logits[1, 0]: real 1.0000000000021")));
        let infinite = |v: f64| [f64::INFINITY, was[1], was[2], v];
        assert_eq!(of(infinite(1.0), infinite(1.0)), None);
        assert!(of(infinite(1.0), infinite(1.5)).is_some(), "an infinity is no measure for the others");
        assert!(of(infinite(1.0), [5.0, was[1], was[2], 1.0]).is_some(), "a number is not infinite");
        assert!(of(was, nearly(f64::NAN)).is_some() && of(nearly(f64::NAN), nearly(f64::NAN)).is_some());
    }

    #[test]
    fn sums_agree_relative_to_the_sum_of_magnitudes() {
        let of = |was: [f64; 2], now: [f64; 2]| {
            let (mut a, mut b) = (recorded(), recorded());
            (a.tensors[1].sums, b.tensors[1].sums) = (was.map(digits), now.map(digits));
            difference(&a, &b)
        };
        assert_eq!(of([-1.0, 8.0], [-1.0 + 7e-12, 8.0]), None);
        let off = |what: &str| format!("layer1/dW: the {what} of its real values is ");
        assert!(of([-1.0, 8.0], [-1.0 + 9e-12, 8.0]).is_some_and(|text| text.starts_with(&off("sum"))));
        assert!(of([-1.0, 8.0], [-1.0, 8.0 + 9e-12]).is_some_and(|text| text.starts_with(&off("sum of magnitudes"))));
        let infinite = f64::INFINITY;
        assert_eq!(of([infinite; 2], [infinite; 2]), None);
        assert!(of([infinite; 2], [1.0, infinite]).is_some() && of([infinite; 2], [infinite, 1.0]).is_some());
    }

    #[test]
    fn a_record_is_written_and_verified_and_so_are_those_that_are_shipped() {
        let folder = tempfile::tempdir().unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/golden");
        let data = fixtures::mnist().unwrap();
        for rounding in Rounding::ALL {
            let case = cases().into_iter().find(|c| c.training.rounding == rounding).unwrap();
            generate(&case, &data, folder.path()).unwrap();
            assert_eq!(verify(&case, &data, folder.path()).unwrap(), None);
            assert_eq!(verify(&case, &data, &shipped).unwrap(), None);
            let path = case.path(folder.path());
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.ends_with("}\n"));
            let mut other = parse(&path, &text).unwrap();
            let logits = other.tensors.iter_mut().find(|t| t.tensor == "logits").unwrap();
            logits.integers.as_mut().unwrap()[11] += 1;
            let other = serde_json::to_string(&other).unwrap();
            let found = difference_of_texts(&path, &other, &text).unwrap().unwrap();
            assert!(found.starts_with("logits[1, 1]: integer "), "{found}");
            std::fs::write(&path, &other).unwrap();
            assert_eq!(verify(&case, &data, folder.path()).unwrap(), Some(found));
            let newer = text.replacen("\"schema\": 1", "\"schema\": 2", 1);
            let error = difference_of_texts(&path, &newer, &text).unwrap_err().to_string();
            assert!(error.contains("schema 2; this program reads 1"), "{error}");
        }
    }
}
