//! The measurements in docs/benchmarks: its page and the README's table of speed are made from them.
//! `DIFFTEST_ACCEPT=1 cargo test -p difftest-cli --test all benchmarks` makes both again.

use crate::common::repository;
use serde_json::Value;
use std::fmt::Write;
use std::fs;

/// The files of `difftest time --save`, by name.
fn measured() -> Vec<Value> {
    let entries = fs::read_dir(repository("docs/benchmarks")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut paths: Vec<_> =
        entries.filter(|path| name(path).ends_with(".json") && !name(path).starts_with("kernels")).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// The number at a path of keys.
fn number(of: &Value, path: &str) -> f64 {
    of.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {of}"))
}

fn text<'v>(of: &'v Value, path: &str) -> &'v str {
    of.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path} in {of}"))
}

/// "3.4 (3.0 to 3.5)".
fn spread(of: &Value, path: &str) -> String {
    let part = |name: &str| number(of, &format!("{path}/{name}"));
    format!("{:.1} ({:.1} to {:.1})", part("median"), part("least"), part("most"))
}

fn layers(of: &Value) -> usize {
    of["spec"]["network"]["widths"].as_array().unwrap().len() - 1
}

fn training(of: &Value) -> String {
    let (n, head) = (layers(of), text(of, "/spec/head"));
    format!("{head}, {n} {}, {}", if n == 1 { "layer" } else { "layers" }, text(of, "/spec/rounding"))
}

/// One row a measurement: what was trained where, how it compares, where the time went, what more cores would do.
fn page(measured: &[Value]) -> String {
    let mut page = String::from(
        "# Measured speed\n\n\
         Made from the files of this folder by `DIFFTEST_ACCEPT=1 cargo test -p difftest-cli --test all benchmarks`.\n\
         `difftest time --save docs/benchmarks` adds a file. Both sides train whole epochs of MNIST in turn in one\n\
         process, batch 128; ratios are of the pairs, median (least to most) of five or more. A run is clean if other\n\
         work had at most a tenth of a core. Bytes are those of all parties together.\n\n\
         | training | machine | secure / real | s an epoch, secure | s an epoch, real | a step | memory | state |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for m in measured {
        let (kernel, processor) = (text(m, "/made/kernel"), text(m, "/made/processor"));
        let (rounds, megabytes) = (number(m, "/rounds_per_step"), number(m, "/bytes_per_step") / 1e6);
        let _ = writeln!(
            page,
            "| {} | {kernel}, {processor}, {} cores, {} | {} | {:.2} | {:.2} | {rounds:.0} rounds, {megabytes:.1} MB | \
             {:.2} GB | {} |",
            training(m),
            number(m, "/made/cores"),
            &text(m, "/made/date")[..10],
            spread(m, "/ratio"),
            number(m, "/secure/seconds_per_epoch/median"),
            number(m, "/real/seconds_per_epoch/median"),
            number(m, "/peak_memory_bytes") / 1e9,
            if m["unclean"].as_array().unwrap().is_empty() { "clean" } else { "not clean" },
        );
    }
    page.push_str(
        "\n## Where the parties' time goes, and what more cores would do\n\n\
         Three parties on two cores wait a third of the time at least. The columns to the right are projections from\n\
         measured parts, in seconds an epoch, not measurements: matrix products over all cores, everything else over \
         one core\n\
         a party, and idle as long as here.\n\n\
         | training | kernel | products | truncation | comparison | head | other | waiting | 4 cores | 8 cores | 16 \
         cores |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for m in measured {
        let percent = |phase: &str| format!("{:.0} %", 100.0 * m["phases"][phase].as_f64().unwrap_or(0.0));
        let phases = ["matrix products", "truncation", "comparison", "head", "other", "waiting"].map(percent);
        let more =
            m["more_cores"].as_array().unwrap().iter().map(|p| format!("{:.2}", number(p, "/seconds_per_epoch")));
        let cells: Vec<String> = phases.into_iter().chain(more).collect();
        let _ = writeln!(page, "| {} | {} | {} |", training(m), text(m, "/made/kernel"), cells.join(" | "));
    }
    page.push_str(
        "\nThe files `kernels-*.json` hold the matrix product alone, on one thread beside the f64 product of the same \
         shape:\n\
         `cargo bench -q -p difftest-secure -F bench --bench kernel -- --ratios`.\n",
    );
    page
}

/// The newest measurement of the README's training: 2-layer softmax.
fn newest<'m>(measured: &'m [Value], kernel: &str, rounding: &str) -> &'m Value {
    let fits = |m: &&Value| {
        text(m, "/made/kernel") == kernel
            && (text(m, "/spec/head"), text(m, "/spec/rounding"), layers(m)) == ("softmax", rounding, 2)
    };
    let found = measured.iter().filter(fits).max_by_key(|m| text(m, "/made/date"));
    found.unwrap_or_else(|| panic!("docs/benchmarks has no 2-layer softmax, {rounding}, {kernel}"))
}

/// The README's table: five figures by rounding.
fn table(measured: &[Value]) -> String {
    let mut table = String::from("| | prob | nearest |\n| --- | --- | --- |\n");
    let mut row = |name: &str, cell: &dyn Fn(&str) -> String| {
        let _ = writeln!(table, "| {name} | {} | {} |", cell("prob"), cell("nearest"));
    };
    for (kernel, name) in [("avx512", "AVX-512"), ("avx2", "AVX2 only")] {
        let processor = text(newest(measured, kernel, "prob"), "/made/processor");
        row(&format!("secure / real epoch, {name} ({processor})"), &|rounding| {
            spread(newest(measured, kernel, rounding), "/ratio")
        });
    }
    row("seconds an epoch, secure, AVX-512 / AVX2", &|rounding| {
        let seconds = |kernel| number(newest(measured, kernel, rounding), "/secure/seconds_per_epoch/median");
        format!("{:.1} / {:.1}", seconds("avx512"), seconds("avx2"))
    });
    row("rounds and bytes a step, all parties", &|rounding| {
        let m = newest(measured, "avx512", rounding);
        format!("{:.0}, {:.1} MB", number(m, "/rounds_per_step"), number(m, "/bytes_per_step") / 1e6)
    });
    row("peak memory", &|rounding| {
        format!("{:.1} GB", number(newest(measured, "avx512", rounding), "/peak_memory_bytes") / 1e9)
    });
    table
}

#[test]
fn the_page_and_the_readme_say_what_was_measured() {
    let measured = measured();
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let start = readme.find("| | prob | nearest |").expect("the README has a table of speed");
    let end = start + readme[start..].find("\n\n").expect("text follows the table") + 1;
    let (made_page, made_table) = (page(&measured), table(&measured));
    if std::env::var_os("DIFFTEST_ACCEPT").is_some() {
        fs::write(repository("README.md"), format!("{}{made_table}{}", &readme[..start], &readme[end..])).unwrap();
        fs::write(repository("docs/benchmarks/README.md"), &made_page).unwrap();
        return;
    }
    let again = "DIFFTEST_ACCEPT=1 cargo test -p difftest-cli --test all benchmarks";
    assert_eq!(&readme[start..end], made_table, "the README is out of step: {again}");
    let page = fs::read_to_string(repository("docs/benchmarks/README.md")).unwrap();
    assert_eq!(page, made_page, "docs/benchmarks/README.md is out of step: {again}");
}
