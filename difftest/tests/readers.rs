//! Every file and every stream that the program reads, as a function of its bytes, on awkward inputs: those of
//! `fixtures/corpus`, one folder a reader, and damaged copies of them and of good ones. A reader answers or refuses in
//! words; it never panics, never takes memory because a header asks for it, and always ends.
//!
//! `cargo test -p difftest --test readers` runs 20,000 damaged inputs in all, the same every time. `READERS_INPUTS=N`
//! runs N a reader, `READERS_SEED=S` others, `READERS=NAME,NAME` some readers only. What only the program reads, logits
//! and the configuration of parties, is tested there by the same means (`difftest/program/src/readers.rs`).

use peak_alloc::PeakAlloc;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

#[path = "readers/client.rs"]
#[allow(dead_code)] // `disclosures` uses the rest.
mod client;
#[path = "readers/list.rs"]
mod list;
#[path = "readers/mutate.rs"]
mod mutate;

use list::Reader;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Damaged inputs of all readers together, unless more are asked for.
const INPUTS: usize = 20_000;

/// Bytes that a reader may take beside what its input needs.
const ALLOWANCE: usize = 8 << 20;

/// Bytes that a reader may take for one byte of input.
const PER_BYTE: usize = 256;

/// How long one input may take at most: only what never ends takes so long.
const DEADLINE: Duration = Duration::from_secs(60);

fn asked(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}, no number")))
}

/// The committed inputs of a reader, and good ones.
fn corpus(reader: &Reader) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corpus").join(reader.name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: a reader has awkward inputs", folder.display());
    let awkward = paths.iter().map(|path| std::fs::read(path).unwrap());
    awkward.chain(reader.good.clone()).collect()
}

/// Reads one input; what is wrong with the reader, if anything is.
fn judged(reader: &Reader, input: &[u8]) -> Option<String> {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let read = catch_unwind(AssertUnwindSafe(|| (reader.read)(input)));
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    match read {
        Err(_) => Some("panics; its message is above".into()),
        Ok(_) if taken > ALLOWANCE + PER_BYTE * input.len() => Some(format!("takes {taken} bytes of memory")),
        Ok(Err(refusal)) if refusal.trim().is_empty() => Some("refuses without a word".into()),
        Ok(_) => None,
    }
}

/// Runs the corpus and `inputs` damaged inputs through a reader.
fn run(reader: &Reader, inputs: usize, seed: u64) {
    let corpus = corpus(reader);
    for good in &reader.good {
        assert_eq!((reader.read)(good), Ok(()), "{}: a good input is refused", reader.name);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for k in 0..corpus.len() + inputs {
        let input = corpus.get(k).cloned().unwrap_or_else(|| mutate::mutated(&mut rng, &corpus));
        if let Some(what) = judged(reader, &input) {
            let file = std::env::temp_dir().join(format!("difftest-{}-{seed}-{k}", reader.name));
            std::fs::write(&file, &input).unwrap();
            panic!(
                "the reader of {} {what}: {} bytes, seed {seed}, input {k}, written to {}",
                reader.name,
                input.len(),
                file.display()
            );
        }
    }
}

/// One test for all, because memory is counted for the whole process.
#[test]
fn no_input_makes_a_reader_panic_take_memory_for_a_header_or_run_for_ever() {
    let seed = asked("READERS_SEED").map_or(1, |seed| seed as u64);
    let chosen = std::env::var("READERS").ok();
    let readers = list::all();
    every_folder_of_the_corpus_is_read(&readers);
    let readers: Vec<_> = readers
        .into_iter()
        .filter(|r| chosen.as_ref().is_none_or(|names| names.split(',').any(|name| name == r.name)))
        .collect();
    assert!(!readers.is_empty(), "READERS names no reader");
    let each = asked("READERS_INPUTS").unwrap_or(INPUTS / readers.len());
    for reader in readers {
        let (tell, told) = channel();
        let name = reader.name;
        let worker = std::thread::spawn(move || {
            for part in 0..each.div_ceil(1000).max(1) {
                run(&reader, 1000.min(each - 1000 * part), seed.wrapping_mul(0x1_0000_0000) + part as u64);
                let _ = tell.send(());
            }
        });
        loop {
            match told.recv_timeout(DEADLINE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the reader of {name} does not end, seed {seed}; run it alone: READERS={name}")
                }
            }
        }
        assert!(worker.join().is_ok(), "{name}: its message is above");
        println!("{name}: {each} damaged inputs, seed {seed}");
    }
}

/// Every folder of the corpus belongs to a reader of this test or of the program.
fn every_folder_of_the_corpus_is_read(readers: &[Reader]) {
    let names: Vec<_> = readers.iter().map(|r| r.name).chain(["party-file", "hosts-file", "logits"]).collect();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corpus");
    let mut folders: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    names.sort();
    assert_eq!(folders, names);
}
