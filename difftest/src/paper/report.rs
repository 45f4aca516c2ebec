//! The files of a report.

use super::csv::csv;
#[cfg(feature = "html")]
use super::page;
use super::result::Findings;
use crate::error::Error;
use crate::output;
use std::path::Path;

/// Writes `report.json`, the CSVs and, in a build with the feature `html`, `report.html` into `dir`.
///
/// # Errors
/// Names the file.
pub fn write(found: &Findings, dir: &Path) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(found).map_err(Error::json("report.json"))?;
    output::write(&dir.join("report.json"), (json + "\n").as_bytes())?;
    let rates: Vec<_> = found.sides.iter().flat_map(|r| &r.rates).collect();
    for (name, text) in [
        ("table1.csv", csv(&found.table1)),
        ("sides.csv", csv(&found.sides)),
        ("rates.csv", csv(&rates)),
        ("table2.csv", csv(&found.table2)),
        ("claims.csv", csv(&found.claims)),
        ("curves.csv", csv(&found.curves)),
        ("drift.csv", csv(&found.drift)),
        ("nearness.csv", csv(&found.nearness)),
        ("protocols.csv", csv(&found.protocols)),
    ] {
        output::write(&dir.join(name), text.as_bytes())?;
    }
    #[cfg(feature = "html")]
    output::write(&dir.join("report.html"), page::page(found).as_bytes())?;
    Ok(())
}
