//! `--checkpoint` and `--resume` from outside: runs whose parties or client are killed go on to where they would have
//! been.

use super::{PATIENCE, Parties, program, read};
use crate::common::sample;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

/// Steps of the runs, of which the last is compared.
const STEPS: usize = 40;

/// A comparison in `dir` that writes its last step to `last`.
fn comparison(dir: &Path, last: &str, more: &[&str]) -> Command {
    let mut command = program();
    let (steps, n) = (STEPS.to_string(), (STEPS - 1).to_string());
    command.current_dir(dir).args(["--layers", "2", "--hidden", "8", "--batch", "16", "--steps", &steps]);
    command.args(["--save-step", &n, last, "--data", sample()]).args(more);
    command
}

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Starts a run that keeps states in `dir`/states, and waits until all three parties have kept one after `step` steps
/// or later.
fn started(dir: &Path, step: usize, more: &[&str]) -> Child {
    let mut command = comparison(dir, "never.safetensors", more);
    command.args(["--checkpoint", "states", "--every", "2"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let until = Instant::now() + 3 * PATIENCE;
    while (0..3).any(|k| newest(dir, k) < Some(step)) {
        assert!(Instant::now() < until, "no states in time");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

/// The newest step whose state party k has kept.
fn newest(dir: &Path, k: usize) -> Option<usize> {
    let names = fs::read_dir(dir.join(format!("states/party{k}"))).ok()?;
    let names = names.filter_map(|e| e.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".state")?.rsplit_once('.')?.1.parse().ok()).max()
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let ids = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |id: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    ids.filter(|&id| parent_of(id) == Some(parent)).collect()
}

/// The process of party k among those that `parent` has started.
fn party(parent: u32, k: usize) -> u32 {
    let is = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(&format!("party{k}.toml")))
    };
    children(parent).into_iter().find(is).expect("a process of the party")
}

fn gone(ids: &[u32]) {
    let until = Instant::now() + PATIENCE;
    // One whose parent was killed may stay as an entry without a program until somebody asks for its end.
    let lives = |id: &u32| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.is_empty());
    while ids.iter().any(lives) {
        assert!(Instant::now() < until, "processes are left: {ids:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Name and bytes of every tensor of a file, in order.
fn tensors(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let mut all: Vec<_> = file.iter().map(|(name, t)| (name.to_owned(), t.data().to_vec())).collect();
    all.sort();
    all
}

fn signal(id: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

/// Goes on with the run in `dir` and compares its last step with that of an uninterrupted run of parties in one
/// process.
fn goes_on(dir: &Path, at_least: usize, more: &[&str]) {
    let resumed = comparison(dir, "resumed.safetensors", more)
        .args(["--checkpoint", "states", "--every", "2", "--resume"])
        .output();
    let resumed = resumed.unwrap();
    let text = String::from_utf8_lossy(&resumed.stdout).into_owned();
    assert_eq!(resumed.status.code(), Some(0), "{text}{}", ended(&resumed).1);
    let after = text.split("resumed after step ").nth(1).and_then(|rest| rest.split(':').next()?.parse().ok());
    assert!(after.is_some_and(|step: usize| step >= at_least && step < STEPS), "{text}");

    let place = more.iter().position(|flag| *flag == "--parties");
    let memory = place.map_or(more.to_vec(), |at| [&more[..at], &more[at + 2..]].concat());
    let whole = comparison(dir, "whole.safetensors", &memory).output().unwrap();
    assert_eq!(whole.status.code(), Some(0), "{}", ended(&whole).1);
    let [resumed, whole] =
        ["resumed.safetensors", "whole.safetensors"].map(|name| tensors(&fs::read(dir.join(name)).unwrap()));
    assert!(resumed == whole, "the last step starts from the same bits and tosses the same coins");
    let left: Vec<PathBuf> = (0..3)
        .flat_map(|k| fs::read_dir(dir.join(format!("states/party{k}"))).unwrap())
        .map(|e| e.unwrap().path())
        .filter(|path| path.extension().is_none_or(|e| e != "state"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Under nearest rounding with fresh keys, and under probabilistic rounding with streams that come from a seed.
#[test]
fn a_run_whose_party_is_killed_or_stopped_goes_on_to_the_same_bits() {
    let struck = |k: usize, kind: &str, [flag, value]: [&str; 2]| {
        let more = &["--parties", "tls", "--deadline", "3", flag, value];
        let dir = tempfile::tempdir().unwrap();
        let client = started(dir.path(), 6, more);
        let all = children(client.id());
        signal(party(client.id(), k), kind);
        let (code, error) = ended(&client.wait_with_output().unwrap());
        assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(&format!("party {k} ")) && error.contains("--resume"), "{error}");
        gone(&all);
        goes_on(dir.path(), 6, more);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| struck(0, "-KILL", ["--rounding", "nearest"]));
        struck(1, "-STOP", ["--insecure-seed", "5"]);
    });
}

/// Parties elsewhere, started by hand from the files of `difftest certs`: one is killed and started again where it was,
/// and the same command goes on from the states that each of them keeps.
#[test]
fn a_killed_party_of_a_file_of_hosts_is_started_again_and_the_run_goes_on() {
    let mut parties = Parties::prepared(|k, text| format!("states = \"states/party{k}\"\n{text}"));
    let dir = parties.folder.path().to_owned();
    let mut hosts = read(&dir, "hosts.toml");
    for (k, address) in parties.addresses.iter().enumerate() {
        hosts = hosts.replace(&format!("127.0.0.1:700{k}"), address);
        // From now on it listens there again.
        let name = format!("party{k}.toml");
        let text = read(&dir, &name).replace("\"127.0.0.1:0\"", &format!("{address:?}"));
        fs::write(dir.join(name), text).unwrap();
    }
    fs::write(dir.join("hosts.toml"), hosts).unwrap();

    let more = ["--parties", "hosts.toml", "--deadline", "3", "--rounding", "nearest"];
    let client = started(&dir, 6, &more);
    parties.signal(1, "-KILL");
    let (code, error) = ended(&client.wait_with_output().unwrap());
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("party 1 ") && error.contains("--resume"), "{error}");
    let address = parties.addresses[1].clone();
    parties.restart(1);
    assert_eq!(parties.addresses[1], address);
    goes_on(&dir, 6, &more);
}

#[test]
fn a_run_whose_client_is_killed_leaves_no_party_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--parties", "tls", "--rounding", "nearest"];
    let mut client = started(dir.path(), 4, &more);
    let all = children(client.id());
    assert_eq!(all.len(), 3);
    signal(client.id(), "-KILL");
    client.wait().unwrap();
    gone(&all);
    goes_on(dir.path(), 4, &more);
}

#[test]
fn parties_in_one_process_keep_states_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--rounding", "nearest"];
    let mut client = started(dir.path(), 4, &more);
    signal(client.id(), "-KILL");
    client.wait().unwrap();
    goes_on(dir.path(), 4, &more);
}

/// A free run, of which every side is resumed: what is trained in the end is what an uninterrupted run trains.
#[test]
fn a_free_run_goes_on_to_the_same_model() {
    let dir = tempfile::tempdir().unwrap();
    let train = |model: &str, more: &[&str]| {
        let mut command = program();
        let base = ["--mode", "free", "--rounding", "nearest", "--hidden", "8", "--layers", "2", "--batch", "16"];
        command.current_dir(dir.path()).args(base).args(["--data", sample()]);
        command.args(["--steps", "60", "--save-model", model]).args(more);
        command
    };
    let whole = train("whole", &[]).output().unwrap();
    assert_eq!(whole.status.code(), Some(0), "{}", ended(&whole).1);
    let keeping = ["--parties", "tls", "--checkpoint", "states", "--every", "2"];
    let mut client = train("rest", &keeping).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + 3 * PATIENCE;
    while (0..3).any(|k| newest(dir.path(), k) < Some(4)) {
        assert!(Instant::now() < until, "no states in time");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    signal(client.id(), "-KILL");
    client.wait().unwrap();
    assert!(!dir.path().join("rest").exists());
    let rest = train("rest", &[&keeping[..], &["--resume"][..]].concat()).output().unwrap();
    let text = String::from_utf8_lossy(&rest.stdout).into_owned();
    assert_eq!(rest.status.code(), Some(0), "{text}{}", ended(&rest).1);
    assert!(text.contains("resumed after step "), "{text}");
    let real = |model: &str| fs::read(dir.path().join(model)).unwrap();
    assert!(tensors(&real("rest")) == tensors(&real("whole")), "the real side");
    let opened = |model: &str| {
        let of = |k: usize| tensors(&fs::read(dir.path().join(format!("{model}.party{k}.safetensors"))).unwrap());
        let words = |bytes: &[u8]| -> Vec<u64> {
            bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect()
        };
        let (zero, one) = (of(0), of(1));
        let find =
            |all: &[(String, Vec<u8>)], name: &str| words(&all.iter().find(|(n, _)| n == name).expect("a component").1);
        let names = zero.iter().filter_map(|(name, _)| name.strip_suffix(".component0"));
        let sum = |name: &str| -> Vec<u64> {
            let [a, b, c] =
                [(&zero, 0), (&zero, 1), (&one, 2)].map(|(all, k)| find(all, &format!("{name}.component{k}")));
            a.iter().zip(b).zip(c).map(|((a, b), c)| a.wrapping_add(b).wrapping_add(c)).collect()
        };
        names.map(|name| (name.to_owned(), sum(name))).collect::<Vec<_>>()
    };
    assert!(opened("rest") == opened("whole"), "the secure side");
}

#[test]
fn a_folder_that_does_not_fit_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], what: &str| {
        let mut command = program();
        let steps: &[&str] = if more.contains(&"--steps") { &[] } else { &["--steps", "3"] };
        let base = ["--batch", "4", "--data", sample()];
        let output = command.current_dir(dir.path()).args(base).args(steps).args(more).output().unwrap();
        let (code, error) = ended(&output);
        assert_eq!((code, error.contains(what)), (Some(2), true), "{error}");
    };
    refused(&["--resume"], "--checkpoint");
    refused(&["--checkpoint", "states", "--every", "0"], "--every");
    refused(&["--checkpoint", "states", "--resume"], "states holds no run");
    let first = program()
        .current_dir(dir.path())
        .args(["--steps", "3", "--batch", "4", "--data", sample(), "--checkpoint", "states", "--every", "1"])
        .output();
    assert_eq!(first.unwrap().status.code(), Some(0));
    refused(&["--checkpoint", "states"], "go on with it by --resume");
    refused(&["--checkpoint", "states", "--resume", "--layers", "2"], "states holds another run");
    refused(&["--checkpoint", "states", "--resume", "--steps", "2"], "kept the state after step 2");
}
