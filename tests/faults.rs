//! Planted faults: an ordinary build cannot plant any; a build with the feature `faults` finds them and raises no
//! false alarm.

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
        let clean = difftest::faults::clean(seed).unwrap();
        assert!(clean.wrong.is_none() && clean.range.is_none(), "seed {seed}: {clean:?}");
    }
    let some = [
        Fault::StreamReused,
        Fault::InputUnmasked,
        Fault::ReshareUnmasked,
        Fault::AnswerMask,
        Fault::Replicas,
        Fault::SignOffByOne,
        Fault::MessageShort,
        Fault::LocalTruncation,
        Fault::TiesDown,
        Fault::ResultUnmasked,
        Fault::PieceOffset,
        Fault::ExpCoefficient,
        Fault::Unit,
        Fault::EpsilonDown,
        Fault::BatchSize,
        Fault::StaleBatch,
        Fault::MaximumOfBatch,
        Fault::NoMaximum,
        Fault::LabelScale,
        Fault::Regulariser,
        Fault::SumCut,
    ];
    for fault in some {
        let row = difftest::faults::judge(fault, 1, 1).unwrap();
        assert!(row.place_right && row.cause_right, "{fault}: {:?}", row.finding);
    }
    assert!(difftest::faults::clean(20).unwrap().wrong.is_none(), "nothing stays planted");
    a_failing_step_shrinks_to_what_the_fault_needs();
}

/// A maximum over the batch goes unnoticed in one row, and a row needs two classes.
#[cfg(feature = "faults")]
fn a_failing_step_shrinks_to_what_the_fault_needs() {
    use difftest::replay::{fresh, shrink::shrink};
    use difftest::side::secure::Secure;
    use difftest::trace::step_file::StepFile;
    use reference::spec::TrainSpec;
    use secure::fault::{Fault, plant};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("step.npz");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_difftest"))
        .args(["--batch", "12", "--steps", "1", "--save-step", "0"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let file = StepFile::read(&path, None).unwrap();
    let mut start = |spec: &TrainSpec| Secure::start(spec.clone(), None, true);

    plant(Some(Fault::MaximumOfBatch));
    let failed = fresh(&file, &mut start).unwrap().0;
    let small = shrink(&file, &failed, &mut start);
    plant(None);
    let small = small.unwrap();
    assert_eq!((file.rows(), file.classes()), (12, 10));
    assert_eq!((small.rows(), small.classes()), (2, 2));
    assert!(small.failures[0].contains("bit-exact"), "{:?}", small.failures);
    small.write(&path).unwrap();
    let (healthy, _) = fresh(&StepFile::read(&path, None).unwrap(), &mut start).unwrap();
    assert!(healthy.iter().all(|c| c.passed), "{healthy:?}");
}

/// In a process of its own, because a planted fault is planted for every thread.
#[cfg(feature = "faults")]
#[test]
fn faults_are_found_from_trace_files_alone_as_the_page_says() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_difftest"))
        .args(["export-trace", "--matrix"])
        .output()
        .expect("the program starts");
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "a fault that a trace could show is not found\n{table}");
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check-faults.md");
    let page = std::fs::read_to_string(page).unwrap();
    // Coins decide in which trace a fault shows first; whether it shows at all they do not.
    let found = |text: &str| -> Vec<(String, bool)> {
        let rows = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| fault") && !l.starts_with("| ---"));
        let name = |l: &str| l.split('|').nth(1).unwrap_or_default().trim().to_owned();
        rows.map(|l| (name(l), l.contains("not in a trace") || l.contains("do not finish"))).collect()
    };
    assert_eq!(
        found(&page),
        found(&table),
        "docs/check-faults.md is out of step; write what the command prints into it"
    );
}
