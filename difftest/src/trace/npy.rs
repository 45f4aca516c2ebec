//! One array in NumPy's `.npy` format, versions 1 to 3.
//!
//! The header is a Python dictionary literal with the keys `descr`, `fortran_order` and `shape`. Only little-endian
//! and single-byte element types
//! are read. Source: NumPy Enhancement Proposal 1 and `numpy.lib.format`.

use super::tensor::{Tensor, Values, elements};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read, in bytes. NumPy's own are below 200.
const LONGEST_HEADER: usize = 1 << 14;

/// The most dimensions that are read.
const MOST_DIMENSIONS: usize = 8;

/// The contents of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// An array of numbers.
    Tensor(Tensor),
    /// A text: a single Unicode string, or UTF-8 bytes.
    Text(String),
}

/// Reads one array.
///
/// # Errors
/// One line that says what was expected and what was found.
pub fn read(bytes: &[u8]) -> Result<Array, String> {
    let (header, data) = split(bytes)?;
    let descr = text_of(header, "descr")?;
    let fortran = match value_of(header, "fortran_order")? {
        v if v.starts_with("True") => true,
        v if v.starts_with("False") => false,
        _ => return Err("its header says neither True nor False for fortran_order".into()),
    };
    let shape = shape_of(value_of(header, "shape")?)?;
    if let Some(width) = descr.strip_prefix("<U") {
        return Ok(Array::Text(unicode(width, &shape, data)?));
    }
    if descr.starts_with("|S") && shape.is_empty() {
        let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
        let text = std::str::from_utf8(&data[..end]).map_err(|e| format!("its text is not UTF-8: {e}"))?;
        return Ok(Array::Text(text.into()));
    }
    let count = elements(&shape).ok_or("its shape has more elements than can be counted")?;
    let values = values(descr, count, data)?;
    let tensor = Tensor { shape, values };
    Ok(Array::Tensor(if fortran { row_major(tensor) } else { tensor }))
}

/// The bytes that the elements of an array take when it has been read: eight for each integer, however short it was. 0
/// for what is no array.
pub fn kept_bytes(bytes: &[u8]) -> u64 {
    let Ok((header, data)) = split(bytes) else { return 0 };
    let width = match text_of(header, "descr") {
        Ok("|i1" | "|u1" | "|b1") => 1,
        Ok("<i2" | "<u2") => 2,
        Ok("<i4" | "<u4") => 4,
        _ => 8,
    };
    (data.len() as u64 / width).saturating_mul(8)
}

/// Header text and data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not start as a .npy array does")?;
    let (&[major, _], rest) = rest.split_first_chunk::<2>().ok_or("it ends inside its version")?;
    let (length, rest) = match major {
        1 => {
            let (n, rest) = rest.split_first_chunk::<2>().ok_or("it ends inside its header's length")?;
            (usize::from(u16::from_le_bytes(*n)), rest)
        }
        2 | 3 => {
            let (n, rest) = rest.split_first_chunk::<4>().ok_or("it ends inside its header's length")?;
            (u32::from_le_bytes(*n) as usize, rest)
        }
        _ => return Err(format!("its .npy version is {major}; 1, 2 and 3 are read")),
    };
    if length > LONGEST_HEADER {
        return Err(format!("its header has {length} bytes; at most {LONGEST_HEADER} are read"));
    }
    let (header, data) = rest.split_at_checked(length).ok_or("it ends inside its header")?;
    let header = std::str::from_utf8(header).map_err(|e| format!("its header is no text: {e}"))?;
    Ok((header, data))
}

/// What follows a key of the dictionary.
fn value_of<'h>(header: &'h str, key: &str) -> Result<&'h str, String> {
    let at = header.find(&format!("'{key}'")).ok_or_else(|| format!("its header has no {key}"))?;
    let rest = header[at + key.len() + 2..].trim_start();
    let rest = rest.strip_prefix(':').ok_or_else(|| format!("its header has no value for {key}"))?;
    Ok(rest.trim_start())
}

fn text_of<'h>(header: &'h str, key: &str) -> Result<&'h str, String> {
    let rest = value_of(header, key)?.strip_prefix('\'');
    let rest = rest.ok_or_else(|| format!("its {key} is no text: save plain arrays, not records"))?;
    Ok(&rest[..rest.find('\'').ok_or_else(|| format!("its {key} does not end"))?])
}

fn shape_of(text: &str) -> Result<Vec<usize>, String> {
    let inner = text.strip_prefix('(').and_then(|t| t.split_once(')')).ok_or("its shape is no tuple")?.0;
    let lengths = inner.split(',').map(str::trim).filter(|t| !t.is_empty());
    let shape: Vec<usize> = lengths
        .take(MOST_DIMENSIONS + 1)
        .map(|t| {
            t.trim_end_matches('L').parse().map_err(|_| format!("its shape has a length that is no number: {t:?}"))
        })
        .collect::<Result<_, String>>()?;
    if shape.len() > MOST_DIMENSIONS {
        return Err(format!("it has more than {MOST_DIMENSIONS} dimensions"));
    }
    Ok(shape)
}

/// A single string of `width` code points of four bytes.
fn unicode(width: &str, shape: &[usize], data: &[u8]) -> Result<String, String> {
    let width: usize = width.parse().map_err(|_| "its text has no length")?;
    if elements(shape) != Some(1) || width.checked_mul(4) != Some(data.len()) {
        return Err("it is text of another length than its header says; a header is one string".into());
    }
    let points = data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).take_while(|&c| c != 0);
    points.map(|c| char::from_u32(c).ok_or_else(|| format!("{c:#x} is no character"))).collect()
}

/// `count` elements of type `descr`: exactly the bytes that are there.
fn values(descr: &str, count: usize, data: &[u8]) -> Result<Values, String> {
    macro_rules! read {
        ($kind:ident, $t:ty, $as:expr) => {{
            const WIDTH: usize = size_of::<$t>();
            if count.checked_mul(WIDTH) != Some(data.len()) {
                return Err(format!("{count} elements of {WIDTH} bytes do not fit its {} bytes of data", data.len()));
            }
            let (chunks, _) = data.as_chunks::<WIDTH>();
            Ok(Values::$kind(chunks.iter().map(|c| $as(<$t>::from_le_bytes(*c))).collect()))
        }};
    }
    match descr {
        "<i8" => read!(Units, i64, |v| v),
        "<u8" => read!(Units, u64, |v| v as i64),
        "<i4" => read!(Units, i32, i64::from),
        "<u4" => read!(Units, u32, i64::from),
        "<i2" => read!(Units, i16, i64::from),
        "<u2" => read!(Units, u16, i64::from),
        "|i1" => read!(Units, i8, i64::from),
        "|u1" | "|b1" => read!(Units, u8, i64::from),
        "<f8" => read!(Doubles, f64, |v| v),
        "<f4" => read!(Singles, f32, |v| v),
        _ => Err(format!("its element type is {descr}; integers of 1 to 8 bytes, <f4 and <f8 are read")),
    }
}

/// Elements of a column-major array in row-major order.
fn row_major(tensor: Tensor) -> Tensor {
    fn reorder<T: Copy>(shape: &[usize], v: &[T]) -> Vec<T> {
        let mut stride = vec![1; shape.len()];
        (1..shape.len()).for_each(|d| stride[d] = stride[d - 1] * shape[d - 1]);
        let mut index = vec![0; shape.len()];
        let mut out = Vec::with_capacity(v.len());
        for _ in 0..v.len() {
            out.push(v[index.iter().zip(&stride).map(|(i, s)| i * s).sum::<usize>()]);
            for d in (0..shape.len()).rev() {
                index[d] += 1;
                if index[d] < shape[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        out
    }
    let values = match &tensor.values {
        Values::Units(v) => Values::Units(reorder(&tensor.shape, v)),
        Values::Doubles(v) => Values::Doubles(reorder(&tensor.shape, v)),
        Values::Singles(v) => Values::Singles(reorder(&tensor.shape, v)),
    };
    Tensor { values, ..tensor }
}

/// Writes one tensor as version 1.
pub fn write(tensor: &Tensor) -> Vec<u8> {
    let (descr, width) = match tensor.values {
        Values::Units(_) => ("<i8", 8),
        Values::Doubles(_) => ("<f8", 8),
        Values::Singles(_) => ("<f4", 4),
    };
    let shape: Vec<String> = tensor.shape.iter().map(|d| format!("{d},")).collect();
    let mut out = start(descr, &format!("({})", shape.join(" ")));
    out.reserve(tensor.values.len() * width);
    match &tensor.values {
        Values::Units(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Doubles(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Singles(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
    }
    out
}

/// Writes a text as a single Unicode string, as `numpy.array(text)` does.
pub fn write_text(text: &str) -> Vec<u8> {
    let mut out = start(&format!("<U{}", text.chars().count()), "()");
    text.chars().for_each(|c| out.extend(u32::from(c).to_le_bytes()));
    out
}

/// Everything before the data, padded to a multiple of 64 bytes.
fn start(descr: &str, shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    let length = header.len() + 1 + (64 - unpadded % 64) % 64;
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((length as u16).to_le_bytes());
    out.extend(header.bytes());
    out.resize(MAGIC.len() + 4 + length - 1, b' ');
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (rows, cols) in (0usize..5, 0usize..5),
            v in prop::collection::vec(any::<i64>(), 16),
        ) {
            let ints = Tensor::new(vec![rows, cols], Values::Units(v[..rows * cols].to_vec())).unwrap();
            let bytes = write(&ints);
            prop_assert_eq!((bytes.len() - rows * cols * 8) % 64, 0, "data are aligned");
            prop_assert_eq!(read(&bytes).unwrap(), Array::Tensor(ints));
            let reals: Vec<f64> = v.iter().map(|v| *v as f64 / 3.0).collect();
            let singles = Tensor::new(vec![16], Values::Singles(reals.iter().map(|v| *v as f32).collect())).unwrap();
            prop_assert_eq!(read(&write(&singles)).unwrap(), Array::Tensor(singles));
            let doubles = Tensor::new(vec![2, 2, 4], Values::Doubles(reals)).unwrap();
            prop_assert_eq!(read(&write(&doubles)).unwrap(), Array::Tensor(doubles));
        }

        #[test]
        fn damaged_arrays_are_refused_or_read_but_never_a_panic(at in 0usize..140, byte: u8, cut in 0usize..160) {
            let tensor = Tensor::new(vec![2, 1], Values::Units(vec![1, 2])).unwrap();
            let mut bytes = write(&tensor);
            let place = at % bytes.len();
            bytes[place] = byte;
            bytes.truncate(cut.max(1));
            let _ = read(&bytes);
        }
    }

    #[test]
    fn column_major_arrays_are_turned() {
        let mut bytes = write(&Tensor::new(vec![2, 3], Values::Units(vec![1, 2, 3, 4, 5, 6])).unwrap());
        let at = bytes.windows(7).position(|w| w == b"False, ").unwrap();
        bytes[at..at + 7].copy_from_slice(b"True,  ");
        let Array::Tensor(t) = read(&bytes).unwrap() else { panic!("a tensor") };
        assert_eq!(t.values, Values::Units(vec![1, 3, 5, 2, 4, 6]), "columns (1, 2), (3, 4), (5, 6)");
    }

    #[test]
    fn a_header_that_promises_more_than_is_there_takes_no_memory() {
        let mut bytes = start("<f8", "(999999999, 999999999)");
        bytes.extend([0; 8]);
        assert!(read(&bytes).unwrap_err().contains("do not fit its 8 bytes"));
        assert!(read(&start("<f8", "(18446744073709551615, 3)")).unwrap_err().contains("counted"));
        assert!(read(&start("|O", "(1,)")).unwrap_err().contains("element type is |O"));
        assert_eq!(read(&write_text("{\"ä\": 1}")).unwrap(), Array::Text("{\"ä\": 1}".into()));
    }

    #[test]
    fn the_longest_of_everything_is_read_and_one_more_is_not() {
        let dimensions = |n: usize| read(&[start("|u1", &format!("({})", "1,".repeat(n))), vec![9]].concat());
        assert!(dimensions(MOST_DIMENSIONS).is_ok());
        assert!(dimensions(MOST_DIMENSIONS + 1).unwrap_err().contains("more than 8 dimensions"));
        let padded = |length: usize| {
            let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
            let mut bytes = [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), header.as_bytes()].concat();
            bytes.resize(MAGIC.len() + 4 + length, b' ');
            read(&[bytes, vec![9]].concat())
        };
        assert!(padded(LONGEST_HEADER).is_ok());
        assert!(padded(LONGEST_HEADER + 1).unwrap_err().contains("at most 16384 are read"));
        let version = |major: u8| {
            let mut bytes = [start("|u1", "(1,)"), vec![9]].concat();
            bytes[MAGIC.len()] = major;
            if major > 1 {
                // The length has four bytes from version 2 on.
                bytes.splice(MAGIC.len() + 4..MAGIC.len() + 4, [0, 0]);
            }
            read(&bytes).map(|_| ())
        };
        assert_eq!([version(1), version(2), version(3)], [Ok(()), Ok(()), Ok(())]);
        assert!(version(0).unwrap_err().contains("version is 0") && version(4).unwrap_err().contains("version is 4"));
    }

    #[test]
    fn every_element_type_has_its_width_sign_and_size_in_memory() {
        let of = |descr: &str, bytes: &[u8]| {
            let array = [start(descr, "(1,)"), bytes.to_vec()].concat();
            (read(&array).map(|a| if let Array::Tensor(t) = a { Some(t.values) } else { None }), kept_bytes(&array))
        };
        let units = |v: i64| (Ok(Some(Values::Units(vec![v]))), 8);
        for descr in ["<i8", "<i4", "<i2", "|i1"] {
            let width = usize::from(descr.as_bytes()[2] - b'0');
            assert_eq!(of(descr, &vec![0xff; width]), units(-1), "{descr}");
            assert!(of(descr, &vec![0xff; width + 1]).0.is_err() && of(descr, &vec![0xff; width - 1]).0.is_err());
        }
        assert_eq!(of("<u4", &[0xff; 4]), units(u32::MAX.into()));
        assert_eq!(of("<u2", &[0xff; 2]), units(u16::MAX.into()));
        assert_eq!((of("|u1", &[0xff]), of("|b1", &[1])), (units(255), units(1)));
        assert_eq!(of("<u8", &[0xff; 8]), units(-1), "two's complement");
        assert_eq!(of("<f8", &1.5f64.to_le_bytes()), (Ok(Some(Values::Doubles(vec![1.5]))), 8));
        assert_eq!(of("<f4", &1.5f32.to_le_bytes()).0, Ok(Some(Values::Singles(vec![1.5]))));
        assert!(of(">i8", &[0; 8]).0.unwrap_err().contains("element type is >i8"));
    }

    #[test]
    fn a_text_is_one_string_of_the_length_that_it_says() {
        let of = |width: &str, shape: &[usize], bytes: usize| unicode(width, shape, &vec![0; bytes]);
        assert_eq!((of("2", &[], 8), of("2", &[1], 8)), (Ok(String::new()), Ok(String::new())));
        for (width, shape, bytes) in [("2", &[2][..], 8), ("2", &[], 4), ("3", &[1], 8), ("2", &[2], 16)] {
            assert!(
                of(width, shape, bytes).unwrap_err().contains("text of another length"),
                "{width} {shape:?} {bytes}"
            );
        }
    }
}
