use super::*;
use crate::foreign::testing;
use proptest::prelude::*;

#[test]
fn both_containers_give_back_what_was_written() {
    let trace = testing::trace(reference::spec::Head::Softmax, reference::spec::Rounding::Nearest, 2, 2);
    for as_safetensors in [false, true] {
        let bytes = trace.bytes(as_safetensors).unwrap();
        assert_eq!(TraceFile::parse(&bytes).unwrap(), trace);
    }
    assert_eq!(trace.steps(), [0, 1]);
}

#[test]
fn a_name_that_means_nothing_is_refused() {
    let mut trace = testing::trace(reference::spec::Head::Softmax, reference::spec::Rounding::Nearest, 1, 1);
    let logits = trace.tensors["step/0/logits"].clone();
    let refused = |trace: &TraceFile| TraceFile::parse(&trace.bytes(true).unwrap()).err();
    for name in ["step/0/extra/anything", "step/0/coins/layer1/forward", "block/exp/mine/x"] {
        trace.tensors.insert(name.into(), logits.clone());
        assert_eq!(refused(&trace), None, "{name}");
    }
    for name in
        ["step/0/logit", "logits", "step/0/layer2/dW", "step/x/logits", "block/exp/mine/y", "step/0/start/layer1/dW"]
    {
        let mut wrong = trace.clone();
        wrong.tensors.insert(name.into(), logits.clone());
        assert!(refused(&wrong).unwrap().contains(name), "{name}");
    }
}

#[test]
fn a_header_is_refused_with_field_value_and_limit() {
    let trace = testing::trace(reference::spec::Head::ReluGrad, reference::spec::Rounding::Nearest, 1, 1);
    let good = serde_json::to_value(&trace.header).unwrap();
    let cases = [
        ("fraction_bits", serde_json::json!(99), "1 to 40"),
        ("version", serde_json::json!(7), "reads up to 1"),
        ("format", serde_json::json!("x"), "difftest-trace"),
        ("batch", serde_json::json!(0), "1 to"),
        ("momentum", serde_json::json!(1.5), "[0, 1)"),
        ("learning_rate", serde_json::json!(-1.0), "positive"),
        ("epsilon", serde_json::json!(1.0), "inside (0, 1)"),
        ("widths", serde_json::json!([5]), "at least 1"),
        ("rounding", serde_json::json!("up"), "unknown variant"),
        ("truncation_error", serde_json::json!([1.0, 2.0]), "hold 0"),
        ("fractions", serde_json::json!(1), "unknown field"),
    ];
    for (field, value, says) in cases {
        let mut bad = good.clone();
        bad[field] = value;
        let error = Header::parse(&bad.to_string()).unwrap_err();
        assert!(error.starts_with("header: ") && error.contains(says), "{field}: {error}");
    }
}

#[test]
fn every_limit_of_a_header_belongs_to_what_is_allowed_and_the_next_value_does_not() {
    use serde_json::{Value, json};
    let trace = testing::trace(reference::spec::Head::ReluGrad, reference::spec::Rounding::Nearest, 1, 1);
    let good = serde_json::to_value(&trace.header).unwrap();
    let reads = |fields: &[(&str, &Value)]| {
        let mut header = good.clone();
        fields.iter().for_each(|(field, value)| header[*field] = (*value).clone());
        Header::parse(&header.to_string()).is_ok()
    };
    let claim = |field: &str, v: f64| json!({"exp": {field: v}});
    let limits = [
        ("version", json!(1), json!(0)),
        ("fraction_bits", json!(1), json!(0)),
        ("fraction_bits", json!(40), json!(41)),
        ("value_bits", json!(2), json!(1)),
        ("value_bits", json!(64), json!(65)),
        ("ring_bits", json!(8), json!(7)),
        ("ring_bits", json!(128), json!(129)),
        ("scales", json!({"input": 80}), json!({"input": 81})),
        ("truncation_error", json!([0.0, 0.0]), json!([0.5, 1.0])),
        ("truncation_error", json!([-1.0, 0.0]), json!([-1.0, -0.5])),
        ("claims", claim("absolute_units", 0.0), claim("absolute_units", -0.5)),
        ("claims", claim("relative", 0.0), claim("relative", -0.5)),
        ("claims", claim("relative_per_argument", 0.0), claim("relative_per_argument", -0.5)),
        ("batch", json!(1), json!(0)),
        ("batch", json!(1 << 20), json!((1 << 20) + 1)),
        ("learning_rate", json!(1e-300), json!(0.0)),
        ("momentum", json!(0.0), json!(-0.1)),
        ("momentum", json!(0.999), json!(1.0)),
        ("epsilon", json!(0.001), json!(0.0)),
        ("epsilon", json!(0.999), json!(1.0)),
        ("coded_rate", json!(0.0), json!(-0.1)),
        ("coded_momentum", json!(0.0), json!(-0.1)),
        ("pixel_scale", json!(0.5), json!(0.0)),
    ];
    for (field, allowed, refused) in &limits {
        assert!(reads(&[(field, allowed)]), "{field} {allowed}");
        assert!(!reads(&[(field, refused)]), "{field} {refused}");
    }
    for floating in [json!("float32"), json!("float64")] {
        assert!(!reads(&[("numbers", &floating)]), "floating point with fraction bits");
        assert!(reads(&[("numbers", &floating), ("fraction_bits", &Value::Null)]));
    }
    assert!(!reads(&[("fraction_bits", &Value::Null)]), "fixed point without");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Any change and any cut of a file is read or refused, never a panic; what is read is judged or refused.
    #[test]
    fn a_damaged_file_is_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        as_safetensors: bool,
    ) {
        let trace = testing::trace(reference::spec::Head::Softmax, reference::spec::Rounding::Nearest, 1, 1);
        let mut bytes = trace.bytes(as_safetensors).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = TraceFile::parse(&bytes) {
            let _ = crate::foreign::judge(&read);
        }
    }

    /// Numbers inside the tensors may be anything at all.
    #[test]
    fn any_numbers_are_judged(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<i64>()),
            1..30,
        ),
        head in prop::sample::select(reference::spec::Head::ALL.to_vec()),
    ) {
        let mut trace = testing::trace(head, reference::spec::Rounding::Probabilistic, 2, 1);
        let names: Vec<_> = trace.tensors.keys().cloned().collect();
        for (name, at, value) in changes {
            let tensor = trace.tensors.get_mut(&names[name.index(names.len())]).unwrap();
            if let super::super::Values::Units(v) = &mut tensor.values {
                let at = at.index(v.len());
                v[at] = value;
            }
        }
        if let Ok(report) = crate::foreign::judge(&trace) {
            prop_assert!(!report.rows.is_empty());
        }
    }
}

#[test]
fn json_is_told_by_how_it_begins() {
    assert!(is_json(b" {\"a\": 1}\n") && is_json(b"\xef\xbb\xbf{\"a\": 1, ..") && !is_json(b"[\"aaaaaaaa\"}"));
    assert!(!is_json(b"{\0\0\0\0\0\0\0{}"), "the length of a .safetensors file");
}

#[test]
fn the_container_is_the_one_that_is_asked_for() {
    let trace = testing::trace(reference::spec::Head::Softmax, reference::spec::Rounding::Nearest, 1, 1);
    assert!(trace.bytes(false).unwrap().starts_with(b"PK"));
    assert!(trace.bytes(true).unwrap()[8..].starts_with(b"{"));
}
