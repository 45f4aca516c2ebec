//! A step is saved by one run of the program and replayed by another.

use crate::common::{program, repository};
use difftest::trace::{TraceFile, Values};
use std::path::Path;
use std::process::Output;

fn difftest(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program().args(args).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_saved_step_is_replayed_and_a_tampered_one_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (step, failure) = (dir.path().join("step.npz"), dir.path().join("failure.safetensors"));
    let (code, out, err) = difftest(&[
        "--layers",
        "2",
        "--hidden",
        "8",
        "--batch",
        "8",
        "--steps",
        "2",
        "--save-step",
        "1",
        name(&step),
        "--save-failure",
        name(&failure),
    ]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!failure.exists(), "nothing failed");

    let (code, out, err) = difftest(&["replay", name(&step)]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.starts_with("step 1 of difftest --head softmax --layers 2 --hidden 8 --batch 8 --seed 1 --steps 2"),
        "{out}"
    );
    assert_eq!((out.matches("PASS").count(), out.matches("FAIL").count()), (9, 0), "{out}");

    // A saved step is a trace as any other.
    let (code, out, err) = difftest(&["check", name(&step)]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("PASS  end-to-end"), "{out}");

    let mut file = TraceFile::read(&step).unwrap();
    let coins = file.tensors.get_mut("step/1/coins/head/exp/scale").unwrap();
    // The largest logit of a row is exact: its coin cannot be up.
    coins.values = Values::Units(vec![1; coins.values.len()]);
    file.write(&step).unwrap();
    let (code, out, _) = difftest(&["replay", name(&step), "--shrink", name(&failure)]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("head/exp/scale") && out.contains("exact multiple") && out.contains("nothing to shrink"),
        "{out}"
    );

    for (number, says) in [(u64::from(u32::MAX), "no run has more than"), (u64::MAX, "has no name of a trace")] {
        let renamed = |name: &String| name.replace("step/1/", &format!("step/{number}/"));
        let tensors = file.tensors.iter().map(|(name, t)| (renamed(name), t.clone())).collect();
        TraceFile { tensors, ..file.clone() }.write(&step).unwrap();
        let (code, _, err) = difftest(&["replay", name(&step)]);
        assert!(code == Some(2) && err.contains(says) && err.lines().count() == 1, "{err}");
    }

    let (code, _, err) = difftest(&["replay", name(&failure)]);
    assert_eq!((code, err.lines().count()), (Some(2), 1), "{err}");
}

#[test]
fn a_step_of_an_exported_trace_is_replayed_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("own.safetensors");
    let flags = ["--layers", "2", "--hidden", "8", "--batch", "8", "--steps", "3"];
    let (code, out, err) = difftest(&[&["export-trace", name(&trace)][..], &flags].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = difftest(&["replay", name(&trace), "--step", "2"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!((out.matches("PASS").count(), out.matches("FAIL").count()), (9, 0), "{out}");
    let (code, _, err) = difftest(&["replay", name(&trace)]);
    assert!(code == Some(2) && err.contains("3 steps") && err.contains("--step"), "{err}");
}

#[test]
fn a_step_of_an_older_version_is_refused_with_what_to_do() {
    let step = repository("tests/data/escape-step.json");
    let marked = tempfile::tempdir().unwrap();
    let with_mark = marked.path().join("step.npz");
    std::fs::write(&with_mark, [&b"\xef\xbb\xbf"[..], &std::fs::read(&step).unwrap()].concat()).unwrap();
    for command in ["replay", "check"] {
        for file in [&step, &with_mark] {
            let (code, out, err) = difftest(&[command, name(file)]);
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
            assert!(err.contains("it is JSON") && err.contains("--save-step N FILE.npz"), "{err}");
        }
    }
    let (code, _, err) = difftest(&["--steps", "1", "--save-step", "0", "step.json"]);
    assert!(code == Some(2) && err.contains("name it .npz or .safetensors"), "{err}");
}

#[test]
fn what_needs_another_run_is_bad_usage() {
    for args in [
        &["--steps", "2", "--save-step", "2", "x.npz"][..],
        &["--mode", "free", "--save-failure", "x.npz"],
        &["--mode", "free", "--steps", "9", "--restart-on-divergence"],
    ] {
        let (code, out, err) = difftest(args);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
    }
}
