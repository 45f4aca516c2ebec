//! Planted faults: an ordinary build cannot plant any; a build with the feature `faults` finds them and raises no false alarm.

#[cfg(not(feature = "faults"))]
#[test]
fn an_ordinary_build_cannot_plant_a_fault_and_says_how() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_difftest")).arg("faults").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--features faults"));
}

/// One process, one fault at a time: a planted fault is planted for every thread.
#[cfg(feature = "faults")]
#[test]
fn faults_are_found_where_they_are_and_clean_runs_are_clean() {
    use secure::fault::Fault;
    for seed in 0..20 {
        let alarm = difftest::faults::clean(seed).unwrap();
        assert!(alarm.is_none(), "seed {seed}: {alarm:?}");
    }
    let some = [
        Fault::StreamReused,
        Fault::InputUnmasked,
        Fault::ReshareUnmasked,
        Fault::Replicas,
        Fault::SignOffByOne,
        Fault::MessageShort,
        Fault::LocalTruncation,
        Fault::TiesDown,
        Fault::ResultUnmasked,
        Fault::ExpCoefficient,
        Fault::Unit,
        Fault::EpsilonDown,
        Fault::BatchSize,
        Fault::StaleBatch,
    ];
    for fault in some {
        let row = difftest::faults::judge(fault, 1, 1).unwrap();
        assert!(row.place_right && row.cause_right, "{fault}: {:?}", row.finding);
    }
    assert!(difftest::faults::clean(20).unwrap().is_none(), "nothing stays planted");
}
