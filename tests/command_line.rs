//! The program from outside: what it prints, where it writes, how it exits.

use crate::common::{program, sample};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn difftest(args: &[&str]) -> Command {
    let mut command = program();
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    difftest(args).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("reports are UTF-8")
}

/// Standard error of a refused command: exit code 2, one line, nothing that looks like a crash.
fn refusal(args: &[&str]) -> String {
    let output = run(args);
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(!text.contains("panicked"), "{args:?}: {text}");
    text
}

fn with_input(args: &[&str], input: &str) -> Output {
    let mut child = difftest(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// On a part of MNIST.
fn run_on_sample(args: &[&str]) -> Output {
    run(&[args, &["--data", sample()]].concat())
}

const SHORT: &[&str] = &["--steps", "2", "--batch", "16"];

#[test]
fn a_plain_run_passes_every_check_and_reports_as_text_and_json() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    // From another folder: the data is inside the program.
    let output = difftest(&["--json", json.to_str().unwrap()]).current_dir(dir.path()).output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for check in ["bit-exact", "error-bound", "gradient-bound", "range", "divergence"] {
        assert!(text.contains(&format!("PASS  {check}")), "{check}:\n{text}");
    }
    assert!(output.stderr.is_empty(), "no progress bar where there is no terminal");
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(report["schema"], 2);
    assert_eq!(report["insecure"], false);
    assert_eq!(report["made"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["made"]["date"].as_str().unwrap().ends_with('Z') && report["made"]["kernel"].is_string());
    assert_eq!((&report["data"]["train_rows"], &report["data"]["test_rows"]), (&60_000.into(), &10_000.into()));
    assert_eq!(report["data"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(report["accuracy"]["chance"], 0.1135);
    assert_eq!(report["steps"], 10);
    let logits = report["tensors"].as_array().unwrap().iter().find(|t| t["tensor"] == "logits").unwrap();
    assert_eq!((&logits["elements"], &logits["outside"]), (&Value::from(12_800), &Value::from(0)));
    let closest = logits["closest"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&closest), "a logit's bound is nearly reached: {closest}");
    assert!(report["accuracy"]["secure"].as_f64().unwrap() > 0.3, "ten steps of softmax learn something");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn the_main_job_runs_on_every_head() {
    for head in ["softmax", "relu-prob", "relu-prob-cut", "relu-grad", "relu-eps"] {
        let output = run_on_sample(&["--head", head, "--layers", "2", "--steps", "2"]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    }
}

#[test]
fn free_mode_reports_drift_beside_its_noise_floor() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("free.json");
    let output = run_on_sample(&["--mode", "free", "--steps", "12", "--json", json.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let last = report["curve"].as_array().unwrap().last().unwrap();
    let (drift, noise) = (last["drift"].as_f64().unwrap(), last["noise"].as_f64().unwrap());
    assert_eq!(last["step"], 12);
    assert!(drift > 0.0 && noise > 0.0 && drift < 1e-3, "drift {drift}, noise {noise}");
    assert!(drift < 10.0 * noise, "coins explain the drift: {drift} against {noise}");
}

#[test]
fn a_failed_check_exits_with_1_and_names_the_command_that_repeats_it() {
    let output = run_on_sample(&["--lr", "5000", "--steps", "3", "--batch", "16", "--momentum", "0.5"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("PASS  bit-exact"), "the sides agree out of range, too:\n{text}");
    assert!(text.contains("FAIL  range") && text.contains("FAIL range   step "), "{text}");
    let again = text.lines().find(|l| l.contains("again: ")).expect("a command");
    for flag in ["--lr 5000", "--batch 16", "--momentum 0.5", "--seed 1", "--steps"] {
        assert!(again.contains(flag), "{again}");
    }
}

#[test]
fn a_fixed_seed_is_called_insecure_and_repeats_the_run() {
    let run_once = || {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("r.json");
        let output = run_on_sample(&[SHORT, &["--insecure-seed", "5", "--json", json.to_str().unwrap()]].concat());
        assert!(stdout(&output).contains("INSECURE"));
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        let mut report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(report["insecure"], true);
        report["made"]["date"] = Value::Null;
        for side in ["real", "integer", "secure"] {
            report["cost"][side]["seconds"] = Value::from(0);
        }
        report
    };
    assert_eq!(run_once(), run_once());
}

#[test]
fn one_tensor_of_one_step_can_be_looked_at() {
    let output = run_on_sample(&["--batch", "16", "--step", "1", "--probe", "head_gradient"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("nearest to their bounds") && text.contains("step 1, head_gradient["), "{text}");
    assert!(refusal(&["--batch", "16", "--probe", "gradient"]).contains("choose one of"));
}

#[test]
fn what_means_nothing_is_refused_with_its_limit() {
    for (args, part) in [
        (&["--epsilon", "1"][..], "epsilon is 1; it must be inside (0, 1)"),
        (&["--epsilon", "NaN"], "inside (0, 1)"),
        (&["--batch", "0"], "batch is 0; it must be 1"),
        (&["--layers", "0"], "--layers is 0"),
        (&["--hidden", "0", "--layers", "2"], "widths are 1"),
        (&["--lr", "1e-12"], "rounds to 0 in fixed point"),
        (&["--momentum", "1"], "[0, 1)"),
        (&["--lr", "-1"], "must be a positive number"),
        (&["advise", "--layers", "1", "--lr", "0.0000305", "--steps", "5"], "the real side itself is at chance"),
        (&["replay", "x.npz", "--shrink", "/nowhere/at/all/y.npz"], "no folder"),
        (&["--steps", "0"], "--steps is 0"),
        (&["--steps", "3", "--step", "3"], "steps 0 to 2"),
        (&["--mode", "free", "--probe", "logits"], "--mode lockstep"),
        (&["--mode", "free", "--budget"], "--mode lockstep"),
        (&["--batch", "100000"], "take fewer rows"),
        (&["--batch", "42000"], "rows of 10 are too many"),
        (&["--json", "-"], "/dev/stdout"),
        (&["--json", "both", "--html", "./both"], "two outputs"),
        (&["--mode", "free", "--save-model", "m", "--json", "m.party1.safetensors"], "two outputs"),
        (&["replay", "/nowhere.json"], "check the path"),
        (&["--data", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["head", "--head", "softmax", "--input", "/nowhere.json"], "/nowhere.json"),
    ] {
        let text = refusal(args);
        assert!(text.contains(part), "{args:?}: {text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{args:?}: {text}");
    }
    let unknown = difftest(&["--steps", "1"]).env("SECURE_KERNEL", "abacus").output().unwrap();
    assert_eq!((unknown.status.code(), stdout(&unknown).as_str()), (Some(2), ""), "before anything is printed");
    for args in [&["--head", "tanh"][..], &["--steps", "1", "--epochs", "1"], &["frobnicate"], &["head"]] {
        refusal(args);
    }
    for (args, part) in [
        (&["--steps", "-1"][..], "invalid value '-1' for '--steps <STEPS>': it must be a whole number, 0 or more"),
        (&["--seed", "-1"], "it must be a whole number, 0 or more"),
        (&["--seed", "abc"], "it must be a whole number, 0 or more"),
        (&["--lr", "fast"], "it must be a number"),
        (&["paper", "--layers", "a"], "it must be a whole number, 0 or more"),
        (&["time", "--steps", "-2"], "it must be a whole number, 0 or more"),
    ] {
        let text = refusal(args);
        assert!(text.contains(part), "{args:?}: {text}");
    }
}

/// Coarse formats leave nothing to compare: that is neither a pass nor a failure, and no reason for exit code 0.
#[test]
fn what_cannot_be_judged_is_open() {
    let coarse = ["--fraction-bits", "4", "--value-bits", "24", "--head", "relu-grad", "--layers", "2", "--steps", "2"];
    let output = run_on_sample(&coarse);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("OPEN  error-bound") && text.contains("too many to judge it"), "{text}");
    assert!(!text.contains("FAIL"), "{text}");
    let outside =
        ["--fraction-bits", "4", "--value-bits", "9", "--head", "relu-prob", "--layers", "2", "--hidden", "8"];
    let output = run_on_sample(&[&outside[..], &["--steps", "2"]].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for line in ["OPEN  error-bound", "OPEN  gradient-bound", "FAIL  range"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn an_unwritable_report_is_an_error() {
    let command = [SHORT, &["--json", "/nowhere/at/all/report.json"]].concat();
    let text = refusal(&command);
    assert!(text.contains("/nowhere/at/all/report.json") && text.contains("no folder /nowhere/at/all"), "{text}");
    assert!(stdout(&run(&command)).is_empty(), "refused before the run, not after it");
}

#[test]
fn help_goes_to_standard_output() {
    for args in [&["--help"][..], &["head", "--help"], &["fixtures", "--help"], &["--version"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0));
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
    }
    assert!(stdout(&run(&["--help"])).contains("Exit codes"));
}

#[test]
fn the_version_names_commit_and_kernel() {
    let text = stdout(&difftest(&["--version"]).env("SECURE_KERNEL", "portable").output().unwrap());
    assert!(text.starts_with(&format!("difftest {}", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.ends_with(", kernel portable\n"), "{text}");
}

#[test]
fn completions_and_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0));
        for word in ["functions", "velocity-bits", "restart-on-divergence"] {
            assert!(text.contains(word), "{shell} knows {word}");
        }
    }
    refusal(&["completions", "sh"]);
    let page = stdout(&run(&["man"]));
    assert!(page.contains(".TH difftest 1") && page.contains("SECURE_KERNEL") && page.contains("130"), "{page}");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--dir", dir.path().to_str().unwrap()]).status.code(), Some(0));
    let page = std::fs::read_to_string(dir.path().join("difftest-head.1")).unwrap();
    assert!(page.contains("fraction\\-bits") && page.contains("difftest head"), "{page}");
    assert!(dir.path().join("difftest.1").is_file() && dir.path().join("difftest-paper.1").is_file());
}

/// The first Ctrl-C ends the run after its step, with a report of what was found.
#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_reports() {
    for mode in ["lockstep", "free"] {
        let args = ["--steps", "1000000", "--batch", "16", "--mode", mode, "--data", sample()];
        let mut child = difftest(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It listens before it says what it will run.
        let (mut text, mut lines) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        lines.read_line(&mut text).unwrap();
        assert!(text.starts_with("difftest   softmax"), "{text}");
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        lines.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("OPEN  interrupted     by Ctrl-C after "), "{text}");
        assert!(text.contains("PASS  range") && text.contains("test accuracy"), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_the_program_at_once() {
    // One step of this size takes far longer than the two signals.
    let args = ["--steps", "1", "--batch", "4096", "--hidden", "768", "--layers", "3"];
    let mut child = difftest(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut text, mut lines) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
    lines.read_line(&mut text).unwrap();
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        // Signals that wait for a process at the same time arrive as one.
        std::thread::sleep(Duration::from_millis(100));
    }
    lines.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130), "{text}");
    assert!(!text.contains("PASS"), "{text}");
}

#[test]
fn time_trains_what_its_flags_say() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("time.json");
    let args = ["time", "--steps", "2", "--epochs", "1", "--lr", "0.02", "--epsilon", "0.2", "--fraction-bits", "15"];
    let output = run_on_sample(&[&args[..], &["--head", "relu-prob", "--json", json.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let spec = &report["spec"];
    assert_eq!(spec["network"]["widths"].as_array().unwrap().len(), 3, "two layers, if nothing else is said");
    assert_eq!((&spec["epsilon"], &spec["sgd"]["learning_rate"]), (&0.2.into(), &0.02.into()));
    assert_eq!((&spec["fixed"]["fraction_bits"], &report["data"]["classes"]), (&15.into(), &10.into()));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child =
        difftest(SHORT).args(["--data", sample()]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn head_answers_for_every_side_inside_the_bound() {
    let input = r#"{"logits": [[2.0, -1.0, 0.3], [0.1, 0.5, -2.0], [-1, -2, -3]], "labels": [0, 0, 2]}"#;
    for head in ["softmax", "relu-prob", "relu-prob-cut", "relu-grad", "relu-eps"] {
        for rounding in ["prob", "nearest"] {
            let output = with_input(&["head", "--head", head, "--rounding", rounding, "--input", "-"], input);
            let value = answer(&output);
            assert_eq!(output.status.code(), Some(0), "{value:#}");
            assert_eq!((&value["bit_exact"], &value["inside_bound"]), (&Value::from(true), &Value::from(true)));
            for row in value["rows"].as_array().unwrap() {
                for k in 0..3 {
                    let real = row["real"]["gradient"][k].as_f64().unwrap();
                    let secure = row["secure"]["gradient"][k].as_f64().unwrap();
                    let bound = row["bound"][k].as_f64().unwrap();
                    assert_eq!(row["integer"]["gradient"][k], row["secure"]["gradient"][k]);
                    let gap = (real - secure).abs();
                    assert!(gap <= bound, "{head} {rounding}: {gap} > {bound}\n{row:#}");
                    assert!(row["ambiguous"][k] == true || bound < 1e-2, "{head} {rounding}: {row:#}");
                }
            }
        }
    }
    let value = answer(&with_input(&["head", "--head", "relu-prob", "--input", "-"], input));
    assert_eq!(value["rows"][0]["ambiguous"], serde_json::json!([false, false, false]));
    assert_eq!(value["rows"][2]["real"]["loss"], Value::Null, "infinite");
    // 0.099999 is below eps, but its nearest integer, 6554 units, is the threshold: the sides legitimately differ
    // there, and only there.
    let near = r#"{"logits": [[0.099999, 0.5, -2.0]], "labels": [0]}"#;
    let output = with_input(&["head", "--head", "relu-prob", "--input", "-"], near);
    let row = &answer(&output)["rows"][0];
    assert_eq!((output.status.code(), &row["ambiguous"]), (Some(0), &serde_json::json!([true, false, false])));
    assert_eq!(row["real"]["gradient"][0], -1.0);
    assert!(row["secure"]["gradient"][0].as_f64().unwrap() < -8.0, "1/0.6 - 1/0.1");
}

#[test]
fn head_says_which_logit_does_not_fit_and_the_real_side_answers_alone() {
    let input = r#"{"logits": [[0, 1], [1e6, 0]], "labels": [1, 0]}"#;
    let output = with_input(&["head", "--head", "softmax", "--input", "-"], input);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("row 1, class 0") && text.contains("--side real"), "{text}");
    let value = answer(&with_input(&["head", "--head", "softmax", "--input", "-", "--side", "real"], input));
    assert_eq!(value["rows"][1]["real"]["probabilities"], serde_json::json!([1.0, 0.0]));
    assert_eq!(value["rows"][1]["secure"], Value::Null);
}

#[test]
fn head_refuses_what_is_no_input() {
    for (input, part) in [
        ("", "expected {"),
        ("{}", "logits"),
        (r#"{"logits": [], "labels": []}"#, "at least one row"),
        (r#"{"logits": [[1, 2]], "labels": [0, 1]}"#, "one label a row"),
        (r#"{"logits": [[1]], "labels": [0]}"#, "2 to 4096"),
        (r#"{"logits": [[1, 2], [1, 2, 3]], "labels": [0, 0]}"#, "row 1 has 3"),
        (r#"{"logits": [[1, 2]], "labels": [2]}"#, "labels are 0 to 1"),
        (r#"{"logits": [[1, 1e999]], "labels": [0]}"#, "number out of range"),
        (
            r#"{"logits": [[1, 2]], "labels": [-1]}"#,
            "label -1 of row 0 names no class; with 2 logits labels are 0 to 1",
        ),
        (r#"{"logits": [[1, 2]], "labels": [0.5]}"#, "expected a class, which is an integer from 0 on"),
        (r#"{"logits": [[NaN, 2]], "labels": [0]}"#, "difftest: standard input: NaN is no JSON number; logits must be"),
    ] {
        let output = with_input(&["head", "--head", "softmax", "--input", "-"], input);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{input}: {text}");
        assert!(text.contains(part) && text.trim_end().lines().count() == 1, "{input}: {text}");
    }
}

fn golden() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/golden"))
}

#[test]
fn recorded_results_are_as_they_were() {
    let output = run(&["fixtures", "verify", "--dir", golden().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
}

#[test]
fn records_are_generated_a_changed_one_is_named_and_a_broken_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["fixtures", "generate", "--dir", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 30, "5 heads, 2 roundings, 3 depths, nothing temporary");
    let path = dir.path().join("relu-grad-nearest-2.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let logits = record["tensors"].as_array_mut().unwrap().iter_mut().find(|t| t["tensor"] == "logits").unwrap();
    let units = logits["integers"][23].as_i64().unwrap();
    logits["integers"][23] = Value::from(units + 1);
    std::fs::write(&path, record.to_string()).unwrap();
    let verify = || run(&["fixtures", "verify", "--dir", dir.path().to_str().unwrap()]);
    let output = verify();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("FAIL relu-grad-nearest-2: logits[2, 3]: integer {units} was {}", units + 1);
    assert!(stdout(&output).contains(&expected), "{}", stdout(&output));
    std::fs::write(&path, "{").unwrap();
    let output = verify();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("relu-grad-nearest-2.json"));
}
