//! Output files, written as a whole or not at all, and refused before the work if they cannot be written.

use crate::error::Error;
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Refuses a file that cannot be written, by making one beside it that is gone again: before a run, not after it.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn check_output(path: Option<&Path>) -> Result<(), Error> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        return Err(Error::Usage("-: an output is a file; name one (/dev/stdout is the standard output)".into()));
    }
    if path.is_dir() {
        return Err(Error::Usage(format!("{}: is a folder; name a file", path.display())));
    }
    let target = target(path);
    if target.exists() && !target.is_file() {
        return Ok(());
    }
    let parent = folder(&target);
    if !parent.is_dir() {
        return Err(Error::Usage(format!(
            "{}: there is no folder {}; make it, or name another file",
            path.display(),
            parent.display()
        )));
    }
    tempfile::tempfile_in(parent).map(drop).map_err(Error::file(path))
}

/// Refuses two outputs to the same file: the later one would replace the earlier.
///
/// # Errors
/// Names the file.
pub fn check_distinct<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for path in paths {
        let target = target(path);
        let place = folder(&target).canonicalize().unwrap_or_default().join(target.file_name().unwrap_or_default());
        if (!target.exists() || target.is_file()) && !seen.insert(place) {
            return Err(Error::Usage(format!(
                "{}: two outputs would go to this file; give each its own",
                path.display()
            )));
        }
    }
    Ok(())
}

/// What is written to: a link stays, and what it leads to is replaced.
fn target(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file as a whole or not at all: to a temporary file beside it, which is then renamed.
///
/// # Errors
/// Names the file.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    place(path, contents, false)
}

/// Writes a file as [`write()`] does, readable by its owner only.
///
/// # Errors
/// Names the file.
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), Error> {
    place(path, contents, true)
}

/// A file that is replaced keeps its mode, but a private one its owner's rights only.
fn place(path: &Path, contents: &[u8], private: bool) -> Result<(), Error> {
    let place = || -> std::io::Result<()> {
        let target = target(path);
        let old = std::fs::metadata(&target).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            // A device or a pipe is written to; there is nothing to be replaced.
            return std::fs::OpenOptions::new().write(true).open(&target)?.write_all(contents);
        }
        let mut builder = tempfile::Builder::new();
        #[cfg(not(unix))]
        let _ = (private, old);
        #[cfg(unix)]
        builder.permissions(PermissionsExt::from_mode(if private { 0o600 } else { 0o666 }));
        let mut file = builder.tempfile_in(folder(&target))?;
        file.write_all(contents)?;
        #[cfg(unix)]
        if let Some(old) = old {
            let kept = old.permissions().mode() & if private { 0o700 } else { 0o7777 };
            file.as_file().set_permissions(PermissionsExt::from_mode(kept))?;
        }
        file.persist(&target)?;
        Ok(())
    };
    place().map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_missing_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
        let error = write(&dir.path().join("missing/report.json"), b"").unwrap_err().to_string();
        assert!(error.contains("missing/report.json"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_modes_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_private(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((std::fs::read(&file).unwrap().as_slice(), mode(&file)), (b"two".as_slice(), 0o600));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o664)).unwrap();
        write(&file, b"three").unwrap();
        assert_eq!(mode(&file), 0o664);
        write_private(&file, b"secret").unwrap();
        assert_eq!(mode(&file), 0o600, "who could read the old file cannot read the new one");
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        let new = dir.path().join("new");
        write(&new, b"").unwrap();
        assert_eq!(mode(&new) & 0o111, 0);
        assert_ne!(mode(&new) & 0o400, 0);
    }

    #[test]
    fn an_output_that_cannot_be_is_refused_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| check_output(Some(path)).unwrap_err().to_string();
        assert!(refused(dir.path()).contains("is a folder"));
        assert!(refused(&dir.path().join("missing/report.json")).contains("there is no folder"));
        assert!(refused(Path::new("-")).contains("/dev/stdout"));
        assert!(check_output(Some(&dir.path().join("report.json"))).is_ok() && check_output(None).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a check leaves nothing");
        #[cfg(target_os = "linux")]
        {
            assert!(check_output(Some(Path::new("/dev/null"))).is_ok());
            let error = refused(Path::new("/proc/report.json"));
            assert!(error.starts_with("/proc/report.json: ") && !error.contains("tmp"), "{error}");
        }
    }

    #[test]
    fn two_outputs_to_one_file_are_refused_however_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let again = dir.path().join(".").join("a");
        let other = dir.path().join("b");
        assert!(check_distinct([&*file, &*other]).is_ok());
        let error = check_distinct([&*file, &*other, &*again]).unwrap_err().to_string();
        assert!(error.contains("two outputs"), "{error}");
        std::fs::write(&file, "").unwrap();
        assert!(check_distinct([&*file, &*again]).is_err());
        assert!(check_distinct([Path::new("/dev/null"), Path::new("/dev/null")]).is_ok());
    }
}
