//! The readers that only the program has, on the awkward inputs of `fixtures/corpus` and on damaged ones, as
//! `difftest/tests/readers.rs` does for all others.

use crate::cli::head;
use crate::error::Error;
use crate::parties::files::{HostsFile, PartyFile};
use difftest::input;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::Path;

#[path = "../../tests/readers/mutate.rs"]
mod mutate;

type Parse = fn(&Path, &str) -> Result<(), Error>;

const READERS: [(&str, Parse); 3] = [
    ("party-file", |path, text| PartyFile::parse(path, text).map(drop)),
    ("hosts-file", |path, text| {
        let file = HostsFile::parse(path, text)?;
        file.addresses.check(path)?;
        file.named(path).map(drop)
    }),
    ("logits", |path, text| head::parse(path, text).map(drop)),
];

/// The largest text that is read here, in bytes.
const MOST: u64 = 1 << 20;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Any text is read or refused in words. `READERS_INPUTS` and `READERS_SEED` as for the other readers.
#[test]
fn no_text_makes_a_reader_panic() {
    let asked = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect("a number"));
    let (inputs, seed) = (asked("READERS_INPUTS").unwrap_or(2000), asked("READERS_SEED").unwrap_or(1));
    let path = Path::new("f");
    for (name, parse) in READERS {
        let corpus = corpus(name);
        let good = corpus.iter().filter_map(|b| std::str::from_utf8(b).ok()).filter(|t| parse(path, t).is_ok());
        assert!(good.count() > 0, "{name}: a good one is in the corpus");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for k in 0..corpus.len() + inputs as usize {
            let input = corpus.get(k).cloned().unwrap_or_else(|| mutate::mutated(&mut rng, &corpus));
            let Ok(text) = input::text(&input[..], path, MOST) else { continue };
            if let Err(error) = parse(path, &text) {
                assert!(error.to_string().starts_with("f: "), "{name}, seed {seed}, input {k}: {error}");
            }
        }
    }
}

#[test]
fn times_that_no_clock_can_add_up_are_refused_with_their_limit() {
    let good = corpus("party-file").into_iter().find(|b| b.starts_with(b"party = 0")).unwrap();
    let good = String::from_utf8(good).unwrap();
    for (line, says) in [
        ("patience_seconds = 0\n", "patience_seconds is 0; it must be 1 to 86400"),
        ("patience_seconds = 9223372036854775807\n", "it must be 1 to 86400"),
        ("idle_seconds = 0\n", "idle_seconds is 0; it must be 1 to 31622400"),
        ("idle_seconds = 9223372036854775807\n", "idle_seconds is 9223372036854775807; it must be 1 to 31622400"),
    ] {
        let base: String = good.lines().filter(|l| !l.contains("_seconds")).map(|l| format!("{l}\n")).collect();
        let Err(error) = PartyFile::parse(Path::new("f"), &format!("{line}{base}")) else { panic!("{line} is read") };
        let error = error.to_string();
        assert!(error.contains(says), "{error}");
    }
}
