//! The provenance of a report: program and commit, date, processor, kernel, and the data.

use crate::count::counted;
use fixtures::Dataset;
use secure::kernel::Kernel;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::time::SystemTime;

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that the program was built from, or that its changed sources come from; `None` if it was not built in its
/// repository.
pub const COMMIT: Option<&str> = option_env!("DIFFTEST_COMMIT");

/// Who made a report, when and where.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: &'static str,
    /// Its commit, if it is known.
    pub commit: Option<&'static str>,
    /// When, UTC, as RFC 3339 writes it.
    pub date: String,
    /// Name of the processor, where the system tells it.
    pub processor: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Kernel that the parties compute with.
    pub kernel: &'static str,
}

impl Provenance {
    /// Of this process, now.
    pub fn now() -> Self {
        Provenance {
            version: VERSION,
            commit: COMMIT,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            processor: processor(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: Kernel::selected().name(),
        }
    }
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Provenance { date, cores, kernel, .. } = self;
        let processor = self.processor.as_deref().unwrap_or("processor not known");
        write!(f, "difftest {}, {date}, {processor}, {}, kernel {kernel}", version(), counted(*cores, "core"))
    }
}

/// Version and commit: "0.1.0 (1234567890ab)".
pub fn version() -> String {
    COMMIT.map_or(VERSION.into(), |commit| format!("{VERSION} ({commit})"))
}

/// The processor's name, where Linux tells it, with its family and model: virtual machines call very different
/// processors by one name.
pub fn processor() -> Option<String> {
    described(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The first processor of a `/proc/cpuinfo`.
fn described(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let name = field("model name")?;
    Some(match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name}, family {family} model {model}"),
        _ => name,
    })
}

/// The data that a run was given to learn from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataReport {
    /// Rows of the training set.
    pub train_rows: usize,
    /// Rows of the test set.
    pub test_rows: usize,
    /// Rows of an image, in pixels.
    pub height: usize,
    /// Columns of an image, in pixels.
    pub width: usize,
    /// Classes, by the labels of both.
    pub classes: usize,
    /// SHA-256 of the pixels and the labels of the training set, then of those of the test set.
    pub sha256: String,
}

impl DataReport {
    /// Of a data set.
    pub fn of(data: &Dataset) -> Self {
        let mut digest = Sha256::new();
        for split in [&data.train, &data.test] {
            digest.update(&split.images);
            digest.update(&split.labels);
        }
        DataReport {
            train_rows: data.train.len(),
            test_rows: data.test.len(),
            height: data.train.height,
            width: data.train.width,
            classes: data.classes(),
            sha256: digest.finalize().iter().map(|b| format!("{b:02x}")).collect(),
        }
    }
}

impl std::fmt::Display for DataReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DataReport { train_rows, test_rows, height, width, classes, sha256 } = self;
        write!(
            f,
            "{train_rows} training and {test_rows} test rows of {height} x {width} pixels, {classes} classes, SHA-256 \
             {sha256}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::Split;

    #[test]
    fn a_processor_is_told_by_name_family_and_model() {
        let x86 =
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD  EPYC\n";
        assert_eq!(described(x86).as_deref(), Some("AMD EPYC, family 25 model 1"));
        assert_eq!(described("processor\t: 0\nmodel name\t: ARMv8\n").as_deref(), Some("ARMv8"));
        assert_eq!(described("processor\t: 0\nCPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn a_report_names_version_date_and_data() {
        let made = Provenance::now();
        assert_eq!((made.date.len(), &made.date[10..11], &made.date[19..]), (20, "T", "Z"));
        assert!(made.to_string().starts_with(&format!("difftest {VERSION}")), "{made}");
        let split =
            |labels: &[u8]| Split { images: vec![0; 2 * labels.len()], labels: labels.into(), height: 1, width: 2 };
        let data = DataReport::of(&Dataset { train: split(&[0, 2]), test: split(&[1]) });
        assert_eq!((data.train_rows, data.test_rows, data.classes), (2, 1, 3));
        // SHA-256 of 00 00 00 00 00 02 00 00 01.
        let bytes: [u8; 9] = [0, 0, 0, 0, 0, 2, 0, 0, 1];
        let whole: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(data.sha256, whole);
    }
}
