//! Rows as CSV (RFC 4180), in the order of the fields.

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A JSON value that remembers the order of its fields.
#[derive(Debug, Clone, PartialEq)]
enum Ordered {
    Leaf(String),
    List(Vec<Ordered>),
    Record(Vec<(String, Ordered)>),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(String::new()))
    }

    fn visit_bool<E>(self, v: bool) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(serde_json::Value::from(v).to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(v.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Ordered::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Ordered, A::Error> {
        let mut record = Vec::new();
        while let Some(field) = fields.next_entry()? {
            record.push(field);
        }
        Ok(Ordered::Record(record))
    }
}

/// The table with a line of names. Nested fields are named `outer.inner`, elements of lists by their position; lists of
/// records are left out, they have files of their own. An empty field is a value that is not available.
pub fn csv<T: Serialize>(rows: &[T]) -> String {
    let mut table: Vec<Vec<(String, String)>> = Vec::new();
    for row in rows {
        let mut fields = Vec::new();
        let text = serde_json::to_string(row).unwrap_or_default();
        if let Ok(value) = serde_json::from_str(&text) {
            flatten(String::new(), &value, &mut fields);
        }
        table.push(fields);
    }
    let columns = columns(&table);
    let line = |cells: Vec<&str>| cells.into_iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n";
    let mut out = line(columns.iter().map(String::as_str).collect());
    for row in &table {
        let field = |c: &String| row.iter().find(|(name, _)| name == c).map_or("", |(_, v)| v.as_str());
        out.push_str(&line(columns.iter().map(field).collect()));
    }
    out
}

/// All columns in the order of the fields: lists may differ in length from row to row, and a null record has no columns
/// of its own.
fn columns(table: &[Vec<(String, String)>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in table {
        let mut at = 0;
        for (name, _) in row {
            // After the row's column before it, so that a longer row does not put its own at the end.
            match columns.iter().position(|c| c == name) {
                Some(found) => at = found + 1,
                None => {
                    columns.insert(at, name.clone());
                    at += 1;
                }
            }
        }
    }
    let inside = |column: &str| {
        table.iter().flatten().any(|(name, _)| name.strip_prefix(column).is_some_and(|rest| rest.starts_with('.')))
    };
    columns.retain(|c| !inside(c));
    columns
}

fn flatten(name: String, value: &Ordered, fields: &mut Vec<(String, String)>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Ordered::Record(record) => record.iter().for_each(|(k, v)| flatten(inner(k), v, fields)),
        Ordered::List(items) if items.iter().any(|i| matches!(i, Ordered::Record(_))) => {}
        Ordered::List(items) => items.iter().enumerate().for_each(|(i, v)| flatten(inner(&i.to_string()), v, fields)),
        Ordered::Leaf(text) => fields.push((name, text.clone())),
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}

#[cfg(test)]
mod tests {
    use super::super::table1::Measured;
    use super::*;

    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        pair: [Option<f64>; 2],
        measured: Option<Measured>,
        dead: Vec<usize>,
    }

    #[test]
    fn columns_are_in_the_order_of_the_fields() {
        let measured = Some(Measured { value: 1.5, error: 0.25 });
        let rows = [
            Row { name: "a,\"b\"", pair: [Some(1.0), None], measured: None, dead: vec![1] },
            Row { name: "c", pair: [None, Some(2.0)], measured, dead: vec![3, 4] },
        ];
        assert_eq!(
            csv(&rows),
            "name,pair.0,pair.1,measured.value,measured.error,dead.0,dead.1\r\n\
             \"a,\"\"b\"\"\",1.0,,,,1,\r\nc,,2.0,1.5,0.25,3,4\r\n"
        );
        assert_eq!(csv::<Row>(&[]), "\r\n");
    }
}
