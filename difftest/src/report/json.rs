//! Reports as JSON. Numbers are complete; a reader must check `schema`.

use super::Report;
use crate::provenance::{DataReport, Provenance};
use fixtures::Dataset;
use serde::Serialize;

/// The whole report of a comparison, indented, with a line feed at the end.
pub fn report(report: &Report) -> String {
    text(report)
}

/// The JSON of another command's results, as [`report`] writes its own: with `made`, where it comes from, and, if it
/// was run on data, with `data`.
pub fn stamped(found: &impl Serialize, data: Option<&Dataset>) -> String {
    #[derive(Serialize)]
    struct Stamped<'a, T> {
        #[serde(flatten)]
        found: &'a T,
        made: Provenance,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<DataReport>,
    }
    text(&Stamped { found, made: Provenance::now(), data: data.map(DataReport::of) })
}

fn text(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("strings, numbers and lists always have a JSON form");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_stands_beside_what_was_found() {
        #[derive(Serialize)]
        struct Found {
            schema: u32,
            ratio: f64,
        }
        let json: serde_json::Value = serde_json::from_str(&stamped(&Found { schema: 1, ratio: 0.1 }, None)).unwrap();
        assert_eq!((&json["schema"], &json["ratio"]), (&1.into(), &0.1.into()));
        assert_eq!(json["made"]["version"], crate::provenance::VERSION);
        assert!(json.get("data").is_none());
        let data = fixtures::mnist().unwrap();
        let json: serde_json::Value =
            serde_json::from_str(&stamped(&Found { schema: 1, ratio: 0.1 }, Some(&data))).unwrap();
        assert_eq!((&json["data"]["train_rows"], &json["data"]["classes"]), (&60_000.into(), &10.into()));
    }
}
