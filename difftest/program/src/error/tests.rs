use super::*;
use difftest::chance::Chance;
use difftest::error::{CellError, CheckpointCause, ConfigError, FileKind, KeepingError, Malformed, OutputError};
use fixtures::DataError;
use secure::id::PartyId;
use std::collections::BTreeSet;
use std::io;

/// One error of the library for every variant, with the exit code that the help promises.
fn of_the_library() -> Vec<(RunError, u8)> {
    let gone = || secure::Error::PeerGone { party: PartyId::P1, step: "input".into(), what: "party 0 left".into() };
    let json = || serde_json::from_str::<u8>("x").unwrap_err();
    let shape = || ndarray::Array2::<u8>::from_shape_vec((2, 2), vec![0]).unwrap_err();
    let data = DataError {
        file: "a".into(),
        offset: None,
        expected: "rows".into(),
        found: "none".into(),
        remedy: "name another folder",
    };
    let spec = reference::spec::FixedSpec { fraction_bits: 99, value_bits: 32 }.validate().unwrap_err();
    let real = reference::f64::Error::LabelCount { rows: 1, labels: 2 };
    let model = reference::fixed::ModelError::MissingCoins { name: "layer1/forward".into() };
    vec![
        (ConfigError::Layers(0).into(), 2),
        (OutputError::Dash.into(), 2),
        (Malformed::new(FileKind::Golden, Path::new("softmax.json"), "schema 7").into(), 2),
        (CheckpointCause::Steps("x".into()).of("m.safetensors").into(), 2),
        (CellError::Panicked.into(), 2),
        (data.into(), 2),
        (spec.into(), 2),
        (secure::kernel::SelectError::Unknown("x".into()).into(), 2),
        (real.into(), 2),
        (model.into(), 2),
        (secure::Error::misuse("a batch of 1 rows").into(), 2),
        (gone().into(), 1),
        (RunError::opened("probe logits", shape()), 2),
        (RunError::PartiesChosen, 2),
        (RunError::EmptyTestSet, 2),
        (RunError::AtChance { steps: 3, accuracy: 0.1, chance: Chance::balanced(10, 100) }, 2),
        (RunError::UnknownFault { name: "x".into(), known: vec!["seed-fixed"] }, 2),
        (RunError::json("the report")(json()), 2),
        (RunError::TooLarge { path: "a".into(), most: 3 }, 2),
        (RunError::file(Path::new("a"))(io::ErrorKind::NotFound.into()), 2),
        (KeepingError::Over(3).into(), 2),
    ]
}

/// The place of a variant among [`of_the_library`]: a new variant does not compile here before it has an example.
fn place(e: &RunError) -> usize {
    match e {
        RunError::Config(_) => 0,
        RunError::Output(_) => 1,
        RunError::Malformed(_) => 2,
        RunError::Checkpoint(_) => 3,
        RunError::Cells(_) => 4,
        RunError::Data(_) => 5,
        RunError::Spec(_) => 6,
        RunError::Kernel(_) => 7,
        RunError::Real(_) => 8,
        RunError::Integer(_) => 9,
        RunError::Secure(_) => 10,
        RunError::Protocol(_) => 11,
        RunError::Opened { .. } => 12,
        RunError::PartiesChosen => 13,
        RunError::EmptyTestSet => 14,
        RunError::AtChance { .. } => 15,
        RunError::UnknownFault { .. } => 16,
        RunError::Json { .. } => 17,
        RunError::TooLarge { .. } => 18,
        RunError::File { .. } => 19,
        RunError::Keeping(_) => 20,
    }
}

/// One error of the program for every variant but [`Error::Run`].
fn of_the_program() -> Vec<Error> {
    let cause = Box::new(CellError::NoMarkers { begin: "<!-- a -->", end: "<!-- b -->" }.into());
    vec![
        FlagError::Depth { depth: 0, most: 3 }.into(),
        LogitsError { path: "a".into(), cause: LogitsCause::Classes(1) }.into(),
        SettingsCause::Party(3).of("party3.toml").into(),
        PartiesError::Deaf(PartyId::P0).into(),
        Error::Document { path: "paper.md".into(), cause },
    ]
}

#[test]
fn every_error_of_the_library_has_its_exit_code() {
    let all = of_the_library();
    let places: Vec<usize> = all.iter().map(|(e, _)| place(e)).collect();
    assert_eq!(places, (0..all.len()).collect::<Vec<_>>(), "one example of each variant, in order");
    for (e, code) in all {
        let text = e.to_string();
        assert_eq!(Error::from(e).code(), code, "{text}");
    }
}

#[test]
fn only_parties_that_do_not_finish_fail_as_a_check_does() {
    let ones: Vec<String> =
        of_the_library().into_iter().filter(|(_, code)| *code == FAILED_CHECK).map(|(e, _)| e.to_string()).collect();
    assert_eq!(ones.len(), 1);
    assert!(ones[0].starts_with("FAIL protocol   party 1 at input"), "{ones:?}");
    for e in of_the_program() {
        assert_eq!(e.code(), BAD_INPUT, "{e}");
    }
    let gone = of_the_library().into_iter().find(|(_, code)| *code == FAILED_CHECK).map(|(e, _)| e);
    let resumable = Error::Resumable(gone.expect("one of them"));
    assert_eq!(resumable.code(), FAILED_CHECK);
    assert!(resumable.to_string().starts_with("FAIL protocol   party 1 at input"), "{resumable}");
}

#[test]
fn every_error_is_one_line_of_its_own() {
    let library = of_the_library().into_iter().map(|(e, _)| e.to_string());
    let lines: Vec<String> = library.chain(of_the_program().iter().map(ToString::to_string)).collect();
    assert!(lines.iter().all(|line| !line.is_empty() && !line.contains('\n')), "{lines:#?}");
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len());
}
