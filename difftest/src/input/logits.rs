//! Logits and labels as JSON: `{"logits": [[2.0, -1.0, 0.3], ...], "labels": [0, ...]}`.

use super::not_finite;
use crate::error::Error;
use ndarray::Array2;
use serde::Deserialize;
use std::path::Path;

/// The fewest and the most classes of a row.
const CLASSES: std::ops::RangeInclusive<usize> = 2..=4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    logits: Vec<Vec<f64>>,
    labels: Vec<Label>,
}

/// A label as it is written, which need not name a class.
#[derive(Debug, Clone, Copy)]
struct Label(i128);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Integer;
        impl serde::de::Visitor<'_> for Integer {
            type Value = Label;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a class, which is an integer from 0 on")
            }
            fn visit_i64<E>(self, v: i64) -> Result<Label, E> {
                Ok(Label(v.into()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Label, E> {
                Ok(Label(v.into()))
            }
        }
        deserializer.deserialize_i64(Integer)
    }
}

/// Reads the text of a file that is called `path`. Returns the logits, (rows, classes), all finite, and a class for
/// each row.
///
/// # Errors
/// One line that names the file, the row, and what would be right.
pub fn parse(path: &Path, text: &str) -> Result<(Array2<f64>, Vec<usize>), Error> {
    let bad = |what: String| Error::Usage(format!("{}: {what}", path.display()));
    let Input { logits, labels } = serde_json::from_str(text).map_err(|e| match not_finite(text) {
        Some(word) => bad(format!("{word} is no JSON number; logits must be finite")),
        None => bad(format!("{e}; expected {{\"logits\": [[..], ..], \"labels\": [..]}}")),
    })?;
    if logits.is_empty() || logits.len() != labels.len() {
        return Err(bad(format!(
            "{} rows of logits and {} labels; give one label a row, and at least one row",
            logits.len(),
            labels.len()
        )));
    }
    let classes = logits[0].len();
    if !CLASSES.contains(&classes) {
        let (least, most) = (CLASSES.start(), CLASSES.end());
        return Err(bad(format!("row 0 has {classes} logits; a row has {least} to {most}")));
    }
    if let Some(row) = logits.iter().position(|r| r.len() != classes) {
        return Err(bad(format!(
            "row {row} has {} logits, row 0 has {classes}; all rows must have the same class count",
            logits[row].len()
        )));
    }
    if let Some(row) = labels.iter().position(|l| !(0..classes as i128).contains(&l.0)) {
        return Err(bad(format!(
            "label {} of row {row} names no class; with {classes} logits labels are 0 to {}",
            labels[row].0,
            classes - 1
        )));
    }
    let labels: Vec<usize> = labels.into_iter().map(|l| l.0 as usize).collect();
    let flat: Vec<f64> = logits.into_iter().flatten().collect();
    let matrix = Array2::from_shape_vec((labels.len(), classes), flat).map_err(|e| bad(e.to_string()))?;
    Ok((matrix, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_are_read_and_what_is_wrong_is_named_by_row() {
        let read = |text: &str| parse(Path::new("f"), text);
        let (logits, labels) = read(r#"{"logits": [[1, -2.5], [0, 3]], "labels": [1, 0]}"#).unwrap();
        assert_eq!((logits, labels), (ndarray::array![[1.0, -2.5], [0.0, 3.0]], vec![1, 0]));
        for (text, says) in [
            (r#"{"logits": [[1, NaN]], "labels": [0]}"#, "NaN is no JSON number"),
            (r#"{"logits": [], "labels": []}"#, "at least one row"),
            (r#"{"logits": [[1]], "labels": [0]}"#, "row 0 has 1 logits; a row has 2 to 4096"),
            (r#"{"logits": [[1, 2], [3]], "labels": [0, 0]}"#, "row 1 has 1 logits, row 0 has 2"),
            (r#"{"logits": [[1, 2]], "labels": [-1]}"#, "label -1 of row 0 names no class"),
            (r#"{"logits": [[1, 2]], "labels": [2]}"#, "labels are 0 to 1"),
            (r#"{"logits": [[1, 2]], "labels": [0], "more": 1}"#, "unknown field"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("f: ") && error.contains(says), "{error}");
        }
    }
}
