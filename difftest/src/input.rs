//! Files that people write: read with a limit, and text as other programs save it.

use crate::error::Error;
use std::io::Read;
use std::path::Path;

/// All of a file, up to `most` bytes.
///
/// # Errors
/// A file that cannot be read, or is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(Error::file(path))?;
    // A file that says that it is too large is not read; one that grows, or a device, is read up to the limit.
    if file.metadata().is_ok_and(|file| file.len() > most) {
        return Err(Error::TooLarge { path: path.into(), most });
    }
    file.take(most + 1).read_to_end(&mut bytes).map_err(Error::file(path))?;
    if bytes.len() as u64 > most { Err(Error::TooLarge { path: path.into(), most }) } else { Ok(bytes) }
}

/// All of `source`, which is called `path`, up to `most` bytes, without the byte order mark that some editors and
/// spreadsheets put before UTF-8.
///
/// # Errors
/// A source that cannot be read, is not UTF-8, or is longer.
pub fn text(source: impl Read, path: &Path, most: u64) -> Result<String, Error> {
    let mut text = String::new();
    source.take(most + 1).read_to_string(&mut text).map_err(Error::file(path))?;
    if text.len() as u64 > most {
        return Err(Error::TooLarge { path: path.into(), most });
    }
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// All of a text file, as [`text`] reads it.
///
/// # Errors
/// Those of [`text`].
pub fn file(path: &Path, most: u64) -> Result<String, Error> {
    text(std::fs::File::open(path).map_err(Error::file(path))?, path, most)
}

/// The first word outside of quotes that other notations use for a number that is not finite, if there is one. JSON has
/// none.
pub fn not_finite(json: &str) -> Option<&str> {
    let (mut quoted, mut escaped, mut start) = (false, false, None);
    for (at, c) in json.char_indices().chain([(json.len(), ' ')]) {
        if quoted {
            (quoted, escaped) = (c != '"' || escaped, c == '\\' && !escaped);
            continue;
        }
        if c.is_ascii_alphabetic() {
            start.get_or_insert(at);
        } else if let Some(word) = start.take().map(|start| &json[start..at])
            && ["nan", "inf", "infinity"].iter().any(|w| word.eq_ignore_ascii_case(w))
        {
            return Some(word);
        }
        quoted = c == '"';
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let path = Path::new("f");
        assert_eq!(text(&b"\xef\xbb\xbf{}"[..], path, 10).unwrap(), "{}");
        assert_eq!(text(&b"{}"[..], path, 2).unwrap(), "{}");
        assert!(text(&b"{} "[..], path, 2).unwrap_err().to_string().contains("f: is larger than 2 bytes"));
        // UTF-16.
        assert!(text(&b"\xff\xfe{\0"[..], path, 10).unwrap_err().to_string().contains("it is not text"));
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_whatever_it_says_of_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "four").unwrap();
        assert_eq!((bytes(&path, 4).unwrap(), file(&path, 4).unwrap()), (b"four".to_vec(), "four".to_owned()));
        let large = |e: Error| assert!(e.to_string().contains("is larger than 3 bytes"), "{e}");
        large(bytes(&path, 3).unwrap_err());
        large(file(&path, 3).unwrap_err());
        #[cfg(unix)]
        large(bytes(Path::new("/dev/zero"), 3).unwrap_err());
    }

    #[test]
    fn words_for_what_is_not_finite_are_found_outside_of_strings() {
        assert_eq!(not_finite(r#"{"logits": [[NaN, 1]]}"#), Some("NaN"));
        assert_eq!(not_finite(r#"{"logits": [[1, -Infinity]]}"#), Some("Infinity"));
        assert_eq!(not_finite("[inf"), Some("inf"));
        assert_eq!(not_finite(r#"{"NaN \" NaN": true, "inf": 1e5}"#), None);
    }
}
