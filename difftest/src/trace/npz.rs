//! A trace as NumPy's `.npz`: a zip archive of `.npy` arrays, one a tensor, and the header as a text array named
//! `header`.

use super::npy::{self, Array};
use super::tensor::Tensor;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The contents of an archive: the header's text and the tensors by name.
pub type Contents = (String, BTreeMap<String, Tensor>);

/// The name of the header's array.
const HEADER: &str = "header";

/// The most arrays that are read.
const MOST_ARRAYS: usize = 1 << 16;

/// Reads an archive of at most `limit` bytes, unpacked and as they are kept: every integer takes eight.
///
/// # Errors
/// One line that names the array and what is wrong with it.
pub fn read(bytes: &[u8], limit: u64) -> Result<Contents, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| format!("it is no .npz archive ({e})"))?;
    if archive.len() > MOST_ARRAYS {
        return Err(format!("it has {} arrays; at most {MOST_ARRAYS} are read", archive.len()));
    }
    let mut left = limit;
    let mut tensors = BTreeMap::new();
    let mut header = None;
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|e| format!("array {i}: {e}"))?;
        let name = member.name().to_owned();
        let refuse = |what: String| format!("array {name}: {what}");
        let key = name.strip_suffix(".npy").ok_or_else(|| refuse("its name does not end in .npy".into()))?;
        let mut data = Vec::new();
        // One byte more than allowed tells "too long" from "just fits", whatever the archive says of itself.
        member.by_ref().take(left + 1).read_to_end(&mut data).map_err(|e| refuse(e.to_string()))?;
        let too_long = || refuse(format!("the trace has more than {limit} bytes; record fewer steps"));
        // A byte as an element may become eight, and packed it may have been next to none.
        let kept = npy::kept_bytes(&data).max(data.len() as u64);
        left = left.checked_sub(kept).ok_or_else(too_long)?;
        match npy::read(&data).map_err(refuse)? {
            Array::Tensor(tensor) => _ = tensors.insert(key.to_owned(), tensor),
            Array::Text(text) if key == HEADER => header = Some(text),
            Array::Text(_) => return Err(refuse("it is text; only `header` is".into())),
        }
    }
    // A header may also come as bytes of UTF-8.
    if header.is_none()
        && let Some(tensor) = tensors.remove(HEADER)
        && let super::Values::Units(v) = tensor.values
    {
        let bytes = v.iter().map(|&b| u8::try_from(b)).collect::<Result<Vec<u8>, _>>();
        header = bytes.ok().and_then(|b| String::from_utf8(b).ok());
    }
    Ok((header.ok_or("it has no array named `header`; see docs/trace.md")?, tensors))
}

/// Writes an archive, packed.
///
/// # Errors
/// What the packer says.
pub fn write(header: &str, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>, String> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(false);
    let mut member = |name: &str, data: &[u8]| -> Result<(), String> {
        let options = if data.len() > u32::MAX as usize { options.large_file(true) } else { options };
        archive.start_file(format!("{name}.npy"), options).map_err(|e| e.to_string())?;
        archive.write_all(data).map_err(|e| e.to_string())
    };
    member(HEADER, &npy::write_text(header))?;
    for (name, tensor) in tensors {
        member(name, &npy::write(tensor))?;
    }
    Ok(archive.finish().map_err(|e| e.to_string())?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of one array of a million bytes that are zero, packed into a thousand.
    #[test]
    fn bytes_that_unpack_to_words_count_as_words() {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        let mut member = |name: &str, data: &[u8]| {
            archive.start_file(name, options).unwrap();
            archive.write_all(data).unwrap();
        };
        member("header.npy", &npy::write_text("{}"));
        let mut zeros = b"\x93NUMPY\x01\x00\x3e\x00".to_vec();
        zeros.extend(format!("{:<61}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (1048576,)}").bytes());
        zeros.resize(zeros.len() + (1 << 20), 0);
        member("step/0/extra/zeros.npy", &zeros);
        let bytes = archive.finish().unwrap().into_inner();
        assert!(bytes.len() < 4096, "{}", bytes.len());
        let error = read(&bytes, 8 << 20).unwrap_err();
        assert!(error.contains("array step/0/extra/zeros.npy: the trace has more than 8388608 bytes"), "{error}");
        let (header, tensors) = read(&bytes, (8 << 20) + 4096).unwrap();
        assert_eq!((header.as_str(), tensors["step/0/extra/zeros"].values.len()), ("{}", 1 << 20));
    }

    #[test]
    fn only_the_header_is_text() {
        let archive = |name: &str| {
            let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
            for (name, text) in [("header.npy", "{}"), (name, "x")] {
                archive.start_file(name, SimpleFileOptions::default()).unwrap();
                archive.write_all(&npy::write_text(text)).unwrap();
            }
            archive.finish().unwrap().into_inner()
        };
        let error = read(&archive("step/0/logits.npy"), 1 << 20).unwrap_err();
        assert_eq!(error, "array step/0/logits.npy: it is text; only `header` is");
    }
}
