//! The function table as the program prints it.

use crate::common::program;

#[test]
fn the_table_holds_and_is_also_json() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("functions.json");
    let run = |args: &[&str]| {
        program()
            .arg("functions")
            .args(args)
            .args(["--json", json.to_str().unwrap()])
            .output()
            .expect("the program starts")
    };
    let done = run(&["--inputs-bits", "9", "--fraction-bits", "12", "--value-bits", "30"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{text}");
    assert_eq!((text.matches("PASS").count(), text.matches("FAIL").count()), (3, 0), "{text}");

    let table: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(table["fixed"]["fraction_bits"], 12);
    let rows = table["rows"].as_array().unwrap();
    for function in ["truncate by 12", "exp", "reciprocal", "quotient", "log", "softmax", "relu-prob", "relu-grad"] {
        for rounding in ["prob", "nearest"] {
            let here = rows.iter().filter(|r| r["function"] == function && r["rounding"] == rounding);
            let closest = here.map(|r| r["closest"].as_f64().unwrap()).fold(0.0, f64::max);
            assert!(closest > 0.3 && closest <= 1.0, "{function}, {rounding}: error / bound {closest}");
        }
    }

    let refused = run(&["--fraction-bits", "18"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("fraction bits is 18"), "{text}");
}

#[test]
fn a_run_takes_another_number_format_and_names_it_in_the_command_that_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    let format = ["--fraction-bits", "12", "--value-bits", "24"];
    let done = program()
        .args(["--steps", "1", "--batch", "8", "--json", json.to_str().unwrap()])
        .args(format)
        .output()
        .expect("the program starts");
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(report["command"].as_str().unwrap().contains(&format.join(" ")), "{}", report["command"]);
    assert_eq!(report["config"]["spec"]["fixed"]["value_bits"], 24);
}
