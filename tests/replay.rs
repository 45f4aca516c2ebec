//! A step is saved by one run of the program and replayed by another.

use crate::common::program;
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
    let (step, failure) = (dir.path().join("step.json"), dir.path().join("failure.json"));
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

    let mut file: serde_json::Value = serde_json::from_slice(&std::fs::read(&step).unwrap()).unwrap();
    let truncation = file["tape"].as_array_mut().unwrap().iter_mut().find(|t| t["name"] == "head/exp/scale").unwrap();
    // The largest logit of a row is exact: its coin cannot be up.
    truncation["coins"] = "ff".repeat(truncation["elements"].as_u64().unwrap().div_ceil(8) as usize).into();
    std::fs::write(&step, file.to_string()).unwrap();
    let (code, out, _) = difftest(&["replay", name(&step), "--shrink", name(&failure)]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("head/exp/scale") && out.contains("exact multiple") && out.contains("nothing to shrink"),
        "{out}"
    );

    file["step"] = u64::MAX.into();
    std::fs::write(&step, file.to_string()).unwrap();
    let (code, _, err) = difftest(&["replay", name(&step)]);
    assert!(code == Some(2) && err.contains("no run has more than"), "{err}");

    let (code, _, err) = difftest(&["replay", name(&failure)]);
    assert_eq!((code, err.lines().count()), (Some(2), 1), "{err}");
}

#[test]
fn what_needs_another_run_is_bad_usage() {
    for args in [
        &["--steps", "2", "--save-step", "2", "x.json"][..],
        &["--mode", "free", "--save-failure", "x.json"],
        &["--mode", "free", "--steps", "9", "--restart-on-divergence"],
    ] {
        let (code, out, err) = difftest(args);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
    }
}
