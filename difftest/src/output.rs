//! Output files, written as a whole or not at all, and refused before the work if they cannot be written.

use crate::error::{Error, OutputError};
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
        return Err(OutputError::Dash.into());
    }
    if path.is_dir() {
        return Err(OutputError::Folder(path.into()).into());
    }
    let target = target(path)?;
    if target.exists() && !target.is_file() {
        return Ok(());
    }
    let parent = folder(&target);
    if !parent.is_dir() {
        return Err(OutputError::NoFolder { path: path.into(), folder: parent.into() }.into());
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
        let target = target(path)?;
        let place = folder(&target).canonicalize().unwrap_or_default().join(target.file_name().unwrap_or_default());
        if (!target.exists() || target.is_file()) && !seen.insert(place) {
            return Err(OutputError::Twice(path.into()).into());
        }
    }
    Ok(())
}

/// What is written to: a link stays, and what it leads to is replaced, or made if it is not there.
fn target(path: &Path) -> Result<PathBuf, Error> {
    let mut target = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = folder(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(OutputError::Circle(path.into()).into())
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

fn place(path: &Path, contents: &[u8], private: bool) -> Result<(), Error> {
    let target = target(path)?;
    if std::fs::metadata(&target).is_ok_and(|old| !old.is_file()) {
        // A device or a pipe is written to; there is nothing to be replaced.
        let write = || std::fs::OpenOptions::new().write(true).open(&target)?.write_all(contents);
        return write().map_err(Error::file(path));
    }
    Prepared::new(path, contents, private)?.commit()
}

/// A file that is on the disk as a whole, but not yet under its name: gone unless it is committed.
pub(crate) struct Prepared {
    file: tempfile::NamedTempFile,
    /// As it was asked for.
    path: PathBuf,
    target: PathBuf,
}

impl Prepared {
    /// Writes `contents` beside what `path` leads to. A file that will be replaced keeps its mode, but a private one
    /// its owner's rights only.
    ///
    /// # Errors
    /// Names the file.
    pub(crate) fn new(path: &Path, contents: &[u8], private: bool) -> Result<Self, Error> {
        let target = target(path)?;
        let prepare = || -> std::io::Result<tempfile::NamedTempFile> {
            let mut builder = tempfile::Builder::new();
            let old = std::fs::metadata(&target).ok();
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
            // A name that outlives a power failure must not lead to bytes that did not.
            file.as_file().sync_all()?;
            Ok(file)
        };
        let file = prepare().map_err(Error::file(path))?;
        Ok(Prepared { file, path: path.to_owned(), target })
    }

    /// Gives the file its name, replacing what had it.
    ///
    /// # Errors
    /// Names the file; what had the name then still has it.
    pub(crate) fn commit(self) -> Result<(), Error> {
        let Prepared { file, path, target } = self;
        file.persist(&target).map_err(|e| Error::file(&path)(e.error))?;
        sync_folder(&target);
        Ok(())
    }
}

/// Makes the names in the folder of `file` last. Where a system has no such thing, names last when they will.
pub(crate) fn sync_folder(file: &Path) {
    if cfg!(unix) {
        let _ = std::fs::File::open(folder(file)).and_then(|f| f.sync_all());
    }
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

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_stays_and_leads_to_the_file() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let in_dir = |name: &str| dir.path().join(name);
        std::fs::create_dir(in_dir("sub")).unwrap();
        symlink("sub/file", in_dir("first")).unwrap();
        symlink("first", in_dir("second")).unwrap();
        check_output(Some(&in_dir("second"))).unwrap();
        write(&in_dir("second"), b"one").unwrap();
        assert_eq!(std::fs::read(in_dir("sub/file")).unwrap(), b"one");
        for link in ["first", "second"] {
            assert!(std::fs::symlink_metadata(in_dir(link)).unwrap().is_symlink(), "{link}");
        }
        let both = [in_dir("second"), in_dir("sub/file")];
        assert!(check_distinct(both.iter().map(PathBuf::as_path)).is_err());

        symlink("missing/file", in_dir("astray")).unwrap();
        let error = check_output(Some(&in_dir("astray"))).unwrap_err().to_string();
        assert!(error.contains("there is no folder") && error.contains("missing"), "{error}");
        symlink("circle", in_dir("circle")).unwrap();
        assert!(write(&in_dir("circle"), b"").is_err());
        assert!(std::fs::symlink_metadata(in_dir("circle")).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5, "nothing temporary is left");
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
