//! `--save-model` and `--load-model` from outside: a run that is interrupted ends where the uninterrupted one does.

use crate::common::{program, sample};
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

fn difftest(dir: &Path, args: &[&str]) -> Output {
    let base = ["--mode", "free", "--layers", "2", "--hidden", "8", "--batch", "16", "--rounding", "nearest"];
    program().current_dir(dir).args(base).args(["--data", sample()]).args(args).output().expect("it starts")
}

fn trains(dir: &Path, args: &[&str]) -> String {
    let output = difftest(dir, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("reports are UTF-8")
}

fn refuses(dir: &Path, args: &[&str]) -> String {
    let output = difftest(dir, args);
    let text = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{args:?}: {text}");
    text
}

/// Name and words of every tensor of a file.
fn words(path: &Path) -> BTreeMap<String, Vec<u64>> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |(name, tensor): (&str, safetensors::tensor::TensorView)| {
        let words = tensor.data().chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap()));
        (name.to_owned(), words.collect())
    };
    file.iter().map(tensor).collect()
}

/// The secret behind the three share files, modulo 2^64: parties 0 and 1 have all components.
fn opened(dir: &Path, model: &str) -> BTreeMap<String, Vec<u64>> {
    let party = |k: usize| words(&dir.join(format!("{model}.party{k}.safetensors")));
    let [zero, one, two] = [0, 1, 2].map(party);
    for (holder, other, component) in [(&zero, &one, 1), (&one, &two, 2), (&two, &zero, 0)] {
        for (name, words) in holder.iter().filter(|(name, _)| name.ends_with(&format!("component{component}"))) {
            assert_eq!(words, &other[name], "both copies of {name}");
        }
    }
    let names = zero.keys().filter_map(|n| n.strip_suffix(".component0"));
    let sum = |name: &str| {
        let [a, b, c] = [(&zero, 0), (&zero, 1), (&one, 2)].map(|(p, k)| &p[&format!("{name}.component{k}")]);
        a.iter().zip(b).zip(c).map(|((a, b), c)| a.wrapping_add(*b).wrapping_add(*c)).collect()
    };
    names.map(|name| (name.to_owned(), sum(name))).collect()
}

#[test]
fn an_interrupted_run_ends_where_the_uninterrupted_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    trains(dir, &["--steps", "4", "--save-model", "whole.safetensors"]);
    trains(dir, &["--steps", "2", "--save-model", "half.safetensors"]);
    let json = dir.join("report.json").display().to_string();
    let text = trains(
        dir,
        &["--steps", "2", "--load-model", "half.safetensors", "--save-model", "rest.safetensors", "--json", &json],
    );
    assert!(text.contains("goes on with half.safetensors"), "{text}");
    assert!(fs::read_to_string(json).unwrap().contains("--load-model half.safetensors"), "the command that repeats it");

    // f64 has no coins, and neither has nearest rounding: equal to the last bit.
    assert_eq!(words(&dir.join("rest.safetensors")), words(&dir.join("whole.safetensors")));
    let (rest, half) = (opened(dir, "rest"), opened(dir, "half"));
    assert_eq!(rest, opened(dir, "whole"));
    assert_eq!(rest.keys().collect::<Vec<_>>().len(), 8);
    assert_ne!(rest, half);
    let share = |model: &str| words(&dir.join(format!("{model}.party0.safetensors")));
    assert_ne!(share("rest"), share("whole"), "shares are random");
}

#[test]
fn damaged_swapped_and_foreign_files_are_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let load = &["--steps", "2", "--load-model", "m"];
    assert!(refuses(dir, load).contains("difftest: m: "));
    trains(dir, &["--steps", "2", "--save-model", "m"]);
    let party = |k: usize| dir.join(format!("m.party{k}.safetensors"));
    let whole = fs::read(party(1)).unwrap();

    fs::write(party(1), &whole[..whole.len() / 2]).unwrap();
    assert!(refuses(dir, load).contains("m.party1.safetensors: damaged"));
    fs::copy(party(0), party(1)).unwrap();
    assert!(refuses(dir, load).contains("its holder is party 0, this run needs party 1"));
    fs::write(party(1), &whole).unwrap();
    trains(dir, load);

    assert!(
        refuses(dir, &["--steps", "2", "--load-model", "m", "--fraction-bits", "15"]).contains("fraction_bits is 16")
    );
    assert!(refuses(dir, &["--steps", "2", "--save-model", "none/m"]).contains("no folder none"));
    let lockstep = program().args(["--load-model", "m"]).output().unwrap();
    assert_eq!(lockstep.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lockstep.stderr).contains("they need --mode free"));
}
