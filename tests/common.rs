//! Used by all tests of the program.

use fixtures::Split;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program, to be given its arguments.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_difftest"))
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A folder with the first 2,048 training and 512 test images of MNIST, for `--data`: where it does not matter how many
/// there are. A run unpacks all of MNIST and evaluates all of its test images, which takes longer than a few steps.
pub fn sample() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mnist-sample");
        let data = fixtures::mnist().unwrap();
        // Whole when it gets its name; the one of an earlier run is the same.
        let new = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        write(new.path(), "train", &data.train, 2048);
        write(new.path(), "t10k", &data.test, 512);
        let renamed = std::fs::rename(new.path(), &made);
        assert!(renamed.is_ok() || made.is_dir(), "{}: {renamed:?}", made.display());
        made.into_os_string().into_string().unwrap()
    })
}

/// The first `rows` rows of a split as two IDX files, `name` being `train` or `t10k`.
pub fn write(folder: &Path, name: &str, split: &Split, rows: usize) {
    let idx = |magic: u32, sizes: &[usize], bytes: &[u8]| {
        let header = std::iter::once(magic).chain(sizes.iter().map(|&size| size as u32));
        [&header.flat_map(u32::to_be_bytes).collect::<Vec<_>>(), bytes].concat()
    };
    let images = idx(0x803, &[rows, split.height, split.width], &split.images[..rows * split.inputs()]);
    std::fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
    let labels = idx(0x801, &[rows], &split.labels[..rows]);
    std::fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
}

/// Images of 4 x 4 pixels, one of which is bright: number `bright` of the row.
pub fn one_bright_pixel(rows: usize, bright: impl Fn(usize) -> usize, label: impl Fn(usize) -> u8) -> Split {
    let images = (0..rows * 16).map(|i| if i % 16 == bright(i / 16) { 255 } else { 0 }).collect();
    Split { images, labels: (0..rows).map(label).collect(), height: 4, width: 4 }
}
