//! An engine of one's own, judged from its trace in a `#[test]`: `cargo test -p difftest --example judge_a_trace`.
//!
//! The engine here is one dense layer with softmax in integers, 16 fraction bits, nearest rounding. Replace
//! `MyEngine` by calls of yours; the rest is what a
//! test needs. `cargo run -p difftest --example judge_a_trace` prints the report.

use difftest::foreign::{self, text};
use difftest::trace::{Header, Tensor, TraceFile, Values};

const F: u32 = 16;
const ROWS: usize = 4;
const INPUTS: usize = 3;
const CLASSES: usize = 2;

/// What is to be tested.
struct MyEngine {
    /// Forgets the half of nearest rounding.
    faulty: bool,
}

impl MyEngine {
    /// X W + b, one truncation a dot product. Row-major units.
    fn forward(&self, x: &[i64], w: &[i64], b: &[i64]) -> Vec<i64> {
        let half = if self.faulty { 0 } else { 1 << (F - 1) };
        let dot = |i: usize, j: usize| (0..INPUTS).map(|k| x[i * INPUTS + k] * w[k * CLASSES + j]).sum::<i64>();
        (0..ROWS * CLASSES).map(|n| (dot(n / CLASSES, n % CLASSES) + (b[n % CLASSES] << F) + half) >> F).collect()
    }
}

/// A trace of what the engine does with some inputs.
fn trace(engine: &MyEngine) -> TraceFile {
    let header = r#"{"format": "difftest-trace", "version": 1, "engine": "mine", "numbers": "fixed",
        "fraction_bits": 16, "rounding": "nearest", "widths": [3, 2], "batch": 4}"#;
    let mut trace = TraceFile::new(Header::parse(header).expect("the header is right"));
    let some = |n: usize, by: i64| (0..n as i64).map(|i| i * by % 200_003 - 90_000).collect::<Vec<_>>();
    let (x, w, b) = (some(ROWS * INPUTS, 37_813), some(INPUTS * CLASSES, 71_993), some(CLASSES, 12_347));
    let logits = engine.forward(&x, &w, &b);
    for (name, shape, units) in [
        ("input", vec![ROWS, INPUTS], x),
        ("start/layer1/weights", vec![INPUTS, CLASSES], w),
        ("start/layer1/bias", vec![CLASSES], b),
        ("logits", vec![ROWS, CLASSES], logits),
    ] {
        let tensor = Tensor::new(shape, Values::Units(units)).expect("as many elements as the shape says");
        trace.tensors.insert(format!("step/0/{name}"), tensor);
    }
    trace
}

fn main() {
    for faulty in [false, true] {
        let report = foreign::judge(&trace(&MyEngine { faulty })).expect("a trace");
        println!("{}", text::text(&report));
    }
}

#[test]
fn my_engine_rounds_to_nearest() {
    let report = foreign::judge(&trace(&MyEngine { faulty: false })).unwrap();
    // Only the forward product is recorded, so the rest is open.
    assert!(report.holds(true), "{}", text::text(&report));
}

#[test]
fn a_forgotten_half_is_found() {
    let report = foreign::judge(&trace(&MyEngine { faulty: true })).unwrap();
    assert_eq!(report.first_fault().map(|row| row.tensor.as_str()), Some("logits"), "{}", text::text(&report));
}
