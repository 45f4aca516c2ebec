//! `difftest paper` from outside: a grid that is killed and resumed, spread by hand and merged, reported and rendered.

use crate::common::{program, sample};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A grid of seconds: 8 cells, two depths and two heads of either side, on a part of MNIST.
fn small() -> Vec<&'static str> {
    [&["--data", sample()], SMALL].concat()
}

const SMALL: &[&str] = &[
    "--rows",
    "256",
    "--hidden",
    "16",
    "--layers",
    "1,2",
    "--heads",
    "softmax,relu-prob",
    "--rounding",
    "prob",
    "--sides",
    "integer,real",
    "--epochs",
    "2",
];

fn paper(args: &[&str]) -> Command {
    let mut command = program();
    command.arg("paper").args(args);
    command
}

fn run(args: &[&str]) -> Output {
    paper(args).output().expect("the program starts")
}

fn succeeds(args: &[&str]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("reports are UTF-8")
}

fn refuses(args: &[&str]) -> String {
    let output = run(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(text.lines().count() == 1 && !text.contains("panicked"), "{args:?}: {text}");
    text
}

fn with(args: &[&'static str], more: &[&'static str]) -> Vec<&'static str> {
    [args, more].concat()
}

/// Finished cells: name and content.
fn cells(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(dir.join("cells")) else { return BTreeMap::new() };
    let entries = entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    entries.map(|p| (p.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(&p).unwrap())).collect()
}

/// A folder whose path outlives the arguments made from it.
fn folder() -> (tempfile::TempDir, &'static str) {
    let dir = tempfile::tempdir().unwrap();
    let path: &'static str = Box::leak(dir.path().join("out").to_str().unwrap().to_owned().into_boxed_str());
    (dir, path)
}

#[test]
fn a_killed_grid_is_resumed_without_repeating_or_losing_a_cell() {
    let (_keep, out) = folder();
    let small = small();
    let args = with(&small[..small.len() - 1], &["60", "--out", out]);
    let mut child = paper(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while cells(Path::new(out)).is_empty() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "no cell in two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = cells(Path::new(out));
    assert!((1..8).contains(&before.len()), "killed in the middle, with {} cells", before.len());

    assert!(refuses(&args).contains("--resume"));
    let text = succeeds(&[&args[..], &["--resume"]].concat());
    let after = cells(Path::new(out));
    assert_eq!(after.len(), 8);
    assert!(before.iter().all(|(id, content)| after[id] == *content), "finished cells stay as they are");
    // Each cell that runs has its line.
    let lines = text.lines().filter(|l| l.contains(" s an epoch, rate ")).count();
    assert_eq!(lines, 8 - before.len(), "{text}");
}

#[test]
fn cells_run_by_a_batch_system_and_merged_are_the_grid() {
    let (_keep, out) = folder();
    let list = succeeds(&with(&small(), &["--list"]));
    let ids: Vec<_> = list.lines().collect();
    assert_eq!(ids.len(), 8, "{list}");

    // As a Slurm array does, by number, on one machine; as GNU parallel does, by name, on the other.
    let grid = small().join(" ");
    let script = format!(
        "set -e\nfor SLURM_ARRAY_TASK_ID in 0 1 2; do\n  \"$DIFFTEST\" paper {grid} --out {out}/a --resume --cell \
         $SLURM_ARRAY_TASK_ID\ndone\n\
         \"$DIFFTEST\" paper {grid} --list | tail -n +3 | xargs -n 1 \"$DIFFTEST\" paper {grid} --out {out}/b --resume \
         --cell\n"
    );
    let done =
        Command::new("sh").arg("-c").arg(&script).env("DIFFTEST", env!("CARGO_BIN_EXE_difftest")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (a, b) = (format!("{out}/a"), format!("{out}/b"));
    assert!(!Path::new(&a).join("report.json").exists(), "single cells make no report");

    let text = succeeds(&["merge", &a, &b, "--out", out]);
    assert!(
        text.contains("3 cells copied, 0 here already")
            && text.contains(&format!("{} cells copied, 1 here", ids.len() - 3)),
        "{text}"
    );
    let merged = cells(Path::new(out));
    assert!(merged.keys().map(String::as_str).eq({
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted
    }));
    let text = succeeds(&["report", out]);
    assert!(
        text.contains("Table 1") && text.contains("not finished: integer relu-prob nearest; real relu-prob-cut"),
        "{text}"
    );
    let report: Value = serde_json::from_slice(&fs::read(Path::new(out).join("report.json")).unwrap()).unwrap();
    assert_eq!(report["cells"].as_array().unwrap().len(), ids.len());
    for file in [
        "report.html",
        "table1.csv",
        "sides.csv",
        "rates.csv",
        "table2.csv",
        "claims.csv",
        "curves.csv",
        "drift.csv",
        "nearness.csv",
        "protocols.csv",
    ] {
        assert!(fs::metadata(Path::new(out).join(file)).unwrap().len() > 0, "{file}");
    }
    // Columns in the order of reading, the paper's beside ours; a grid of two epochs shows the second.
    let table = fs::read_to_string(Path::new(out).join("table1.csv")).unwrap();
    assert!(table.starts_with("layers,rounding,head,seeds,secure_seeds,ours.after_5"), "{table}");
    assert!(table.lines().next().unwrap().contains("paper.after_5,paper.after_10,"), "{table}");
    let first = &report["table1"][0];
    assert!((1..=2).contains(&first["last"]["epoch"].as_u64().unwrap()) && first["paper"]["after_20"] == 92.4);
    assert!(report["program"].as_str().unwrap().starts_with("difftest ") && text.contains("   epoch "), "{text}");
    let cell: Value = serde_json::from_slice(&merged[ids[0]]).unwrap();
    assert!(cell["program"].as_str().unwrap().starts_with("difftest ") && cell["machine"]["processor"].is_string());
    let html = fs::read_to_string(Path::new(out).join("report.html")).unwrap();
    assert!(html.contains("Error against its bound") && html.contains("layer1/dW, prob rounding"));
    assert!(report["nearness"].as_array().unwrap().iter().all(|n| n["outside"] == 0));
    let points = report["curves"].as_array().unwrap().len();
    assert!(points >= 2 * ids.len(), "two epochs a cell, or four attempts of at least one: {points}");
    assert_eq!(fs::read_to_string(Path::new(out).join("curves.csv")).unwrap().lines().count(), 1 + points);

    // Nothing is mixed that does not belong together.
    let other = with(&small(), &["--restarts", "1", "--resume", "--out"]);
    assert!(refuses(&[&other[..], &[out]].concat()).contains("restarts 1 against 9"));
    // Another data set, asked for cells of other names.
    let other = ["--rows", "255", "--hidden", "16", "--seeds", "2", "--layers", "1", "--resume", "--out", out];
    assert!(refuses(&other).contains("another setup (data "));
}

#[test]
fn seeds_are_a_list_and_a_rate_can_be_the_only_one() {
    let list = |args: &[&str]| {
        let text =
            succeeds(&[&["--list", "--layers", "2", "--heads", "relu-grad", "--rounding", "prob"], args].concat());
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        list(&["--sides", "integer,real", "--seeds", "2,5"]),
        [
            "integer-relu-grad-l2-prob-s2-e20",
            "integer-relu-grad-l2-prob-s5-e20",
            "real-relu-grad-l2-s2-e20",
            "real-relu-grad-l2-s5-e20"
        ]
    );
    assert_eq!(
        list(&["--sides", "integer", "--published", "--rate-units", "128"]),
        ["integer-relu-grad-l2-prob-s1-e20-r128", "integer-relu-grad-code-l2-prob-s1-e20-r128"]
    );
    // Both train, and so do other settings than the paper's.
    let (_keep, out) = folder();
    let few = ["--rows", "128", "--hidden", "8", "--layers", "2", "--heads", "relu-grad", "--rounding", "prob"];
    let few = [&few[..], &["--data", sample()]].concat();
    let more = ["--sides", "integer", "--published", "--rate-units", "128", "--epochs", "1", "--out", out];
    let set = ["--batch", "32", "--epsilon", "0.25", "--momentum", "0.5", "--lr", "0.02"];
    let text = succeeds(&[&few[..], &more, &set].concat());
    assert_eq!(text.lines().filter(|l| l.contains("rate 0.001953125 (attempt 1)")).count(), 2, "{text}");
    let report: Value = serde_json::from_slice(&fs::read(Path::new(out).join("report.json")).unwrap()).unwrap();
    let setup = ["batch", "epsilon", "momentum", "learning_rate"].map(|s| report["setup"][s].as_f64().unwrap());
    assert_eq!(setup, [32.0, 0.25, 0.5, 0.02]);
}

/// Timing cells: each configuration a file, beside cells of the same setup and of no other. How long anything took is
/// no matter here, and neither is whether the machine was quiet.
#[test]
fn configurations_are_timed_by_themselves() {
    let (_keep, out) = folder();
    let few =
        ["--rows", "96", "--hidden", "8", "--layers", "1,2", "--heads", "softmax,relu-grad", "--rounding", "prob"];
    let times = |more: &[&'static str]| [&few[..], &["--times", "1", "--out", out], more].concat();
    let names = ["softmax-l1-prob", "relu-grad-l1-prob", "softmax-l2-prob", "relu-grad-l2-prob"];
    assert_eq!(succeeds(&times(&["--list"])).lines().collect::<Vec<_>>(), names);

    let line = |text: &str, name: &str| text.lines().filter(|l| l.starts_with(&format!("{name} "))).count();
    let text = succeeds(&times(&["--cell", "relu-grad-l2-prob"]));
    assert_eq!(line(&text, "relu-grad-l2-prob"), 1, "{text}");
    assert!(text.contains("NOT CLEAN, no claim is judged by it: fewer than 3 counted epochs"), "{text}");
    assert!(refuses(&times(&[])).contains("give --resume"));
    succeeds(&times(&["--resume", "--cell", "0"]));
    let files = || {
        let entries = fs::read_dir(Path::new(out).join("times")).unwrap().map(|e| e.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(files().iter().eq(["relu-grad-l2-prob.json", "softmax-l1-prob.json"]), "{:?}", files());
    let cell = fs::read(Path::new(out).join("times/softmax-l1-prob.json")).unwrap();
    let cell: Value = serde_json::from_slice(&cell).unwrap();
    assert_eq!((&cell["configuration"], cell["epochs"].as_array().unwrap().len()), (&"softmax-l1-prob".into(), 2));
    assert!(cell["epochs"][1]["secure"]["wall"].as_f64().unwrap() > 0.0, "{cell}");
    assert!(cell["epochs"][1]["real"]["wall"].as_f64().unwrap() > 0.0, "{cell}");
    assert!(cell["program"].as_str().unwrap().starts_with("difftest ") && cell["machine"]["kernel"].is_string());
    assert_eq!(cell["date"].as_str().unwrap().len(), "2026-11-29T05:00:00Z".len());

    // The training cells of the same setup go into the same folder; one file holds both, and is the folder again.
    let train = [&few[..], &["--sides", "real", "--epochs", "1", "--out", out, "--resume"]].concat();
    succeeds(&train);
    let report: Value = serde_json::from_slice(&fs::read(Path::new(out).join("report.json")).unwrap()).unwrap();
    assert_eq!(report["times"], serde_json::json!(["softmax-l1-prob", "relu-grad-l2-prob"]));
    let file = format!("{out}/results.json");
    let table = succeeds(&["table", out, "--save", &file]);
    let rows: Vec<_> = table.lines().filter(|l| l.ends_with("| by itself, not quiet |")).collect();
    assert!(rows.len() == 2 && rows[1].starts_with("| 2 layers, prob, relu-grad | "), "{table}");
    assert!(table.contains("\n- 2 of 2: by itself on ") && table.contains("fewer than 3 counted epochs"), "{table}");
    assert_eq!(succeeds(&["table", &file]), table);
    let again = format!("{out}/again");
    let text = succeeds(&["merge", &file, "--out", &again]);
    assert!(text.contains("6 cells copied, 0 here already"), "{text}");
    assert_eq!(succeeds(&["table", &again]), table);

    // Another setup is refused from either direction.
    let other = [&["--hidden", "4"], &few[..2], &few[4..], &["--times", "1", "--resume", "--out", out]].concat();
    assert!(refuses(&other).contains("hidden 4 against 8"));
    fs::remove_dir_all(Path::new(out).join("cells")).unwrap();
    fs::create_dir(Path::new(out).join("cells")).unwrap();
    let other = [&["--hidden", "4"], &train[..2], &train[4..]].concat();
    assert!(refuses(&other).contains("times/softmax-l1-prob.json: this cell was run with another setup"));
}

/// The file of results is the whole grid: the tables made from it are those made from the cells.
#[test]
fn one_file_says_what_the_cells_say() {
    let (_keep, out) = folder();
    succeeds(&with(&small(), &["--out", out]));
    let file = format!("{out}/results.json");
    let from_cells = succeeds(&["table", out, "--save", &file]);
    assert_eq!(succeeds(&["table", &file]), from_cells);
    assert!(from_cells.contains("| prob, relu-prob | 1 (0 secure) | –; epoch "), "{from_cells}");
    let again = format!("{out}/again");
    succeeds(&["merge", &file, "--out", &again]);
    assert_eq!(succeeds(&["table", &again]), from_cells);
    fs::write(&file, "{}").unwrap();
    assert!(refuses(&["table", &file]).contains("no record of results"));
    assert!(refuses(&["table", out, "--update", &file]).contains("add them"));
    fs::File::create(&file).unwrap().set_len((16 << 20) + 1).unwrap();
    assert!(refuses(&["table", out, "--update", &file]).contains("is larger than 16777216 bytes"));
}

/// The lines between the markers of a document.
fn between_markers(document: &str) -> &str {
    let after = document.split_once("<!-- table: difftest paper table -->\n").expect("the first marker").1;
    after.split_once("<!-- end -->").expect("the second marker").0.trim()
}

/// The top of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Whether a document has the tables of its results, and what to do if it has not.
fn in_step(document: &str, results: &str) -> Result<(), String> {
    let root = Path::new(ROOT);
    let made = succeeds(&["table", root.join(results).to_str().unwrap()]);
    let text = fs::read_to_string(root.join(document)).unwrap();
    if between_markers(&text) == made.trim() {
        return Ok(());
    }
    Err(format!("{document} is not what {results} says: run difftest paper table {results} --update {document}"))
}

#[test]
fn documents_are_in_step_with_their_results() {
    in_step("tests/paper/small.md", "tests/paper/small.json").unwrap();
    // The comparison finds a difference where there is one.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (stale, name) = (dir.path().join("stale.md"), "tests/paper/small.json");
    let small = fs::read_to_string(Path::new(ROOT).join("tests/paper/small.md")).unwrap();
    fs::write(&stale, small.replacen("integer", "other", 1)).unwrap();
    let stale = stale.to_str().unwrap();
    assert!(in_step(stale, name).unwrap_err().contains("--update"));
    let json = Path::new(ROOT).join(name);
    assert_eq!(succeeds(&["table", json.to_str().unwrap(), "--update", stale]), "");
    assert_eq!(fs::read_to_string(stale).unwrap(), small);
}

#[test]
fn the_papers_page_is_in_step_with_the_committed_results() {
    in_step("docs/paper.md", "fixtures/paper/results.json").unwrap();
}

/// On a page of 120 columns no line of text wraps, and no cell of a table more than twice.
#[test]
fn the_papers_page_is_readable() {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/paper.md")).unwrap();
    for line in text.lines() {
        if line.starts_with('|') {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(|c| c.trim().chars().count()).collect();
            // Columns share the page by their content, none narrower than its longest word.
            let lines = cells.iter().map(|c| c.div_ceil((120 / cells.len()).max(1))).max().unwrap_or(0);
            assert!(lines <= 3, "{lines} lines: {line}");
        } else {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}

/// The paper has a figure for each of its rows, and the page shows it.
#[test]
fn the_papers_page_shows_every_figure_of_the_paper() {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/paper.md")).unwrap();
    let table = fixtures::paper::table1();
    for row in &table.rows {
        let figures: Vec<_> = row.accuracy.iter().flatten().map(|a| format!("{a:.1}")).collect();
        let figures = if row.diverges { "⊥".into() } else { figures.join(" / ") };
        let name = format!("| {}, {} | ", row.rounding, row.head);
        let depth = text.split(if row.layers == 1 {
            "\n| 1 layer |"
        } else if row.layers == 2 {
            "\n| 2 layers |"
        } else {
            "\n| 3 layers |"
        });
        let depth = depth.last().unwrap().split("\n\n").next().unwrap();
        assert!(depth.lines().any(|l| l.starts_with(&name) && l.contains(&format!("| {figures} |"))), "{row:?}");
    }
    for claim in ["not tested", "holds", "does not hold"] {
        assert!(text.contains(&format!(": {claim}\n")), "{claim}");
    }
    assert!(!text.contains("PASS") && !text.contains("FAIL"), "words of checks");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let (_keep, out) = folder();
    for (args, words) in [
        (&["--epochs", "0"][..], "--epochs is 0"),
        (&["--times", "0"], "--times is 0"),
        (&["--times", "1", "--cell", "softmax-l2"], "is no timing cell"),
        (&["--times", "1", "--rows", "9", "--lr", "-1"], "learning rate"),
        (&["--batch", "0"], "--batch is 0"),
        (&["--rate-units", "0"], "--rate-units is 0"),
        (&["--lr", "-1", "--rows", "9"], "learning rate"),
        (&["--epsilon", "2", "--rows", "9"], "epsilon"),
        (&["--rows", "0"], "--rows is 0"),
        (&["--layers", "0"], "depths are 1 to 64"),
        (&["--cell", "75", "--rows", "1"], "cells 0 to 74"),
        (&["--cell", "real-softmax"], "--list"),
        (&["--velocity-bits", "13", "--rows", "9"], "extra velocity bits"),
        (&["report", "/nonexistent"], "no folder of cells"),
        (&["merge", "/nonexistent"], "no folder of cells"),
    ] {
        let mut args = args.to_vec();
        if args[0].starts_with("--") {
            args.extend(["--out", out]);
        }
        let text = refuses(&args);
        assert!(text.contains(words), "{args:?}: {text}");
    }
    fs::create_dir_all(Path::new(out).join("cells")).unwrap();
    assert!(refuses(&["report", out]).contains("holds no finished cell"));
}

#[test]
fn secure_cells_have_costs_and_time() {
    let (_keep, out) = folder();
    succeeds(&[
        "--data",
        sample(),
        "--rows",
        "128",
        "--hidden",
        "8",
        "--layers",
        "1,2",
        "--heads",
        "softmax",
        "--sides",
        "secure,real",
        "--epochs",
        "1",
        "--out",
        out,
    ]);
    let report: Value = serde_json::from_slice(&fs::read(Path::new(out).join("report.json")).unwrap()).unwrap();
    let steps: Vec<_> = report["protocols"].as_array().unwrap().iter().filter(|p| p["protocol"] == "all").collect();
    assert_eq!(steps.len(), 4);
    let seconds = report["table1"].as_array().unwrap();
    assert!(seconds.iter().all(|row| row["cpu_seconds"].as_f64().unwrap() >= 0.0 && row["paper_seconds"].is_number()));
    let untimed = "fewer than 20 whole epochs";
    assert!(seconds.iter().all(|row| row["untimed"] == untimed && row["machine"].is_string()), "{seconds:?}");
    assert!(
        report["claims"]
            .as_array()
            .unwrap()
            .iter()
            .all(|c| !c["name"].as_str().unwrap().starts_with("saving") || c["verdict"] == "not-tested")
    );
    assert!(steps.iter().all(|s| s["rounds"].as_f64().unwrap() > 10.0 && s["bytes"].as_f64().unwrap() > 1e4));
    let html = fs::read_to_string(Path::new(out).join("report.html")).unwrap();
    assert!(html.contains("Accuracy against secure seconds") && html.contains("Drift between the sides"));
    well_formed(&html);
    if let Some(browser) = browser() {
        renders(&browser, Path::new(out));
    }
}

#[test]
fn cells_of_three_processes_are_those_of_three_threads() {
    let cell = |parties: &str| {
        let (_keep, out) = folder();
        let words = "--rows 256 --hidden 8 --layers 2 --heads softmax --rounding nearest --sides secure --epochs 2 \
                     --restarts 0";
        succeeds(&words.split(' ').chain(["--data", sample(), "--parties", parties, "--out", out]).collect::<Vec<_>>());
        let (name, text) = cells(Path::new(out)).pop_first().unwrap();
        let mut cell: Value = serde_json::from_slice(&text).unwrap();
        let attempts = cell["attempts"].as_array_mut().unwrap().iter_mut();
        let epochs: Vec<_> = attempts.flat_map(|attempt| attempt["epochs"].as_array_mut().unwrap()).collect();
        assert!(!epochs.is_empty(), "{name}");
        for epoch in epochs {
            epoch.as_object_mut().unwrap().retain(|key, _| !key.ends_with("seconds"));
        }
        (name, cell["attempts"].take(), cell["cost"].take())
    };
    assert_eq!(cell("tls"), cell("memory"));
}

#[test]
fn a_comparison_has_a_page_as_well() {
    let dir = tempfile::tempdir().unwrap();
    for mode in ["lockstep", "free"] {
        let html = dir.path().join(mode);
        let done = program()
            .args(["--steps", "2", "--batch", "16", "--data", sample(), "--mode", mode, "--html"])
            .arg(&html)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        let html = fs::read_to_string(html).unwrap();
        well_formed(&html);
        assert!(html.contains("divergence") && html.contains("--steps 2"), "{mode}");
        assert_eq!((html.contains("head_gradient"), html.contains("<figure>")), (mode == "lockstep", mode == "free"));
    }
}

/// Every element that is opened is closed in order, and nothing is loaded or run.
fn well_formed(html: &str) {
    let body = &html[html.find("<body>").expect("a body")..html.rfind("</html>").expect("an end")];
    let mut open = Vec::new();
    for tag in body.split('<').skip(1).map(|t| t.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        match tag {
            _ if tag.starts_with('/') => assert_eq!(open.pop().as_deref(), Some(name), "{tag}"),
            _ if tag.ends_with('/') || name == "br" => {}
            _ => open.push(name.to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for forbidden in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

/// A browser that can be run without a display.
fn browser() -> Option<PathBuf> {
    let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = names.iter().flat_map(|n| std::env::split_paths(&path).map(move |p| p.join(n))).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: rendering the report needs one of {}; none is installed", names.join(", "));
    }
    found
}

/// On a phone and on a desk: nothing is wider than the screen, every plot has an area, text can be told from its
/// background.
fn renders(browser: &Path, dir: &Path) {
    let html = fs::read_to_string(dir.join("report.html")).unwrap();
    let measure = "<script>const s = getComputedStyle(document.body), r = [...document.querySelectorAll('figure \
        svg')].map(v => v.getBoundingClientRect());\
        document.title = 'measured ' + JSON.stringify({over: document.documentElement.scrollWidth - innerWidth, plots: \
        r.length,\
        drawn: r.filter(b => b.width > 200 && b.height > 130).length, ink: s.color, paper: \
        s.backgroundColor});</script></body>";
    let page = dir.join("measured.html");
    fs::write(&page, html.replace("</body>", measure)).unwrap();
    for size in ["360,740", "1280,900"] {
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--window-size={size}"))
            .arg(format!("--user-data-dir={}", dir.join("browser").display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("the browser starts");
        let dom = String::from_utf8_lossy(&output.stdout);
        let title = dom.split("<title>").nth(1).and_then(|t| t.split("</title>").next()).unwrap_or_default();
        let measured =
            title.strip_prefix("measured ").unwrap_or_else(|| panic!("{size}: {title}")).replace("&quot;", "\"");
        let m: Value = serde_json::from_str(&measured).unwrap();
        assert!(m["over"].as_f64().unwrap() <= 0.0, "{size}: {m}");
        assert!(m["plots"].as_u64().unwrap() >= 6 && m["plots"] == m["drawn"], "{size}: {m}");
        assert_ne!(m["ink"], m["paper"], "{size}: {m}");
    }
}

/// Nearest rounding tosses no coins: on all of MNIST and over all epochs the parties must predict what the integer side
/// predicts, row for row as far as the number of hits tells, for as long as that side's operands stay inside their
/// ranges. An attempt ends with the epoch in which they do not.
#[test]
fn in_the_committed_results_nearest_rounding_agrees_with_the_integer_side_in_every_epoch() {
    let file = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/paper/results.json")).unwrap();
    let results: Value = serde_json::from_str(&file).unwrap();
    let cells: BTreeMap<&str, &Value> =
        results["cells"].as_array().unwrap().iter().map(|c| (c["id"].as_str().unwrap(), &c["attempts"])).collect();
    let (mut pairs, mut epochs) = (0, 0);
    for (id, secure) in cells.iter().filter(|(id, _)| id.starts_with("secure-") && id.contains("-nearest-")) {
        let integer = cells[id.replacen("secure", "integer", 1).as_str()];
        let (secure, integer) = (secure.as_array().unwrap(), integer.as_array().unwrap());
        let leaves = |attempt: &Value| !attempt["violations"].as_object().unwrap().is_empty();
        // What a wrapped number does to accuracy is chance: the parties may go on at a rate that the other gives up.
        assert!(
            secure.len() == integer.len() || secure.len() < integer.len() && leaves(&integer[secure.len() - 1]),
            "{id}"
        );
        for (secure, integer) in secure.iter().zip(integer) {
            assert_eq!(secure["learning_rate"], integer["learning_rate"], "{id}");
            let [hits, expected] = [secure, integer].map(|side| side["columns"]["correct"].as_array().unwrap());
            let left_range = leaves(integer);
            let inside = expected.len() - usize::from(left_range);
            assert_eq!(hits[..inside], expected[..inside], "{id} at {}", integer["learning_rate"]);
            assert!(left_range || hits.len() == inside, "{id} at {}", integer["learning_rate"]);
            epochs += inside;
        }
        pairs += 1;
    }
    assert!(pairs == 16 && epochs > 300, "{pairs} pairs, {epochs} epochs");
}
