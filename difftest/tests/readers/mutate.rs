//! Damaged copies of good inputs: flipped bits, cuts, splices of two inputs, numbers and lengths at their extremes.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Bytes of the longest damaged input.
const LONGEST: usize = 1 << 16;

/// Numbers as texts that readers may stumble over.
const NUMBERS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "2",
    "63",
    "64",
    "65",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0.5",
    "-0.0",
    "5e-324",
    "1e308",
    "1e999",
    "null",
    "[]",
    "\"\"",
];

/// Words that a header may hold as a length or as a count.
const LENGTHS: [u64; 14] = [
    0,
    1,
    2,
    7,
    8,
    255,
    256,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// One to four changes of one input of the corpus, which is not empty.
pub fn mutated(rng: &mut ChaCha8Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = one(rng, corpus).clone();
    for _ in 0..rng.random_range(1..=4) {
        change(rng, &mut bytes, corpus);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn one<'c, T>(rng: &mut ChaCha8Rng, list: &'c [T]) -> &'c T {
    &list[rng.random_range(0..list.len())]
}

/// A place in `bytes`, which is not empty: every other time in the first 64 bytes, where headers are.
fn place(rng: &mut ChaCha8Rng, bytes: &[u8]) -> usize {
    let end = if rng.random() { bytes.len().min(64) } else { bytes.len() };
    rng.random_range(0..end)
}

/// A part of `bytes`, which is not empty, of at most 64 bytes.
fn part(rng: &mut ChaCha8Rng, bytes: &[u8]) -> std::ops::Range<usize> {
    let start = place(rng, bytes);
    start..(start + rng.random_range(1..=64)).min(bytes.len())
}

fn change(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if bytes.is_empty() {
        bytes.extend((0..rng.random_range(1..32)).map(|_| rng.random::<u8>()));
        return;
    }
    match rng.random_range(0..12) {
        0 | 1 => {
            let at = place(rng, bytes);
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        2 => {
            let at = place(rng, bytes);
            bytes[at] = *one(rng, b"\0\x01\x7f\x80\xff\"{}[],:-'\\(\n ");
        }
        3 => {
            let at = place(rng, bytes);
            bytes.truncate(at);
        }
        4 => drop(bytes.drain(part(rng, bytes))),
        5 => {
            let copy = bytes[part(rng, bytes)].to_vec();
            let at = place(rng, bytes);
            bytes.splice(at..at, copy);
        }
        6 => {
            let other = one(rng, corpus);
            bytes.truncate(place(rng, bytes));
            if !other.is_empty() {
                bytes.extend_from_slice(&other[place(rng, other)..]);
            }
        }
        7 => length(rng, bytes),
        8 | 9 => number(rng, bytes),
        10 => digits(rng, bytes),
        _ => word(rng, bytes),
    }
}

/// Writes an extreme length of two, four or eight bytes, lowest or highest byte first.
fn length(rng: &mut ChaCha8Rng, bytes: &mut [u8]) {
    let (value, width, at) = (*one(rng, &LENGTHS), *one(rng, &[2, 4, 8]), place(rng, bytes));
    let words = if rng.random() { value.to_le_bytes() } else { (value << (64 - 8 * width)).to_be_bytes() };
    bytes[at..].iter_mut().zip(&words[..width]).for_each(|(b, w)| *b = *w);
}

/// The next run of bytes of which `holds` holds, from a random place on.
fn run_of(rng: &mut ChaCha8Rng, bytes: &[u8], holds: impl Fn(u8) -> bool) -> Option<std::ops::Range<usize>> {
    let from = place(rng, bytes);
    let start = from + bytes[from..].iter().position(|b| holds(*b))?;
    let length = bytes[start..].iter().take_while(|b| holds(**b)).count();
    Some(start..start + length)
}

/// Puts an extreme number in the place of one that is written in digits.
fn number(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    if let Some(run) = run_of(rng, bytes, |b| b.is_ascii_digit() || b".-+".contains(&b)) {
        bytes.splice(run, one(rng, &NUMBERS).bytes());
    }
}

/// Changes digits and keeps their number, so that lengths before them stay right.
fn digits(rng: &mut ChaCha8Rng, bytes: &mut [u8]) {
    if let Some(run) = run_of(rng, bytes, |b| b.is_ascii_digit()) {
        let same = rng.random::<bool>().then(|| *one(rng, b"09"));
        bytes[run].iter_mut().for_each(|b| *b = same.unwrap_or(b'0' + rng.random_range(0..10)));
    }
}

/// Puts one word of the input in the place of another.
fn word(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"_-/".contains(&b);
    if let (Some(run), Some(other)) = (run_of(rng, bytes, letter), run_of(rng, bytes, letter)) {
        let other = bytes[other].to_vec();
        bytes.splice(run, other);
    }
}
