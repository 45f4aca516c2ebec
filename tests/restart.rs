//! `--restart-on-divergence` from outside: runs that really restart, and one for which no learning rate is small
//! enough.

use crate::common::{one_bright_pixel, program, write};
use std::path::Path;
use std::process::Output;

/// A data set of 4 x 4 pixels in which one bright pixel tells the class; `labels` turns a class into the labels of
/// training and test rows.
fn data(dir: &Path, labels: impl Fn(u8) -> (u8, u8)) {
    let class = |row: usize| row % 10;
    let split = |rows, label: &dyn Fn(u8) -> u8| one_bright_pixel(rows, class, |row| label(class(row) as u8));
    write(dir, "train", &split(160, &|c| labels(c).0), 160);
    write(dir, "t10k", &split(100, &|c| labels(c).1), 100);
}

fn run(dir: &Path, more: &[&str]) -> (Output, String) {
    let base =
        ["--mode", "free", "--layers", "2", "--hidden", "12", "--batch", "16", "--restart-on-divergence", "--data"];
    let output = program().args(base).arg(dir).args(more).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

#[test]
fn a_rate_that_is_too_high_is_halved_until_training_works() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), |c| (c, c));
    let (output, text) = run(dir.path(), &["--lr", "32", "--steps", "80"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let ended: Vec<_> = text.lines().filter(|l| l.starts_with("diverges: ")).collect();
    assert!(ended.first().is_some_and(|l| l.contains("learning rate 32, seed 1: step ")), "{text}");
    // An attempt is over where it breaks the rule, not at its end.
    assert!(ended.iter().all(|l| l.contains("step 12:") || l.contains("step 16:")), "{text}");
    assert!(text.contains(&format!("PASS  restart         {} restarts, then no divergence", ended.len())), "{text}");
}

#[test]
fn a_training_that_no_rate_saves_fails_after_the_smallest() {
    let dir = tempfile::tempdir().unwrap();
    // The test rows have other labels than the training rows, which none of the initial weights gets right, and rates
    // this small change nothing.
    data(dir.path(), |c| (c, (c + 2) % 10));
    // Over the batch of 16: 2^-29, 2^-30, 2^-31, and fixed point has nothing below.
    let rate = (2f64.powi(-25)).to_string();
    let (output, text) = run(dir.path(), &["--lr", &rate, "--steps", "40", "--head", "relu-prob"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().filter(|l| l.starts_with("diverges: ")).count(), 3, "{text}");
    assert!(text.contains("FAIL  restart         diverges at all of 3 learning rates"), "{text}");
    assert!(text.contains("fixed point represents no smaller learning rate"), "{text}");
}
