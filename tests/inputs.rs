//! Inputs on which a tester fails that was only ever given MNIST: other class counts, padding, few rows, hostile or
//! foreign files, full disks, tight limits. The files in `tests/data` were made for this.

use crate::common::{one_bright_pixel, program, repository, sample, write};
use difftest::trace::TraceFile;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn input(name: &str) -> PathBuf {
    repository("tests/data").join(name)
}

fn difftest(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = program();
    command.args(args);
    command
}

/// Exit code, standard output, standard error.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// On a data set of `tests/data`.
fn on(data: &str, args: &str) -> (Option<i32>, String, String) {
    run(difftest(args.split_whitespace()).arg("--data").arg(input(data)))
}

/// The line of a check.
fn check<'t>(text: &'t str, name: &str) -> &'t str {
    let named = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    text.lines().find(named).unwrap_or_else(|| panic!("no {name} in {text}"))
}

fn one_line(text: &str) -> bool {
    text.trim_end().lines().count() == 1 && !text.trim_end().contains(char::is_control)
}

#[test]
fn dead_units_and_the_accuracy_of_a_coin_are_no_training() {
    for mode in ["lockstep", "free"] {
        let (code, text, _) = on("two-class", &format!("--layers 2 --hidden 4 --lr 30 --epochs 30 --mode {mode}"));
        assert_eq!(code, Some(1), "{text}");
        assert!(check(&text, "divergence").starts_with("FAIL"), "{text}");
        // The rate at which the units die instead.
        let (code, text, _) = on("two-class", &format!("--layers 2 --hidden 4 --lr 3 --epochs 110 --mode {mode}"));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("layers 2 (16-4-2)"), "as many outputs as there are classes: {text}");
        assert!(check(&text, "divergence").contains("stalls (accuracy 50.0 %, all units of layer 1 dead)"), "{text}");
        assert!(text.contains("chance 50.00 %"), "{text}");
    }
    let (code, text, error) = on("two-class", "advise --layers 2 --hidden 4 --lr 30 --steps 30");
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(
        error.contains("the real side itself is at chance after 30 steps (accuracy 50.00 %, chance 50.00 %"),
        "{error}"
    );
    let (code, text, _) = on("ten-class-control", "--layers 2 --hidden 4 --lr 30 --epochs 30");
    assert_eq!(code, Some(1), "{text}");
    assert!(check(&text, "divergence").contains("stalls (accuracy 10.0 %, all units of layer 1 dead)"), "{text}");
}

#[test]
fn padding_leaves_nothing_that_hangs_on_rounding() {
    for rounding in ["prob", "nearest"] {
        let args = format!("--layers 2 --hidden 4 --steps 1 --rounding {rounding}");
        let (code, text, _) = on("blank-rows", &args);
        assert_eq!(code, Some(0), "{text}");
        assert!(check(&text, "error-bound").contains(" 0 ambiguous"), "{text}");
    }
}

#[test]
fn few_steps_are_no_verdict_and_enough_are_one() {
    let (code, text, _) = on("small-sample", "");
    assert_eq!(code, Some(0), "{text}");
    let line = check(&text, "divergence");
    assert!(line.starts_with("PASS") && line.contains("10 steps are too few"), "{line}");
    let (code, text, _) = on("small-sample", "--steps 200");
    assert_eq!(code, Some(0), "{text}");
    assert!(check(&text, "divergence").contains("real trains, integer trains, secure trains"), "{text}");
}

#[test]
fn a_threshold_that_fixed_point_cannot_hold_is_refused_and_what_overflows_is_out_of_range() {
    let head = |args: &str| {
        let args = format!("head --head relu-prob --rounding nearest {args} --input");
        run(difftest(args.split_whitespace()).arg(input("eps.json")))
    };
    let (code, _, error) = head("--epsilon 1e-6");
    assert_eq!(code, Some(2));
    assert!(error.contains("must be at least one unit, 0.0000152587890625") && one_line(&error), "{error}");
    let (code, text, _) = head("--epsilon 0.0000152587890625");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["inside_bound"]), (Some(1), &Value::Null), "{text}");
    let range = answer["range"].as_str().unwrap();
    assert!(
        range.starts_with("head_gradient[") && range.ends_with("its range is -2147483647 to 2147483647"),
        "{range}"
    );
    let (code, text, _) = head("--epsilon 1e-6 --side real");
    assert_eq!(code, Some(0), "real numbers have no unit");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let gradient = answer["rows"][1]["real"]["gradient"][0].as_f64().unwrap();
    assert!((gradient + 75000.0).abs() < 1e-9, "{gradient}");
    for extra in ["--epsilon 0.0005 --steps 1", "--fraction-bits 10 --epsilon 0.0009 --steps 1"] {
        let args = format!("{extra} --head relu-prob-cut --batch 16 --data {}", sample());
        let fits = !extra.starts_with("--fraction");
        let (code, _, error) = run(&mut difftest(args.split_whitespace()));
        assert_eq!(code == Some(2), !fits, "{extra}: {error}");
    }
}

/// Everything that a terminal would act upon.
fn acts(text: &str) -> bool {
    text.contains(|c: char| c.is_control() && c != '\n')
}

/// A saved step whose texts try to act upon a terminal.
fn hostile_step(dir: &Path) -> TraceFile {
    let path = dir.join("step.npz");
    let (code, text, error) = run(difftest("--steps 1 --batch 2 --rounding nearest --save-step 0".split(' '))
        .arg(&path)
        .args(["--data", sample()]));
    assert_eq!(code, Some(0), "{text}{error}");
    let mut step = TraceFile::read(&path).unwrap();
    step.header.recorded =
        Some("difftest --steps 1\u{1b}[2K\r\u{1b}[32mPASS  bit-exact       0 mismatches\u{1b}[0m\n".into());
    step.header.failures = vec!["\u{1b}]0;title set by a file\u{7}\u{1b}[2J\u{1b}[H".into()];
    step
}

#[test]
fn what_comes_out_of_files_cannot_write_lines_of_its_own() {
    let (code, text, error) = run(difftest(["head", "--head", "softmax", "--input"]).arg(input("escape-field.json")));
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(one_line(&error) && error.contains("\\u{1b}[2K\\rPASS  bit-exact\\nPASS  error-bound"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let mut step = hostile_step(dir.path());
    let forged = dir.path().join("forged\u{1b}[2J.npz");
    step.write(&forged).unwrap();
    let (code, text, error) = run(difftest(["replay"]).arg(&forged));
    assert_eq!(code, Some(0), "{text}{error}");
    assert!(!acts(&text) && !acts(&error), "{text}");
    assert!(text.starts_with("step 0 of difftest --steps 1\\u{1b}[2K\\r\\u{1b}[32mPASS  bit-exact"), "{text}");
    assert!(text.contains("\n  | \\u{1b}]0;title set by a file\\u{7}\\u{1b}[2J\\u{1b}[H\n"), "{text}");

    // A name of a truncation, which the integer model's refusal quotes.
    let coins = step.tensors.remove("step/0/coins/head/exp/square").unwrap();
    step.tensors.insert("step/0/coins/x\nPASS  bit-exact       everything".into(), coins);
    step.write(&forged).unwrap();
    let (code, text, _) = run(difftest(["replay"]).arg(&forged));
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("\nPASS  bit-exact       everything") && !acts(&text), "{text}");

    let (code, _, error) = run(difftest(["--load-model"]).arg(&forged).args(["--mode", "free", "--steps", "1"]));
    assert_eq!(code, Some(2));
    assert!(one_line(&error) && error.contains("forged\\u{1b}[2J.npz"), "{error}");
    let (code, _, error) = run(&mut difftest(["--head", "\u{1b}[2Jsoftmax"]));
    assert_eq!(code, Some(2));
    assert!(!acts(&error), "{error}");
}

#[test]
fn a_byte_order_mark_is_read_over() {
    let (code, text, error) = run(difftest(["head", "--head", "softmax", "--input"]).arg(input("bom.json")));
    assert_eq!(code, Some(0), "{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["inside_bound"], true);
}

#[cfg(unix)]
#[test]
fn every_name_that_the_system_allows_is_a_name() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let latin = |name: &[u8]| dir.path().join(OsStr::from_bytes(name));
    let data = latin(b"donn\xe9es");
    fs::create_dir(&data).unwrap();
    for entry in fs::read_dir(input("two-class")).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), data.join(entry.file_name())).unwrap();
    }
    let (json, html, step) = (latin(b"r\xe9.json"), latin(b"r\xe9.html"), latin(b"pas\xe9"));
    let (code, text, error) = run(difftest(["--steps", "1", "--data"])
        .arg(&data)
        .arg("--json")
        .arg(&json)
        .arg("--html")
        .arg(&html)
        .args(["--save-step", "0"])
        .arg(&step)
        .arg("--save-failure")
        .arg(latin(b"fail\xe9")));
    assert_eq!(code, Some(0), "{text}{error}");
    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(report["config"]["data"].as_str().unwrap().ends_with("/donn\\xe9es"), "{report}");
    assert!(report["command"].as_str().unwrap().contains("donn\\xe9es'"), "{report}");
    assert!(fs::read_to_string(&html).unwrap().contains("difftest"));
    let (code, text, error) = run(difftest(["replay"]).arg(&step));
    assert_eq!(code, Some(0), "{text}{error}");

    let model = latin(b"mod\xe8le.safetensors");
    let free = |args: &[&str]| {
        let mut command = difftest(["--mode", "free", "--steps", "1", "--data"]);
        command.arg(&data).args(args);
        command
    };
    let (code, text, error) = run(free(&["--save-model"]).arg(&model));
    assert_eq!(code, Some(0), "{text}{error}");
    let (code, text, error) = run(free(&["--load-model"]).arg(&model).arg("--json").arg(&json));
    assert_eq!(code, Some(0), "{text}{error}");
    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(report["config"]["loaded"].as_str().unwrap().ends_with("/mod\\xe8le.safetensors"), "{report}");
}

/// A stand-in for a disk that fills up while the files of a save are written: a limit on the size of a file.
#[cfg(target_os = "linux")]
#[test]
fn a_save_that_does_not_fit_leaves_the_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("m.safetensors");
    let args = "--layers 2 --hidden 100 --mode free --steps 2 --data";
    let base = |program: &mut Command| run(program.args(args.split(' ')).arg(input("two-class")));
    let (code, text, error) = base(difftest(["--save-model"]).arg(&model));
    assert_eq!(code, Some(0), "{text}{error}");
    let files = || {
        let name = |e: fs::DirEntry| (e.file_name(), fs::read(e.path()).unwrap());
        let mut files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| name(e.unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    // The shares take twice as much as f64's weights: only those fit.
    let limit = fs::metadata(&model).unwrap().len() + 4096;
    let shell = format!("trap '' XFSZ; exec prlimit --fsize={limit} \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited.args(["-c", &shell, env!("CARGO_BIN_EXE_difftest"), "--load-model"]).arg(&model);
    let (code, _, error) = base(limited.arg("--save-model").arg(&model));
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("m.party0.safetensors") && one_line(&error), "{error}");
    assert!(files() == before, "not a byte has changed");
    let (code, text, error) = base(difftest(["--load-model"]).arg(&model));
    assert_eq!(code, Some(0), "{text}{error}");
}

/// A container that allows few threads. Root is not limited, so root's run becomes another user's.
#[cfg(target_os = "linux")]
#[test]
fn few_threads_are_enough_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("difftest");
    fs::copy(env!("CARGO_BIN_EXE_difftest"), &program).unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    for entry in fs::read_dir(input("two-class")).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), data.join(entry.file_name())).unwrap();
    }
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let root = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim() == "0";
    let mut ran = 0;
    for threads in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={threads}:{threads}"));
        if root {
            // A user that nobody else is, for all processes of a user count.
            let user = 100_000 + std::process::id();
            command.arg("setpriv").arg(format!("--reuid={user}")).arg("--clear-groups");
        }
        command.arg(&program).args(["--steps", "1", "--data"]).arg(&data);
        let (code, text, error) = run(&mut command);
        assert!(matches!(code, Some(0 | 2)), "{threads} threads: {code:?}\n{text}{error}");
        if code == Some(2) {
            assert!(one_line(&error) && error.contains("raise the limit of threads"), "{threads}: {error}");
        } else {
            ran += 1;
        }
    }
    assert!(!root || (1..10).contains(&ran), "some limits are too tight and some are not: {ran}");
}

/// A limit on memory, from one that is too tight for the program's own start on.
#[cfg(target_os = "linux")]
#[test]
fn little_memory_is_enough_or_named() {
    let mut ran = 0;
    for megabytes in [150, 200, 300, 400, 600, 900, 4000] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={}", megabytes << 20)).arg(env!("CARGO_BIN_EXE_difftest"));
        let (code, text, error) = run(command.args(["--steps", "1", "--layers", "2", "--hidden", "64"]));
        assert!(matches!(code, Some(0 | 2)), "{megabytes} MiB: {code:?}\n{text}{error}");
        if code == Some(2) {
            assert!(one_line(&error) && error.contains("raise the limit"), "{megabytes} MiB: {error}");
        } else {
            ran += 1;
        }
    }
    assert!((1..7).contains(&ran), "some limits are too tight and some are not: {ran}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("report.json");
    std::os::unix::fs::symlink("elsewhere.json", &link).unwrap();
    let (code, text, _) = run(difftest(["--steps", "1", "--batch", "16", "--data", sample(), "--json"]).arg(&link));
    assert_eq!(code, Some(0), "{text}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let report: Value = serde_json::from_slice(&fs::read(dir.path().join("elsewhere.json")).unwrap()).unwrap();
    assert_eq!(report["steps"], 1);
}

/// IDX files of 4 x 4 images in which the place of one bright pixel goes with the label.
fn write_data(dir: &Path, rows: usize, label: impl Fn(usize) -> u8) {
    let split = one_bright_pixel(rows, |row| row % 16, label);
    ["train", "t10k"].into_iter().for_each(|name| write(dir, name, &split, rows));
}

/// More than ten classes, up to all that a byte can name; softmax says how many rows its pairs leave room for.
#[test]
fn a_network_has_as_many_outputs_as_the_data_have_classes() {
    for (largest, head, batch) in [(15, "softmax", 16), (255, "relu-grad", 16), (255, "softmax", 8)] {
        let dir = tempfile::tempdir().unwrap();
        write_data(dir.path(), 64, |row| if row % 16 == 15 { largest } else { (row % 16) as u8 });
        let args = format!("--head {head} --batch {batch} --layers 2 --hidden 8 --steps 2 --data");
        let (code, text, error) = run(difftest(args.split(' ')).arg(dir.path()));
        assert_eq!(code, Some(0), "{text}{error}");
        assert!(text.contains(&format!("(16-8-{})", usize::from(largest) + 1)), "{text}");
    }
    let dir = tempfile::tempdir().unwrap();
    write_data(dir.path(), 64, |_| 255);
    let (code, _, error) = run(difftest(["--data"]).arg(dir.path()));
    assert_eq!(code, Some(2));
    assert!(error.contains("rows of 256 are too many; rows times classes squared may be 4194304"), "{error}");
}
