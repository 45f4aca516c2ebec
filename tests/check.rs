//! `difftest check` and `difftest export-trace` through the program, and traces that other engines recorded.

use crate::common::{program, repository};
use std::path::PathBuf;
use std::process::Output;

fn difftest(args: &[&str]) -> Output {
    program().args(args).env_remove("GITHUB_STEP_SUMMARY").output().expect("the program starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn recorded(name: &str) -> PathBuf {
    repository("fixtures/traces").join(name)
}

/// Exit code, JSON and printed text of a recorded trace.
fn judged(name: &str) -> (i32, serde_json::Value, String) {
    let path = recorded(name);
    assert!(std::fs::metadata(&path).unwrap().len() <= 200_000, "{name} is small");
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    let done = difftest(&["check", path.to_str().unwrap(), "--json", json.to_str().unwrap()]);
    let report = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    (done.status.code().unwrap(), report, text(&done))
}

/// (tensor, first cause) of the first row that fails in the earliest step.
fn first_fault(report: &serde_json::Value) -> (String, String) {
    let rows = report["rows"].as_array().unwrap();
    let failing = rows.iter().filter(|r| r["verdict"] == "FAIL");
    let row = failing.min_by_key(|r| r["first_step"].as_u64()).expect("a row fails");
    (row["tensor"].as_str().unwrap().into(), row["causes"][0]["name"].as_str().unwrap().into())
}

#[test]
fn good_runs_of_other_engines_pass() {
    for name in [
        "crypten_contiguous.npz",
        "spdz_relu.npz",
        "spdz_softmax.npz",
        "spu_train.npz",
        "torch_fixed.npz",
        "torch_float32.npz",
    ] {
        let (code, report, text) = judged(name);
        assert_eq!(code, 0, "{name}\n{text}");
        assert_eq!(report["steps"].as_array().unwrap().len(), 3, "{name}");
        assert!(report["rows"].as_array().unwrap().len() >= 12, "{name} is a whole step\n{text}");
        for row in report["rows"].as_array().unwrap() {
            assert!(["PASS", "MEASURED"].contains(&row["verdict"].as_str().unwrap()), "{name}: {row}");
        }
    }
}

#[test]
fn faults_of_other_engines_are_named() {
    for (name, tensor, cause) in [
        ("crypten_transposed.npz", "layer1/weight_velocity", "wrap"),
        ("spu_coins.npz", "block/multiply/by_constant/result", "coin is (v + 1) / 2^s"),
        ("torch_floor_twice.npz", "head_gradient", "two floors"),
        ("torch_first_row.npz", "head_gradient", "normalised by the first row"),
    ] {
        let (code, report, text) = judged(name);
        assert_eq!((code, first_fault(&report)), (1, (tensor.into(), cause.into())), "{name}\n{text}");
    }
    // Half of the elements, by multiples of 2^48 units, 2^32 in value.
    let (_, report, _) = judged("crypten_transposed.npz");
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|r| r["tensor"] == "layer1/weight_velocity").unwrap();
    let part = row["outside"].as_f64().unwrap() / row["elements"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&part), "{part}");
    assert!(row["causes"][0]["evidence"].as_str().unwrap().contains("2^48"), "{row}");
}

#[test]
fn own_traces_are_exported_judged_and_shown_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (file, rounding) in [("own.npz", "prob"), ("own.safetensors", "nearest")] {
        let own = path(file);
        let flags = ["--layers", "2", "--hidden", "8", "--batch", "16", "--steps", "2", "--head", "relu-prob"];
        let args = [&["export-trace", own.as_str(), "--rounding", rounding][..], &flags].concat();
        let done = difftest(&args);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done));
        let html = path("report.html");
        let done = difftest(&["check", &own, "--html", &html]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done));
        assert!(text(&done).contains("PASS  end-to-end"), "{}", text(&done));
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(page.contains("<svg") && page.contains("layer2/dW") && !page.contains("<script"), "a page with maps");
    }
    let done = difftest(&["check", &path("own.npz"), "--format", "junit"]);
    assert!(text(&done).starts_with("<?xml") && text(&done).contains("failures=\"0\""), "{}", text(&done));

    let corners = path("corners.npz");
    assert_eq!(difftest(&["export-trace", &corners, "--corners", "--head", "relu-grad"]).status.code(), Some(0));
    let done = difftest(&["check", &corners]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
}

#[test]
fn a_pull_request_gets_annotations_and_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let summary = dir.path().join("summary.md");
    let done = program()
        .args(["check", recorded("crypten_transposed.npz").to_str().unwrap(), "--format", "github"])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    let shown = text(&done);
    assert_eq!(done.status.code(), Some(1));
    assert!(shown.contains("::error title=FAIL velocity::step 0, layer1/weight_velocity["), "{shown}");
    let table = std::fs::read_to_string(summary).unwrap();
    assert!(table.contains("| FAIL | velocity | layer1/weight_velocity |"), "{table}");
}

#[test]
fn a_file_that_is_no_trace_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.npz");
    for contents in [&b""[..], b"PK\x03\x04nothing", b"\xff\xff\xff\xff\xff\xff\xff\x7f{}", b"hello"] {
        std::fs::write(&bad, contents).unwrap();
        let done = difftest(&["check", bad.to_str().unwrap()]);
        let said = text(&done);
        assert_eq!((done.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("bad.npz: "), "{said}");
    }
    let done = difftest(&["check", "/nowhere.npz"]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done));
    let listed = difftest(&["check", "--list"]);
    assert!(text(&listed).contains("velocity") && listed.status.code() == Some(0));
}
